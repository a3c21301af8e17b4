//! The text that httperf prints before a test: the options as httperf understood them.

use super::getopt::OptionValue;
use super::options::{OPTIONS, Options, Period, PrintedParts};
use std::fmt::Write;

/// The first line of the output: most of the options that the user set, and the options with a default, in httperf's
/// order.
pub fn command_line(options: &Options) -> String {
    let (client, clients) = options.client_and_total;
    let mut line = "httperf".to_owned();
    let mut add = |text: String| {
        line.push_str(" --");
        line.push_str(&text);
    };
    if options.verbose {
        add("verbose".to_owned());
    }
    for (name, parts) in [("print-reply", options.print_reply), ("print-request", options.print_request)] {
        match parts {
            PrintedParts { head: true, body: true } => add(name.to_owned()),
            PrintedParts { head: true, body: false } => add(format!("{name}=header")),
            PrintedParts { head: false, body: true } => add(format!("{name}=body")),
            PrintedParts { .. } => {}
        }
    }
    if options.hog {
        add("hog".to_owned());
    }
    if options.close_with_reset {
        add("close-with-reset".to_owned());
    }
    if options.think_timeout > 0.0 {
        add(format!("think-timeout={}", number(options.think_timeout)));
    }
    if let Some(timeout) = options.timeout {
        add(format!("timeout={}", number(timeout)));
    }
    add(format!("client={client}/{clients}"));
    add(format!("server={}", options.server));
    if let Some(name) = &options.server_name {
        add(format!("server_name={name}"));
    }
    add(format!("port={}", options.port()));
    add(format!("uri={}", options.uri));
    if let Some(status) = options.failure_status {
        add(format!("failure-status={status}"));
    }
    if options.http_version != "1.1" {
        add(format!("http-version={}", options.http_version));
    }
    if let Some(most) = options.max_connections {
        add(format!("max-connections={most}"));
    }
    if let Some(most) = options.max_piped_calls {
        add(format!("max-piped-calls={most}"));
    }
    if let Some(period) = period(&options.period) {
        add(period);
    }
    add(format!("send-buffer={}", options.send_buffer));
    if options.retry_on_failure {
        add("retry-on-failure".to_owned());
    }
    add(format!("recv-buffer={}", options.receive_buffer));
    if options.session_cookies {
        add("session-cookies".to_owned());
    }
    if options.ssl {
        add("ssl".to_owned());
    }
    if let Some(ciphers) = &options.ssl_ciphers {
        add(format!("ssl-ciphers={ciphers}"));
    }
    if options.ssl_no_reuse {
        add("ssl-no-reuse".to_owned());
    }
    if !options.add_header.is_empty() {
        add(format!("add-header='{}'", options.add_header));
    }
    if options.method != "GET" {
        add(format!("method={}", options.method));
    }
    if let Some(wsess) = options.wsess {
        add(format!("wsess={},{},{:.3}", wsess.sessions, wsess.calls, wsess.think_s));
    } else if let Some(wsesslog) = &options.wsesslog {
        add(format!("wsesslog={},{:.3},{}", wsesslog.sessions, wsesslog.think_s, wsesslog.file.display()));
    } else {
        add(format!("num-conns={}", options.num_conns));
        add(format!("num-calls={}", options.num_calls));
    }
    if options.burst_length > 1 {
        add(format!("burst-length={}", options.burst_length));
    }
    if let Some(wset) = options.wset {
        add(format!("wset={},{:.3}", wset.files, wset.advance_share));
    }
    line
}

/// Formats a number with six significant digits, like C's `%g`.
fn number(number: f64) -> String {
    let before_point = if number >= 1.0 { number.log10().floor() as usize + 1 } else { 0 };
    let text = format!("{number:.*}", 6_usize.saturating_sub(before_point));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn period(period: &Period) -> Option<String> {
    Some(match period {
        Period::OneAfterAnother => return None,
        Period::Fixed(period) => format!("rate={}", number(period.recip())),
        Period::Exponential(mean) => format!("period=e{}", number(*mean)),
        Period::Uniform(from, to) => format!("period=u{},{}", number(*from), number(*to)),
        Period::Steps(steps) => {
            let steps: Vec<String> =
                steps.iter().map(|(period, kept)| format!("{},{}", number(*period), number(*kept))).collect();
            format!("period=v{}", steps.join(","))
        }
    })
}

/// The text of `--help`.
pub fn help() -> String {
    let mut text = "Usage: httperf [OPTION]…\n\nThe options of httperf 0.9, as its manual describes them:\n".to_owned();
    for option in OPTIONS {
        let letter = option.letter.map_or_else(String::new, |letter| format!("-{letter}, "));
        let value = match option.value {
            OptionValue::NoValue => String::new(),
            OptionValue::Value => format!(" {}", value_name(option.name)),
            OptionValue::OptionalValue => "[=header|body]".to_owned(),
        };
        let _ = writeln!(text, "  {letter}--{}{value}", option.name);
    }
    text
}

/// The placeholder of an option's value.
fn value_name(name: &str) -> &'static str {
    match name {
        "add-header" | "http-version" | "method" | "server" | "server-name" | "uri" => "S",
        "client" => "I/N",
        "period" => "[d|e]T | uT1,T2 | vT1,D1,T2,D2…",
        "rate" | "think-timeout" | "timeout" => "X",
        "ssl-ciphers" => "L",
        "wlog" => "y|n,F",
        "wsess" => "N1,N2,X",
        "wsesslog" => "N,X,F",
        "wset" => "N,X",
        _ => "N",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_reads_back_as_the_same() {
        for line in [
            "--hog --server www --num-conn 100 --ra 10 --timeout 5",
            "--wsess=10,5,2 --rate 1 --burst-length 2 --max-connections 3 --session-cookies --failure-status=504",
            "--wsesslog 3,0.5,f --period u1,3 --client 1/2 --print-reply=body --print-request",
            "--wset 1000,0.25 --period v1,2,0.5,4 --http-version 1.0 --method HEAD --close-with-reset -v",
            r"--think-timeout 2 --retry-on-failure --max-piped-calls 2 --add-header A:b\n --ssl-no-reuse",
        ] {
            let options = Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap();
            let said = command_line(&options);
            let plain = |word: &str| word.replace('_', "-").replace('\'', "");
            let words: Vec<String> = said.split(' ').skip(1).map(plain).collect();
            let read = Options::parse(&words).unwrap();
            assert_eq!(read, Options { port: Some(80), ..options }, "{said}");
        }
    }

    #[test]
    fn numbers_have_six_digits() {
        let texts = [2.5, 1000.0, 100.0 / 3.0, 0.05, 1e7 / 3.0, 0.0].map(number);
        assert_eq!(texts, ["2.5", "1000", "33.3333", "0.05", "3333333", "0"]);
    }

    #[test]
    fn help_has_every_option() {
        let help = help();
        assert!(OPTIONS.iter().all(|option| help.contains(&format!("--{}", option.name))), "{help}");
    }
}
