//! Tests whole logs: samples, real logs, and random logs.

use super::*;

/// The directory of real logs; `None` if this machine has none.
fn logs() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/logs");
    let directory = std::env::var_os("BRIMFUL_LOGS").map_or(beside, PathBuf::from);
    if !directory.is_dir() {
        println!("no logs in {}: set BRIMFUL_LOGS to read real ones", directory.display());
        return None;
    }
    Some(directory)
}

/// The number of requests in a file, the number of malformed lines, and the first malformed line with its number.
fn counts(formats: &mut Formats, bytes: &[u8]) -> (u64, u64, Option<(u64, LineParseError)>) {
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
        let (count, malformed, error) = counts(&mut Formats::from_list(vec![format(name)]), &bytes);
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
        // The lines of this log end in a carriage return.
        ("databricks_twiki_apache_clf.log", "common", 1406, None),
        // In one line of this log, the last quote is missing.
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

/// Generates texts without quotes, backslashes and control characters, because servers escape these.
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
        let _ = (Format::parse(&printable), Format::from_configuration(&printable));
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
        (client, user, path, referer, user_agent) in (field(), field(), field(), field(), field()),
        second in 0..9_000_000_000i64,
        offset in -14 * 60..14 * 60i32,
        status in 100..600u16,
        bytes in proptest::option::of(0..1u64 << 49),
    ) {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(offset * 60).unwrap());
        let stamp = Timestamp::from_second(second).unwrap().to_zoned(zone).strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
        let size = bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let common = format!("{client} - {user} [{stamp}] \"POST /{path} HTTP/1.1\" {status} {size}");
        let combined = format!("{common} \"{referer}\" \"{user_agent}\"");
        let target = format!("/{path}");
        let [client, referer, user_agent] = [client, referer, user_agent].map(|text| if text == "-" { String::new() } else { text });
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
        // Local times before 1970 are not supported.
        prop_assume!(!stamp.contains("/1969:"));
        let mut scratch = Scratch::default();
        prop_assert_eq!(format("common").read(common.as_bytes(), &mut scratch), Ok(Line::Entry(entry)));
        let entry = Entry { referer: referer.as_bytes(), user_agent: user_agent.as_bytes(), ..entry };
        prop_assert_eq!(format("combined").read(combined.as_bytes(), &mut scratch), Ok(Line::Entry(entry)));
    }
}
