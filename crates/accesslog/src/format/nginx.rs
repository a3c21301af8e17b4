//! nginx's `log_format`; formats that are built in are written the same way, with some variables of their own.
//!
//! nginx has hundreds of variables and any may be set by a configuration: one that means nothing here is skipped.

use super::apache::shown;
use super::number::Unit;
use super::pattern::{Kind, Pattern, Piece, Tail, Traits};
use crate::error::LogError;

/// Of a format string, as one text or in the quoted pieces of the configuration, or of the whole directive.
pub(crate) fn pattern(format: &str) -> Result<Pattern, LogError> {
    let (escape, content) = content(format);
    compiled(&content, &escape)
}

/// Of a format string as nginx sees it, and of what its `escape=` says.
pub(crate) fn compiled(content: &str, escape: &str) -> Result<Pattern, LogError> {
    let traits = Traits { tail: Tail::End, is_end: true, has_escapes: escape != "none" };
    let refused = |why| LogError::BadFormat(format!("the log_format `{}` {why}", shown(content)));
    pieces(content, variable).and_then(|pieces| Pattern::new(pieces, traits)).map_err(refused)
}

/// A format that is built in; it is right, as a test says.
pub(crate) fn built_in(format: &str, tail: Tail, is_end: bool) -> Option<Pattern> {
    let traits = Traits { tail, is_end, has_escapes: true };
    let known = |name: &str| own(name).or_else(|| variable(name));
    pieces(format, known).and_then(|pieces| Pattern::new(pieces, traits)).ok()
}

/// What `escape=` says, and the format string of a directive; without a directive, the text itself.
fn content(format: &str) -> (String, String) {
    let format = format.trim_matches(['\r', '\n']);
    let is_directive = format.trim_start().starts_with("log_format");
    let is_in_pieces = format.trim_start().starts_with('\'');
    if !is_directive && !is_in_pieces {
        return (String::new(), unescaped(format));
    }
    let mut words = super::configuration::words(format).into_iter();
    if is_directive {
        let _directive_and_name = (words.next(), words.next());
    }
    let (mut escape, mut text) = (String::new(), String::new());
    for word in words.filter(|word| word != ";") {
        match word.strip_prefix("escape=") {
            Some(said) if text.is_empty() => escape = said.to_owned(),
            _ => text.push_str(&word),
        }
    }
    (escape, text)
}

/// As nginx sees what stands between quotes: `\"`, `\'`, `\\` and `\t` are one character each.
pub(crate) fn unescaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = match (character, characters.peek()) {
            ('\\', Some('t')) => '\t',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some(other @ ('"' | '\'' | '\\'))) => *other,
            _ => {
                result.push(character);
                continue;
            }
        };
        characters.next();
        result.push(escaped);
    }
    result
}

fn pieces(format: &str, known: impl Fn(&str) -> Option<(Kind, u8)>) -> Result<Vec<Piece>, String> {
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
        let (kind, rank) = known(name).unwrap_or((skipped(name), 0));
        pieces.push(Piece::Field { kind, rank, name: format!("${name}") });
        rest = behind;
    }
    pieces.push(Piece::Literal(rest.into()));
    Ok(pieces)
}

fn skipped(name: &str) -> Kind {
    match name {
        "upstream_connect_time" | "upstream_header_time" | "upstream_queue_time" | "upstream_first_byte_time" => {
            Kind::SkipDurations
        }
        "upstream_session_time" => Kind::SkipDurations,
        name if name.starts_with("upstream_") => Kind::SkipList,
        _ => Kind::Skip,
    }
}

/// What a variable is, and with which rank among those of its purpose.
fn variable(name: &str) -> Option<(Kind, u8)> {
    Some(match name {
        "remote_addr" => (Kind::Client, 0),
        "realip_remote_addr" | "binary_remote_addr" => (Kind::Client, 2),
        "http_x_forwarded_for" | "proxy_add_x_forwarded_for" | "http_forwarded" => (Kind::Forwarded, 0),
        "http_x_real_ip" | "http_true_client_ip" | "http_cf_connecting_ip" => (Kind::Forwarded, 1),
        "msec" => (Kind::Epoch, 0),
        "time_iso8601" => (Kind::Iso, 1),
        "time_local" => (Kind::Clf, 2),
        "request" => (Kind::Request, 0),
        "request_method" => (Kind::Method, 0),
        "request_uri" => (Kind::Target, 0),
        "uri" | "document_uri" => (Kind::Path, 1),
        "args" | "query_string" => (Kind::Query, 0),
        "is_args" => (Kind::Query, 1),
        "server_protocol" => (Kind::Protocol, 0),
        "status" => (Kind::Status, 0),
        "body_bytes_sent" => (Kind::Bytes, 0),
        "bytes_sent" => (Kind::Bytes, 1),
        "http_referer" => (Kind::Referer, 0),
        "http_user_agent" => (Kind::Agent, 0),
        "host" => (Kind::Host, 0),
        "http_host" => (Kind::Host, 1),
        "server_name" => (Kind::Host, 2),
        "request_time" => (Kind::Service(Unit::Seconds), 0),
        "upstream_response_time" => (Kind::Upstream(Unit::Seconds), 0),
        _ => return None,
    })
}

/// Variables that only formats that are built in have.
fn own(name: &str) -> Option<(Kind, u8)> {
    Some(match name {
        "address" => (Kind::Address, 0),
        "forwarded" => (Kind::ForwardedAddresses, 0),
        "host_name" => (Kind::HostName, 0),
        "port" => (Kind::Port, 0),
        "client_port" => (Kind::ClientPort, 0),
        "url_request" => (Kind::UrlRequest, 0),
        "stage" => (Kind::Stage, 0),
        "upstream_stage" => (Kind::UpstreamStage, 0),
        "seconds" => (Kind::WholeService(Unit::Seconds), 2),
        "milliseconds" => (Kind::WholeService(Unit::Milliseconds), 1),
        "microseconds" => (Kind::WholeService(Unit::Microseconds), 0),
        "nanoseconds" => (Kind::WholeService(Unit::Nanoseconds), 0),
        "response_milliseconds" => (Kind::Service(Unit::Milliseconds), 0),
        "decimal_time" => (Kind::DecimalService, 0),
        "decimal_upstream" => (Kind::DecimalUpstream, 0),
        "own_unit" => (Kind::OwnUnitService, 0),
        "upstream_milliseconds" => (Kind::Upstream(Unit::Milliseconds), 0),
        _ => return None,
    })
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
        assert_eq!(content(directive), ("json".to_owned(), text.to_owned()));
        assert_eq!(content("'$remote_addr [$time_local] ' '\"$request\"\\t$status'"), (String::new(), text.to_owned()));
        assert_eq!(content("$remote_addr [$time_local] \\\"$request\\\"\\t$status"), (String::new(), text.to_owned()));
        assert!(pattern(directive).is_ok());
        assert!(pattern("$msec ${request_method}://$host$uri$is_args$args;$anything_else").is_ok());
    }
}
