//! Parses the arguments, starts the log and runs the command.

use booking_service::{commands, config::Cli};
use service_kit::{config::parse, database::require_home, logging};

#[actix_web::main]
async fn main() {
    require_home();
    // On a bad argument, and for --help and --version, clap prints and ends the process.
    let cli: Cli = parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    logging::start(&cli.config.server.log, cli.config.server.log_format);
    let status = commands::run(cli).await;
    logging::flush();
    // Returning from `main` would wait for the blocking threads, which may be waiting for another server.
    std::process::exit(status)
}
