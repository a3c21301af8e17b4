//! Tests lines that users of other log analysers reported as misread.

use super::*;

const REST: &str = r#"[03/Aug/2017:14:58:51 +0000] "GET /a HTTP/1.1" 200 10 "-" "x""#;

/// The client, the virtual host, and the service time in nanoseconds of an entry.
type Caller = (String, String, Option<u64>);

/// Detects the format of the lines and reads them. Returns the name of the format, the entries, and the remarks about
/// the format.
fn found(lines: &[String]) -> (String, Vec<Caller>, Vec<String>) {
    let sample: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    let mut formats = Formats::detect(&sample).unwrap_or_else(|error| panic!("{}: {error}", lines[0]));
    let mut scratch = Scratch::default();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut read = |line: &[u8]| match formats.read(line, &mut scratch) {
        Ok(Line::Entry(entry)) => (text(entry.client), text(entry.host), entry.service_ns),
        other => panic!("{}: {other:?}", String::from_utf8_lossy(line)),
    };
    let entries = sample.iter().map(|line| read(line)).collect();
    let shares = formats.shares();
    assert_eq!(shares.len(), 1, "{shares:?}");
    (shares[0].name.clone(), entries, formats.remarks())
}

fn client(line: String) -> (String, String) {
    let (_, entries, _) = found(&[line]);
    (entries[0].0.clone(), entries[0].1.clone())
}

#[test]
fn a_list_of_proxies_is_no_virtual_host() {
    for (list, first) in [
        ("203.0.113.7, 198.51.100.9", "203.0.113.7"),
        ("203.0.113.7, 198.51.100.9, 10.0.0.1", "203.0.113.7"),
        ("\"203.0.113.7, 198.51.100.9\"", "203.0.113.7"),
        ("\"203.0.113.7\"", "203.0.113.7"),
        ("203.0.113.7:443, 198.51.100.9:80", "203.0.113.7"),
        ("203.0.113.7:52100", "203.0.113.7"),
        ("unix:, 198.51.100.9", "198.51.100.9"),
        ("unknown, 198.51.100.9", "198.51.100.9"),
        ("unknown, unknown", "unknown, unknown"),
        ("_hidden, 198.51.100.9", "198.51.100.9"),
        ("-, 198.51.100.9", "198.51.100.9"),
        ("2001:db8::17, 198.51.100.9", "2001:db8::17"),
        ("[2001:db8::17]:443, 198.51.100.9", "2001:db8::17"),
        ("[2001:db8::17]", "2001:db8::17"),
        ("unix:", "unix:"),
        ("-", ""),
    ] {
        for line in [format!("{list} - - {REST}"), format!("{list} - frank {REST}"), format!("{list} - - {REST} 0.005")]
        {
            assert_eq!(client(line.clone()), (first.to_owned(), String::new()), "{line}");
        }
        // In this format, the address of the last proxy follows the list of clients.
        if !list.starts_with(['"', '[']) && list != "unix:" {
            let line = format!("{list} 10.0.0.1 - - {REST}");
            let first = if list == "-" || list == "unknown, unknown" { "10.0.0.1" } else { first };
            assert_eq!(client(line.clone()), (first.to_owned(), String::new()), "{line}");
        }
    }
}

#[test]
fn a_virtual_host_is_still_one() {
    let host = |line: String| client(line);
    let expected = |client: &str, host: &str| (client.to_owned(), host.to_owned());
    assert_eq!(host(format!("www.example.org:80 203.0.113.7 - - {REST}")), expected("203.0.113.7", "www.example.org"));
    assert_eq!(host(format!("www.example.org 203.0.113.7 - - {REST}")), expected("203.0.113.7", "www.example.org"));
    let forwarded = format!("www.example.org:80 203.0.113.7, 10.0.0.1 - - {REST}");
    assert_eq!(host(forwarded), expected("203.0.113.7", "www.example.org"));
    // If the first field is always the same address, it must be read as the virtual host.
    let lines: Vec<String> = (1..20).map(|n| format!("192.0.2.80 203.0.113.{n} - - {REST}")).collect();
    let (name, entries, _) = found(&lines);
    assert_eq!(
        (name.as_str(), entries[4].0.as_str(), entries[4].1.as_str()),
        ("%v combined", "203.0.113.5", "192.0.2.80")
    );
    // If two proxies forward requests of many clients, the first field must be read as the client.
    let lines: Vec<String> = (1..20).map(|n| format!("203.0.113.{n} 10.0.0.{} - - {REST}", n % 2)).collect();
    let (name, entries, _) = found(&lines);
    assert_eq!(
        (name.as_str(), entries[4].0.as_str(), entries[4].1.as_str()),
        ("forwarded combined", "203.0.113.5", "")
    );
}

