//! The flags of `brimful module`.

use super::classes::Class;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ sudo brimful module install nginx --reload
  $ brimful module status
  $ sudo brimful module remove nginx";

/// Arguments of `brimful module`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ModuleArgs {
    /// The action: install, remove, on, off or status.
    #[command(subcommand)]
    pub action: Action,
}

/// The actions of `brimful module`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Build the module for the installed server, and configure the server to load it
    Install(Box<InstallArgs>),
    /// Undo what install did
    Remove(RemoveArgs),
    /// Record requests, without a reload of the server
    On(SwitchArgs),
    /// Stop recording, without a reload of the server
    Off(SwitchArgs),
    /// Show which servers have the module, whether it records, and how many requests it has recorded
    Status(StatusArgs),
}

/// The kinds of servers for which there is a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerKind {
    /// nginx
    Nginx,
    /// Apache 2.4
    Apache,
}

impl ServerKind {
    /// The server's name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::Nginx => "nginx",
            ServerKind::Apache => "apache",
        }
    }
}

/// Arguments of `brimful module install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The server: nginx or apache
    #[arg(hide_possible_values = true)]
    pub server: ServerKind,
    /// Flags that locate the server's installation.
    #[command(flatten)]
    pub location: ServerLocationArgs,
    /// Count requests by class, which is the size of the body or the URL's path: small='size 0-4999', large='size 5000-',
    /// images='url /images/*' (repeatable; the first rule that matches counts, "other" has the rest) [default: six sizes]
    #[arg(long = "class", value_name = "NAME=RULE")]
    pub classes: Vec<Class>,
    /// Measure the CPU time of one request in N, at most 250 per second; 0 measures none
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub cpu_one_in: u32,
    /// The shared memory that the server writes to [default: /run/brimful/nginx or /run/brimful/apache if root starts
    /// the server, else /dev/shm/brimful-nginx or /dev/shm/brimful-apache]
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
    /// nginx's sources, of the installed version [default: those of Debian's package nginx-dev]
    #[arg(long, value_name = "DIR", conflicts_with = "module")]
    pub source: Option<PathBuf>,
    /// Install this module instead of building one; it must be built for the same server
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Reload the running server gracefully
    #[arg(long)]
    pub reload: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
}

/// Arguments of `brimful module remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The server: nginx or apache
    #[arg(hide_possible_values = true)]
    pub server: ServerKind,
    /// Flags that locate the server's installation.
    #[command(flatten)]
    pub location: ServerLocationArgs,
    /// Reload the running server gracefully
    #[arg(long)]
    pub reload: bool,
}

/// Arguments of `brimful module on` and `off`.
#[derive(Debug, Args)]
pub struct SwitchArgs {
    /// The server: nginx or apache
    #[arg(hide_possible_values = true)]
    pub server: ServerKind,
    /// Flags that locate the server's installation.
    #[command(flatten)]
    pub location: ServerLocationArgs,
    /// The shared memory that the server writes to [default: the file that `install` recorded, else the server's usual
    /// file]
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
}

/// Arguments of `brimful module status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The server: nginx or apache [default: both]
    #[arg(hide_possible_values = true)]
    pub server: Option<ServerKind>,
    /// Flags that locate the server's installation.
    #[command(flatten)]
    pub location: ServerLocationArgs,
}

/// Flags that locate a server's installation. They are needed if there are several installations.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerLocationArgs {
    /// The server's program [default: from PATH]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// The server's own directory, as in nginx -p and httpd -d: the module goes to DIR/modules [default: the server's]
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,
    /// The server's main configuration file [default: the server's]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
