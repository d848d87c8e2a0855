//! The problem codes of this service, besides those of both services.

common::codes! {
    /// 400: a file that is no picture, or too large.
    INVALID_PICTURE = 400 "invalid-picture", "This picture cannot be used",
        "A picture is a PNG, JPEG or WebP file of at most 1 MiB and 4000 pixels a side.";
    /// 409: the user already has an account of this type.
    SECOND_ACCOUNT = 409 "second-account-of-type", "There is an account of this type already",
        "A user has at most one account of each type. Change the present one, or delete it first.";
    /// 503: the clock is earlier than the newest change in the database.
    WRONG_CLOCK = 503 "wrong-clock", "The service's clock is wrong",
        "The directory is copied once the clock is right: semesters follow it.";
}
