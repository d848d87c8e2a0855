//! Parses the arguments, starts the log and runs the command.

use std::time::SystemTime;

use portfolio_service::{commands, config::Cli, server::INFO};
use service_kit::{
    command::{check_clock, exit_status},
    config::parse,
    database::require_home,
    logging,
};

#[actix_web::main]
async fn main() {
    require_home();
    // For a bad argument, --help and --version, clap prints a text and ends the process.
    let cli: Cli = parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    logging::start(&cli.config.server.log, cli.config.server.log_format);
    let status = match check_clock(SystemTime::now()) {
        Ok(()) => commands::run(cli).await,
        Err(error) => exit_status(INFO.name, Err(error)),
    };
    logging::flush();
    // A return would wait for the runtime's blocking threads, which may still wait for another server.
    std::process::exit(status)
}
