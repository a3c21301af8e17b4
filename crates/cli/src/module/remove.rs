//! `brimful module remove`: what `install` noted is taken away, if the server does without it.

use super::args::{PlaceArgs, RemoveArgs};
use super::install::{manifest_of, memory_of};
use super::journal::Journal;
use super::manifest::{Made, Manifest, State};
use super::memory;
use super::server::{Server, find};
use crate::exit::{Exit, UsageError};
use crate::output::{print, say};
use brimful_core::text::one_line;
use std::fs;
use std::path::{Path, PathBuf};

/// Removes it.
///
/// # Errors
/// When it was not installed, or the server needs it; everything is then as it was.
pub fn main(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let _interrupted = super::listen()?;
    let mut server = find(args.server, &args.place)?;
    let noted = manifest_of(&*server);
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
        server = find(args.server, &place)?;
    }
    let mut journal = Journal::default();
    let kept = take_away(&manifest, &noted, &mut journal)?;
    if let Err(why) = server.test()? {
        return Err(needed(&*server, &manifest, &why, &mut journal).into());
    }
    journal.keep();
    let memory = memory_of(args.server, Some(&manifest), None);
    if memory::is_one(&memory) && fs::remove_file(&memory).is_err() {
        say(&format!("{} cannot be removed; do it by hand", memory.display()));
    }
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

/// Takes away what still is what was made; where the rest is now.
fn take_away(manifest: &Manifest, noted: &Path, journal: &mut Journal) -> anyhow::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    journal.remove(noted)?;
    for made in manifest.made.iter().rev() {
        match (made, made.state()) {
            (Made::Directory { path }, State::AsMade) => journal.remove_directory(path),
            (_, State::AsMade) => journal.remove(made.path())?,
            (Made::File { path, .. }, State::Changed) => kept.push(aside(path, journal)?),
            (_, State::Changed) => kept.push(made.path().to_owned()),
            (_, State::Gone) => {}
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
