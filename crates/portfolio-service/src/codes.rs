//! The problem codes of this service, besides those of both services.

common::codes! {
    /// 409: the user already has an account of this type.
    SECOND_ACCOUNT = 409 "second-account-of-type", "There is an account of this type already",
        "A user has at most one account of each type. Change the present one, or delete it first.";
    /// 503: the clock is earlier than the newest change in the database.
    WRONG_CLOCK = 503 "wrong-clock", "The service's clock is wrong",
        "The directory is copied once the clock is right: semesters follow it.";
}
