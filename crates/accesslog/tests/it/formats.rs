//! Lines of every kind of log, field by field; formats that are found out; logs of the real world.

use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::{Entry, Line, LogError, Malformed, Scratch};
use jiff::Timestamp;
use proptest::prelude::*;
use std::path::PathBuf;

/// What an entry should be. The time has a point where it is fine.
#[derive(Default)]
struct Want {
    time: &'static str,
    method: &'static str,
    target: &'static str,
    protocol: &'static str,
    host: &'static str,
    client: &'static str,
    agent: &'static str,
    referer: &'static str,
    status: u16,
    bytes: Option<u64>,
    service_ns: Option<u64>,
    upstream_ns: Option<u64>,
}

impl Want {
    fn entry(&self) -> Entry<'static> {
        let time: Timestamp = self.time.parse().unwrap();
        Entry {
            time_ns: i64::try_from(time.as_nanosecond()).unwrap(),
            is_fine: self.time.contains('.'),
            offset_s: None,
            method: self.method.as_bytes(),
            target: self.target.as_bytes(),
            protocol: self.protocol.as_bytes(),
            host: self.host.as_bytes(),
            client: self.client.as_bytes(),
            agent: self.agent.as_bytes(),
            referer: self.referer.as_bytes(),
            status: self.status,
            bytes: self.bytes,
            service_ns: self.service_ns,
            upstream_ns: self.upstream_ns,
        }
    }
}

/// Of RFC 1413's and everybody's example.
fn apache_pie() -> Want {
    Want {
        time: "2000-10-10T20:55:36Z",
        method: "GET",
        target: "/apache_pb.gif",
        protocol: "HTTP/1.0",
        client: "127.0.0.1",
        status: 200,
        bytes: Some(2326),
        ..Want::default()
    }
}

