//! Compiles Apache's `LogFormat`, which the documentation of `mod_log_config` (2.4) describes.

mod java;

use super::directive::{closing_quote, excerpt, unescape};
use super::number::TimeUnit;
use super::pattern::{FieldKind, Pattern, Piece, Tail, Traits};
use super::time::Part;
use crate::error::LogError;

/// The letters that are valid after `%`. The error message about any other letter lists them.
const LETTERS: &str =
    "%a %A %b %B %C %D %e %f %h %H %i %I %k %l %L %m %n %o %O %p %P %q %r %R %s %S %t %T %u %U %v %V %X %x %c";

/// Compiles the format string of a `LogFormat`, or the whole directive.
pub(crate) fn pattern(format: &str) -> Result<Pattern, LogError> {
    let refused = |why: String| LogError::BadFormat(format!("the LogFormat `{}` {why}", excerpt(format)));
    let (pieces, is_end_time) = pieces(&unescape(format_string(format))).map_err(refused)?;
    Pattern::new(pieces, Traits { tail: Tail::End, is_end_time, has_escapes: true }).map_err(refused)
}

/// Strips `LogFormat "` and the nickname after the format string, if present.
fn format_string(format: &str) -> &str {
    let format = format.trim_matches(['\r', '\n']);
    let word = format.trim_start().get(..9).filter(|word| word.eq_ignore_ascii_case("LogFormat"));
    let Some(rest) = word.and_then(|_| format.trim_start().get(9..)) else { return format };
    let rest = rest.trim();
    match rest.strip_prefix('"').and_then(|rest| rest.rsplit_once('"')) {
        Some((content, _)) => content,
        None => rest,
    }
}

/// Splits a format string into literal texts and fields. Also returns whether its timestamps are taken at the end of
/// the request.
fn pieces(format: &str) -> Result<(Vec<Piece>, bool), String> {
    let mut pieces = Vec::new();
    let mut is_end_time = false;
    let mut rest = format;
    while let Some((literal, after)) = rest.split_once('%') {
        pieces.push(Piece::Literal(literal.into()));
        let directive = Directive::read(after)?;
        rest = directive.rest;
        match (directive.letter, directive.argument) {
            // Apache adds the brackets around the time, so the format string does not contain them.
            ("t", "") => {
                pieces.extend([Piece::Literal(b"[".to_vec()), directive.piece()?, Piece::Literal(b"]".to_vec())])
            }
            ("t", argument) => {
                is_end_time |= argument.starts_with("end:");
                pieces.extend(time_pieces(argument)?);
            }
            _ => pieces.push(directive.piece()?),
        }
    }
    pieces.push(Piece::Literal(rest.into()));
    Ok((pieces, is_end_time))
}

/// A directive such as `%!200,304>{Referer}i`.
struct Directive<'a> {
    /// Whether the directive has a `>`, which selects the final status after internal redirects.
    is_final: bool,
    argument: &'a str,
    /// The letter of the directive, or `^` and two letters.
    letter: &'a str,
    rest: &'a str,
}

impl<'a> Directive<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let mut rest = text;
        let mut is_final = false;
        let mut argument = "";
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '!' | ',' | '<'));
            if let Some(after) = rest.strip_prefix('>') {
                (is_final, rest) = (true, after);
            } else if let Some(after) = rest.strip_prefix('{') {
                let unclosed = || format!("has `%{{{}` without a closing brace", excerpt(after));
                (argument, rest) = after.split_once('}').ok_or_else(unclosed)?;
            } else {
                break;
            }
        }
        let length = if rest.starts_with('^') { 3 } else { rest.chars().next().map_or(0, char::len_utf8) };
        let ends = || "ends with a `%`: write %% for a percent sign".to_owned();
        let (letter, rest) = rest.split_at_checked(length).filter(|_| length > 0).ok_or_else(ends)?;
        Ok(Directive { is_final, argument, letter, rest })
    }

    fn piece(&self) -> Result<Piece, String> {
        let (kind, rank) = match self.letter {
            "%" => return Ok(Piece::Literal(b"%".to_vec())),
            "a" if self.argument == "c" => (FieldKind::Client, 2),
            "a" => (FieldKind::Client, 0),
            "h" => (FieldKind::Client, 1),
            "t" => (FieldKind::Clf, 0),
            "r" => (FieldKind::Request, 0),
            "m" => (FieldKind::Method, 0),
            "U" => (FieldKind::Path, 0),
            "q" => (FieldKind::Query, 0),
            "H" => (FieldKind::Protocol, 0),
            "s" => (FieldKind::Status, if self.is_final { 0 } else { 1 }),
            "b" | "B" => (FieldKind::Bytes, 0),
            "O" => (FieldKind::Bytes, 1),
            "D" => (FieldKind::WholeService(TimeUnit::Microseconds), 0),
            "T" => match self.argument {
                "us" => (FieldKind::WholeService(TimeUnit::Microseconds), 0),
                "ms" => (FieldKind::WholeService(TimeUnit::Milliseconds), 1),
                "s" | "" => (FieldKind::WholeService(TimeUnit::Seconds), 2),
                other => return Err(format!("has %{{{}}}T: its unit is s, ms or us", excerpt(other))),
            },
            "V" => (FieldKind::Host, 1),
            "v" => (FieldKind::Host, 2),
            "i" => header_kind(self.argument),
            "A" | "C" | "e" | "f" | "I" | "k" | "l" | "L" | "n" | "o" | "p" | "P" | "R" | "S" | "u" | "X" | "x"
            | "c" => (FieldKind::Skip, 0),
            "^FB" | "^ti" | "^to" => (FieldKind::Skip, 0),
            other => return Err(format!("has %{}, which is not known: there are {LETTERS}", excerpt(other))),
        };
        let argument = if self.argument.is_empty() { String::new() } else { format!("{{{}}}", self.argument) };
        let name = format!("%{argument}{}", self.letter);
        Ok(Piece::Field { kind, rank, name })
    }
}

