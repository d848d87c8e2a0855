//! docs/configuration.md lists every option.

use std::{fs, path::Path};

use clap::CommandFactory;
use portfolio_service::config::Cli;

use crate::openapi::pinned;

#[path = "../../../service-kit/tests/shared/options_table.rs"]
mod options_table;
use self::options_table::options_table;

const OPTIONS: &str = "docs/configuration.md";
const BEGIN: &str = "<!-- options of portfolio-service: begin -->\n";
const END: &str = "<!-- options of portfolio-service: end -->\n";

#[test]
fn the_table_of_options_agrees_with_the_command_line() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(OPTIONS);
    let page = fs::read_to_string(file).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    pinned(OPTIONS, &format!("{before}{BEGIN}{}{END}{after}", options_table(&Cli::command())));
}
