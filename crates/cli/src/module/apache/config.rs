//! As much of Apache's configuration language as tells which directories a file includes.

use crate::module::server::Piece;
use std::path::{Path, PathBuf};

/// The server's root directory, and what its configuration includes outside of all sections.
pub fn includes(text: &str, root: &Path) -> (PathBuf, Vec<String>) {
    let mut root = root.to_owned();
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for line in text.lines().map(str::trim) {
        if line.starts_with("</") {
            depth = depth.saturating_sub(1);
        } else if line.starts_with('<') {
            depth += 1;
        }
        let Some((name, value)) = line.split_once(char::is_whitespace) else { continue };
        let value = value.trim().trim_matches('"').to_owned();
        match name.to_ascii_lowercase().as_str() {
            "serverroot" => root = PathBuf::from(value),
            "include" | "includeoptional" if depth == 0 => found.push(value),
            _ => {}
        }
    }
    (root, found)
}

/// The directory that there is, and of which every file with this ending is included.
pub fn directory(pattern: &Path, ending: &str) -> Option<PathBuf> {
    let directory = pattern.parent()?;
    (pattern.file_name()?.to_str()? == ending && directory.is_dir()).then(|| directory.to_owned())
}

/// A file in `mods-available` and a link to it in `mods-enabled`, as Debian has them; elsewhere, the file alone.
pub fn available(enabled: &Path, name: &str, text: String) -> Piece {
    let there = enabled.with_file_name("mods-available");
    let is_debians = enabled.file_name().is_some_and(|name| name == "mods-enabled") && there.is_dir();
    match is_debians {
        true => Piece {
            path: there.join(name),
            text,
            link: Some((enabled.join(name), Path::new("../mods-available").join(name))),
            by_hand: None,
        },
        false => Piece { path: enabled.join(name), text, link: None, by_hand: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_outside_of_sections() {
        let text = "ServerRoot \"/srv/httpd\"\n# Include no\n<VirtualHost *:80>\n Include a\n</VirtualHost>\n\
                    include \"conf.d/*.conf\"\nIncludeOptional\tmods/*.load\n</x>\nInclude b\nInclude\n";
        let (root, found) = includes(text, Path::new("/elsewhere"));
        assert_eq!(root, Path::new("/srv/httpd"));
        assert_eq!(found, ["conf.d/*.conf", "mods/*.load", "b"]);
    }

    #[test]
    fn a_directory_counts_if_it_takes_all() {
        let place = tempfile::tempdir().unwrap();
        let found = |pattern: &str| directory(&place.path().join(pattern), "*.conf");
        assert_eq!(found("*.conf"), Some(place.path().to_owned()));
        assert_eq!((found("*.load"), found("mine.conf"), found("absent/*.conf")), (None, None, None));
    }
}
