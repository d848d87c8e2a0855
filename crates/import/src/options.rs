//! The options of the command.

use std::path::PathBuf;

use clap::Args;

use service_kit::config::Secret;

/// `import …`, the same for every service.
#[derive(Debug, Clone, Args)]
pub struct ImportOptions {
    /// URL of the database to read, `mysql://USER@HOST[:PORT]/DATABASE`. The user needs the right SELECT only.
    #[arg(value_name = "URL")]
    pub url: Secret,
    /// File that contains the password of that user.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Print the report and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also import what has changed there since an earlier import
    #[arg(long)]
    pub update: bool,
}
