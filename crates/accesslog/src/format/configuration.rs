//! Which formats a server's configuration file defines and uses.

use super::{Format, apache, nginx};
use crate::error::LogError;
use std::collections::BTreeMap;

/// The formats of a configuration file of nginx or Apache, those that most logs have first, then those that none has.
pub(crate) fn formats(text: &str) -> Result<Vec<Format>, LogError> {
    let is_apache = directives(text).iter().any(|words| {
        words
            .first()
            .is_some_and(|word| ["logformat", "customlog", "transferlog"].contains(&&*word.to_ascii_lowercase()))
    });
    let found = if is_apache { of_apache(text) } else { of_nginx(text) };
    found.formats()
}

/// What a file says.
#[derive(Default)]
struct Found {
    /// How often each name or format is used.
    uses: BTreeMap<String, usize>,
    /// By name, in the file's order. Of those that the file does not define, what the server has built in.
    defined: Vec<(String, Result<Format, LogError>)>,
}

impl Found {
    fn used(&mut self, name: &str) {
        *self.uses.entry(name.to_owned()).or_default() += 1;
    }

    fn define(&mut self, name: &str, format: Result<Format, LogError>) {
        self.defined.retain(|(other, _)| other != name);
        self.defined.push((name.to_owned(), format.map(|format| format.renamed(name))));
    }

    fn formats(mut self) -> Result<Vec<Format>, LogError> {
        let missing: Vec<String> = self.uses.keys().filter(|name| !self.has(name)).cloned().collect();
        for name in &missing {
            if let Some(known) = Format::named(name) {
                self.define(name, Ok(known));
            }
        }
        let unknown = missing.iter().find(|name| !self.has(name));
        let uses = |name: &str| self.uses.get(name).copied().unwrap_or(0);
        self.defined.sort_by_key(|(name, _)| std::cmp::Reverse(uses(name)));
        let (mut formats, mut refused) = (Vec::new(), None);
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
                    apache::shown(name)
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

/// `log_format name [escape=…] text…;` and `access_log path [format [parameter=…]…];`.
fn of_nginx(text: &str) -> Found {
    let mut found = Found::default();
    let mut statement: Vec<String> = Vec::new();
    for word in words(text) {
        if !matches!(word.as_str(), ";" | "{" | "}") {
            statement.push(word);
            continue;
        }
        match statement.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["log_format", name, content @ ..] => {
                let escape = content.first().and_then(|word| word.strip_prefix("escape="));
                let content = content.get(usize::from(escape.is_some())..).unwrap_or_default().concat();
                let pattern = nginx::compiled(&content, escape.unwrap_or_default());
                found.define(name, pattern.map(|pattern| Format::of(name, pattern)));
            }
            ["access_log", path, rest @ ..] if *path != "off" => {
                found.used(rest.first().filter(|word| !word.contains('=')).copied().unwrap_or("combined"));
            }
            _ => {}
        }
        statement.clear();
    }
    found
}

/// `LogFormat "…" [name]`, `CustomLog path name-or-format […]` and `TransferLog path`.
fn of_apache(text: &str) -> Found {
    let mut found = Found::default();
    let mut last = "common".to_owned();
    for directive in directives(text) {
        let words: Vec<&str> = directive.iter().map(String::as_str).collect();
        match (words.first().map(|word| word.to_ascii_lowercase()).as_deref(), words.get(1..)) {
            (Some("logformat"), Some([format])) => last = (*format).to_owned(),
            (Some("logformat"), Some([format, name, ..])) => found.define(name, Format::apache(format)),
            (Some("customlog" | "globallog"), Some([_path, format, ..])) => {
                if format.contains('%') {
                    found.define(format, Format::apache(format));
                }
                found.used(format);
            }
            (Some("transferlog"), Some([_path, ..])) => {
                if last.contains('%') {
                    found.define(&last, Format::apache(&last));
                }
                found.used(&last);
            }
            _ => {}
        }
    }
    found
}

/// The directives of Apache's: one a line, and the next too after a backslash. What stands between quotes keeps its
/// escapes.
fn directives(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    text.lines().map(str::trim).filter(|line| !line.starts_with('#')).map(arguments).collect()
}

fn arguments(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(quote) = rest.chars().next() {
        let (word, after) = match quote {
            '"' | '\'' => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = closing_quote(inner, quote);
                (inner.get(..end).unwrap_or_default(), inner.get(end + 1..).unwrap_or_default())
            }
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

fn closing_quote(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.find(|character: char| {
        let is_end = character == quote && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// The words of nginx's: `;`, `{` and `}` are some of their own; quotes are off and what they escape is undone.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '#' => rest.split_once('\n').map_or("", |(_, after)| after),
            ';' | '{' | '}' => {
                words.push(first.to_string());
                rest.get(1..).unwrap_or_default()
            }
            '"' | '\'' => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = closing_quote(inner, first);
                words.push(nginx::unescaped(inner.get(..end).unwrap_or_default()));
                inner.get(end + 1..).unwrap_or_default()
            }
            _ => {
                let (word, after) = rest.split_at(end_of_word(rest));
                words.push(word.to_owned());
                after
            }
        }
        .trim_start();
    }
    words
}

/// `${name}` belongs to a word, other braces do not.
fn end_of_word(text: &str) -> usize {
    let mut before = ' ';
    let mut is_in_braces = false;
    let end = text.find(|character: char| {
        let is_name = before == '$' && character == '{';
        let is_end = character.is_whitespace() || matches!(character, ';' | '{' | '}');
        let ends = is_end && !is_name && !(is_in_braces && character == '}');
        is_in_braces = is_name || (is_in_braces && character != '}');
        before = character;
        ends
    });
    end.unwrap_or(text.len()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of nginx's, joined, for a short look.
    fn split(text: &str) -> String {
        words(text).join("|")
    }

    #[test]
    fn words_of_nginx() {
        assert_eq!(split("a b;c{d}# no ; }\ne"), "a|b|;|c|{|d|}|e");
        assert_eq!(split(r#"x '$a "b"' "it\'s" ${c}d;"#), r#"x|$a "b"|it's|${c}d|;"#);
        assert_eq!(split("'open"), "open");
        assert_eq!(split("é\u{a0}'é'"), "é|é");
    }

    #[test]
    fn directives_of_apache() {
        let text = "# CustomLog no\n  LogFormat \"%h \\\"%r\\\"\" \\\n  mine\n\nCustomLog x mine\n";
        let all = directives(text);
        assert_eq!(all[0], ["LogFormat", "%h \\\"%r\\\"", "mine"]);
        assert_eq!(all.last().unwrap(), &["CustomLog", "x", "mine"]);
        assert_eq!(arguments("\"open"), ["open"]);
    }

    #[test]
    fn a_file_without_formats_says_which_to_give() {
        let refusal = |text| formats(text).unwrap_err().to_string();
        assert!(refusal("user www-data;\n").contains("no log_format"));
        assert!(refusal("access_log /x mine;").contains("`mine` and does not define it"));
        assert!(refusal("LogFormat \"%{Referer}i -> %U\" referer").contains("no time"));
        assert!(refusal("").contains("access_log"));
    }
}
