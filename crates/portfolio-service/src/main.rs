//! Arguments, log, and on to the command.

use portfolio_service::{commands, config::Cli};
use service_kit::{config::parse, logging};

#[actix_web::main]
async fn main() {
    // On a bad argument, and for --help and --version, clap prints and ends the process.
    let cli: Cli = parse(std::env::args_os()).unwrap_or_else(|answer| answer.exit());
    logging::start(&cli.config.server.log, cli.config.server.log_format);
    let status = commands::run(cli).await;
    logging::flush();
    // Not by returning: the runtime would wait for threads that wait for another server.
    std::process::exit(status)
}
