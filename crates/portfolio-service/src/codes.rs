//! The problem codes of this service, besides those of both services.

common::codes! {
    /// 409: the user already has an account of this type.
    SECOND_ACCOUNT = 409 "second-account-of-type", "There is an account of this type already",
        "A user has at most one account of each type. Change the present one, or delete it first.";
}
