//! The problem codes of sign-in.

common::codes! {
    /// 400: a login that cannot be finished.
    BAD_LOGIN = 400 "bad-login", "The sign-in cannot be finished",
        "It was begun in another browser, more than ten minutes ago or before ten others, has been finished already, \
        or was refused by the sign-in provider. Sign in again.";
    /// 403: a person whom the directory does not list.
    NOT_A_MEMBER = 403 "not-a-member", "Only members can sign in",
        "Neither the club's directory nor a rule of the operator makes the account a member's. The operator of the \
        service can change that.";
    /// 403: a sign-in name that belongs to another person.
    NAME_TAKEN = 403 "name-taken", "The sign-in name belongs to another person",
        "Another account of the sign-in provider has already signed in under this name. The operator of the service \
        can resolve this.";
    /// 503: a sign-in that no further attempt can finish, because provider and options do not fit each other.
    SIGN_IN_MISCONFIGURED = 503 "sign-in-misconfigured", "Sign-in is not set up correctly",
        "The sign-in provider refuses this service as a client. Another attempt does not help until the operator \
        changes the options of the service or its registration at the provider; the log names the provider's error.";
}