/// Creates one line per second. Each line ends with one of the texts `tails`, after the `User-Agent`.
fn every_second(tails: impl IntoIterator<Item = String>) -> Vec<String> {
    let line = |(second, tail): (usize, String)| {
        let stamp = format!("03/Aug/2017:14:{:02}:{:02} +0000", second / 60, second % 60);
        format!(
            r#"203.0.113.{} - - [{stamp}] "GET /{second} HTTP/1.1" 200 {} "-" "x" {tail}"#,
            second % 7,
            9_000 + second * 700
        )
    };
    tails.into_iter().enumerate().map(line).collect()
}

/// A number from 2,000 to 11,999 that varies with `n`.
fn varied(n: usize) -> u64 {
    2_000 + (n as u64 * 7_919) % 10_000
}

#[test]
fn microseconds_before_a_process_number_are_no_seconds() {
    let expected: Vec<Option<u64>> = (0..60).map(|n| Some(varied(n) * 1_000)).collect();
    let times = |entries: &[(String, String, Option<u64>)]| entries.iter().map(|entry| entry.2).collect::<Vec<_>>();
    let cases: [(&str, &dyn Fn(usize) -> String); 7] = [
        ("combined + %D %P", &|n| format!("{} {}", varied(n), 4_711 + n % 5)),
        ("combined + %P %D", &|n| format!("{} {}", 4_711 + n % 5, varied(n))),
        ("combined + %D", &|n| varied(n).to_string()),
        ("combined + \"%D\"", &|n| format!("\"{}\"", varied(n))),
        ("combined + %D %k", &|n| format!("{} {}", varied(n), n / 7)),
        ("combined + %D _", &|n| format!("{} TLSv1.3", varied(n))),
        ("combined + rt=%D", &|n| format!("rt={}", varied(n))),
    ];
    for (name, tail) in cases {
        let (found_name, entries, remarks) = found(&every_second((0..60).map(tail)));
        assert_eq!((found_name.as_str(), times(&entries)), (name, expected.clone()));
        let [remark] = remarks.as_slice() else { panic!("{name}: {remarks:?}") };
        assert!(remark.contains("read as microseconds") && remark.contains("give --format 'combined + "), "{remark}");
    }
    // If another column shows the same duration in whole seconds, the unit is certain, so no remark is expected.
    let (name, entries, remarks) =
        found(&every_second((0..60).map(|n| format!("{} {}", varied(n) * 300 / 1_000_000, varied(n) * 300))));
    assert_eq!((name.as_str(), entries[3].2, remarks.len()), ("combined + _ %D", Some(varied(3) * 300_000), 0));
    // A single line does not determine the unit, so a remark must name another possible unit.
    let (name, entries, remarks) = found(&every_second(["5040 1234".to_owned()]));
    assert_eq!((name.as_str(), entries[0].2), ("combined + %D _", Some(5_040_000)));
    assert!(remarks[0].contains("They may be milliseconds"), "{remarks:?}");
}

#[test]
fn what_is_no_time_is_not_taken_for_one() {
    let cases: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("processes", &|n| (4_711 + n % 5).to_string()),
        ("a ratio of compression", &|n| format!("{}.{:02}", 1 + n % 4, n)),
        ("bytes with their heads", &|n| (9_000 + n * 700 + 280).to_string()),
        ("an upstream's status", &|_| "200".to_owned()),
    ];
    for (what, tail) in cases {
        let (name, entries, _) = found(&every_second((0..60).map(tail)));
        assert_eq!((name.as_str(), entries[5].2), ("combined + fields", None), "{what}");
    }
    let (_, _, remarks) = found(&every_second((0..60).map(|n| (4_711 + n % 5).to_string())));
    assert!(remarks[0].contains("none is read as the time"), "{remarks:?}");
}

