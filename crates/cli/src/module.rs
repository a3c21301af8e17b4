//! `brimful module`: builds a recording module for nginx or Apache, which measures where a request's time goes
//! (WebMonitor's Server Module; Almeida, Almeida & Yates 1997, section 3.2). Installs the module in the server of this
//! host, switches it on and off, and removes it.
//!
//! `install` checks everything before it changes anything, and undoes its changes if the server rejects the new
//! configuration. A manifest beside the module lists the files that `install` made; `remove` needs nothing else. The
//! only shell script that runs is nginx's own `configure`.

mod apache;
pub mod args;
mod classes;
mod command;
mod install;
mod journal;
mod manifest;
mod memory;
mod nginx;
mod remove;
mod server;
mod sources;
mod trust;

use crate::exit::{Exit, UsageError};
use crate::output::print;
use anyhow::Context;
use apache::Apache;
use args::{Action, ModuleArgs, ServerKind, ServerLocationArgs, StatusArgs, SwitchArgs};
use install::{manifest_path, memory_path};
use manifest::Manifest;
use nginx::Nginx;
use server::Server;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs the action that the user requested.
pub fn main(args: &ModuleArgs) -> anyhow::Result<Exit> {
    match &args.action {
        Action::Install(args) => install::main(args),
        Action::Remove(args) => remove::main(args),
        Action::On(args) => switch(args, true),
        Action::Off(args) => switch(args, false),
        Action::Status(args) => status(args),
    }
}

fn switch(args: &SwitchArgs, on: bool) -> anyhow::Result<Exit> {
    let manifest = match &args.memory {
        Some(_) => None,
        // A missing server is no error here, because the shared memory may belong to a server in a container.
        None => manifest(args.server, &args.location).unwrap_or_default(),
    };
    let path = memory_path(args.server, manifest.as_ref(), args.memory.as_deref());
    let was = memory::set_recording(&path, on)?;
    let state = if on { "on" } else { "off" };
    let already = if was == on { "already " } else { "" };
    print(&format!("{}: recording is {already}{state}, for requests that start from now on\n", path.display()))?;
    Ok(Exit::Ok)
}

fn status(args: &StatusArgs) -> anyhow::Result<Exit> {
    let kinds = args.server.map_or_else(|| vec![ServerKind::Nginx, ServerKind::Apache], |kind| vec![kind]);
    for kind in &kinds {
        let elsewhere = memory::container_servers(*kind);
        for (server, status) in &elsewhere {
            print(&format!("{server}\n    {status}\n"))?;
        }
        let server = match find_server(*kind, &args.location) {
            Ok(server) => server,
            // If the user named no server, both are tried, and a missing one is no error.
            Err(error) if args.server.is_none() || !elsewhere.is_empty() => {
                print(&format!("{}: {error}\n", kind.name()))?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let manifest = Manifest::read(&manifest_path(&*server), *kind)?;
        let path = memory_path(*kind, manifest.as_ref(), None);
        match &manifest {
            Some(manifest) if manifest.unfinished => {
                let how = format!("brimful module install {0}, or: brimful module remove {0}", kind.name());
                print(&format!("{}: the installation was not finished; run: {how}\n", server.version()))?;
            }
            Some(_) => print(&format!(
                "{}: {}\n    {}\n",
                server.version(),
                server.module().display(),
                memory::describe_status(&path)
            ))?,
            None if memory::is_module_memory(&path) => {
                print(&format!(
                    "{}: installed, but not by brimful\n    {}\n",
                    server.version(),
                    memory::describe_status(&path)
                ))?;
            }
            None => {
                let how = format!("brimful module install {}", kind.name());
                print(&format!("{}: without the module; to install it, run: {how}\n", server.version()))?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// The manifest (the list of installed files) of a server; `None` if brimful has not installed the module.
fn manifest(kind: ServerKind, place: &ServerLocationArgs) -> anyhow::Result<Option<Manifest>> {
    Manifest::read(&manifest_path(&*find_server(kind, place)?), kind)
}

/// Finds the installed server of this kind. Only this function names the implementations of [`Server`].
///
/// # Errors
/// Returns an error if the server is not installed, or does not report its version.
fn find_server(kind: ServerKind, place: &ServerLocationArgs) -> anyhow::Result<Box<dyn Server>> {
    let absolute =
        |path: &PathBuf| std::path::absolute(path).with_context(|| format!("not a path: {}", path.display()));
    let prefix = place.prefix.as_ref().map(absolute).transpose()?;
    let config = place.config.as_ref().map(absolute).transpose()?;
    if let Some(prefix) = prefix.as_ref().filter(|prefix| !prefix.is_dir()) {
        return Err(UsageError(format!("{}: not a directory; check --prefix", prefix.display())).into());
    }
    let binary = place.binary.as_deref();
    Ok(match kind {
        ServerKind::Nginx => Box::new(Nginx::find(binary, prefix, config)?),
        ServerKind::Apache => Box::new(Apache::find(binary, prefix, config)?),
    })
}

/// A flag that a signal sets. The signal does not end the process, so that an unfinished change can be undone.
fn interrupt_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, interrupted.clone()).context("cannot listen for signals")?;
    }
    Ok(interrupted)
}
