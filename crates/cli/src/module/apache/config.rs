//! Parses the directives of Apache's configuration that include other files.

use crate::module::server::ConfigFile;
use std::path::{Path, PathBuf};

/// Returns the server's root directory, and the patterns of the files that its configuration includes outside of all
/// sections.
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

/// The directory of a pattern, if the directory exists and the pattern's last part is `ending`, such as `*.conf`.
pub fn included_directory(pattern: &Path, ending: &str) -> Option<PathBuf> {
    let directory = pattern.parent()?;
    (pattern.file_name()?.to_str()? == ending && directory.is_dir()).then(|| directory.to_owned())
}

/// The module's configuration file. On Debian, it is in `mods-available`, with a link to it in `mods-enabled`.
pub fn module_config_file(enabled: &Path, name: &str, text: String) -> ConfigFile {
    let available = enabled.with_file_name("mods-available");
    let is_debian = enabled.file_name().is_some_and(|name| name == "mods-enabled") && available.is_dir();
    match is_debian {
        true => ConfigFile {
            path: available.join(name),
            text,
            link: Some((enabled.join(name), Path::new("../mods-available").join(name))),
            line_to_add: None,
        },
        false => ConfigFile { path: enabled.join(name), text, link: None, line_to_add: None },
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
    fn a_directory_counts_if_all_its_files_are_included() {
        let place = tempfile::tempdir().unwrap();
        let found = |pattern: &str| included_directory(&place.path().join(pattern), "*.conf");
        assert_eq!(found("*.conf"), Some(place.path().to_owned()));
        assert_eq!((found("*.load"), found("mine.conf"), found("absent/*.conf")), (None, None, None));
    }
}
