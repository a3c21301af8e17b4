//! `brimful module`: the recorder inside nginx and Apache (WebMonitor's Server Module; Almeida, Almeida & Yates 1997,
//! section 3.2), built for the server that is installed here, loaded by it, switched on and off, and taken away again.
//!
//! `install` changes nothing before it knows that it may, and leaves everything as it was when the server refuses the
//! result. What it made stands in a manifest beside the module; `remove` needs nothing else. No shell is run but
//! `configure`, which is one.

mod apache;
pub mod args;
mod classes;
mod command;
mod install;
mod installed;
mod journal;
mod manifest;
mod memory;
mod nginx;
mod remove;
mod server;
mod sources;
mod trust;

use crate::exit::Exit;
use crate::output::print;
use anyhow::Context;
use args::{Action, Kind, ModuleArgs, PlaceArgs, StatusArgs, SwitchArgs};
use install::{manifest_of, memory_of};
use installed::find_server;
use manifest::Manifest;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Does it.
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
        // Where no server is found there may be memory all the same: that of a container.
        None => noted(args.server, &args.place).unwrap_or_default(),
    };
    let path = memory_of(args.server, manifest.as_ref(), args.memory.as_deref());
    let was = memory::switch(&path, on)?;
    let state = if on { "on" } else { "off" };
    let already = if was == on { "already " } else { "" };
    print(&format!("{}: {already}{state}, of requests that begin from now on\n", path.display()))?;
    Ok(Exit::Ok)
}

fn status(args: &StatusArgs) -> anyhow::Result<Exit> {
    let kinds = args.server.map_or_else(|| vec![Kind::Nginx, Kind::Apache], |kind| vec![kind]);
    for kind in &kinds {
        let elsewhere = memory::elsewhere(*kind);
        for (what, says) in &elsewhere {
            print(&format!("{what}\n    {says}\n"))?;
        }
        let server = match find_server(*kind, &args.place) {
            Ok(server) => server,
            // Of both, one may be absent.
            Err(error) if args.server.is_none() || !elsewhere.is_empty() => {
                print(&format!("{}: {error}\n", kind.name()))?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let manifest = Manifest::read(&manifest_of(&*server), *kind)?;
        let path = memory_of(*kind, manifest.as_ref(), None);
        match &manifest {
            Some(manifest) if manifest.unfinished => {
                let how = format!("brimful module install {0}, or: brimful module remove {0}", kind.name());
                print(&format!("{}: its installation was not finished; run: {how}\n", server.version()))?;
            }
            Some(_) => {
                print(&format!("{}: {}\n    {}\n", server.version(), server.module().display(), memory::status(&path)))?
            }
            None if memory::is_one(&path) => {
                print(&format!("{}: installed by somebody else\n    {}\n", server.version(), memory::status(&path)))?;
            }
            None => {
                let how = format!("brimful module install {}", kind.name());
                print(&format!("{}: without the module; to install it, run: {how}\n", server.version()))?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn noted(kind: Kind, place: &PlaceArgs) -> anyhow::Result<Option<Manifest>> {
    Manifest::read(&manifest_of(&*find_server(kind, place)?), kind)
}

/// Whether somebody wants an end: what is half done is undone first.
fn listen() -> anyhow::Result<Arc<AtomicBool>> {
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, heard.clone()).context("cannot listen for signals")?;
    }
    Ok(heard)
}
