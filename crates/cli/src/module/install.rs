//! `brimful module install`: everything that can be wrong is looked for before anything is changed, and what the server
//! then refuses is undone.

use super::args::{InstallArgs, Kind};
use super::classes;
use super::installed::find_server;
use super::journal::{self, Journal};
use super::manifest::{Made, Manifest, State};
use super::memory;
use super::server::{Piece, Server, Settings, check_trust};
use super::sources::Scratch;
use crate::exit::{Exit, UsageError};
use crate::output::{print, say};
use anyhow::Context;
use brimful_core::text::one_line;
use rustix::fs::{Access, access};
use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to make its memory once it was told to reload.
const RELOAD: Duration = Duration::from_secs(10);

/// Everything that is known before anything is changed.
struct Prepared {
    server: Box<dyn Server>,
    settings: Settings,
    pieces: Vec<Piece>,
    /// Where the note of what was made goes, and what stands there.
    noted: PathBuf,
    before: Option<Manifest>,
}

/// Installs it.
///
/// # Errors
/// When something is missing or refused; everything is then as it was.
pub fn main(args: &InstallArgs) -> anyhow::Result<Exit> {
    let prepared = prepare(args)?;
    let server = &*prepared.server;
    if !args.yes && !agreed(server, &prepared.pieces)? {
        say("nothing was changed");
        return Ok(Exit::Ok);
    }
    // Not while it asks: there, Ctrl-C is an answer.
    let heard = super::listen()?;
    let interrupted = || heard.load(Ordering::Relaxed);
    match install(args, &prepared, &interrupted) {
        Ok(manifest) => follow_up(args, server, &manifest),
        Err(_) if interrupted() => {
            say("interrupted; everything is as it was");
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error),
    }
}

fn prepare(args: &InstallArgs) -> anyhow::Result<Prepared> {
    let server = find_server(args.server, &args.place)?;
    let settings = settings(args)?;
    let noted = manifest_of(&*server);
    check_trust(&*server, &args.place, &noted)?;
    let before = Manifest::read(&noted, args.server)?;
    let pieces = server.pieces(&settings)?;
    check_places(&*server, &pieces, before.as_ref())?;
    match server.test()? {
        Ok(()) => Ok(Prepared { server, settings, pieces, noted, before }),
        Err(why) => {
            let words = format!("{} refuses its configuration as it is: {why}; mend that first", server.version());
            Err(UsageError(words).into())
        }
    }
}

fn install(args: &InstallArgs, prepared: &Prepared, interrupted: &dyn Fn() -> bool) -> anyhow::Result<Manifest> {
    let Prepared { settings, pieces, before, .. } = prepared;
    let server = &*prepared.server;
    let scratch = Scratch::new()?;
    let module = built(args, server, &scratch)?;
    let mut journal = Journal::default();
    let mut manifest =
        Manifest::new(args.server, server.version().to_owned(), server.binary().to_owned(), settings.memory.clone());
    manifest.prefix = args.place.prefix.as_ref().map(std::path::absolute).transpose()?;
    manifest.config = args.place.config.as_ref().map(std::path::absolute).transpose()?;
    journal::sweep_directories(&prepared.noted);
    plan(server, &module, pieces, before.as_ref(), &mut manifest);
    put(server, &module, prepared, &manifest, &mut journal)?;
    accepted(server, pieces, &scratch, &mut journal)?;
    anyhow::ensure!(!interrupted(), "interrupted");
    journal.keep();
    print(&report(server, &manifest))?;
    Ok(manifest)
}

fn settings(args: &InstallArgs) -> anyhow::Result<Settings> {
    classes::check(&args.classes).map_err(UsageError)?;
    let whole = |path: &PathBuf| std::path::absolute(path).with_context(|| format!("no path: {}", path.display()));
    let memory = args.memory.as_ref().map(whole).transpose()?;
    Ok(Settings { memory, cpu_one_in: args.cpu_one_in, classes: args.classes.clone() })
}

/// Where the note of what was made is.
pub fn manifest_of(server: &dyn Server) -> PathBuf {
    server.module().with_extension("json")
}

/// Whether each file may be written: nothing is there, or what an earlier installation made, and the directory is ours
/// to write.
fn check_places(server: &dyn Server, pieces: &[Piece], before: Option<&Manifest>) -> anyhow::Result<()> {
    let module = server.module();
    let links = pieces.iter().filter_map(|piece| Some(piece.link.as_ref()?.0.as_path()));
    for path in [module].into_iter().chain(pieces.iter().map(|piece| piece.path.as_path())).chain(links) {
        let state = before.and_then(|before| before.state(path));
        let place = path.display();
        if state == Some(State::Changed) {
            let words =
                format!("{place} was changed since brimful made it; `brimful module remove` keeps it and makes room");
            return Err(UsageError(words).into());
        }
        if state.is_none() && fs::symlink_metadata(path).is_ok() {
            return Err(
                UsageError(format!("{place} is there already, and brimful did not make it; move it away")).into()
            );
        }
        let directory = path.ancestors().skip(1).find(|directory| directory.is_dir()).unwrap_or(Path::new("/"));
        access(directory, Access::WRITE_OK).map_err(|error| {
            let name = directory.display();
            anyhow::anyhow!(
                "cannot write to {name}: {}; run this as root, or name a server of your own with --prefix",
                io::Error::from(error)
            )
        })?;
    }
    Ok(())
}