#[test]
fn times_keep_the_unit_that_they_have() {
    let cases: [(&str, &str, u64); 6] = [
        ("12.345 ms", "combined + :response-time ms", 12_345_000),
        ("12ms", "combined + $duration", 12_000_000),
        ("1.5s", "combined + $duration", 1_500_000_000),
        ("350µs", "combined + $duration", 350_000),
        ("0.012", "combined + $request_time", 12_000_000),
        ("0/5040", "combined + %T/%D", 5_040_000),
    ];
    for (tail, name, ns) in cases {
        let (found_name, entries, remarks) = found(&every_second([tail.to_owned()]));
        assert_eq!((found_name.as_str(), entries[0].2, remarks.len()), (name, Some(ns), 0), "{tail}");
    }
    // Tomcat writes milliseconds, so some durations are 0.
    let (name, entries, _) = found(&every_second((0..60).map(|n| (n * 13 % 40).to_string())));
    assert_eq!((name.as_str(), entries[1].2), ("combined + %{ms}T", Some(13_000_000)));
    // Numbers in JSON logs are usually milliseconds. The numbers of this test must be read as microseconds.
    let json = |n: usize, name: &str, value: u64| {
        format!(
            r#"{{"time":"2017-08-03T14:58:{n:02}Z","method":"GET","uri":"/","status":200,"size":9000,"{name}":{value}}}"#
        )
    };
    let (_, entries, remarks) = found(&(0..60).map(|n| json(n, "duration", varied(n) * 100)).collect::<Vec<_>>());
    assert_eq!(entries[3].2, Some(varied(3) * 100_000), "{remarks:?}");
    assert!(remarks[0].contains("microseconds"), "{remarks:?}");
    let (_, entries, remarks) = found(&(0..60).map(|n| json(n, "duration", varied(n) / 100)).collect::<Vec<_>>());
    assert_eq!((entries[3].2, remarks.len()), (Some(varied(3) / 100 * 1_000_000), 0));
    let (_, entries, _) = found(&(0..60).map(|n| json(n, "duration_ms", varied(n))).collect::<Vec<_>>());
    assert_eq!(entries[3].2, Some(varied(3) * 1_000_000));
}

#[test]
fn traefiks_dash_without_quotes_keeps_the_durations() {
    let base = r#"10.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /x HTTP/1.1" 404 19"#;
    for referer in ["-", "\"-\"", "\"http://a/\""] {
        for user_agent in ["-", "\"-\"", "\"curl/8 (a b)\""] {
            for frontend in ["-", "\"-\"", "\"front end\""] {
                for backend in ["-", "\"-\"", "\"http://172.18.0.2:80\""] {
                    let line = format!("{base} {referer} {user_agent} 2 {frontend} {backend} 5ms");
                    let (name, entries, _) = found(std::slice::from_ref(&line));
                    assert_eq!((name.as_str(), entries[0].2), ("traefik", Some(5_000_000)), "{line}");
                }
            }
        }
    }
}

/// Reads a whole W3C log, which contains directives, and returns its entries.
fn w3c(log: &str) -> Vec<(String, String, String, Option<u64>)> {
    let lines: Vec<&[u8]> = log.lines().map(str::as_bytes).collect();
    let mut formats = Formats::detect(&lines).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut scratch = Scratch::default();
    let mut entries = Vec::new();
    for line in lines {
        match formats.read(line, &mut scratch) {
            Ok(Line::Entry(entry)) => {
                entries.push((text(entry.client), text(entry.target), text(entry.user_agent), entry.service_ns));
            }
            Ok(Line::Other) => {}
            Err(malformed) => panic!("{}: {malformed:?}", String::from_utf8_lossy(line)),
        }
    }
    entries
}

