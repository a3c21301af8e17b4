//! Apache's `LogFormat`, as its module `mod_log_config` (2.4) describes it.

mod java;

use super::number::Unit;
use super::pattern::{Kind, Pattern, Piece, Tail, Traits};
use super::time::Part;
use crate::error::LogError;

/// What the letters after `%` may be, for whoever used another.
const LETTERS: &str =
    "%a %A %b %B %C %D %e %f %h %H %i %I %k %l %L %m %n %o %O %p %P %q %r %R %s %S %t %T %u %U %v %V %X %x %c";

/// Of the content of a `LogFormat`, or of the whole directive.
pub(crate) fn pattern(format: &str) -> Result<Pattern, LogError> {
    let refused = |why: String| LogError::BadFormat(format!("the LogFormat `{}` {why}", shown(format)));
    let (pieces, is_end) = pieces(&unescaped(content(format))).map_err(refused)?;
    Pattern::new(pieces, Traits { tail: Tail::End, is_end, has_escapes: true }).map_err(refused)
}

/// A format for a message.
pub(crate) fn shown(format: &str) -> String {
    let text: String = format.chars().take(160).collect();
    brimful_core::text::one_line(&text).into_owned()
}

/// Without `LogFormat "` and the nickname behind it, if these are there.
fn content(format: &str) -> &str {
    let format = format.trim_matches(['\r', '\n']);
    let word = format.trim_start().get(..9).filter(|word| word.eq_ignore_ascii_case("LogFormat"));
    let Some(rest) = word.and_then(|_| format.trim_start().get(9..)) else { return format };
    let rest = rest.trim();
    match rest.strip_prefix('"').and_then(|rest| rest.rsplit_once('"')) {
        Some((content, _)) => content,
        None => rest,
    }
}

/// As Apache sees it: `\"`, `\t`, `\n` and `\\` are one character each.
fn unescaped(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut characters = content.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some(other @ ('"' | '\\' | '\'')) => text.push(other),
            other => text.extend(['\\'].into_iter().chain(other)),
        }
    }
    text
}

/// The pieces of a format, and whether its time is that of the end.
fn pieces(format: &str) -> Result<(Vec<Piece>, bool), String> {
    let (mut pieces, mut is_end) = (Vec::new(), false);
    let mut rest = format;
    while let Some((literal, after)) = rest.split_once('%') {
        pieces.push(Piece::Literal(literal.into()));
        let directive = Directive::read(after)?;
        rest = directive.rest;
        match (directive.letter, directive.argument) {
            // It has brackets of its own.
            ("t", "") => {
                pieces.extend([Piece::Literal(b"[".to_vec()), directive.piece()?, Piece::Literal(b"]".to_vec())])
            }
            ("t", argument) => {
                is_end |= argument.starts_with("end:");
                pieces.extend(time(argument)?);
            }
            _ => pieces.push(directive.piece()?),
        }
    }
    pieces.push(Piece::Literal(rest.into()));
    Ok((pieces, is_end))
}

/// `%!200,304>{Referer}i`, without the `%`.
struct Directive<'a> {
    /// Whether `>` asks for the last of several answers.
    is_final: bool,
    argument: &'a str,
    /// One, or two after `^`.
    letter: &'a str,
    rest: &'a str,
}

impl<'a> Directive<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let mut rest = text;
        let (mut is_final, mut argument) = (false, "");
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '!' | ',' | '<'));
            if let Some(after) = rest.strip_prefix('>') {
                (is_final, rest) = (true, after);
            } else if let Some(after) = rest.strip_prefix('{') {
                let unclosed = || format!("has `%{{{}` without a closing brace", shown(after));
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
            "a" if self.argument == "c" => (Kind::Client, 2),
            "a" => (Kind::Client, 0),
            "h" => (Kind::Client, 1),
            "t" => (Kind::Clf, 0),
            "r" => (Kind::Request, 0),
            "m" => (Kind::Method, 0),
            "U" => (Kind::Path, 0),
            "q" => (Kind::Query, 0),
            "H" => (Kind::Protocol, 0),
            "s" => (Kind::Status, if self.is_final { 0 } else { 1 }),
            "b" | "B" => (Kind::Bytes, 0),
            "O" => (Kind::Bytes, 1),
            "D" => (Kind::WholeService(Unit::Microseconds), 0),
            "T" => match self.argument {
                "us" => (Kind::WholeService(Unit::Microseconds), 0),
                "ms" => (Kind::WholeService(Unit::Milliseconds), 1),
                "s" | "" => (Kind::WholeService(Unit::Seconds), 2),
                other => return Err(format!("has %{{{}}}T: its unit is s, ms or us", shown(other))),
            },
            "V" => (Kind::Host, 1),
            "v" => (Kind::Host, 2),
            "i" => header(self.argument),
            "A" | "C" | "e" | "f" | "I" | "k" | "l" | "L" | "n" | "o" | "p" | "P" | "R" | "S" | "u" | "X" | "x"
            | "c" => (Kind::Skip, 0),
            "^FB" | "^ti" | "^to" => (Kind::Skip, 0),
            other => return Err(format!("has %{}, which is not known: there are {LETTERS}", shown(other))),
        };
        let argument = if self.argument.is_empty() { String::new() } else { format!("{{{}}}", self.argument) };
        let name = format!("%{argument}{}", self.letter);
        Ok(Piece::Field { kind, rank, name })
    }
}

