//! The answer of a user to an event.

use service_kit::text_enum;

text_enum! {
    /// The answer of a user to an event.
    pub enum Schedule {
        /// No answer yet.
        Pending = "pending",
        /// Will not come.
        Absent = "absent",
        /// Will come.
        Attendance = "attendance",
    }
}
