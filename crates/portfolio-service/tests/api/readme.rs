//! docs/configuration.md lists every option.

use clap::CommandFactory;
use portfolio_service::config::Cli;

use crate::openapi::pinned_part;

#[path = "../../../service-kit/tests/shared/options_table.rs"]
mod options_table;
use self::options_table::options_table;

#[test]
fn the_table_of_options_agrees_with_the_command_line() {
    pinned_part("docs/configuration.md", "options of both services", &options_table(&Cli::command(), true));
    pinned_part("docs/configuration.md", "options of portfolio-service", &options_table(&Cli::command(), false));
}
