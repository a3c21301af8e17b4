//! `brimful module remove`: what `install` noted is taken away, if the server does without it.

use super::args::{PlaceArgs, RemoveArgs};
use super::install::{manifest_of, memory_of};
use super::installed::find_server;
use super::journal::{self, Journal};
use super::manifest::{Made, Manifest, State};
use super::memory;
use super::server::{Server, Settings, check_trust};
use super::sources;
use super::trust;
use crate::exit::{Exit, UsageError};
use crate::output::{print, say};
use anyhow::Context;
use brimful_core::text::one_line;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of configuration files that install makes.
const PIECES: [&str; 5] = ["50-brimful.conf", "brimful.conf", "brimful-load.conf", "brimful-http.conf", "brimful.load"];

/// Removes it.
///
/// # Errors
/// When it was not installed, or the server needs it; everything is then as it was.
pub fn main(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let _interrupted = super::listen()?;
    sources::sweep();
    let mut server = find_server(args.server, &args.place)?;
    let noted = manifest_of(&*server);
    check_trust(&*server, &args.place, &noted)?;
    journal::sweep_directories(&noted);
    let Some(manifest) = Manifest::read(&noted, args.server)? else {
        let words = format!(
            "{} has no module that brimful installed: {} is not there; check --prefix",
            server.version(),
            noted.display()
        );
        return Err(UsageError(words).into());
    };
    if manifest.binary != server.binary() || manifest.config != args.place.config {
        let place = PlaceArgs {
            binary: args.place.binary.clone().or(Some(manifest.binary.clone())),
            prefix: args.place.prefix.clone().or(manifest.prefix.clone()),
            config: args.place.config.clone().or(manifest.config.clone()),
        };
        // Check it before it is run.
        trust::check(&manifest.binary)?;
        server = find_server(args.server, &place)?;
        check_trust(&*server, &place, &noted)?;
    }
    within_reach(&manifest, &*server)?;
    let mut journal = Journal::default();
    let kept = take_away(&manifest, &mut journal)?;
    if let Err(why) = server.test()? {
        return Err(needed(&*server, &manifest, &why, &mut journal).into());
    }
    journal.keep();
    manifest.made.iter().for_each(|made| journal::sweep(made.path()));
    let memory = memory_of(args.server, Some(&manifest), None);
    if memory::is_one(&memory) && fs::remove_file(&memory).is_err() {
        say(&format!("{} cannot be removed; do it by hand", memory.display()));
    }
    // The manifest goes last, so that an interrupted removal can be repeated.
    journal::remove_with_directories(&real(&noted), manifest.top().map(real).as_deref())
        .with_context(|| format!("cannot remove {}", noted.display()))?;
    print(&format!("{} is without the module\n", server.version()))?;
    for path in kept {
        print(&format!("{} was changed since it was made, and is kept\n", path.display()))?;
    }
    match args.reload {
        true => server.reload()?,
        false => print(&format!("To end it in the running server, let it reload:\n    {}\n", server.reload_command()))?,
    }
    Ok(Exit::Ok)
}

/// Refuses a manifest that names what `install` cannot have made for this server, or what others can write to.
fn within_reach(manifest: &Manifest, server: &dyn Server) -> anyhow::Result<()> {
    let base = real(server.config().parent().unwrap_or(Path::new("/")));
    let module_directory = real(server.module().parent().unwrap_or(Path::new("/")));
    // Directories elsewhere that the configuration includes now.
    let settings = Settings { memory: None, cpu_one_in: 0, classes: Vec::new() };
    let pieces = server.pieces(&settings).unwrap_or_default();
    let links = pieces.iter().filter_map(|piece| Some(&piece.link.as_ref()?.0));
    let paths = pieces.iter().map(|piece| &piece.path).chain(links);
    let included: Vec<PathBuf> = paths.filter_map(|path| Some(real(path.parent()?))).collect();
    for made in manifest.made.iter().filter(|made| manifest.state(made.path()) != Some(State::Gone)) {
        let path = made.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let directory = real(path.parent().unwrap_or(Path::new("/")));
        let is_piece = PIECES.contains(&name) && (directory.starts_with(&base) || included.contains(&directory));
        let is_module = directory == module_directory && path.file_name() == server.module().file_name();
        let is_possible = match made {
            Made::Directory { path } => module_directory.starts_with(real(path)),
            Made::File { .. } => is_piece || is_module,
            Made::Link { to, .. } => is_piece && to.file_name() == path.file_name(),
        };
        if !path.is_absolute() || !is_possible {
            let words = format!(
                "the manifest names {}, which install cannot have made for this server; nothing was changed: look at \
                 what is there, and remove it by hand",
                path.display()
            );
            return Err(UsageError(words).into());
        }
        trust::check(path)?;
    }
    Ok(())
}

/// A path without links and `..`, if it is there.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Removes the files that are unchanged since they were made. Returns where the changed ones are now.
fn take_away(manifest: &Manifest, journal: &mut Journal) -> anyhow::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for made in manifest.made.iter().rev() {
        match (made, manifest.state(made.path())) {
            (Made::Directory { .. }, _) | (_, Some(State::Gone) | None) => {}
            (_, Some(State::AsMade)) => journal.remove(made.path())?,
            (Made::File { path, .. }, Some(State::Changed)) => kept.push(aside(path, journal)?),
            (Made::Link { path, .. }, Some(State::Changed)) => kept.push(path.clone()),
        }
    }
    Ok(kept)
}

/// Gives a file that somebody changed a name under which no server reads it.
fn aside(path: &Path, journal: &mut Journal) -> anyhow::Result<PathBuf> {
    let free = |n: &u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(if *n == 0 { ".kept".to_owned() } else { format!(".kept-{n}") });
        let other = path.with_file_name(name);
        fs::symlink_metadata(&other).is_err().then_some(other)
    };
    let Some(other) = (0..1000).find_map(|n| free(&n)) else {
        anyhow::bail!("{} was changed, and there is no name to keep it by; move it away", path.display())
    };
    journal.rename(path, &other)?;
    Ok(other)
}

/// Undoes the removal, and says what the server misses.
fn needed(server: &dyn Server, manifest: &Manifest, why: &str, journal: &mut Journal) -> UsageError {
    let stuck = journal.undo();
    let state = match stuck.is_empty() {
        true => "nothing was removed".to_owned(),
        false => format!("this could not be put back: {}", one_line(&stuck.join(", "))),
    };
    let first = match manifest.by_hand.is_empty() {
        true => "take what names brimful out of its configuration first".to_owned(),
        false => format!("first take out what was written {}", manifest.by_hand.join(" and ")),
    };
    UsageError(format!("{} does not start without the module: {why}; {state}; {first}", server.version()))
}
