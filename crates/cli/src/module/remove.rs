//! `brimful module remove`: removes the files that the manifest lists. If the server does not start without them, the
//! removal is undone.

use super::args::{RemoveArgs, ServerLocationArgs};
use super::find_server;
use super::install::{manifest_path, memory_path};
use super::journal::{self, Journal};
use super::manifest::{FileState, InstalledItem, Manifest};
use super::memory;
use super::server::{Server, Settings, check_trust};
use super::sources;
use super::trust;
use crate::exit::{Exit, UsageError};
use crate::output::{print, print_note};
use anyhow::Context;
use brimful_core::text::one_line;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the configuration files that `install` writes.
const CONFIG_FILE_NAMES: [&str; 5] =
    ["50-brimful.conf", "brimful.conf", "brimful-load.conf", "brimful-http.conf", "brimful.load"];

/// Removes the module.
///
/// # Errors
/// Returns an error if the module was not installed, or the server's configuration needs it. All changes are then undone.
pub fn main(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let _interrupted = super::interrupt_flag()?;
    sources::remove_orphans();
    let mut server = find_server(args.server, &args.location)?;
    let manifest_path = manifest_path(&*server);
    check_trust(&*server, &args.location, &manifest_path)?;
    journal::remove_temporary_directories(&manifest_path);
    let Some(manifest) = Manifest::read(&manifest_path, args.server)? else {
        let words = format!(
            "{} has no module that brimful installed: {} does not exist; check --prefix",
            server.version(),
            manifest_path.display()
        );
        return Err(UsageError(words).into());
    };
    if manifest.binary != server.binary() || manifest.config != args.location.config {
        let place = ServerLocationArgs {
            binary: args.location.binary.clone().or(Some(manifest.binary.clone())),
            prefix: args.location.prefix.clone().or(manifest.prefix.clone()),
            config: args.location.config.clone().or(manifest.config.clone()),
        };
        // The manifest names this program. It is run later, so check first that no other user can write to it.
        trust::check(&manifest.binary)?;
        server = find_server(args.server, &place)?;
        check_trust(&*server, &place, &manifest_path)?;
    }
    check_manifest(&manifest, &*server)?;
    let mut journal = Journal::default();
    let kept = remove_unchanged(&manifest, &mut journal)?;
    if let Err(why) = server.test()? {
        return Err(undo_removal(&*server, &manifest, &why, &mut journal).into());
    }
    journal.commit();
    manifest.made.iter().for_each(|made| journal::remove_temporary_file(made.path()));
    let memory = memory_path(args.server, Some(&manifest), None);
    if memory::is_module_memory(&memory) && fs::remove_file(&memory).is_err() {
        print_note(&format!("{} cannot be removed; remove it by hand", memory.display()));
    }
    // The manifest is removed last, so that an interrupted removal can be repeated.
    journal::remove_with_directories(&canonical(&manifest_path), manifest.top_directory().map(canonical).as_deref())
        .with_context(|| format!("cannot remove {}", manifest_path.display()))?;
    print(&format!("{} no longer has the module\n", server.version()))?;
    for path in kept {
        print(&format!("{} was changed since it was written, and is kept\n", path.display()))?;
    }
    match args.reload {
        true => server.reload()?,
        false => print(&format!(
            "To unload it from the running server, reload the server:\n    {}\n",
            server.reload_command()
        ))?,
    }
    Ok(Exit::Ok)
}

/// Rejects a manifest if it lists a file that `install` cannot have made for this server, or a file that other users
/// can write to.
fn check_manifest(manifest: &Manifest, server: &dyn Server) -> anyhow::Result<()> {
    let base = canonical(server.config().parent().unwrap_or(Path::new("/")));
    let module_directory = canonical(server.module().parent().unwrap_or(Path::new("/")));
    // The server's configuration may include files outside `base`. `config_files` returns all files that `install`
    // would write, so their directories are accepted, too.
    let settings = Settings { memory: None, cpu_one_in: 0, classes: Vec::new() };
    let config_files = server.config_files(&settings).unwrap_or_default();
    let links = config_files.iter().filter_map(|file| Some(&file.link.as_ref()?.0));
    let paths = config_files.iter().map(|file| &file.path).chain(links);
    let included: Vec<PathBuf> = paths.filter_map(|path| Some(canonical(path.parent()?))).collect();
    for made in manifest.made.iter().filter(|made| manifest.state(made.path()) != Some(FileState::Removed)) {
        let path = made.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let directory = canonical(path.parent().unwrap_or(Path::new("/")));
        let is_config_file =
            CONFIG_FILE_NAMES.contains(&name) && (directory.starts_with(&base) || included.contains(&directory));
        let is_module = directory == module_directory && path.file_name() == server.module().file_name();
        let is_possible = match made {
            InstalledItem::Directory { path } => module_directory.starts_with(canonical(path)),
            InstalledItem::File { .. } => is_config_file || is_module,
            InstalledItem::Link { to, .. } => is_config_file && to.file_name() == path.file_name(),
        };
        if !path.is_absolute() || !is_possible {
            let words = format!(
                "the manifest lists {}, which install cannot have made for this server; nothing was changed: inspect \
                 the file, and remove it by hand",
                path.display()
            );
            return Err(UsageError(words).into());
        }
        trust::check(path)?;
    }
    Ok(())
}

/// The path with links and `..` resolved, if it exists.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Removes the files that have not changed since they were made. Returns the paths at which changed files are kept.
fn remove_unchanged(manifest: &Manifest, journal: &mut Journal) -> anyhow::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for made in manifest.made.iter().rev() {
        match (made, manifest.state(made.path())) {
            (InstalledItem::Directory { .. }, _) | (_, Some(FileState::Removed) | None) => {}
            (_, Some(FileState::Unchanged)) => journal.remove(made.path())?,
            (InstalledItem::File { path, .. }, Some(FileState::Changed)) => kept.push(move_aside(path, journal)?),
            (InstalledItem::Link { path, .. }, Some(FileState::Changed)) => kept.push(path.clone()),
        }
    }
    Ok(kept)
}

/// Renames a changed file so that the server no longer reads it. Returns the file's new path.
fn move_aside(path: &Path, journal: &mut Journal) -> anyhow::Result<PathBuf> {
    let free = |n: &u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(if *n == 0 { ".kept".to_owned() } else { format!(".kept-{n}") });
        let other = path.with_file_name(name);
        fs::symlink_metadata(&other).is_err().then_some(other)
    };
    let Some(other) = (0..1000).find_map(|n| free(&n)) else {
        anyhow::bail!("{} was changed, and no name to keep it under is free; move it away", path.display())
    };
    journal.rename(path, &other)?;
    Ok(other)
}

/// Undoes the removal. Returns the error that explains why the server needs the module.
fn undo_removal(server: &dyn Server, manifest: &Manifest, why: &str, journal: &mut Journal) -> UsageError {
    let stuck = journal.undo();
    let state = match stuck.is_empty() {
        true => "nothing was removed".to_owned(),
        false => format!("these changes could not be undone: {}", one_line(&stuck.join(", "))),
    };
    let first = match manifest.by_hand.is_empty() {
        true => "first remove all lines with brimful from its configuration".to_owned(),
        false => format!("first remove the line that you added {}", manifest.by_hand.join(" and ")),
    };
    UsageError(format!("{} does not start without the module: {why}; {state}; {first}", server.version()))
}
