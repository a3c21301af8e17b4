//! Parses nginx's `include` directives, and the names of the blocks that contain them.

use std::path::{Path, PathBuf};

/// An `include` directive of nginx's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The blocks around the directive, like `http` or `http server`; empty at the top level.
    pub block: String,
    /// The included path or pattern.
    pub pattern: String,
}

impl Include {
    /// The directory of the pattern, if it exists and the pattern includes every `*.conf` in it.
    pub fn directory(&self, base: &Path) -> Option<PathBuf> {
        let path = base.join(&self.pattern);
        let name = path.file_name()?.to_str()?;
        let directory = path.parent()?;
        (["*.conf", "*"].contains(&name) && directory.is_dir()).then(|| directory.to_owned())
    }
}

/// The `include` directives of a configuration file, in the order of the file.
pub fn includes(text: &str) -> Vec<Include> {
    let mut found = Vec::new();
    let mut blocks: Vec<String> = Vec::new();
    let mut directive: Vec<String> = Vec::new();
    for token in Tokens(text) {
        match token {
            Token::Word(word) => directive.push(word),
            Token::Begin => blocks.push(std::mem::take(&mut directive).into_iter().next().unwrap_or_default()),
            Token::End => {
                blocks.pop();
                directive.clear();
            }
            Token::Semicolon => {
                if let [name, pattern] = directive.as_slice()
                    && name == "include"
                {
                    found.push(Include { block: blocks.join(" "), pattern: pattern.clone() });
                }
                directive.clear();
            }
        }
    }
    found
}

/// The words of a line that `nginx -V` prints. Words may be quoted.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

enum Token {
    Word(String),
    Semicolon,
    Begin,
    End,
}

/// An iterator over the tokens of a configuration file. The field is the unread rest of the file.
struct Tokens<'a>(&'a str);

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            self.0 = self.0.trim_start();
            match self.0.strip_prefix('#') {
                Some(comment) => self.0 = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => break,
            }
        }
        let mut characters = self.0.chars();
        let first = characters.next()?;
        let token = match first {
            ';' => Token::Semicolon,
            '{' => Token::Begin,
            '}' => Token::End,
            quote @ ('"' | '\'') => {
                let rest = characters.as_str();
                let (word, rest) = rest.split_once(quote).unwrap_or((rest, ""));
                self.0 = rest;
                return Some(Token::Word(word.to_owned()));
            }
            _ => {
                // The braces of a variable like `${name}` are part of a word; other braces end it.
                let mut end = self.0.len();
                let mut in_variable = false;
                for (at, c) in self.0.char_indices() {
                    let begins_variable = c == '{' && self.0[..at].ends_with('$');
                    if c.is_whitespace() || c == ';' || (c == '{' && !begins_variable) || (c == '}' && !in_variable) {
                        end = at;
                        break;
                    }
                    in_variable = begins_variable || (in_variable && c != '}');
                }
                let (word, rest) = self.0.split_at(end);
                self.0 = rest;
                return Some(Token::Word(word.to_owned()));
            }
        };
        self.0 = characters.as_str();
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_with_their_blocks() {
        let text = "user www-data; # include no/*.conf;\ninclude /etc/nginx/modules-enabled/*.conf;\nevents { }\n\
                    http {\ninclude mime.types; log_format main '$a { \"include x;\" }';\n set $a ${b}c; server {\n\
                    location / { include s; } }\ninclude \"conf.d/*.conf\";\n}\ninclude";
        let found: Vec<(String, String)> =
            includes(text).into_iter().map(|include| (include.block, include.pattern)).collect();
        let expected = [
            ("", "/etc/nginx/modules-enabled/*.conf"),
            ("http", "mime.types"),
            ("http server location", "s"),
            ("http", "conf.d/*.conf"),
        ];
        assert_eq!(found, expected.map(|(block, pattern)| (block.to_owned(), pattern.to_owned())));
    }

    #[test]
    fn broken_text_does_not_panic() {
        for text in ["}", "}}}include a;", "{", "'", "\"include", "include ${", "include a b;", ";;;", "é{é}é;"] {
            assert!(includes(text).len() <= 1, "{text:?}");
        }
    }

    #[test]
    fn a_directory_counts_if_all_its_files_are_included() {
        let directory = tempfile::tempdir().unwrap();
        let include = |pattern: &str| Include { block: String::new(), pattern: pattern.to_owned() };
        let here = Some(directory.path().to_owned());
        assert_eq!(include("*.conf").directory(directory.path()), here);
        assert_eq!(include(&directory.path().join("*").display().to_string()).directory(Path::new("/")), here);
        assert_eq!(include("*.types").directory(directory.path()), None);
        assert_eq!(include("absent/*.conf").directory(directory.path()), None);
    }

    #[test]
    fn quoted_words_may_contain_spaces() {
        let line = "--with-cc-opt='-g -O2' --prefix=/usr  \"a 'b'\" ''";
        assert_eq!(words(line), ["--with-cc-opt=-g -O2", "--prefix=/usr", "a 'b'", ""]);
    }
}
