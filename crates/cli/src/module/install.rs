//! `brimful module install`: checks everything before it changes anything. If the server rejects the changes, they are
//! undone.

use super::args::{InstallArgs, ServerKind};
use super::classes;
use super::find_server;
use super::journal::{self, Journal};
use super::manifest::{FileState, InstalledItem, Manifest};
use super::memory;
use super::server::{ConfigFile, Server, Settings, check_trust};
use super::sources::ScratchDirectory;
use crate::exit::{Exit, UsageError};
use crate::output::{print, print_note};
use anyhow::Context;
use brimful_core::text::one_line;
use rustix::fs::{Access, access};
use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for the server to create its shared memory after a reload.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The results of all checks, made before the first change.
struct Prepared {
    server: Box<dyn Server>,
    settings: Settings,
    config_files: Vec<ConfigFile>,
    manifest_path: PathBuf,
    /// The manifest (the list of installed files) of an earlier installation, if there is one.
    before: Option<Manifest>,
}

/// Installs the module.
///
/// # Errors
/// Returns an error if a requirement is missing, or the server rejects the new configuration. All changes are then undone.
pub fn main(args: &InstallArgs) -> anyhow::Result<Exit> {
    let prepared = prepare(args)?;
    let server = &*prepared.server;
    if !args.yes && !user_agrees(server, &prepared.config_files)? {
        print_note("nothing was changed");
        return Ok(Exit::Ok);
    }
    // Signals are handled only from here on, because Ctrl-C is a valid answer to the confirmation prompt.
    let interrupt_flag = super::interrupt_flag()?;
    let interrupted = || interrupt_flag.load(Ordering::Relaxed);
    match install(args, &prepared, &interrupted) {
        Ok(manifest) => follow_up(args, server, &manifest),
        Err(_) if interrupted() => {
            print_note("interrupted; all changes were undone");
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error),
    }
}

fn prepare(args: &InstallArgs) -> anyhow::Result<Prepared> {
    let server = find_server(args.server, &args.location)?;
    let settings = settings(args)?;
    let manifest_path = manifest_path(&*server);
    check_trust(&*server, &args.location, &manifest_path)?;
    let before = Manifest::read(&manifest_path, args.server)?;
    let config_files = server.config_files(&settings)?;
    check_places(&*server, &config_files, before.as_ref())?;
    match server.test()? {
        Ok(()) => Ok(Prepared { server, settings, config_files, manifest_path, before }),
        Err(why) => {
            let words = format!("{} refuses its present configuration: {why}; fix that first", server.version());
            Err(UsageError(words).into())
        }
    }
}

fn install(args: &InstallArgs, prepared: &Prepared, interrupted: &dyn Fn() -> bool) -> anyhow::Result<Manifest> {
    let Prepared { settings, config_files, before, .. } = prepared;
    let server = &*prepared.server;
    let scratch = ScratchDirectory::new()?;
    let module = module_bytes(args, server, &scratch)?;
    let mut journal = Journal::default();
    let mut manifest =
        Manifest::new(args.server, server.version().to_owned(), server.binary().to_owned(), settings.memory.clone());
    manifest.prefix = args.location.prefix.as_ref().map(std::path::absolute).transpose()?;
    manifest.config = args.location.config.as_ref().map(std::path::absolute).transpose()?;
    journal::remove_temporary_directories(&prepared.manifest_path);
    fill_manifest(server, &module, config_files, before.as_ref(), &mut manifest);
    write_files(server, &module, prepared, &manifest, &mut journal)?;
    test_or_undo(server, config_files, &scratch, &mut journal)?;
    anyhow::ensure!(!interrupted(), "interrupted");
    journal.commit();
    print(&report(server, &manifest))?;
    Ok(manifest)
}

fn settings(args: &InstallArgs) -> anyhow::Result<Settings> {
    classes::check(&args.classes).map_err(UsageError)?;
    let whole = |path: &PathBuf| std::path::absolute(path).with_context(|| format!("no path: {}", path.display()));
    let memory = args.memory.as_ref().map(whole).transpose()?;
    Ok(Settings { memory, cpu_one_in: args.cpu_one_in, classes: args.classes.clone() })
}

