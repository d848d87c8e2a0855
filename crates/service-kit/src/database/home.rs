//! The home folder of the process, in which libpq looks for files.

use std::{env, os::unix::process::CommandExt, process::Command};

/// Runs the program anew with `HOME=/` if the variable is missing or empty.
///
/// Without `HOME`, libpq asks the C library for the user's folder. The static C library of a release then loads modules
/// of the machine's own one (`nsswitch.conf`), and crashes with some. Setting a variable of a running process is unsafe.
pub fn require_home() {
    if env::var_os("HOME").is_none_or(|home| home.is_empty())
        && let Ok(program) = env::current_exe()
    {
        // Returns only an error. The program then goes on without the variable.
        let _error = Command::new(program).args(env::args_os().skip(1)).env("HOME", "/").exec();
    }
}
