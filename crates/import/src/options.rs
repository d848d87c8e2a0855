//! The options of the command.

use std::path::PathBuf;

use clap::Args;

use service_kit::config::Secret;

/// `import …`, the same for every service.
#[derive(Debug, Clone, Args)]
pub struct ImportOptions {
    /// The database to read, as `mysql://USER@HOST[:PORT]/DATABASE`. The user needs SELECT alone.
    #[arg(value_name = "URL")]
    pub url: Secret,
    /// File that holds the password of that user.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Print the report and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also bring over what has changed there since an earlier import
    #[arg(long)]
    pub update: bool,
}
