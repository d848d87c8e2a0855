//! The problem codes of this service besides the common ones.

common::codes! {
    /// 409: a second account of one type.
    SECOND_ACCOUNT = 409 "second-account-of-type", "There is an account of this type already",
        "A user has one account of each type at most. Change the present one, or delete it first.";
}