/// The path of a server's manifest, the list of installed files: beside the module, with the extension `.json`.
pub fn manifest_path(server: &dyn Server) -> PathBuf {
    server.module().with_extension("json")
}

/// Checks that each file can be written: its directory is writable, and the file either does not exist or was made by
/// an earlier installation.
fn check_places(server: &dyn Server, config_files: &[ConfigFile], before: Option<&Manifest>) -> anyhow::Result<()> {
    let module = server.module();
    let links = config_files.iter().filter_map(|file| Some(file.link.as_ref()?.0.as_path()));
    for path in [module].into_iter().chain(config_files.iter().map(|file| file.path.as_path())).chain(links) {
        let state = before.and_then(|before| before.state(path));
        let place = path.display();
        if state == Some(FileState::Changed) {
            let words = format!("{place} was changed since brimful wrote it; `brimful module remove` moves it aside");
            return Err(UsageError(words).into());
        }
        if state.is_none() && fs::symlink_metadata(path).is_ok() {
            return Err(
                UsageError(format!("{place} exists already, and brimful did not write it; move it away")).into()
            );
        }
        let directory = path.ancestors().skip(1).find(|directory| directory.is_dir()).unwrap_or(Path::new("/"));
        access(directory, Access::WRITE_OK).map_err(|error| {
            let name = directory.display();
            anyhow::anyhow!(
                "cannot write to {name}: {}; run this as root, or name your own server with --prefix",
                io::Error::from(error)
            )
        })?;
    }
    Ok(())
}

/// Prints which files will be written, and asks for confirmation.
fn user_agrees(server: &dyn Server, config_files: &[ConfigFile]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(
            UsageError("cannot ask for confirmation, because stdin is not a terminal; use --yes".to_owned()).into()
        );
    }
    print_note(&format!("{} ({}) will get:", server.version(), server.binary().display()));
    print_note(&format!("    {}", server.module().display()));
    for file in config_files {
        print_note(&format!("    {}", file.path.display()));
        file.text.lines().for_each(|line| print_note(&format!("        {line}")));
    }
    print_note("Continue? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer; use --yes")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// The bytes of the module, which is compiled now or read from --module.
fn module_bytes(args: &InstallArgs, server: &dyn Server, scratch: &ScratchDirectory) -> anyhow::Result<Vec<u8>> {
    let path = match &args.module {
        Some(path) => path.clone(),
        None => {
            print_note(&format!("building the module for {} …", server.version()));
            server.build(scratch, args.source.as_deref())?
        }
    };
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    server.check(&bytes).with_context(|| path.display().to_string())?;
    Ok(bytes)
}

/// Adds the files that `install` is going to make to the manifest.
fn fill_manifest(
    server: &dyn Server,
    module: &[u8],
    config_files: &[ConfigFile],
    before: Option<&Manifest>,
    manifest: &mut Manifest,
) {
    let is_directory = |made: &&InstalledItem| matches!(made, InstalledItem::Directory { .. });
    let directories =
        journal::missing_directories(server.module()).into_iter().map(|path| InstalledItem::Directory { path });
    manifest.made.extend(directories);
    manifest.made.extend(before.iter().flat_map(|before| before.made.iter().filter(is_directory)).cloned());
    manifest.made.push(InstalledItem::file(server.module(), module));
    manifest.made.extend(config_files.iter().map(|file| InstalledItem::file(&file.path, file.text.as_bytes())));
    let links = config_files.iter().filter_map(|file| file.link.clone());
    manifest.made.extend(links.map(|(path, to)| InstalledItem::Link { path, to }));
    manifest.by_hand = config_files.iter().filter_map(|file| file.line_to_add.clone()).collect();
}