#[test]
fn w3c_logs_with_tabs_may_have_spaces_in_values() {
    let entry = |user_agent: &str| ("10.0.0.1".to_owned(), "/a b".to_owned(), user_agent.to_owned(), Some(12_000_000));
    for fields in [
        "#Fields:\tdate\ttime\tc-ip\tcs-method\tcs-uri-stem\tcs(User-Agent)\tsc-status\ttime-taken",
        "#Fields: date\ttime\tc-ip\tcs-method\tcs-uri-stem\tcs(User-Agent)\tsc-status\ttime-taken",
        "#Fields: date time c-ip cs-method cs-uri-stem cs(User-Agent) sc-status time-taken",
    ] {
        let line = "2026-03-01\t10:00:00\t10.0.0.1\tGET\t/a b\tMozilla/5.0 (X11; Linux)\t200\t12";
        assert_eq!(
            w3c(&format!("#Version: 1.0\n{fields}\n{line}\n{line}\t")),
            vec![entry("Mozilla/5.0 (X11; Linux)"); 2]
        );
    }
    // This log is in the format of Microsoft's proxy.
    let log = "#Fields: c-ip\tc-agent\tdate\ttime\tr-host\ttime-taken\tsc-bytes\ts-operation\tcs-uri\tsc-status\n\
               10.0.0.1\tMozilla/4.0 (compatible)\t2026-03-01\t10:00:00\tintra\t12\t500\tGET\thttp://intra/a b\t200";
    assert_eq!(w3c(log), [entry("Mozilla/4.0 (compatible)")]);
}

#[test]
fn w3c_logs_may_have_quotes_in_quotes() {
    let fields = "#Fields: date time c-ip cs-method cs-uri-stem cs(User-Agent) sc-status time-taken";
    let log = format!(
        "{fields}\n\
         2026-03-01 10:00:00 10.0.0.1 GET /a \"Mozilla \"\"x\"\" y\" 200 12\n\
         2026-03-01 10:00:00 10.0.0.1 GET /a \"\"\"x\"\"\" 200 12\n\
         2026-03-01 10:00:00 10.0.0.1 GET /a \"\" 200 12\n\
         2026-03-01 10:00:00 10.0.0.1 GET /a Mozilla/5.0+(X11) 200 12"
    );
    let agents: Vec<String> = w3c(&log).into_iter().map(|entry| entry.2).collect();
    assert_eq!(agents, [r#"Mozilla "x" y"#, r#""x""#, "", "Mozilla/5.0+(X11)"]);
    let forwarded = "#Fields: date time c-ip cs-method cs-uri-stem X-Forwarded-For sc-status time-taken\n\
                     2026-03-01 10:00:00 10.0.0.1 GET /a 203.0.113.7:443,+198.51.100.9 200 12";
    assert_eq!(w3c(forwarded)[0].0, "203.0.113.7");
}

#[test]
fn what_was_found_is_read_out() {
    let line = format!("203.0.113.7, 198.51.100.9 - - {REST}");
    let mut formats = Formats::detect(&[line.as_bytes()]).unwrap();
    assert!(formats.sample().is_empty());
    assert!(formats.read(line.as_bytes(), &mut Scratch::default()).is_ok());
    let sample: Vec<(String, String)> = formats.sample().into_iter().map(|f| (f.field, f.value)).collect();
    let expected = [
        ("client", "203.0.113.7"),
        ("time", "2017-08-03T14:58:51Z"),
        ("method", "GET"),
        ("target", "/a"),
        ("protocol", "HTTP/1.1"),
        ("status", "200"),
        ("bytes", "10"),
        ("agent", "x"),
    ];
    assert_eq!(sample, expected.map(|(field, value)| (field.to_owned(), value.to_owned())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn whatever_is_inferred_reads_lines_without_panic(
        tails in prop::collection::vec("[0-9.,:/a-z\"= -]{0,24}", 1..12),
        heads in prop::collection::vec("[0-9a-f.,:\"\\[\\] _-]{1,24}", 1..12),
    ) {
        let lines: Vec<String> =
            heads.iter().zip(tails.iter()).map(|(head, tail)| format!("{head} - - {REST} {tail}")).collect();
        let sample: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        if let Ok(mut formats) = Formats::detect(&sample) {
            for line in &sample {
                match formats.read(line, &mut Scratch::default()) {
                    Ok(Line::Entry(entry)) => prop_assert!(entry.status < 1000),
                    Ok(Line::Other) => {}
                    Err(malformed) => prop_assert!((1..=line.len() + 1).contains(&malformed.column)),
                }
            }
        }
    }
}
