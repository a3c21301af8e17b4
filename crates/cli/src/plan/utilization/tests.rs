//! Tests of the parsers, with output in the form in which each monitor prints it.

use super::*;
use crate::access_logs::parse_zone;

const SAR: &str = include_str!("fixtures/sar.txt");
const SAR_12: &str = include_str!("fixtures/sar-12-hours.txt");
const MPSTAT: &str = include_str!("fixtures/mpstat.txt");
const IOSTAT: &str = include_str!("fixtures/iostat.txt");
const VMSTAT: &str = include_str!("fixtures/vmstat.txt");
const SADF: &str = include_str!("fixtures/sadf.txt");
const WATCH: &str = include_str!("fixtures/kernel.jsonl");
const RECORD: &str = include_str!("../../../tests/data/idle.record.json");
const TABLE: &str = "time,cpu,disk\n2026-03-02T10:00:00Z,50,10\n2026-03-02T10:05:00Z,75%,20\n";
const ALL: [&str; 8] = [SAR, SAR_12, MPSTAT, IOSTAT, VMSTAT, SADF, WATCH, TABLE];

fn read(text: &str) -> Utilization {
    parse(text, &TimeZone::UTC).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The start of each time step, in seconds after the first step.
fn begins(found: &Utilization) -> Vec<i64> {
    found.steps.iter().map(|step| (step.start_ms - found.steps[0].start_ms) / 1000).collect()
}

fn shares(found: &Utilization, resource: usize) -> Vec<f64> {
    found.steps.iter().map(|step| (step.shares[resource] * 1e4).round() / 1e4).collect()
}

fn from(found: &Utilization) -> String {
    jiff::Timestamp::from_millisecond(found.steps[0].start_ms).unwrap().to_string()
}

#[test]
fn sar_of_a_file_with_a_restart_past_midnight() {
    let found = read(SAR);
    assert_eq!((found.resources.as_slice(), found.cpus), (&["cpu".to_owned(), "vda".to_owned()][..], Some(2)));
    assert_eq!(from(&found), "2026-11-22T23:40:01.5Z", "the time of the header is the start of the first interval");
    assert_eq!(begins(&found), [0, 300, 900, 1200], "the interval that contains the restart is left out");
    assert_eq!(shares(&found, 0), [0.3, 0.4, 0.55, 0.2], "idle time and waits for disks are not busy");
    assert_eq!(shares(&found, 1), [0.125, 0.25, 0.5, 0.0625]);
    assert!(found.has_local_times && found.notes.is_empty(), "{:?}", found.notes);
    // Berlin is one hour ahead of UTC, so the first interval begins an hour earlier than with UTC.
    let berlin = parse(SAR, &parse_zone("Europe/Berlin").unwrap()).unwrap();
    assert_eq!(from(&berlin), "2026-11-22T22:40:01.5Z");
}

#[test]
fn sar_by_clocks_of_12_hours() {
    let found = read(SAR_12);
    assert_eq!((from(&found).as_str(), found.cpus), ("2026-11-22T12:40:01.5Z", Some(4)));
    assert_eq!((begins(&found), shares(&found, 0)), (vec![0, 600], vec![0.2, 0.3]));
    let ambiguous = read(&SAR_12.replace("11/22/26", "03/02/2026"));
    assert_eq!(from(&ambiguous), "2026-03-02T12:40:01.5Z");
    assert!(ambiguous.notes[0].contains("03/02/2026 is read as month"), "{:?}", ambiguous.notes);
    let german = SAR_12.replace("11/22/26", "22.11.2026").replace("12:40:01 PM", "12:40:01").replace("15.00", "15,00");
    let german = german.replace("12:50:01 PM", "12:50:01").replace("01:00:01 PM", "13:00:01").replace(".00", ",00");
    assert_eq!(read(&german), read(SAR_12));
}

#[test]
fn mpstat_of_one_cpu_past_midnight() {
    let found = read(MPSTAT);
    assert_eq!((found.resources.as_slice(), found.cpus), (&["cpu0".to_owned()][..], None));
    assert_eq!(from(&found), "2026-11-22T23:59:58.5Z");
    assert_eq!((begins(&found), shares(&found, 0)), (vec![0, 1, 2], vec![0.8, 0.9, 0.5]));
}

#[test]
fn programs_of_pidstat_are_added_up() {
    let text = "Linux 6.1.0 (web1) \t2026-11-22 \t_x86_64_\t(2 CPU)\n\n\
        10:15:01      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n\
        10:16:01       33       101   40.00   10.00    0.00    0.00   50.00     0  nginx: worker process\n\
        10:16:01       33       102   20.00   10.00    0.00    0.00   30.00     1  nginx\n\n\
        10:16:01      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n\
        10:17:01       33       102   90.00   30.00    0.00    0.00  120.00     1  nginx\n\
        Average:       33       102   55.00   20.00    0.00    0.00   75.00     -  nginx\n";
    let found = read(text);
    assert_eq!((found.resources.as_slice(), found.cpus), (&["cpu".to_owned()][..], Some(2)));
    assert_eq!((begins(&found), shares(&found, 0)), (vec![0, 60], vec![0.4, 0.6]));
}

#[test]
fn iostat_without_its_first_report() {
    let found = read(IOSTAT);
    assert_eq!((found.resources.as_slice(), found.cpus), (&["cpu".to_owned(), "nvme0n1".to_owned()][..], Some(2)));
    assert_eq!((from(&found).as_str(), begins(&found)), ("2026-11-22T10:15:01.5Z", vec![0, 60]));
    assert_eq!((shares(&found, 0), shares(&found, 1)), (vec![0.25, 0.5], vec![0.1, 0.2]));
    let iso = IOSTAT.replace("11/22/2026 10:", "2026-11-22T10:").replace(" AM", "+0100");
    let iso = iso.replace("11/22/2026", "2026-11-22");
    assert_eq!((from(&read(&iso)).as_str(), read(&iso).has_local_times), ("2026-11-22T09:15:01.5Z", false));
}

#[test]
fn vmstat_without_its_first_line() {
    let found = read(VMSTAT);
    assert_eq!((from(&found).as_str(), begins(&found)), ("2026-11-22T10:15:01.5Z", vec![0, 30, 60]));
    assert_eq!((shares(&found, 0), found.has_local_times), (vec![0.4, 0.8, 0.1], false));
    let berlin = parse_zone("Europe/Berlin").unwrap();
    let local = parse(&VMSTAT.replace("                 UTC", "                 CET"), &berlin).unwrap();
    assert_eq!((from(&local).as_str(), local.has_local_times), ("2026-11-22T09:15:01.5Z", true), "CET is ambiguous");
    let ahead = read(&VMSTAT.replace("                 UTC", "                 +03"));
    assert_eq!((from(&ahead).as_str(), ahead.has_local_times), ("2026-11-22T07:15:01.5Z", false));
}

#[test]
fn sadf_for_databases() {
    let found = read(SADF);
    assert_eq!(found.resources, ["cpu", "sda"]);
    assert_eq!(from(&found), "2026-03-02T10:00:00.5Z", "a time is the end of its step");
    assert_eq!((shares(&found, 0), shares(&found, 1)), (vec![0.3, 0.5], vec![0.125, 0.25]));
    let local = parse(&SADF.replace(" UTC", ""), &parse_zone("+01:00").unwrap()).unwrap();
    assert_eq!((from(&local).as_str(), local.has_local_times), ("2026-03-02T09:00:00.5Z", true));
}

#[test]
fn the_log_of_brimful_watch() {
    let found = read(WATCH);
    assert_eq!((found.resources.as_slice(), found.cpus), (&["cpu".to_owned(), "vda".to_owned()][..], Some(2)));
    assert_eq!((from(&found).as_str(), begins(&found)), ("2026-11-22T10:15:00.25Z", vec![0, 1]));
    assert_eq!((shares(&found, 0), shares(&found, 1)), (vec![0.375, 0.75], vec![0.5, 0.25]));
}

#[test]
fn a_record_has_the_utilization_of_the_servers_processes() {
    let mut record: brimful_core::record::Record = serde_json::from_str(RECORD).unwrap();
    record.started_at = "2026-11-22T10:15:00.125Z".to_owned();
    let interval = |second: u8, cores| brimful_core::server::ServerInterval {
        t_s: f64::from(second),
        length_s: 1.0,
        process_cores: cores,
        cpu: Some(brimful_core::server::CpuShares { idle: 0.25, ..Default::default() }),
        ..Default::default()
    };
    let server = record.server.as_mut().unwrap();
    server.kernel.cpus = vec![0, 1];
    server.intervals = (0..3).map(|second| interval(second, Some(0.5))).collect();
    let found = read(&serde_json::to_string_pretty(&record).unwrap());
    assert_eq!((from(&found).as_str(), found.cpus), ("2026-11-22T10:15:00.125Z", Some(2)));
    assert_eq!((found.resources.as_slice(), shares(&found, 0)), (&["cpu".to_owned()][..], vec![0.25; 3]));
    let server = record.server.as_mut().unwrap();
    server.intervals = (0..3).map(|second| interval(second, None)).collect();
    assert_eq!(shares(&read(&serde_json::to_string(&record).unwrap()), 0), [0.75; 3]);
    record.server = None;
    let error = parse(&serde_json::to_string(&record).unwrap(), &TimeZone::UTC).unwrap_err();
    assert!(error.contains("--watch"), "{error}");
}

#[test]
fn a_table_of_shares_or_percent() {
    let found = read(TABLE);
    assert_eq!(found.resources, ["cpu", "disk"]);
    assert_eq!((shares(&found, 0), shares(&found, 1)), (vec![0.5, 0.75], vec![0.1, 0.2]));
    assert_eq!((from(&found).as_str(), found.steps[1].seconds), ("2026-03-02T10:00:00Z", 300.0));
    assert_eq!(read("when;cpu\n1772445600;0.5\n1772445900;1\n").steps[1].shares, [1.0]);
    let local = "time,cpu\n2026-03-02 10:00,0.5\n2026-03-02 10:05,0.6\n";
    let local = parse(local, &parse_zone("+02:00").unwrap()).unwrap();
    assert_eq!((from(&local).as_str(), local.has_local_times), ("2026-03-02T08:00:00Z", true));
}

#[test]
fn short_steps_are_merged() {
    let line = |second: u32| format!("{},{}\n", 1_772_445_600 + second, if second < 100 { 0.25 } else { 0.75 });
    let text = "time,cpu\n".to_owned() + &(0..200).map(line).collect::<String>();
    let found = read(&text);
    assert_eq!((found.steps.len(), begins(&found)[1]), (20, 10));
    assert_eq!((found.steps[9].shares[0], found.steps[10].shares[0]), (0.25, 0.75));
    assert!(found.notes[0].contains("10.0 s"), "{:?}", found.notes);
    // If there are few time steps, they are not merged. Steps before and after a gap are not merged with one another,
    // either.
    let few: String = text.lines().take(20).map(|line| line.to_owned() + "\n").collect();
    assert_eq!(read(&few).steps.len(), 19);
    let gap = "time,cpu\n".to_owned() + &(0..205).filter(|s| !(95..100).contains(s)).map(line).collect::<String>();
    assert!(read(&gap).steps.iter().all(|step| step.seconds <= 10.0), "{:?}", begins(&read(&gap)));
}

#[test]
fn errors_say_what_to_do() {
    let without_times = |text: &str, from: usize| {
        text.lines().map(|line| line.get(..from).unwrap_or(line)).fold(String::new(), |text, line| text + line + "\n")
    };
    let untimed =
        IOSTAT.lines().filter(|line| !line.ends_with("AM")).fold(String::new(), |text, line| text + line + "\n");
    for (text, words) in [
        ("", "it is empty"),
        ("2026-03-02,5\n2026-03-03,6\n", "header"),
        ("time,cpu\nyesterday,5\n", "line 2"),
        ("time,cpu\n2026-03-02,many\n", "line 2: 1 utilizations"),
        ("time,cpu\n2026-03-02,0.5\n", "fewer than two"),
        ("top - 10:15:01 up 1 day\n", "`vmstat -t`"),
        ("Linux 6.1.0 (web1) \t2026-11-22 \t_x86_64_\t(2 CPU)\n\n10:00:01 proc/s cswch/s\n10:10:01 1 2\n", "%idle"),
        ("10:00:01 CPU %idle\n10:10:01 all 2\n", "line 1: there is no line with the date"),
        ("{ \"schema\": \"brimful.survey/1\" }", "a Record"),
        ("{ \"at\": \"2026-11-22T10:15:01Z\" }", "line 1: missing field"),
        (&without_times(VMSTAT, 86), "run vmstat with -t"),
        (&untimed, "run iostat with -t"),
        (&VMSTAT[..VMSTAT.find("10:15:31").unwrap()], "no second line"),
    ] {
        let error = parse(text, &TimeZone::UTC).unwrap_err();
        assert!(error.contains(words), "{words:?} was expected: {error}");
    }
}

/// Checks the invariants of a [`Utilization`]: valid values, and steps in order that do not overlap.
fn check(found: &Utilization) {
    assert!(!found.steps.is_empty() && !found.resources.is_empty());
    for step in &found.steps {
        assert!(step.seconds > 0.0 && step.shares.len() == found.resources.len(), "{step:?}");
        assert!(step.shares.iter().all(|share| (0.0..=1.0).contains(share)), "{step:?}");
    }
    assert!(found.steps.windows(2).all(|pair| pair[0].end_ms() <= pair[1].start_ms), "{:?}", found.steps);
}

#[test]
fn truncated_text_is_read_or_refused() {
    let zone = parse_zone("Europe/Berlin").unwrap();
    for text in ALL {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            parse(&text[..end], &zone).iter().for_each(check);
            parse(&text[end..], &zone).iter().for_each(check);
        }
    }
}

