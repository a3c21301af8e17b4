//! Checks whether a path can be trusted: only root and the caller can have written to it. The files that a server reads
//! and the files that a manifest lists must be trusted.
//!
//! The file and each directory and link on the way to it must belong to root or the caller, and no other user may be
//! able to write to them. A sticky directory that others can write to, like /tmp, is accepted, because in such a
//! directory users cannot replace files of other users.

use anyhow::Context;
use rustix::process::{getegid, geteuid};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Maximum number of links that are followed to resolve a path, as in the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// Rejects a path that other users could have written to. Components of the path that do not exist are not checked.
///
/// # Errors
/// The error names the component of the path, its owner, and what to do.
pub fn check(path: &Path) -> anyhow::Result<()> {
    let whole = std::path::absolute(path).with_context(|| format!("no path: {}", path.display()))?;
    let mut ahead = parts(&whole);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(part);
        let found = match fs::symlink_metadata(&next) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("cannot read the metadata of {}", next.display())),
        };
        check_owner_and_mode(&next, &found)?;
        if !found.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        anyhow::ensure!(links <= MAX_LINKS, "{} leads through more than {MAX_LINKS} links", path.display());
        let to = fs::read_link(&next).with_context(|| format!("cannot read the link {}", next.display()))?;
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        ahead.extend(parts(&to));
    }
    Ok(())
}

/// The components of a path, in reverse order.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}

/// Rejects a file, link or directory that another user owns or can write to.
fn check_owner_and_mode(path: &Path, found: &Metadata) -> anyhow::Result<()> {
    let place = path.display();
    let user = geteuid().as_raw();
    let group = getegid().as_raw();
    let mode = found.permissions().mode();
    let owner = found.uid();
    anyhow::ensure!(
        owner == 0 || owner == user,
        "{place} belongs to user {owner}, who could use it to run programs or rename files with your rights: run this command \
         as that user, or change the owner with chown"
    );
    let is_safe = found.is_symlink() || (found.is_dir() && mode & STICKY != 0);
    let by_group = mode & 0o020 != 0 && found.gid() != 0 && found.gid() != group;
    anyhow::ensure!(
        is_safe || (mode & 0o002 == 0 && !by_group),
        "other users can write to {place}, and could use it to run programs or rename files with your rights; run: \
         chmod go-w {place}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{chown, lchown, symlink};

    fn error_text(path: &Path) -> String {
        check(path).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn paths_that_others_can_write_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let inside = |name: &str| directory.path().join(name);
        fs::create_dir(inside("inner")).unwrap();
        fs::write(inside("inner/file"), "").unwrap();
        symlink("inner", inside("link")).unwrap();
        let set = |name: &str, mode: u32| fs::set_permissions(inside(name), Permissions::from_mode(mode)).unwrap();
        for path in ["inner/file", "link/file", "link/../inner/file", "inner/none", "none/at/all"] {
            assert_eq!(error_text(&inside(path)), "");
        }
        for name in ["inner", "inner/file"] {
            set(name, 0o777);
            for path in ["inner/file", "link/file"] {
                let said = error_text(&inside(path));
                assert!(said.contains("other users can write to") && said.contains(&format!("{name}, and")), "{said}");
            }
            set(name, 0o755);
        }
        set("inner", 0o1777);
        assert_eq!(error_text(&inside("link/file")), "");
        symlink(inside("round"), inside("round")).unwrap();
        assert!(error_text(&inside("round")).contains("more than 40 links"));
    }

    #[test]
    #[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
    fn paths_of_another_user_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let inside = |name: &str| directory.path().join(name);
        fs::create_dir(inside("theirs")).unwrap();
        fs::write(inside("file"), "").unwrap();
        symlink(inside("file"), inside("theirs/link")).unwrap();
        symlink("theirs/link", inside("mine")).unwrap();
        if chown(inside("theirs"), Some(65_534), None).is_err() {
            eprintln!("LEFT OUT: only root can give a directory to another user");
            return;
        }
        assert!(
            error_text(&inside("mine")).contains("theirs belongs to user 65534"),
            "{}",
            error_text(&inside("mine"))
        );
        chown(inside("theirs"), Some(0), None).unwrap();
        assert_eq!(error_text(&inside("mine")), "");
        lchown(inside("theirs/link"), Some(65_534), None).unwrap();
        assert!(error_text(&inside("mine")).contains("theirs/link belongs to user 65534"));
    }
}
