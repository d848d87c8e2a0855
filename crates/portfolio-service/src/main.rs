//! Arguments, log, and on to the command.

use std::process::ExitCode;

use clap::Parser;
use portfolio_service::{commands, config::Cli};

#[actix_web::main]
async fn main() -> ExitCode {
    // On a bad argument, and for --help and --version, clap prints and ends the process.
    let cli = Cli::parse();
    service_kit::logging::start(&cli.config.server.log, cli.config.server.log_format);
    commands::run(cli).await
}
