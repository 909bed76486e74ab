//! Options of the commands that look after settings.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting, its value, where the value comes from, and what is ignored
    Show,
    /// Check the settings files: their names, their values, and whether the one in the current folder may set them
    Check,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Folder whose cento.toml is to be trusted; without it, the trusted folders are listed
    pub(crate) folder: Option<PathBuf>,
    /// Trust the folder no longer
    #[arg(long, requires = "folder", conflicts_with = "yes")]
    pub(crate) remove: bool,
    /// Do not ask; for scripts
    #[arg(long, requires = "folder")]
    pub(crate) yes: bool,
}
