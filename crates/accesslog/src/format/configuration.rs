//! Extracts the log formats that a server's configuration file defines and uses.

use super::directive::excerpt;
use super::{Format, apache, nginx};
use crate::error::LogError;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The formats of a configuration file of nginx or Apache. The most used format comes first. Unused formats come last.
pub(crate) fn formats(text: &str) -> Result<Vec<Format>, LogError> {
    let is_log_directive = |word: &String| {
        let name = word.to_ascii_lowercase();
        matches!(name.as_str(), "logformat" | "customlog" | "transferlog")
    };
    let is_apache = apache::directives(text).iter().any(|words| words.first().is_some_and(is_log_directive));
    let definitions = if is_apache { apache_definitions(text) } else { nginx_definitions(text) };
    definitions.formats()
}

/// The log formats that a configuration file defines, and how often it uses each of them.
#[derive(Default)]
struct Definitions {
    /// Number of uses of each format, by its name, or by its format string if it has no name.
    uses: BTreeMap<String, usize>,
    /// Formats with their names, in the file's order. Built-in formats that the file uses without a definition come
    /// last.
    defined: Vec<(String, Result<Format, LogError>)>,
}

impl Definitions {
    fn count_use(&mut self, name: &str) {
        *self.uses.entry(name.to_owned()).or_default() += 1;
    }

    fn define(&mut self, name: &str, format: Result<Format, LogError>) {
        self.defined.retain(|(other, _)| other != name);
        self.defined.push((name.to_owned(), format.map(|format| format.renamed(name))));
    }

    fn formats(mut self) -> Result<Vec<Format>, LogError> {
        let missing: Vec<String> = self.uses.keys().filter(|name| !self.has(name)).cloned().collect();
        for name in &missing {
            if let Some(known) = Format::by_name(name) {
                self.define(name, Ok(known));
            }
        }
        let unknown = missing.iter().find(|name| !self.has(name));
        self.defined.sort_by_key(|(name, _)| Reverse(self.uses.get(name).copied().unwrap_or(0)));
        let mut formats = Vec::new();
        let mut refused = None;
        for (_, format) in self.defined {
            match format {
                Ok(format) => formats.push(format),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if !formats.is_empty() {
            return Ok(formats);
        }
        Err(refused.unwrap_or_else(|| {
            LogError::BadFormat(match unknown {
                Some(name) => format!(
                    "the configuration uses the format `{}` and does not define it: give the file that does",
                    excerpt(name)
                ),
                None => "the configuration defines no log format: it has no log_format or access_log (nginx) and no \
                         LogFormat or CustomLog (Apache); give the file that has"
                    .to_owned(),
            })
        }))
    }

    fn has(&self, name: &str) -> bool {
        self.defined.iter().any(|(other, _)| other == name)
    }
}

/// Reads nginx's directives `log_format name [escape=…] text…;` and `access_log path [format [parameter=…]…];`.
fn nginx_definitions(text: &str) -> Definitions {
    let mut definitions = Definitions::default();
    let mut statement: Vec<String> = Vec::new();
    for word in nginx::words(text) {
        if !matches!(word.as_str(), ";" | "{" | "}") {
            statement.push(word);
            continue;
        }
        match statement.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["log_format", name, content @ ..] => {
                let escape = content.first().and_then(|word| word.strip_prefix("escape="));
                let content = content.get(usize::from(escape.is_some())..).unwrap_or_default().concat();
                let pattern = nginx::compile(&content, escape.unwrap_or_default());
                definitions.define(name, pattern.map(|pattern| Format::from_pattern(name, pattern)));
            }
            ["access_log", path, rest @ ..] if *path != "off" => {
                definitions.count_use(rest.first().filter(|word| !word.contains('=')).copied().unwrap_or("combined"));
            }
            _ => {}
        }
        statement.clear();
    }
    definitions
}

/// Reads Apache's directives `LogFormat "…" [name]`, `CustomLog path name-or-format […]` and `TransferLog path`.
fn apache_definitions(text: &str) -> Definitions {
    let mut definitions = Definitions::default();
    let mut last_format = "common".to_owned();
    for directive in apache::directives(text) {
        let words: Vec<&str> = directive.iter().map(String::as_str).collect();
        match (words.first().map(|word| word.to_ascii_lowercase()).as_deref(), words.get(1..)) {
            (Some("logformat"), Some([format])) => last_format = (*format).to_owned(),
            (Some("logformat"), Some([format, name, ..])) => definitions.define(name, Format::from_apache(format)),
            (Some("customlog" | "globallog"), Some([_path, format, ..])) => {
                if format.contains('%') {
                    definitions.define(format, Format::from_apache(format));
                }
                definitions.count_use(format);
            }
            (Some("transferlog"), Some([_path, ..])) => {
                if last_format.contains('%') {
                    definitions.define(&last_format, Format::from_apache(&last_format));
                }
                definitions.count_use(&last_format);
            }
            _ => {}
        }
    }
    definitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_formats_says_which_to_give() {
        let refusal = |text| formats(text).unwrap_err().to_string();
        assert!(refusal("user www-data;\n").contains("no log_format"));
        assert!(refusal("access_log /x mine;").contains("`mine` and does not define it"));
        assert!(refusal("LogFormat \"%{Referer}i -> %U\" referer").contains("no time"));
        assert!(refusal("").contains("access_log"));
    }
}
