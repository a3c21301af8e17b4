//! Flags of `brimful module`.

use super::classes::Class;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ sudo brimful module install nginx --reload
  $ brimful module status
  $ sudo brimful module remove nginx";

/// `brimful module`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ModuleArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// What is done with the module.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Build the module for the server that is installed here, and let the server load it
    Install(Box<InstallArgs>),
    /// Undo what install did
    Remove(RemoveArgs),
    /// Record requests (again)
    On(SwitchArgs),
    /// Record nothing; the server goes on, without a reload
    Off(SwitchArgs),
    /// Show which servers have the module, whether it records, and how much it has seen
    Status(StatusArgs),
}

/// The servers there is a module for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// nginx
    Nginx,
    /// Apache 2.4
    Apache,
}

impl Kind {
    /// What it is called on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Nginx => "nginx",
            Kind::Apache => "apache",
        }
    }
}

/// `brimful module install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The server: nginx or apache
    #[arg(hide_possible_values = true)]
    pub server: Kind,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Count requests apart, by the size of the body or by the URL's path: small='size 0-4999', large='size 5000-',
    /// images='url /images/*' (repeatable; the first that fits counts, "other" has the rest) [default: six sizes]
    #[arg(long = "class", value_name = "NAME=RULE")]
    pub classes: Vec<Class>,
    /// Measure CPU time of one request in N, and of no more than 250 a second; 0 measures it of none
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub cpu_one_in: u32,
    /// The shared memory that the server writes to [default: /run/brimful/nginx or /run/brimful/apache if root starts
    /// the server, else /dev/shm/brimful-nginx or /dev/shm/brimful-apache]
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
    /// nginx's sources, of the version that is installed [default: those of Debian's package nginx-dev]
    #[arg(long, value_name = "DIR", conflicts_with = "module")]
    pub source: Option<PathBuf>,
    /// Build nothing: install this module, which was built elsewhere for the same server
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Tell the running server to reload gracefully
    #[arg(long)]
    pub reload: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// `brimful module remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The server: nginx or apache
    #[arg(hide_possible_values = true)]
    pub server: Kind,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Tell the running server to reload gracefully
    #[arg(long)]
    pub reload: bool,
}

/// `brimful module on` and `off`.
#[derive(Debug, Args)]
pub struct SwitchArgs {
    /// The server: nginx or apache
    #[arg(hide_possible_values = true)]
    pub server: Kind,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The shared memory that the server writes to [default: what install noted, else what it would choose]
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
}

/// `brimful module status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The server: nginx or apache [default: both]
    #[arg(hide_possible_values = true)]
    pub server: Option<Kind>,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Which of several installations of a server.
#[derive(Clone, Debug, Default, Args)]
pub struct PlaceArgs {
    /// The server's program [default: what PATH finds]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// The server's own directory, as in nginx -p and httpd -d: the module goes to DIR/modules [default: the server's]
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,
    /// The server's main configuration file [default: the server's]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