/// The meaning of a request header in a log, and its rank. Of several fields with the same meaning, the one with the
/// lowest rank is used.
fn header_kind(name: &str) -> (FieldKind, u8) {
    match name.to_ascii_lowercase().as_str() {
        "user-agent" => (FieldKind::Agent, 0),
        "referer" => (FieldKind::Referer, 0),
        "host" => (FieldKind::Host, 0),
        "x-forwarded-for" | "forwarded" => (FieldKind::Forwarded, 0),
        "x-real-ip" | "x-client-ip" | "true-client-ip" | "cf-connecting-ip" => (FieldKind::Forwarded, 1),
        _ => (FieldKind::Skip, 0),
    }
}

/// Compiles `%{format}t`. The format is a format of `strftime`, or one of Apache's own words such as `sec`. The prefix
/// `begin:` or `end:` is optional.
fn time_pieces(argument: &str) -> Result<Vec<Piece>, String> {
    let format = argument.strip_prefix("begin:").or_else(|| argument.strip_prefix("end:")).unwrap_or(argument);
    let part = |part| Piece::Field { kind: FieldKind::Part(part), rank: 0, name: format!("%{{{argument}}}t") };
    match format {
        "sec" | "msec" | "usec" => return Ok(vec![part(Part::Epoch)]),
        "msec_frac" | "usec_frac" => return Ok(vec![part(Part::Fraction)]),
        // This is the time of the Common Log Format, for which a faster parser exists.
        "%d/%b/%Y:%H:%M:%S %z" | "%d/%b/%Y:%T %z" => {
            return Ok(vec![Piece::Field { kind: FieldKind::Clf, rank: 0, name: format!("%{{{argument}}}t") }]);
        }
        _ => {}
    }
    if let Some(directives) = java::as_strftime(format) {
        return Err(format!(
            "has %{{{}}}t, a pattern of Java's SimpleDateFormat, which Tomcat accepts. Times are written as strftime \
             does here: write {directives} in its place",
            excerpt(argument)
        ));
    }
    let mut pieces = Vec::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            pieces.push(Piece::Literal(character.to_string().into_bytes()));
            continue;
        }
        // `%E` and `%O` select the alternative numerals and eras of a locale, which logs do not use. `-` only removes
        // padding.
        let letter = characters.by_ref().find(|letter| !matches!(letter, 'E' | 'O' | '-'));
        let letter = letter.ok_or_else(|| format!("has %{{{}}}t, which ends with a `%`", excerpt(argument)))?;
        match strftime(letter) {
            Some(StrfTime::Part(found)) => pieces.push(part(found)),
            Some(StrfTime::Text(text)) => pieces.push(Piece::Literal(text.into())),
            Some(StrfTime::Several(same)) => pieces.extend(time_pieces(same)?),
            None => return Err(format!("has %{{{}}}t with %{letter}, which is not known", excerpt(argument))),
        }
    }
    Ok(pieces)
}