/// Makes the files that the manifest lists. The manifest is correct before, during and after these changes. So if this
/// program is killed, the incomplete installation can be removed or repeated.
fn write_files(
    server: &dyn Server,
    module: &[u8],
    prepared: &Prepared,
    manifest: &Manifest,
    journal: &mut Journal,
) -> anyhow::Result<()> {
    let Prepared { config_files, manifest_path, before, .. } = prepared;
    let planned = manifest.planned(before.as_ref());
    journal.write_with_directories(manifest_path, planned.text()?.as_bytes())?;
    let texts = config_files.iter().map(|file| (file.path.as_path(), file.text.as_bytes()));
    for (path, bytes) in [(server.module(), module)].into_iter().chain(texts) {
        journal.write(path, bytes)?;
    }
    for (path, to) in config_files.iter().filter_map(|file| file.link.as_ref()) {
        journal.remove(path)?;
        journal.link(path, to)?;
    }
    // Remove files that an earlier installation made at other paths.
    for made in before.iter().flat_map(|before| &before.made) {
        let path = made.path();
        let is_left = !manifest.contains(path) && planned.state(path) == Some(FileState::Unchanged);
        if is_left && !matches!(made, InstalledItem::Directory { .. }) {
            journal.remove(path)?;
        }
    }
    journal.write(manifest_path, manifest.text()?.as_bytes())
}

/// Tests the configuration with the server's own check. If the server rejects it, undoes all changes.
fn test_or_undo(
    server: &dyn Server,
    config_files: &[ConfigFile],
    scratch: &ScratchDirectory,
    journal: &mut Journal,
) -> anyhow::Result<()> {
    let mut verdict = server.test()?;
    if verdict.is_ok() && config_files.iter().any(|file| file.line_to_add.is_some()) {
        verdict = server.test_alone(config_files, scratch)?;
    }
    let Err(why) = verdict else { return Ok(()) };
    let stuck = journal.undo();
    let undone = match stuck.is_empty() {
        true => "all changes were undone".to_owned(),
        false => format!("these changes could not be undone: {}", one_line(&stuck.join(", "))),
    };
    anyhow::bail!("{} refuses the module: {why}; {undone}", server.version())
}

fn report(server: &dyn Server, manifest: &Manifest) -> String {
    let mut text = format!("{} now has the module:\n", server.version());
    for made in &manifest.made {
        text += &format!("    {}\n", made.path().display());
    }
    if !manifest.by_hand.is_empty() {
        text += "Its configuration was not edited; add this to it:\n";
        manifest.by_hand.iter().for_each(|line| text += &format!("    {line}\n"));
    }
    text
}

/// Reloads the server, or prints the command that reloads it.
fn follow_up(args: &InstallArgs, server: &dyn Server, manifest: &Manifest) -> anyhow::Result<Exit> {
    if !args.reload || !manifest.by_hand.is_empty() {
        let then = "then see `brimful module status` and `brimful watch`";
        print(&format!(
            "To start recording, reload the server (no request is lost):\n    {}\n{then}\n",
            server.reload_command()
        ))?;
        return Ok(Exit::Ok);
    }
    server.reload()?;
    let began = Instant::now();
    let memory = || memory_path(args.server, Some(manifest), None);
    while began.elapsed() < RELOAD_TIMEOUT && !memory::is_module_memory(&memory()) {
        thread::sleep(Duration::from_millis(20));
    }
    print(&format!("{}\n", memory::describe_status(&memory())))?;
    let name = server.version();
    anyhow::ensure!(
        memory::is_module_memory(&memory()),
        "{name} was reloaded but does not record; look into its error log"
    );
    Ok(Exit::Ok)
}

/// Path of the shared memory of a server on this host: the file that the user named, the one in the manifest, or the
/// default.
pub fn memory_path(kind: ServerKind, manifest: Option<&Manifest>, named: Option<&Path>) -> PathBuf {
    named
        .map(Path::to_owned)
        .or_else(|| manifest.and_then(|manifest| manifest.memory.clone()))
        .unwrap_or_else(|| memory::default_path(memory::default_paths(kind)))
}