fn format(text: &str) -> Format {
    Format::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn read_one(format: &mut Format, line: &[u8], check: impl FnOnce(Result<Line<'_>, Malformed>)) {
    check(format.read(line, &mut Scratch::default()));
}

/// How far from UTC a stamp was written is known from where it stands, and tested there.
fn without_offset(read: Result<Line<'_>, Malformed>) -> Result<Line<'_>, Malformed> {
    Ok(match read? {
        Line::Entry(entry) => Line::Entry(Entry { offset_s: None, ..entry }),
        other => other,
    })
}

/// Whether each line is read as it should be, by the format and by what is found out from the line alone.
fn check(name: &str, cases: &[(&str, Want)]) {
    for (line, want) in cases {
        read_one(&mut format(name), line.as_bytes(), |read| {
            assert_eq!(without_offset(read), Ok(Line::Entry(want.entry())), "{name}: {line}");
        });
    }
}

/// The same, and the format is found out.
fn check_found(name: &str, cases: &[(&str, Want)]) {
    check(name, cases);
    for (line, want) in cases {
        let mut formats = Formats::detect(&[line.as_bytes()]).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut scratch = Scratch::default();
        let read = formats.read(line.as_bytes(), &mut scratch);
        assert_eq!(without_offset(read), Ok(Line::Entry(want.entry())), "{line}");
        assert_eq!(formats.shares()[0].name, name, "{line}");
    }
}

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
    let pie = |referer, agent| Want { referer, agent, ..apache_pie() };
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
                agent: "curl/8.5.0",
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
                agent: "café 😀",
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
        assert_eq!(read, Err(Malformed { column: cases[4].0.len() + 1, expected }));
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
        let want = Want { client, service_ns, upstream_ns, host, agent: "curl/8", ..apache_pie() };
        check_found(name, &[(line.as_str(), want)]);
    }
    let seconds: Vec<String> = [0, 0, 1, 0, 30].iter().map(|taken| format!("{base} {taken}")).collect();
    let sample: Vec<&[u8]> = seconds.iter().map(String::as_bytes).collect();
    let mut formats = Formats::detect(&sample).unwrap();
    let mut scratch = Scratch::default();
    let Ok(Line::Entry(entry)) = formats.read(sample[4], &mut scratch) else { panic!("it is read") };
    assert_eq!((entry.service_ns, formats.shares()[0].name.as_str()), (Some(30_000_000_000), "combined + %T"));
}

#[test]
fn a_host_before_the_rest() {
    let want = || Want { host: "example.com", client: "192.0.2.1", agent: "curl/8", ..apache_pie() };
    let line = r#"example.com 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    check_found("%v common", &[(line, Want { agent: "", ..want() })]);
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
    // What costs the square of the length would take hours here.
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

#[test]
fn other_patterns() {
    check_found(
        "vhost_combined",
        &[(
            r#"www.example.com:443 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 "-" "curl/8""#,
            Want {
                target: "/",
                protocol: "HTTP/1.1",
                host: "www.example.com",
                client: "192.0.2.1",
                agent: "curl/8",
                ..apache_pie()
            },
        )],
    );
    check_found(
        "ingress-nginx",
        &[(
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "curl/8" 85 0.021 [shop-web-80] [] 10.2.0.4:80, 10.2.0.5:80 0, 2326 0.003, 0.017 502, 200 5fd0"#,
            Want {
                client: "192.0.2.1",
                agent: "curl/8",
                service_ns: Some(21_000_000),
                upstream_ns: Some(20_000_000),
                ..apache_pie()
            },
        )],
    );
    check_found(
        "traefik",
        &[(
            r#"127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /apache_pb.gif HTTP/1.0" 200 2326 "-" "-" 2 "web@docker" "http://172.18.0.2:80" 3ms"#,
            Want { service_ns: Some(3_000_000), ..apache_pie() },
        )],
    );
    check_found(
        "envoy",
        &[(
            r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#,
            Want {
                time: "2016-04-15T20:17:00.310Z",
                method: "POST",
                target: "/api/v1/locations",
                protocol: "HTTP/2",
                host: "locations",
                client: "10.0.35.28",
                agent: "nsq2http",
                status: 204,
                bytes: Some(0),
                service_ns: Some(226_000_000),
                upstream_ns: Some(100_000_000),
                ..Want::default()
            },
        )],
    );
}

#[test]
fn proxies() {
    check(
        "varnish",
        &[(
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET http://example.com/apache_pb.gif HTTP/1.0" 200 2326 "-" "-""#,
            Want { host: "example.com", ..apache_pie() },
        )],
    );
    check_found(
        "istio",
        &[(
            r#"[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 3 1 "-" "curl/7.73.0" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:37652 - default"#,
            Want {
                time: "2020-11-25T21:26:18.409Z",
                method: "GET",
                target: "/status/418",
                protocol: "HTTP/1.1",
                host: "httpbin:8000",
                client: "10.44.1.23",
                agent: "curl/7.73.0",
                status: 418,
                bytes: Some(135),
                service_ns: Some(3_000_000),
                upstream_ns: Some(1_000_000),
                ..Want::default()
            },
        )],
    );
}

#[test]
fn load_balancers_and_stores() {
    let elb = Want {
        method: "GET",
        target: "/",
        protocol: "HTTP/1.1",
        host: "www.example.com",
        client: "192.168.131.39",
        agent: "curl/7.46.0",
        status: 200,
        ..Want::default()
    };
    check_found(
        "alb",
        &[
            (
                r#"http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
                Want {
                    time: "2018-07-02T22:23:00.185641Z",
                    bytes: Some(366),
                    service_ns: Some(1_000_000),
                    upstream_ns: Some(1_000_000),
                    ..elb
                },
            ),
            (
                r#"h2 2018-07-02T22:23:00.186641Z app/a/5 [2001:db8::5]:2817 - -1 -1 -1 502 - 34 366 "GET https://shop.example.com:443/a?b HTTP/2.0" "-" - - - "-" "-" "-" -1 2018-07-02T22:22:48.364000Z "-" "-" "-" "-" "-" "-" "-""#,
                Want {
                    time: "2018-07-02T22:23:00.186641Z",
                    method: "GET",
                    target: "/a?b",
                    protocol: "HTTP/2.0",
                    host: "shop.example.com",
                    client: "2001:db8::5",
                    status: 502,
                    bytes: Some(366),
                    ..Want::default()
                },
            ),
        ],
    );
    check_found(
        "elb",
        &[(
            r#"2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -"#,
            Want {
                time: "2015-05-13T23:39:43.945958Z",
                method: "GET",
                target: "/",
                protocol: "HTTP/1.1",
                host: "www.example.com",
                client: "192.168.131.39",
                agent: "curl/7.38.0",
                status: 200,
                bytes: Some(29),
                service_ns: Some(1_178_000),
                upstream_ns: Some(1_048_000),
                ..Want::default()
            },
        )],
    );
    check_found(
        "s3",
        &[
            (
                r#"79a59df9 mybucket [06/Feb/2019:00:01:57 +0000] 192.0.2.3 79a59df9 DD6CC733AEXAMPLE REST.GET.OBJECT s3-dg.pdf "GET /mybucket/s3-dg.pdf HTTP/1.1" 200 - 4406583 4406583 41754 28 "-" "S3Console/0.4" - 10S62Zv81kBW7BB6SX4XJ48o6kpc SigV4 ECDHE-RSA-AES128-SHA AuthHeader mybucket.s3.us-west-1.amazonaws.com TLSV1.1 -"#,
                Want {
                    time: "2019-02-06T00:01:57Z",
                    method: "GET",
                    target: "/mybucket/s3-dg.pdf",
                    protocol: "HTTP/1.1",
                    client: "192.0.2.3",
                    agent: "S3Console/0.4",
                    status: 200,
                    bytes: Some(4_406_583),
                    service_ns: Some(41_754_000_000),
                    upstream_ns: Some(28_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"79a59df9 mybucket [06/Feb/2019:00:01:57 +0000] - AmazonS3 DD6CC733AEXAMPLE S3.EXPIRE.OBJECT a%20b - - - - 1 - - - - 10S62Zv81kBW7BB6SX4XJ48o6kpc"#,
                Want { time: "2019-02-06T00:01:57Z", ..Want::default() },
            ),
        ],
    );
}

#[test]
fn haproxy() {
    let want = || Want {
        time: "2009-02-06T12:14:14.655Z",
        method: "GET",
        target: "/index.html",
        protocol: "HTTP/1.1",
        client: "10.0.1.2",
        status: 200,
        bytes: Some(2750),
        service_ns: Some(109_000_000),
        upstream_ns: Some(69_000_000),
        ..Want::default()
    };
    check_found(
        "haproxy",
        &[
            (
                r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu|"a"} {} "GET /index.html HTTP/1.1""#,
                want(),
            ),
            (
                r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in~ static/srv1 10/0/30/69/+109 200 +2750 - - ---- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1" 0/0000000000000000/0/0/0 foo/TLSv1.3/TLS"#,
                want(),
            ),
            (
                r#"2009-02-06T12:14:14+00:00 lb haproxy[1]: ::1:33317 [06/Feb/2009:12:14:14.655] in in/<NOSRV> -1/-1/-1/-1/5 400 187 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#,
                Want {
                    method: "",
                    target: "<BADREQ>",
                    protocol: "",
                    client: "::1",
                    status: 400,
                    bytes: Some(187),
                    service_ns: Some(5_000_000),
                    upstream_ns: None,
                    ..want()
                },
            ),
        ],
    );
}

#[test]
fn json() {
    let caddy = || Want {
        time: "2022-03-09T21:30:01.523172725Z",
        method: "GET",
        target: "/caf\u{e9}?a=\"b\"",
        protocol: "HTTP/2.0",
        host: "localhost",
        client: "127.0.0.1",
        agent: "curl/7.82.0",
        status: 200,
        bytes: Some(10_900),
        service_ns: Some(929_675),
        ..Want::default()
    };
    check_found(
        "json",
        &[
            (
                r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/caf\u00e9?a=\"b\"","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*","a"]},"tls":{"resumed":false,"version":772,"proto":"h2"}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"],"Referer":["x"]}}"#,
                caddy(),
            ),
            (
                r#"{"ClientAddr":"10.0.0.1:54321","ClientHost":"10.0.0.1","ClientPort":"54321","ClientUsername":"-","DownstreamContentSize":14,"DownstreamStatus":200,"Duration":1234567,"OriginContentSize":15,"OriginDuration":1000000,"OriginStatus":500,"Overhead":234567,"RequestAddr":"example.com","RequestHost":"example.com","RequestMethod":"GET","RequestPath":"/api","RequestProtocol":"HTTP/1.1","StartLocal":"2024-01-01T13:00:00.123456789+01:00","StartUTC":"2024-01-01T12:00:00.123456789Z","level":"info","msg":"","request_User-Agent":"curl/8","time":"2024-01-01T12:00:05Z"}"#,
                Want {
                    time: "2024-01-01T12:00:00.123456789Z",
                    method: "GET",
                    target: "/api",
                    protocol: "HTTP/1.1",
                    host: "example.com",
                    client: "10.0.0.1",
                    agent: "curl/8",
                    status: 200,
                    bytes: Some(14),
                    service_ns: Some(1_234_567),
                    upstream_ns: Some(1_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"{"start_time":"2016-04-15T20:17:00.310Z","method":"GET","path":"/p","protocol":"HTTP/1.1","response_code":503,"bytes_sent":91,"duration":"12","x_envoy_upstream_service_time":null,"x_forwarded_for":"192.0.2.5, 10.0.0.1","user_agent":"a","authority":"b"}"#,
                Want {
                    time: "2016-04-15T20:17:00.310Z",
                    method: "GET",
                    target: "/p",
                    protocol: "HTTP/1.1",
                    host: "b",
                    client: "192.0.2.5",
                    agent: "a",
                    status: 503,
                    bytes: Some(91),
                    service_ns: Some(12_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"{ "time_local": "10\/Oct\/2000:13:55:36 -0700", "remote_addr": "127.0.0.1", "request": "GET \/apache_pb.gif HTTP\/1.0", "status": "200", "body_bytes_sent": "2326", "bytes_sent": 2500, "request_time": "0.005", "upstream_response_time": "0.001, 0.002", "http_referer": "-", "extra": [1, {"status": 1}, [], {}, true], "empty": }"#,
                Want { service_ns: Some(5_000_000), upstream_ns: Some(3_000_000), ..apache_pie() },
            ),
            (
                r#"{"@timestamp":"2026-11-22T05:31:40.100Z","http":{"request":{"method":"PUT"},"response":{"status_code":201,"bytes":5},"version":"1.1"},"url":{"path":"/a","query":"b=c"},"user_agent":{"original":"x"},"source":{"ip":"192.0.2.1"},"event":{"duration":100000000}}"#,
                Want {
                    time: "2026-11-22T05:31:40.000Z",
                    method: "PUT",
                    target: "/a?b=c",
                    protocol: "1.1",
                    client: "192.0.2.1",
                    agent: "x",
                    status: 201,
                    bytes: Some(5),
                    service_ns: Some(100_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"{"httpRequest":{"latency":"0.250s","protocol":"HTTP/1.1","remoteIp":"192.0.2.1","requestMethod":"GET","requestUrl":"https://example.com/a","responseSize":"7","status":200,"userAgent":"x"},"timestamp":"2026-11-22T05:31:40.5Z"}"#,
                Want {
                    time: "2026-11-22T05:31:40.250Z",
                    method: "GET",
                    target: "/a",
                    protocol: "HTTP/1.1",
                    host: "example.com",
                    client: "192.0.2.1",
                    agent: "x",
                    status: 200,
                    bytes: Some(7),
                    service_ns: Some(250_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"{"ip":"192.0.2.1","requestTime":"10/Oct/2000:13:55:36 -0700","httpMethod":"GET","path":"/a","status":"200","protocol":"HTTP/1.1","responseLength":"9"}"#,
                Want {
                    time: "2000-10-10T20:55:36Z",
                    method: "GET",
                    target: "/a",
                    protocol: "HTTP/1.1",
                    client: "192.0.2.1",
                    status: 200,
                    bytes: Some(9),
                    ..Want::default()
                },
            ),
            (
                r#"{"ClientIP":"192.0.2.1","ClientRequestHost":"example.com","ClientRequestMethod":"GET","ClientRequestURI":"/a","ClientRequestProtocol":"HTTP/3","ClientRequestUserAgent":"x","EdgeEndTimestamp":"2026-11-22T05:31:42Z","EdgeStartTimestamp":1795325500250000000,"EdgeResponseBytes":7,"EdgeResponseStatus":200,"OriginResponseTime":2000000}"#,
                Want {
                    time: "2026-11-22T05:31:40.250Z",
                    method: "GET",
                    target: "/a",
                    protocol: "HTTP/3",
                    host: "example.com",
                    client: "192.0.2.1",
                    agent: "x",
                    status: 200,
                    bytes: Some(7),
                    upstream_ns: Some(2_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"{"timeStamp":"2026-11-22T05:31:40Z","properties":{"clientIP":"192.0.2.1","httpMethod":"GET","requestUri":"/a","httpStatus":200,"sentBytes":7,"timeTaken":0.25,"httpVersion":"HTTP/1.1","host":"h"}}"#,
                Want {
                    time: "2026-11-22T05:31:40Z",
                    method: "GET",
                    target: "/a",
                    protocol: "HTTP/1.1",
                    host: "h",
                    client: "192.0.2.1",
                    status: 200,
                    bytes: Some(7),
                    service_ns: Some(250_000_000),
                    ..Want::default()
                },
            ),
            (
                r#"{"msec":1646861401524,"request":"DELETE /x HTTP/1.1","status":404}"#,
                Want {
                    time: "2022-03-09T21:30:01.524Z",
                    method: "DELETE",
                    target: "/x",
                    protocol: "HTTP/1.1",
                    status: 404,
                    ..Want::default()
                },
            ),
        ],
    );
    let other = br#"{"level":"info","ts":1646861401.5,"msg":"server running","status":"ok","protocols":["h1"]}"#;
    read_one(&mut format("json"), other.as_slice(), |read| assert_eq!(read, Ok(Line::Other)));
}

#[test]
fn ltsv() {
    check_found(
        "ltsv",
        &[
            (
                "time:[10/Oct/2000:13:55:36 -0700]\thost:127.0.0.1\treq:GET /apache_pb.gif HTTP/1.0\tstatus:200\tsize:2326\tua:a:b\treqtime_microsec:1500\tapptime:0.001\tvhost:example.com",
                Want {
                    agent: "a:b",
                    host: "example.com",
                    service_ns: Some(1_500_000),
                    upstream_ns: Some(1_000_000),
                    ..apache_pie()
                },
            ),
            (
                "remote_host:127.0.0.1\tdatetime:[10/Oct/2000:13:55:36 -0700]\trequest:GET /apache_pb.gif HTTP/1.0\tstatus:200\tsize:2326\treferer:-",
                apache_pie(),
            ),
            (
                "time:2000-10-10T20:55:36.500Z\tmethod:GET\turi:/apache_pb.gif\tprotocol:HTTP/1.0\thost:10.0.0.1\tforwardedfor:127.0.0.1\tstatus:200\tsize:2326\treqtime:0.500",
                Want { time: "2000-10-10T20:55:36.000Z", service_ns: Some(500_000_000), ..apache_pie() },
            ),
        ],
    );
}

#[test]
fn squid() {
    let cases = [
        (
            "1286536309.450    180 192.0.2.1 TCP_MISS/200 411 GET http://example.com/a?b=c - HIER_DIRECT/192.0.2.2 text/html",
            Want {
                time: "2010-10-08T11:11:49.270Z",
                method: "GET",
                target: "/a?b=c",
                host: "example.com",
                client: "192.0.2.1",
                status: 200,
                bytes: Some(411),
                service_ns: Some(180_000_000),
                ..Want::default()
            },
        ),
        (
            "1286536309.450      0 2001:db8::17 TCP_DENIED/403 3900 CONNECT example.com:443 user HIER_NONE/- - [Accept: */*]",
            Want {
                time: "2010-10-08T11:11:49.450Z",
                method: "CONNECT",
                target: "example.com:443",
                client: "2001:db8::17",
                status: 403,
                bytes: Some(3900),
                service_ns: Some(0),
                ..Want::default()
            },
        ),
        (
            "1286536310.000  60000 192.0.2.1 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -",
            Want {
                time: "2010-10-08T11:10:50.000Z",
                target: "error:transaction-end-before-headers",
                client: "192.0.2.1",
                bytes: Some(0),
                service_ns: Some(60_000_000_000),
                ..Want::default()
            },
        ),
    ];
    check_found("squid", &cases);
    for line in
        ["1286536309 180 192.0.2.1 TCP_MISS/200 411 GET / - HIER_DIRECT/192.0.2.2 text/html", "1286536309.450 180", ""]
    {
        assert!(
            !matches!(format("squid").read(line.as_bytes(), &mut Scratch::default()), Ok(Line::Entry(_))),
            "{line}"
        );
    }
}

#[test]
fn lines_that_docker_has_wrapped_up() {
    let plain = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "-" "a \x22b\x22""#;
    let json = r#"{"time":"2000-10-10T20:55:36Z","method":"GET","uri":"/a","status":200,"user_agent":"a"}"#;
    for (line, name) in [(plain, "combined"), (json, "json")] {
        let log = serde_json::to_string(&format!("{line}\n")).unwrap();
        let wrapped = format!(r#"{{"log":{log},"stream":"stdout","time":"2026-03-02T10:00:00.1Z"}}"#);
        let mut formats = Formats::detect(&[wrapped.as_bytes()]).unwrap();
        let (mut scratch, mut other) = (Scratch::default(), Scratch::default());
        let read = formats.read(wrapped.as_bytes(), &mut scratch);
        assert_eq!(read, format(name).read(line.as_bytes(), &mut other), "{name}");
        assert!(matches!(read, Ok(Line::Entry(entry)) if entry.target == b"/a"), "{read:?}");
        assert_eq!(formats.shares()[0].name, name);
    }
    // Where the line inside ends too soon, counted from the beginning of the whole.
    let wrapped = br#"{"log":"192.0.2.1 - - [x\n","stream":"stderr","time":"2026-03-02T10:00:00.1Z"}"#;
    let mut formats = Formats::given(vec![format("combined")]);
    let column = formats.read(wrapped, &mut Scratch::default()).unwrap_err().column;
    assert_eq!(column, br#"{"log":"192.0.2.1 - - ["#.len() + 1);
}

#[test]
fn the_w3cs_extended_format() {
    let iis = [
        "#Software: Microsoft Internet Information Services 10.0",
        "#Version: 1.0",
        "#Date: 2020-01-01 00:00:00",
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status sc-bytes time-taken",
        "2020-01-01 00:00:03 10.0.0.4 GET /a.aspx id=7 443 - 192.0.2.1 Mozilla/5.0+(Windows) 200 512 31",
        "#Fields: time c-ip cs-method cs-uri-stem sc-status time-taken cs(Host)",
        "00:00:04.5 192.0.2.1 HEAD /b 304 0.250 example.com",
        "00:00:05 192.0.2.1 HEAD",
    ];
    let lines: Vec<&[u8]> = iis.iter().map(|line| line.as_bytes()).collect();
    let mut formats = Formats::detect(&lines).unwrap();
    let mut scratch = Scratch::default();
    for line in &lines[..4] {
        assert_eq!(formats.read(line, &mut scratch), Ok(Line::Other));
    }
    let first = Want {
        time: "2020-01-01T00:00:03Z",
        method: "GET",
        target: "/a.aspx?id=7",
        client: "192.0.2.1",
        agent: "Mozilla/5.0+(Windows)",
        status: 200,
        bytes: Some(512),
        service_ns: Some(31_000_000),
        ..Want::default()
    };
    let mut scratch = Scratch::default();
    assert_eq!(without_offset(formats.read(lines[4], &mut scratch)), Ok(Line::Entry(first.entry())));
    assert_eq!(formats.read(lines[5], &mut scratch), Ok(Line::Other));
    let second = Want {
        time: "2020-01-01T00:00:04.250Z",
        method: "HEAD",
        target: "/b",
        host: "example.com",
        client: "192.0.2.1",
        status: 304,
        service_ns: Some(250_000_000),
        ..Want::default()
    };
    let mut scratch = Scratch::default();
    assert_eq!(without_offset(formats.read(lines[6], &mut scratch)), Ok(Line::Entry(second.entry())));
    let short = formats.read(lines[7], &mut scratch).unwrap_err();
    assert_eq!((short.column, &*short.expected), (24, "7 fields, as #Fields says"));
    assert_eq!(formats.shares()[0].name, "w3c");
}

#[test]
fn cloudfront() {
    let line = "2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows)\ta=b\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\twww.example.com\thttps\t23\t0.001";
    let want = Want {
        time: "2019-12-04T21:02:31Z",
        method: "GET",
        target: "/index.html?a=b",
        host: "www.example.com",
        client: "192.0.2.100",
        agent: "Mozilla/5.0%20(Windows)",
        status: 200,
        bytes: Some(392),
        service_ns: Some(1_000_000),
        ..Want::default()
    };
    check_found("cloudfront", &[(line, want)]);
    let fields = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken";
    let mut formats = Formats::detect(&[b"#Version: 1.0", fields.as_bytes(), line.as_bytes()]).unwrap();
    assert!(matches!(formats.read(line.as_bytes(), &mut Scratch::default()), Ok(Line::Entry(_))));
    assert_eq!(formats.shares()[0].name, "cloudfront");
}

#[test]
fn any_log_format_of_apache() {
    let pie = apache_pie;
    check(
        r#"%v %h \"%{X-Forwarded-For}i\" %t %m %U%q %H %s %>s %O %b %!200,304{Referer}i|%{us}T"#,
        &[(
            r#"example.com 10.0.0.1 "-" [10/Oct/2000:13:55:36 -0700] GET /apache_pb.gif HTTP/1.0 302 200 2500 2326 a b|77"#,
            Want { host: "example.com", client: "10.0.0.1", referer: "a b", service_ns: Some(77_000), ..pie() },
        )],
    );
    check(
        r#"[%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] %a "%r" %>s %B %{ms}T%%"#,
        &[(
            r#"[10/Oct/2000:13:55:36.250 -0700] 127.0.0.1 "GET /apache_pb.gif HTTP/1.0" 200 2326 5%"#,
            Want { time: "2000-10-10T20:55:36.250Z", service_ns: Some(5_000_000), ..pie() },
        )],
    );
    check(
        r#"%{end:sec}t.%{end:usec_frac}t\t%a\t%r\t%>s\t%b\t%D\t%{Foo}e%{Bar}C"#,
        &[(
            "971211336.250000\t127.0.0.1\tGET /apache_pb.gif HTTP/1.0\t200\t2326\t250000\tx",
            Want { time: "2000-10-10T20:55:36.000Z", service_ns: Some(250_000_000), ..pie() },
        )],
    );
    check(
        "%{%a, %e %B %y %I:%M:%S %p}t|%h|%r|%>s|%b",
        &[("Tue, 10 October 00 08:55:36 PM|127.0.0.1|GET /apache_pb.gif HTTP/1.0|200|2326", pie())],
    );
    check(
        r#"%t.%{usec_frac}t %h "%r" %>s %b"#,
        &[(
            r#"[10/Oct/2000:13:55:36 -0700].000250 127.0.0.1 "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
            Want { time: "2000-10-10T20:55:36.000250Z", ..pie() },
        )],
    );
}

#[test]
fn any_log_format_of_nginx() {
    let pie = apache_pie;
    check(
        r#"$msec $remote_addr "$request_method $scheme://$host$request_uri $server_protocol" $status $body_bytes_sent $request_time $pipe"#,
        &[(
            r#"971211336.250 127.0.0.1 "GET https://example.com/apache_pb.gif HTTP/1.0" 200 2326 0.250 ."#,
            Want { time: "2000-10-10T20:55:36.000Z", host: "example.com", service_ns: Some(250_000_000), ..pie() },
        )],
    );
    check(
        r#"$time_iso8601|$remote_addr|$request_method|$uri$is_args$args|$server_protocol|$status|$bytes_sent|$upstream_addr|$upstream_response_time"#,
        &[(
            "2000-10-10T13:55:36-07:00|127.0.0.1|GET|/apache_pb.gif|HTTP/1.0|200|2326|10.0.0.1:80, 10.0.0.2:80|0.001, 0.002",
            Want { upstream_ns: Some(3_000_000), ..pie() },
        )],
    );
    check(
        r#"log_format j escape=json '{"t":"$time_iso8601","a":"$remote_addr","m":"$request_method","u":"$uri","q":"$args","p":"$server_protocol",' '"s":$status,"b":$body_bytes_sent,"rt":$request_time,"ut":$upstream_response_time}';"#,
        &[(
            r#"{"t":"2000-10-10T13:55:36-07:00","a":"127.0.0.1","m":"GET","u":"/apache_pb.gif","q":"","p":"HTTP/1.0","s":200,"b":2326,"rt":0.000,"ut":}"#,
            Want { service_ns: Some(0), ..pie() },
        )],
    );
    check(
        r#"log_format raw escape=none '$remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent"'"#,
        &[(
            r#"127.0.0.1 [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "ends in \""#,
            Want { agent: r"ends in \", ..pie() },
        )],
    );
}

#[test]
fn a_malformed_line_says_where_and_what() {
    let cases = [
        ("combined", "", None),
        ("combined", "hello", Some((6, "a space"))),
        ("combined", "a - - [10/Oct/2000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"", Some((8, "a time such as 10/Oct"))),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 20x 5", Some((53, "a status of three"))),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 -5", Some((57, "a number of bytes"))),
        (
            "common",
            "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5 \"-\"",
            Some((58, "the end of the line")),
        ),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1", Some((51, "a quote and a space"))),
        ("common", "a - - [10/Oct/2000:13:55:36 -0700 \"GET / HTTP/1.1\" 200 5", Some((34, "`] \"`"))),
        ("json", "{\"a\":1,}", Some((8, "a quote and the name of a field"))),
        ("json", "{\"a\":\"b", Some((8, "a closing quote"))),
        ("json", "{\"uri\":\"/\",\"status\":200}", Some((25, "a field with the time"))),
        ("ltsv", "a:b\tno label", Some((5, "a label, a colon and a value"))),
        ("haproxy", "haproxy[1]: Proxy web started.", Some((1, "a client, and a time"))),
        ("w3c", "2020-01-01 25:00:00 x", Some((12, "a time such as 13:55:36"))),
    ];
    for (name, line, expected) in cases {
        read_one(&mut format(name), line.as_bytes(), |read| match (read, expected) {
            (Err(malformed), Some((column, expected))) => {
                assert_eq!(malformed.column, column, "{name}: {line}: {}", malformed.expected);
                assert!(malformed.expected.starts_with(expected), "{name}: {line}: {}", malformed.expected);
            }
            (read, expected) => assert_eq!((read, expected), (Ok(Line::Other), None), "{name}: {line}"),
        });
    }
}

#[test]
fn several_formats_in_one_log_are_all_found() {
    let combined = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "curl/8""#.as_slice();
    let common = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#.as_slice();
    let junk = b"*** restart ***".as_slice();
    let mut formats = Formats::detect(&[common, combined, combined, junk, b""]).unwrap();
    let mut scratch = Scratch::default();
    assert!([common, combined, combined, combined].iter().all(|line| formats.read(line, &mut scratch).is_ok()));
    let shares: Vec<(String, f64)> = formats.shares().into_iter().map(|share| (share.name, share.share)).collect();
    assert_eq!(shares, [("combined".to_owned(), 0.75), ("common".to_owned(), 0.25)]);
    // It is the likeliest that says what is wrong, whichever has read the line before.
    assert!(formats.read(common, &mut scratch).is_ok());
    let malformed = formats.read(&common[..40], &mut scratch).unwrap_err();
    assert_eq!((malformed.column, &*malformed.expected), (41, "a quote and a space"));
}

#[test]
fn an_unknown_format_is_shown_with_the_way_out() {
    let lines: [&[u8]; 2] = [b"2020 \x1b[31mWARN\t[main] started", b"done"];
    let error = Formats::detect(&lines).unwrap_err();
    let LogError::UnknownFormat(text) = error else { panic!("{error}") };
    for part in [
        r"lines like `2020 \u001b[31mWARN\u0009[main]",
        "The nearest is ",
        "--format takes a name (common",
        "--format-from /etc/nginx/nginx.conf",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(Formats::detect(&[]), Err(LogError::Empty(_))));
    assert!(Formats::given(Vec::new()).read(b"x", &mut Scratch::default()).is_err());
}

/// `apache2.conf` of Debian 12, and its default site.
const APACHE2: &str = r#"
ErrorLog ${APACHE_LOG_DIR}/error.log
LogLevel warn
<Directory />
	Options FollowSymLinks
	AllowOverride None
</Directory>
# The following directives define some format nicknames for use with
# a CustomLog directive.
LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" vhost_combined
LogFormat "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" combined
LogFormat "%h %l %u %t \"%r\" %>s %O" common
LogFormat "%{Referer}i -> %U" referer
LogFormat "%{User-agent}i" agent
IncludeOptional sites-enabled/*.conf
<VirtualHost *:80>
	ServerAdmin webmaster@localhost
	CustomLog ${APACHE_LOG_DIR}/access.log combined
	CustomLog ${APACHE_LOG_DIR}/times.log "%h %l %u %t \"%r\" %>s %O %D" env=!quiet
	CustomLog /var/log/apache2/ssl.log combined
</VirtualHost>
"#;

/// `nginx.conf` of nginx's own package, with a second log.
const NGINX: &str = r#"
user  nginx;
error_log  /var/log/nginx/error.log notice;
events { worker_connections  1024; }
http {
    include       /etc/nginx/mime.types;
    log_format  main  '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for"'; # the; usual
    log_format times escape=json '{"time":"$msec","request":"$request","status":$status,"rt":$request_time}';
    log_format useless '$remote_addr';
    map $uri $loggable { ~^/health 0; default 1; }
    access_log  /var/log/nginx/access.log  main;
    server {
        listen 80;
        access_log /var/log/nginx/times.log times buffer=32k if=$loggable;
        location / { access_log /var/log/nginx/root.log main; root "/srv/{a};b"; }
        location /quiet { access_log off; }
        location /stock { access_log /var/log/nginx/stock.log; }
    }
}
"#;

#[test]
fn the_formats_of_a_servers_configuration() {
    let names = |text: &str| -> Vec<String> {
        Format::of_configuration(text).unwrap().iter().map(|format| format.name().to_owned()).collect()
    };
    let times = r#"%h %l %u %t \"%r\" %>s %O %D"#;
    assert_eq!(names(APACHE2), ["combined", times, "vhost_combined", "common"]);
    assert_eq!(names(NGINX), ["main", "times", "combined"]);
    // Debian's own nginx.conf defines no format.
    assert_eq!(names("http {\n\taccess_log /var/log/nginx/access.log;\n\tgzip on;\n}\n"), ["combined"]);
    let mut formats = Formats::given(Format::of_configuration(NGINX).unwrap());
    let mut scratch = Scratch::default();
    let line = br#"{"time":"971211336.250","request":"GET / HTTP/1.1","status":200,"rt":0.250}"#;
    let Ok(Line::Entry(entry)) = formats.read(line, &mut scratch) else { panic!("it is read") };
    assert_eq!((entry.time_ns, entry.service_ns), (971_211_336_000_000_000, Some(250_000_000)));
    assert_eq!(formats.shares()[0].name, "times");
}

/// Where real logs are, if they are.
fn logs() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/logs");
    let directory = std::env::var_os("BRIMFUL_LOGS").map_or(beside, PathBuf::from);
    if !directory.is_dir() {
        println!("no logs in {}: set BRIMFUL_LOGS to read real ones", directory.display());
        return None;
    }
    Some(directory)
}

/// How many lines of a file are requests by the formats, how many are not, and which is the first malformed.
fn counts(formats: &mut Formats, bytes: &[u8]) -> (u64, u64, Option<(u64, Malformed)>) {
    let (mut read, mut malformed, mut first) = (0, 0, None);
    for (line, number) in bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n').zip(1..) {
        match formats.read(line, &mut Scratch::default()) {
            Ok(Line::Entry(_)) => read += 1,
            Ok(Line::Other) => {}
            Err(error) => {
                malformed += 1;
                first = first.or(Some((number, error)));
            }
        }
    }
    (read, malformed, first)
}

#[test]
fn samples_of_formats_match_as_they_say() {
    let Some(directory) = logs() else { return };
    for (file, name, read, first) in [
        ("sample_ltsv_all_match.log", "ltsv", 5, None),
        ("sample_ltsv_contains_unmatch.log", "ltsv", 4, Some(4)),
        ("sample_ltsv_all_unmatch.log", "ltsv", 0, Some(1)),
        ("sample_s3_all_match.log", "s3", 5, None),
        ("sample_s3_contains_unmatch.log", "s3", 4, Some(4)),
        ("sample_s3_all_unmatch.log", "s3", 0, Some(1)),
    ] {
        let bytes = std::fs::read(directory.join(file)).unwrap();
        let (count, malformed, error) = counts(&mut Formats::given(vec![format(name)]), &bytes);
        assert_eq!((count, malformed, error.map(|(line, _)| line)), (read, 5 - read, first), "{file}");
        let lines: Vec<&[u8]> = bytes.trim_ascii_end().split(|byte| *byte == b'\n').collect();
        match Formats::detect(&lines) {
            Ok(mut formats) => assert_eq!(counts(&mut formats, &bytes).0, read, "{file}"),
            Err(error) => assert_eq!(read, 0, "{file}: {error}"),
        }
    }
}

#[test]
fn logs_of_real_servers_are_read_but_for_broken_lines() {
    let Some(directory) = logs() else { return };
    for (file, name, read, broken) in [
        ("nasa_jul95_logisland.log", "common", 4000, None),
        // Its lines end in a carriage return.
        ("databricks_twiki_apache_clf.log", "common", 1406, None),
        // One line's last quote is missing.
        ("elastic_apache_combined.log", "combined", 9999, Some((8899, "a closing quote at the end of the line"))),
    ] {
        let bytes = std::fs::read(directory.join(file)).unwrap();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').take(500).collect();
        let mut formats = Formats::detect(&lines).unwrap();
        let (count, malformed, first) = counts(&mut formats, &bytes);
        let first = first.as_ref().map(|(line, error)| (*line, &*error.expected));
        assert_eq!((count, malformed, first), (read, u64::from(broken.is_some()), broken), "{file}");
        assert_eq!(formats.shares().iter().map(|share| share.name.as_str()).collect::<Vec<_>>(), [name], "{file}");
    }
}

/// A text without quotes, backslashes and control characters, which no server writes as they are.
fn field() -> impl Strategy<Value = String> {
    "[!#-\\[\\]-~é]{1,20}"
}

proptest! {
    #[test]
    fn no_line_panics_and_errors_lie_in_it(line: Vec<u8>, printable in "[ -~\t]{0,200}") {
        for name in Format::names() {
            let mut format = format(name);
            for line in [line.as_slice(), printable.as_bytes()] {
                if let Err(malformed) = format.read(line, &mut Scratch::default()) {
                    prop_assert!((1..=line.len() + 1).contains(&malformed.column), "{} of {name}", malformed.column);
                }
            }
        }
        let _ = Formats::detect(&[&line, printable.as_bytes()]);
        let _ = (Format::parse(&printable), Format::of_configuration(&printable));
    }

    #[test]
    fn no_change_of_a_line_panics(case in 0..6usize, at in 0..400usize, byte: u8, cut in 0..400usize) {
        let lines: [(&str, &str); 6] = [
            ("combined", r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET /\" HTTP/1.1" 200 5 "-" "curl/8""#),
            ("combined + fields", r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "a" rt=0.1, 2 "b" c"#),
            ("json", r#"{"ts":1646861401.52,"request":{"uri":"/\ud83d\ude00","headers":{"a":["b"]}},"status":200,"duration":1e-3}"#),
            ("haproxy", r#"::1:3 [06/Feb/2009:12:14:14.655] a b/c 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {a} {} "GET / HTTP/1.1""#),
            ("ltsv", "time:[10/Oct/2000:13:55:36 -0700]\treq:GET / HTTP/1.0\tstatus:200\treqtime:0.1, 0.2"),
            ("w3c", "2020-01-01 00:00:03 10.0.0.4 GET /a.aspx id=7 443 - ::1 a b 200 0 0 31"),
        ];
        let (name, line) = lines[case];
        let mut line = line.as_bytes().to_vec();
        let length = line.len();
        line[at % length] = byte;
        line.truncate(cut.max(1));
        if let Err(malformed) = format(name).read(&line, &mut Scratch::default()) {
            prop_assert!((1..=line.len() + 1).contains(&malformed.column), "{} of {name}", malformed.column);
        }
    }

    #[test]
    fn what_a_server_writes_is_read_back(
        (client, user, path, referer, agent) in (field(), field(), field(), field(), field()),
        second in 0..9_000_000_000i64,
        offset in -14 * 60..14 * 60i32,
        status in 100..600u16,
        bytes in proptest::option::of(0..1u64 << 49),
    ) {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(offset * 60).unwrap());
        let stamp = Timestamp::from_second(second).unwrap().to_zoned(zone).strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
        let size = bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let common = format!("{client} - {user} [{stamp}] \"POST /{path} HTTP/1.1\" {status} {size}");
        let combined = format!("{common} \"{referer}\" \"{agent}\"");
        let target = format!("/{path}");
        let [client, referer, agent] = [client, referer, agent].map(|text| if text == "-" { String::new() } else { text });
        let entry = Entry {
            time_ns: second * 1_000_000_000,
            method: b"POST",
            target: target.as_bytes(),
            protocol: b"HTTP/1.1",
            client: client.as_bytes(),
            status,
            bytes,
            offset_s: Some(offset * 60),
            ..Entry::default()
        };
        // Local time before 1970 is nobody's.
        prop_assume!(!stamp.contains("/1969:"));
        let mut scratch = Scratch::default();
        prop_assert_eq!(format("common").read(common.as_bytes(), &mut scratch), Ok(Line::Entry(entry)));
        let entry = Entry { referer: referer.as_bytes(), agent: agent.as_bytes(), ..entry };
        prop_assert_eq!(format("combined").read(combined.as_bytes(), &mut scratch), Ok(Line::Entry(entry)));
    }
}
