//! Compiles nginx's `log_format`. Built-in formats use the same notation, with some additional variables.
//!
//! nginx has hundreds of variables, and a configuration may define more. The values of unknown variables are ignored.

use super::directive::{closing_quote, excerpt, unescape};
use super::number::TimeUnit;
use super::pattern::{FieldKind, Pattern, Piece, Tail, Traits};
use crate::error::LogError;

/// Compiles a format string or a whole directive. The format string may consist of several quoted parts, as in a
/// configuration file.
pub(crate) fn pattern(format: &str) -> Result<Pattern, LogError> {
    let (escape, content) = split_directive(format);
    compile(&content, &escape)
}

/// Compiles a format string whose quotes are already removed. `escape` is the value of `escape=`.
pub(crate) fn compile(content: &str, escape: &str) -> Result<Pattern, LogError> {
    let traits = Traits { tail: Tail::End, is_end_time: true, has_escapes: escape != "none" };
    let refused = |why| LogError::BadFormat(format!("the log_format `{}` {why}", excerpt(content)));
    pieces(content, variable).and_then(|pieces| Pattern::new(pieces, traits)).map_err(refused)
}

/// Compiles a built-in format. Returns `None` if it is invalid; a test checks that all built-in formats compile.
pub(crate) fn built_in(format: &str, tail: Tail, is_end_time: bool) -> Option<Pattern> {
    let traits = Traits { tail, is_end_time, has_escapes: true };
    let known = |name: &str| built_in_variable(name).or_else(|| variable(name));
    pieces(format, known).and_then(|pieces| Pattern::new(pieces, traits)).ok()
}

/// Returns the value of `escape=` and the format string of a directive. A text that is not a directive is already a
/// format string.
fn split_directive(format: &str) -> (String, String) {
    let format = format.trim_matches(['\r', '\n']);
    let is_directive = format.trim_start().starts_with("log_format");
    let is_in_pieces = format.trim_start().starts_with('\'');
    if !is_directive && !is_in_pieces {
        return (String::new(), unescape(format));
    }
    let mut words = words(format).into_iter();
    if is_directive {
        let _directive_and_name = (words.next(), words.next());
    }
    let mut escape = String::new();
    let mut text = String::new();
    for word in words.filter(|word| word != ";") {
        match word.strip_prefix("escape=") {
            Some(said) if text.is_empty() => escape = said.to_owned(),
            _ => text.push_str(&word),
        }
    }
    (escape, text)
}

fn pieces(format: &str, known: impl Fn(&str) -> Option<(FieldKind, u8)>) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some((literal, after)) = rest.split_once('$') {
        pieces.push(Piece::Literal(literal.into()));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, behind) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').ok_or("has `${` without a closing brace")?,
            None => after.split_at(after.find(|c: char| !is_name(c)).unwrap_or(after.len())),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("has a `$` that no name of a variable follows".to_owned());
        }
        let (kind, rank) = known(name).unwrap_or((ignored_kind(name), 0));
        pieces.push(Piece::Field { kind, rank, name: format!("${name}") });
        rest = behind;
    }
    pieces.push(Piece::Literal(rest.into()));
    Ok(pieces)
}

fn ignored_kind(name: &str) -> FieldKind {
    match name {
        "upstream_connect_time" | "upstream_header_time" | "upstream_queue_time" | "upstream_first_byte_time" => {
            FieldKind::SkipDurations
        }
        "upstream_session_time" => FieldKind::SkipDurations,
        name if name.starts_with("upstream_") => FieldKind::SkipList,
        _ => FieldKind::Skip,
    }
}

