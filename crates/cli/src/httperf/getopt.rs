//! Parses options like GNU's getopt_long: `--name value`, `--name=value`, unambiguous abbreviations of names, groups of
//! single letters, and other arguments anywhere between them.

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// The option takes no value.
    NoValue,
    /// The option takes a value, after `=` or as the next word.
    Value,
    /// The option may have a value, but only after `=`.
    OptionalValue,
}

/// The definition of an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The option's long name, without dashes.
    pub name: &'static str,
    /// The option's letter; `None` if it has none.
    pub letter: Option<char>,
    /// Whether the option takes a value.
    pub value: OptionValue,
}

/// An option on the command line: its long name and its value.
pub type ParsedOption = (&'static str, Option<String>);

/// Parses the words after the program's name. Returns the options in their order, and all other words.
///
/// # Errors
/// A description of the first option that is unknown, ambiguous, or lacks its value.
pub fn parse(known: &[OptionSpec], words: &[String]) -> Result<(Vec<ParsedOption>, Vec<String>), String> {
    let mut given = Vec::new();
    let mut others = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            others.extend(words.cloned());
            break;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let option = find(known, name)?;
            let value = match (option.value, value) {
                (OptionValue::NoValue, Some(_)) => return Err(format!("--{} has no value", option.name)),
                (OptionValue::Value, None) => Some(next(&mut words, &format!("--{}", option.name))?),
                (_, value) => value.map(str::to_owned),
            };
            given.push((option.name, value));
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            read_letters(known, letters, &mut words, &mut given)?;
        } else {
            others.push(word.clone());
        }
    }
    Ok((given, others))
}

/// The option with this name, or the only option whose name starts with this text.
fn find<'k>(known: &'k [OptionSpec], name: &str) -> Result<&'k OptionSpec, String> {
    if let Some(option) = known.iter().find(|option| option.name == name) {
        return Ok(option);
    }
    let candidates: Vec<&OptionSpec> = known.iter().filter(|option| option.name.starts_with(name)).collect();
    match candidates[..] {
        [option] => Ok(option),
        [] => Err(format!("there is no option --{name}: --help lists all options")),
        _ => {
            let names: Vec<String> = candidates.iter().map(|option| format!("--{}", option.name)).collect();
            Err(format!("--{name} may mean {}: write more of the name", names.join(" or ")))
        }
    }
}

/// Parses a word of letters like `-vd3`: letters of options without a value, and optionally a last letter that is
/// followed by its option's value.
fn read_letters<'w>(
    known: &[OptionSpec],
    letters: &str,
    words: &mut impl Iterator<Item = &'w String>,
    given: &mut Vec<ParsedOption>,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let option = known.iter().find(|option| option.letter == Some(letter));
        let option = option.ok_or_else(|| format!("there is no option -{letter}: --help lists all options"))?;
        if option.value == OptionValue::Value {
            let rest = &letters[at + letter.len_utf8()..];
            let value = if rest.is_empty() { next(words, &format!("-{letter}"))? } else { rest.to_owned() };
            given.push((option.name, Some(value)));
            return Ok(());
        }
        given.push((option.name, None));
    }
    Ok(())
}

fn next<'w>(words: &mut impl Iterator<Item = &'w String>, option: &str) -> Result<String, String> {
    words.next().cloned().ok_or_else(|| format!("{option} needs a value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[OptionSpec] = &[
        OptionSpec { name: "server", letter: None, value: OptionValue::Value },
        OptionSpec { name: "server-name", letter: None, value: OptionValue::Value },
        OptionSpec { name: "ssl", letter: None, value: OptionValue::NoValue },
        OptionSpec { name: "ssl-no-reuse", letter: None, value: OptionValue::NoValue },
        OptionSpec { name: "print-reply", letter: None, value: OptionValue::OptionalValue },
        OptionSpec { name: "verbose", letter: Some('v'), value: OptionValue::NoValue },
        OptionSpec { name: "debug", letter: Some('d'), value: OptionValue::Value },
    ];

    fn words(line: &str) -> Result<(Vec<ParsedOption>, Vec<String>), String> {
        parse(OPTIONS, &line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn given(line: &str) -> Vec<(&'static str, Option<String>)> {
        words(line).unwrap().0
    }

    #[test]
    fn every_spelling_is_read() {
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(given("--server a"), [("server", value("a"))]);
        assert_eq!(given("--server=a=b"), [("server", value("a=b"))]);
        assert_eq!(given("--server-n a --verb"), [("server-name", value("a")), ("verbose", None)]);
        assert_eq!(given("--ssl --ssl-n"), [("ssl", None), ("ssl-no-reuse", None)]);
        assert_eq!(given("--print-reply --print=body"), [("print-reply", None), ("print-reply", value("body"))]);
        assert_eq!(
            given("-vd3 -v -d 4"),
            [("verbose", None), ("debug", value("3")), ("verbose", None), ("debug", value("4"))]
        );
        assert_eq!(
            words("a --ssl b -- --ssl").unwrap(),
            (vec![("ssl", None)], vec!["a".into(), "b".into(), "--ssl".into()])
        );
        assert_eq!(given("--server --ssl"), [("server", value("--ssl"))]);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (line, message) in [
            ("--nothing", "no option --nothing"),
            ("--s", "--server or --server-name or --ssl or --ssl-no-reuse"),
            ("--ssl=1", "--ssl has no value"),
            ("--server", "--server needs a value"),
            ("-vx", "no option -x"),
            ("-d", "-d needs a value"),
            ("-é", "no option -é"),
        ] {
            let error = words(line).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
    }
}