#[test]
fn no_text_panics() {
    // Pseudorandom changes by Marsaglia's xorshift generator (2003), so that every machine tests the same texts.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % n.max(1) as u64).unwrap_or(0)
    };
    let words = [
        "9999999999999999999",
        "-1",
        "99/99/9999",
        "23:59:60",
        "12:00:00 AM",
        "nan",
        "1e308",
        "\n",
        "\t",
        "Linux ",
        ")",
        "(",
        "0000-01-01",
        "9999-12-31 23:59:59",
        "+99:99",
        ";",
        ",",
        "CPU",
        "all",
        "%idle",
        "é",
        "\u{202f}",
    ];
    let zones = [TimeZone::UTC, parse_zone("America/St_Johns").unwrap()];
    for round in 0..3000 {
        let mut text = ALL[below(ALL.len())].as_bytes().to_vec();
        for _ in 0..=below(8) {
            let at = below(text.len());
            match below(5) {
                0 => text.insert(at, u8::try_from(below(256)).unwrap_or(0)),
                1 => drop(text.drain(at..(at + below(40)).min(text.len()))),
                2 => {
                    let word = words[below(words.len())].as_bytes();
                    drop(text.splice(at..(at + word.len()).min(text.len()), word.iter().copied()));
                }
                3 => {
                    let piece = text[at..(at + below(200)).min(text.len())].to_vec();
                    let to = below(text.len());
                    drop(text.splice(to..to, piece));
                }
                _ => text[at] = b'0' + u8::try_from(below(10)).unwrap_or(0),
            }
            if text.is_empty() {
                break;
            }
        }
        parse(&String::from_utf8_lossy(&text), &zones[round % 2]).iter().for_each(check);
    }
}