/// The meaning of an nginx variable, and its rank. Of several variables with the same meaning, the one with the lowest
/// rank is used.
fn variable(name: &str) -> Option<(FieldKind, u8)> {
    Some(match name {
        "remote_addr" => (FieldKind::Client, 0),
        "realip_remote_addr" | "binary_remote_addr" => (FieldKind::Client, 2),
        "http_x_forwarded_for" | "proxy_add_x_forwarded_for" | "http_forwarded" => (FieldKind::Forwarded, 0),
        "http_x_real_ip" | "http_true_client_ip" | "http_cf_connecting_ip" => (FieldKind::Forwarded, 1),
        "msec" => (FieldKind::Epoch, 0),
        "time_iso8601" => (FieldKind::Iso, 1),
        "time_local" => (FieldKind::Clf, 2),
        "request" => (FieldKind::Request, 0),
        "request_method" => (FieldKind::Method, 0),
        "request_uri" => (FieldKind::Target, 0),
        "uri" | "document_uri" => (FieldKind::Path, 1),
        "args" | "query_string" => (FieldKind::Query, 0),
        "is_args" => (FieldKind::Query, 1),
        "server_protocol" => (FieldKind::Protocol, 0),
        "status" => (FieldKind::Status, 0),
        "body_bytes_sent" => (FieldKind::Bytes, 0),
        "bytes_sent" => (FieldKind::Bytes, 1),
        "http_referer" => (FieldKind::Referer, 0),
        "http_user_agent" => (FieldKind::Agent, 0),
        "host" => (FieldKind::Host, 0),
        "http_host" => (FieldKind::Host, 1),
        "server_name" => (FieldKind::Host, 2),
        "request_time" => (FieldKind::Service(TimeUnit::Seconds), 0),
        "upstream_response_time" => (FieldKind::Upstream(TimeUnit::Seconds), 0),
        _ => return None,
    })
}

/// The meaning and rank of variables that only the built-in formats of this crate use.
fn built_in_variable(name: &str) -> Option<(FieldKind, u8)> {
    Some(match name {
        "address" => (FieldKind::Address, 0),
        "forwarded" => (FieldKind::ForwardedAddresses, 0),
        "host_name" => (FieldKind::HostName, 0),
        "port" => (FieldKind::Port, 0),
        "client_port" => (FieldKind::ClientPort, 0),
        "url_request" => (FieldKind::UrlRequest, 0),
        "stage" => (FieldKind::Stage, 0),
        "upstream_stage" => (FieldKind::UpstreamStage, 0),
        "seconds" => (FieldKind::WholeService(TimeUnit::Seconds), 2),
        "milliseconds" => (FieldKind::WholeService(TimeUnit::Milliseconds), 1),
        "microseconds" => (FieldKind::WholeService(TimeUnit::Microseconds), 0),
        "nanoseconds" => (FieldKind::WholeService(TimeUnit::Nanoseconds), 0),
        "response_milliseconds" => (FieldKind::Service(TimeUnit::Milliseconds), 0),
        "decimal_time" => (FieldKind::DecimalService, 0),
        "decimal_upstream" => (FieldKind::DecimalUpstream, 0),
        "own_unit" => (FieldKind::OwnUnitService, 0),
        "upstream_milliseconds" => (FieldKind::Upstream(TimeUnit::Milliseconds), 0),
        _ => return None,
    })
}

/// Splits a configuration file into words. Each of `;`, `{` and `}` is a separate word. Quotes and their escapes are
/// removed.
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
                words.push(unescape(inner.get(..end).unwrap_or_default()));
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

/// The length of a word. The braces of `${name}` belong to the word, and any other brace ends it.
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

    fn refusal(format: &str) -> String {
        pattern(format).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert!(refusal("$remote_addr \"$request\" $status").contains("no time of the request"));
        assert!(refusal("$time_local $status").contains("no request"));
        assert!(refusal("$time_local $request_method").contains("no request"));
        assert!(refusal("$msec $request $remote_user$status").contains("nothing between $remote_user and $status"));
        assert!(refusal("$msec $request ${status").contains("closing brace"));
        assert!(refusal("$msec $request $").contains("no name"));
    }

    #[test]
    fn a_format_is_read_from_whatever_is_at_hand() {
        let text = "$remote_addr [$time_local] \"$request\"\t$status";
        let directive = "log_format main escape=json '$remote_addr [$time_local] '\n  '\"$request\"\\t$status';";
        assert_eq!(split_directive(directive), ("json".to_owned(), text.to_owned()));
        assert_eq!(
            split_directive("'$remote_addr [$time_local] ' '\"$request\"\\t$status'"),
            (String::new(), text.to_owned())
        );
        assert_eq!(
            split_directive("$remote_addr [$time_local] \\\"$request\\\"\\t$status"),
            (String::new(), text.to_owned())
        );
        assert!(pattern(directive).is_ok());
        assert!(pattern("$msec ${request_method}://$host$uri$is_args$args;$anything_else").is_ok());
    }

    /// The words of a text, joined by bars.
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
}