enum StrfTime {
    Part(Part),
    Text(&'static str),
    /// A letter that abbreviates several conversions, as `%T` abbreviates `%H:%M:%S`.
    Several(&'static str),
}

fn strftime(letter: char) -> Option<StrfTime> {
    Some(StrfTime::Part(match letter {
        'Y' | 'G' => Part::Year,
        'y' | 'g' => Part::YearOfCentury,
        'm' => Part::Month,
        'b' | 'B' | 'h' => Part::MonthName,
        'd' | 'e' => Part::Day,
        'H' | 'k' => Part::Hour,
        'I' | 'l' => Part::HourOfTwelve,
        'p' | 'P' => Part::HalfDay,
        'M' => Part::Minute,
        'S' => Part::Second,
        'z' => Part::Zone,
        's' => Part::Epoch,
        'j' | 'u' | 'w' | 'U' | 'V' | 'W' | 'C' => Part::Digits,
        'a' | 'A' | 'Z' => Part::Word,
        'T' | 'X' => return Some(StrfTime::Several("%H:%M:%S")),
        'R' => return Some(StrfTime::Several("%H:%M")),
        'r' => return Some(StrfTime::Several("%I:%M:%S %p")),
        'D' | 'x' => return Some(StrfTime::Several("%m/%d/%y")),
        'F' => return Some(StrfTime::Several("%Y-%m-%d")),
        'c' => return Some(StrfTime::Several("%a %b %e %H:%M:%S %Y")),
        'n' => return Some(StrfTime::Text("\n")),
        't' => return Some(StrfTime::Text("\t")),
        '%' => return Some(StrfTime::Text("%")),
        _ => return None,
    }))
}

/// Splits a configuration file into directives, and each directive into words. A directive ends with its line, unless a
/// backslash continues it. Quoted words keep their escapes.
pub(crate) fn directives(text: &str) -> Vec<Vec<String>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(format: &str) -> String {
        pattern(format).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert!(refusal("%h %t %y").contains("has %y, which is not known: there are %a"));
        assert!(refusal("%h \\\"%r\\\" %s").contains("no time of the request"));
        assert!(refusal("%h %t %s %b").contains("no request"));
        assert!(refusal("%t %m %s").contains("no request"), "without a URI");
        assert!(refusal("%t \\\"%r\\\" %{Referer").contains("without a closing brace"));
        assert!(refusal("%t \\\"%r\\\" %").contains("ends with a `%`"));
        assert!(refusal("%t \\\"%r\\\" %h%u").contains("nothing between %h and %u"));
        assert!(refusal("%{%Q}t \\\"%r\\\"").contains("%Q"));
        assert!(refusal("%t \\\"%r\\\" %{h}T").contains("s, ms or us"));
        assert!(refusal("%{%H:%M:%S}t \\\"%r\\\"").contains("no time"), "without a date");
    }

    #[test]
    fn a_pattern_of_tomcat_is_named_and_written_as_strftime_has_it() {
        let tomcat = "%h %l %u %{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}t \"%r\" %s %b %D";
        let said = refusal(tomcat);
        let instead = "%{%Y-%m-%dT%H:%M:%S}t.%{msec_frac}t%{%z}t";
        assert!(said.contains("SimpleDateFormat, which Tomcat accepts") && said.contains(instead), "{said}");
        assert!(pattern(&tomcat.replace("%{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}t", instead)).is_ok());
        assert!(refusal("[%{dd/MMM/yyyy:HH:mm:ss Z}t] \"%r\"").contains("write %{%d/%b/%Y:%H:%M:%S %z}t in"));
        assert!(pattern("[%{begin:%Y-%m-%dT%T}t] \"%r\"").is_ok());
    }

    #[test]
    fn a_format_is_read_as_it_stands_in_the_configuration() {
        let directive = "LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b\" common";
        assert_eq!(unescape(format_string(directive)), "%h %l %u %t \"%r\" %>s %b");
        assert_eq!(unescape(format_string("%h\\t\"%r\" \\x")), "%h\t\"%r\" \\x");
        for every in LETTERS.split(' ') {
            let format =
                format!("%t \"%r\" | %!200,304{{X-A}}{} |", every.trim_start_matches('%')).replace("{X-A}T", "T");
            let format = format.replace("{X-A}t", "t");
            assert!(pattern(&format).is_ok(), "{format}");
        }
    }

    #[test]
    fn directives_of_apache() {
        let text = "# CustomLog no\n  LogFormat \"%h \\\"%r\\\"\" \\\n  mine\n\nCustomLog x mine\n";
        let all = directives(text);
        assert_eq!(all[0], ["LogFormat", "%h \\\"%r\\\"", "mine"]);
        assert_eq!(all.last().unwrap(), &["CustomLog", "x", "mine"]);
        assert_eq!(arguments("\"open"), ["open"]);
    }
}
