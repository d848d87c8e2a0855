//! Arguments, log, and on to the command.

use std::process::ExitCode;

use booking_service::{config::Cli, server};
use clap::Parser;

#[actix_web::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    service_kit::logging::start(&cli.config.server.log, cli.config.server.log_format);
    let _ = server::start(&cli.config, common::time::Clock::default()).await;
    ExitCode::SUCCESS
}
