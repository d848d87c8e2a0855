//! README.md lists every option as it is.

use std::{fs, path::Path};

use clap::CommandFactory;
use portfolio_service::config::Cli;
use service_kit::config::options_table;

const BEGIN: &str = "<!-- options of portfolio-service: begin -->\n";
const END: &str = "<!-- options of portfolio-service: end -->\n";

#[test]
fn the_table_of_options_is_the_command_line_s() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(&file).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let right = options_table(&Cli::command());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, format!("{before}{BEGIN}{right}{END}{after}")).unwrap();
    } else {
        assert_eq!(table, right, "UPDATE_DOCS=1 scripts/test readme writes it");
    }
}
