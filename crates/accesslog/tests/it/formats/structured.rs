//! Tests lines with named fields: JSON, LTSV, and the W3C extended format.

use super::*;

#[test]
fn json() {
    let caddy = || Want {
        time: "2022-03-09T21:30:01.523172725Z",
        method: "GET",
        target: "/caf\u{e9}?a=\"b\"",
        protocol: "HTTP/2.0",
        host: "localhost",
        client: "127.0.0.1",
        user_agent: "curl/7.82.0",
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
                    user_agent: "curl/8",
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
                    user_agent: "a",
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
                    user_agent: "x",
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
                    user_agent: "x",
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
                    user_agent: "x",
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
                    user_agent: "a:b",
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
    // The column in the error must be relative to the line inside Docker's wrapping.
    let wrapped = br#"{"log":"192.0.2.1 - - [x\n","stream":"stderr","time":"2026-03-02T10:00:00.1Z"}"#;
    let mut formats = Formats::from_list(vec![format("combined")]);
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
        user_agent: "Mozilla/5.0+(Windows)",
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
        user_agent: "Mozilla/5.0%20(Windows)",
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
