//! README.md lists every option as it is.

use std::{fs, path::Path};

use booking_service::config::Cli;
use clap::CommandFactory;
use service_kit::config::options_table;

use crate::openapi::pinned;

/// The text of README.md.
pub fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap()
}

const BEGIN: &str = "<!-- options of booking-service: begin -->\n";
const END: &str = "<!-- options of booking-service: end -->\n";

#[test]
fn the_table_of_options_is_the_command_line_s() {
    let readme = readme();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    pinned("README.md", &format!("{before}{BEGIN}{}{END}{after}", options_table(&Cli::command())));
}
