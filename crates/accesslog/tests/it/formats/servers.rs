//! Tests lines of web servers in their default formats, with and without prefixes of other programs.

use super::*;

#[test]
fn common() {
    let cases = [
        (r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#, apache_pie()),
        (r#"127.0.0.1 - Frank Tank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#, apache_pie()),
        (
            r#"unicomp6.unicomp.net - - [01/Jul/1995:00:00:06 -0400] "GET /ksc.html" 304 -"#,
            Want {
                time: "1995-07-01T04:00:06Z",
                method: "GET",
                target: "/ksc.html",
                client: "unicomp6.unicomp.net",
                status: 304,
                ..Want::default()
            },
        ),
        (
            r#"2001:db8::17 - - [29/Feb/2024:23:59:60 +0530] "OPTIONS * HTTP/1.1" 204 0"#,
            Want {
                time: "2024-02-29T18:30:00Z",
                method: "OPTIONS",
                target: "*",
                protocol: "HTTP/1.1",
                client: "2001:db8::17",
                status: 204,
                bytes: Some(0),
                ..Want::default()
            },
        ),
        (
            r#"192.0.2.1 - - [26/Oct/2025:02:30:00 +0200] "-" 408 -"#,
            Want { time: "2025-10-26T00:30:00Z", client: "192.0.2.1", status: 408, ..Want::default() },
        ),
        (
            r#"192.0.2.1 - - [26/Oct/2025:02:30:00 +0100] "\x16\x03\x01\x00 \xa7\x01" 400 226"#,
            Want {
                time: "2025-10-26T01:30:00Z",
                target: r"\x16\x03\x01\x00 \xa7\x01",
                client: "192.0.2.1",
                status: 400,
                bytes: Some(226),
                ..Want::default()
            },
        ),
    ];
    check_found("common", &cases);
}

#[test]
fn combined() {
    let pie = |referer, user_agent| Want { referer, user_agent, ..apache_pie() };
    let cases = [
        (
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#,
            pie("http://www.example.com/start.html", "Mozilla/4.08 [en] (Win98; I ;Nav)"),
        ),
        (r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "-""#, pie("", "")),
        (r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "" """#, pie("", "")),
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "a \"quoted\" name\\""#,
            pie("", r#"a \"quoted\" name\\"#),
        ),
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "() { :;}; echo "x"y"#,
            pie("", ""),
        ),
        (
            r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a b\"c HTTP/1.1" 206 7 "-" "curl/8.5.0""#,
            Want {
                time: "2000-10-10T20:55:36Z",
                method: "GET",
                target: r#"/a b\"c"#,
                protocol: "HTTP/1.1",
                client: "::1",
                user_agent: "curl/8.5.0",
                status: 206,
                bytes: Some(7),
                ..Want::default()
            },
        ),
        (
            "192.0.2.9 - - [10/Oct/2000:13:55:36 +0000] \"PRI * HTTP/2.0\" 400 150 \"-\" \"caf\u{e9} \u{1f600}\"\r",
            Want {
                time: "2000-10-10T13:55:36Z",
                method: "PRI",
                target: "*",
                protocol: "HTTP/2.0",
                client: "192.0.2.9",
                user_agent: "café 😀",
                status: 400,
                bytes: Some(150),
                ..Want::default()
            },
        ),
    ];
    check_found("combined", &cases[..4]);
    check_found("combined", &cases[5..]);
    read_one(&mut format("combined"), cases[4].0.as_bytes(), |read| {
        let expected = "a closing quote at the end of the line".into();
        assert_eq!(read, Err(LineParseError { column: cases[4].0.len() + 1, expected }));
    });
}

#[test]
fn combined_with_more() {
    let base = r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "curl/8""#;
    let cases = [
        ("combined + %D", "1234", "127.0.0.1", Some(1_234_000), None, ""),
        ("combined + \"%D\"", "\"1234\"", "127.0.0.1", Some(1_234_000), None, ""),
        ("combined + %T/%D", "0/1234", "127.0.0.1", Some(1_234_000), None, ""),
        ("combined + $request_time", "0.012", "127.0.0.1", Some(12_000_000), None, ""),
        ("combined + \"$request_time\"", "\"0.012\"", "127.0.0.1", Some(12_000_000), None, ""),
        (
            "combined + $request_time $upstream_response_time",
            "0.012 0.004, 0.003 : 0.002",
            "127.0.0.1",
            Some(12_000_000),
            Some(9_000_000),
            "",
        ),
        ("combined + $request_time $upstream_response_time", "0.012 -", "127.0.0.1", Some(12_000_000), None, ""),
        ("combined + \"$http_x_forwarded_for\"", "\"192.0.2.7, 10.0.0.1\"", "192.0.2.7", None, None, ""),
        ("combined + \"$http_x_forwarded_for\"", "\"-\"", "127.0.0.1", None, None, ""),
        (
            "combined + fields",
            "rt=0.012 uct=\"0.001\" uht=\"-\" urt=\"0.004\"",
            "127.0.0.1",
            Some(12_000_000),
            Some(4_000_000),
            "",
        ),
        (
            "combined + fields",
            "\"-\" \"example.com\" sn=\"example.com\" rt=0.012 ua=\"unix:/a b\" us=\"200\" ut=\"0.004, 0.001\" cs=-",
            "127.0.0.1",
            Some(12_000_000),
            Some(5_000_000),
            "example.com",
        ),
        ("combined + fields", "1234 TLSv1.3 0.012 .", "127.0.0.1", Some(12_000_000), None, ""),
    ];
    for (name, added, client, service_ns, upstream_ns, host) in cases {
        let line = format!("{base} {added}");
        let want = Want { client, service_ns, upstream_ns, host, user_agent: "curl/8", ..apache_pie() };
        check_found(name, &[(line.as_str(), want)]);
    }
    let seconds: Vec<String> = [0, 0, 1, 0, 30].iter().map(|taken| format!("{base} {taken}")).collect();
    let sample: Vec<&[u8]> = seconds.iter().map(String::as_bytes).collect();
    let mut formats = Formats::detect(&sample).unwrap();
    let mut scratch = Scratch::default();
    let Ok(Line::Entry(entry)) = formats.read(sample[4], &mut scratch) else { panic!("the format must read the line") };
    assert_eq!((entry.service_ns, formats.shares()[0].name.as_str()), (Some(30_000_000_000), "combined + %T"));
}

#[test]
fn a_host_before_the_rest() {
    let want = || Want { host: "example.com", client: "192.0.2.1", user_agent: "curl/8", ..apache_pie() };
    let line = r#"example.com 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    check_found("%v common", &[(line, Want { user_agent: "", ..want() })]);
    check_found("%v combined", &[(format!("{line} \"-\" \"curl/8\"").as_str(), want())]);
    let timed = Want { service_ns: Some(77_000), ..want() };
    check_found("%v combined + %D", &[(format!("{line} \"-\" \"curl/8\" 77").as_str(), timed)]);
}

#[test]
fn lines_that_syslog_or_a_container_carries() {
    let line = r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    for before in ["Oct 10 20:55:36 web1 nginx: ", "2000-10-10T20:55:36.1Z stdout F "] {
        check_found("common", &[(format!("{before}{line}").as_str(), apache_pie())]);
        let error = format!("{before}{line}0000000000000000000");
        read_one(&mut format("common"), error.as_bytes(), |read| {
            assert_eq!(read.map_err(|malformed| malformed.column), Err(before.len() + 78));
        });
    }
}

#[test]
fn hostile_lines_cost_no_more_than_their_length() {
    // The time to read a line must not grow with the square of its length. Otherwise, this test would take hours.
    let (head, length) = (r#"a - - [10/Oct/2000:13:55:36 -0700] "GET "#, 1 << 19);
    for unit in [
        "\"",
        "\\",
        "\\\"",
        " ",
        "[",
        " [",
        " \"",
        "\" ",
        "\t",
        "a:",
        ", 1",
        "{\"a\":",
        "[[",
        "\0",
        "-",
        "06/Feb/2009:",
    ] {
        let text = unit.repeat(length / unit.len());
        for line in [text.clone(), format!("{head}{text}"), format!("{{\"uri\":\"{text}"), format!("a:b\t{text}")] {
            for name in Format::names() {
                let mut format = format(name);
                let _ = format.read(line.as_bytes(), &mut Scratch::default());
            }
        }
    }
}