/// A header of the request.
fn header(name: &str) -> (Kind, u8) {
    match name.to_ascii_lowercase().as_str() {
        "user-agent" => (Kind::Agent, 0),
        "referer" => (Kind::Referer, 0),
        "host" => (Kind::Host, 0),
        "x-forwarded-for" | "forwarded" => (Kind::Forwarded, 0),
        "x-real-ip" | "x-client-ip" | "true-client-ip" | "cf-connecting-ip" => (Kind::Forwarded, 1),
        _ => (Kind::Skip, 0),
    }
}

/// `%{format}t`: of `strftime`, or one of Apache's own words, perhaps after `begin:` or `end:`.
fn time(argument: &str) -> Result<Vec<Piece>, String> {
    let format = argument.strip_prefix("begin:").or_else(|| argument.strip_prefix("end:")).unwrap_or(argument);
    let part = |part| Piece::Field { kind: Kind::Part(part), rank: 0, name: format!("%{{{argument}}}t") };
    match format {
        "sec" | "msec" | "usec" => return Ok(vec![part(Part::Epoch)]),
        "msec_frac" | "usec_frac" => return Ok(vec![part(Part::Fraction)]),
        // This one is read at once.
        "%d/%b/%Y:%H:%M:%S %z" | "%d/%b/%Y:%T %z" => {
            return Ok(vec![Piece::Field { kind: Kind::Clf, rank: 0, name: format!("%{{{argument}}}t") }]);
        }
        _ => {}
    }
    if let Some(directives) = java::as_strftime(format) {
        return Err(format!(
            "has %{{{}}}t, a pattern of Java's SimpleDateFormat, as Tomcat takes it. Times are written as strftime has \
             them here: write {directives} in its place",
            shown(argument)
        ));
    }
    let mut pieces = Vec::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            pieces.push(Piece::Literal(character.to_string().into_bytes()));
            continue;
        }
        // `%E` and `%O` ask for another alphabet, which nobody's log has.
        let letter = characters.by_ref().find(|letter| !matches!(letter, 'E' | 'O' | '-'));
        let letter = letter.ok_or_else(|| format!("has %{{{}}}t, which ends with a `%`", shown(argument)))?;
        match strftime(letter) {
            Some(StrfTime::Part(found)) => pieces.push(part(found)),
            Some(StrfTime::Text(text)) => pieces.push(Piece::Literal(text.into())),
            Some(StrfTime::Several(same)) => pieces.extend(time(same)?),
            None => return Err(format!("has %{{{}}}t with %{letter}, which is not known", shown(argument))),
        }
    }
    Ok(pieces)
}

enum StrfTime {
    Part(Part),
    Text(&'static str),
    /// Stands for these.
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
        assert!(said.contains("SimpleDateFormat, as Tomcat takes it") && said.contains(instead), "{said}");
        assert!(pattern(&tomcat.replace("%{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}t", instead)).is_ok());
        assert!(refusal("[%{dd/MMM/yyyy:HH:mm:ss Z}t] \"%r\"").contains("write %{%d/%b/%Y:%H:%M:%S %z}t in"));
        assert!(pattern("[%{begin:%Y-%m-%dT%T}t] \"%r\"").is_ok());
    }

    #[test]
    fn a_format_is_read_as_it_stands_in_the_configuration() {
        let directive = "LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b\" common";
        assert_eq!(unescaped(content(directive)), "%h %l %u %t \"%r\" %>s %b");
        assert_eq!(unescaped(content("%h\\t\"%r\" \\x")), "%h\t\"%r\" \\x");
        for every in LETTERS.split(' ') {
            let format =
                format!("%t \"%r\" | %!200,304{{X-A}}{} |", every.trim_start_matches('%')).replace("{X-A}T", "T");
            let format = format.replace("{X-A}t", "t");
            assert!(pattern(&format).is_ok(), "{format}");
        }
    }
}