/// Says what is going to be written, and asks.
fn agreed(server: &dyn Server, pieces: &[Piece]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(UsageError("nobody can be asked here whether to go on; say --yes".to_owned()).into());
    }
    say(&format!("{} ({}) will get:", server.version(), server.binary().display()));
    say(&format!("    {}", server.module().display()));
    for piece in pieces {
        say(&format!("    {}", piece.path.display()));
        piece.text.lines().for_each(|line| say(&format!("        {line}")));
    }
    say("Go on? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer; say --yes")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// The module's bytes, compiled here or elsewhere.
fn built(args: &InstallArgs, server: &dyn Server, scratch: &Scratch) -> anyhow::Result<Vec<u8>> {
    let path = match &args.module {
        Some(path) => path.clone(),
        None => {
            say(&format!("building the module for {} …", server.version()));
            server.build(scratch, args.source.as_deref())?
        }
    };
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    server.check(&bytes).with_context(|| path.display().to_string())?;
    Ok(bytes)
}

/// Lists in the manifest what is about to be made.
fn plan(server: &dyn Server, module: &[u8], pieces: &[Piece], before: Option<&Manifest>, manifest: &mut Manifest) {
    let is_directory = |made: &&Made| matches!(made, Made::Directory { .. });
    let directories = journal::missing_directories(server.module()).into_iter().map(|path| Made::Directory { path });
    manifest.made.extend(directories);
    manifest.made.extend(before.iter().flat_map(|before| before.made.iter().filter(is_directory)).cloned());
    manifest.made.push(Made::file(server.module(), module));
    manifest.made.extend(pieces.iter().map(|piece| Made::file(&piece.path, piece.text.as_bytes())));
    let links = pieces.iter().filter_map(|piece| piece.link.clone());
    manifest.made.extend(links.map(|(path, to)| Made::Link { path, to }));
    manifest.by_hand = pieces.iter().filter_map(|piece| piece.by_hand.clone()).collect();
}

/// Makes what the manifest lists. The manifest is correct before, during and after that: if this program is killed,
/// what it has made so far can be removed, or installed again.
fn put(
    server: &dyn Server,
    module: &[u8],
    prepared: &Prepared,
    manifest: &Manifest,
    journal: &mut Journal,
) -> anyhow::Result<()> {
    let Prepared { pieces, noted, before, .. } = prepared;
    let planned = manifest.planned(before.as_ref());
    journal.write_with_directories(noted, planned.text()?.as_bytes())?;
    let texts = pieces.iter().map(|piece| (piece.path.as_path(), piece.text.as_bytes()));
    for (path, bytes) in [(server.module(), module)].into_iter().chain(texts) {
        journal.write(path, bytes)?;
    }
    for (path, to) in pieces.iter().filter_map(|piece| piece.link.as_ref()) {
        journal.remove(path)?;
        journal.link(path, to)?;
    }
    // What an earlier installation put elsewhere.
    for made in before.iter().flat_map(|before| &before.made) {
        let path = made.path();
        let is_left = !manifest.has(path) && planned.state(path) == Some(State::AsMade);
        if is_left && !matches!(made, Made::Directory { .. }) {
            journal.remove(path)?;
        }
    }
    journal.write(noted, manifest.text()?.as_bytes())
}

/// Asks the server; what it refuses is undone.
fn accepted(server: &dyn Server, pieces: &[Piece], scratch: &Scratch, journal: &mut Journal) -> anyhow::Result<()> {
    let mut verdict = server.test()?;
    if verdict.is_ok() && pieces.iter().any(|piece| piece.by_hand.is_some()) {
        verdict = server.test_alone(pieces, scratch)?;
    }
    let Err(why) = verdict else { return Ok(()) };
    let stuck = journal.undo();
    let undone = match stuck.is_empty() {
        true => "everything is as it was".to_owned(),
        false => format!("this could not be undone: {}", one_line(&stuck.join(", "))),
    };
    anyhow::bail!("{} refuses the module: {why}; {undone}", server.version())
}

fn report(server: &dyn Server, manifest: &Manifest) -> String {
    let mut text = format!("{} has the module now:\n", server.version());
    for made in &manifest.made {
        text += &format!("    {}\n", made.path().display());
    }
    if !manifest.by_hand.is_empty() {
        text += "Its configuration was not edited; write there\n";
        manifest.by_hand.iter().for_each(|line| text += &format!("    {line}\n"));
    }
    text
}

/// The server has to read its configuration again.
fn follow_up(args: &InstallArgs, server: &dyn Server, manifest: &Manifest) -> anyhow::Result<Exit> {
    if !args.reload || !manifest.by_hand.is_empty() {
        let then = "then see `brimful module status` and `brimful watch`";
        print(&format!("To begin, let it reload (no request is lost):\n    {}\n{then}\n", server.reload_command()))?;
        return Ok(Exit::Ok);
    }
    server.reload()?;
    let began = Instant::now();
    let memory = || memory_of(args.server, Some(manifest), None);
    while began.elapsed() < RELOAD && !memory::is_one(&memory()) {
        thread::sleep(Duration::from_millis(20));
    }
    print(&format!("{}\n", memory::status(&memory())))?;
    let name = server.version();
    anyhow::ensure!(memory::is_one(&memory()), "{name} was told to reload and records nothing; its error log says why");
    Ok(Exit::Ok)
}

/// The shared memory of a server that is installed here.
pub fn memory_of(kind: Kind, manifest: Option<&Manifest>, named: Option<&Path>) -> PathBuf {
    named
        .map(Path::to_owned)
        .or_else(|| manifest.and_then(|manifest| manifest.memory.clone()))
        .unwrap_or_else(|| memory::chosen(memory::default_places(kind)))
}
