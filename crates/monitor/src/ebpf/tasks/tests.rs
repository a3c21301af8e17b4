//! Checks that the two programs that list threads agree with each other and with /proc. These tests must run as root.

use super::*;
use crate::sys;
use proptest::prelude::*;
use rustix::process::{Pid, getppid};
use rustix::thread::gettid;
use std::process::{Command, Stdio};
use std::{fs, thread};

/// Returns the records of all threads, and checks that both programs report the same threads. Reads again while the two
/// lists differ, because threads may start or end between the two readings.
fn all() -> Vec<TaskRecord> {
    let mut walk = TaskIterator { method: Method::walk(1).expect("this test must run as root, on Linux 6.7") };
    let mut iterate = TaskIterator { method: Method::iterate().unwrap() };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        walk.read(&mut first).unwrap();
        iterate.read(&mut second).unwrap();
        first.sort_by_key(|task| task.pid);
        let same = |(one, other): (&TaskRecord, &TaskRecord)| {
            (one.pid, one.tgid, one.parent, one.started) == (other.pid, other.tgid, other.parent, other.started)
                && one.own.ran <= other.own.ran
                && one.process.is_some() == other.process.is_some()
        };
        if first.len() == second.len() && first.iter().zip(&second).all(same) {
            return first;
        }
    }
    panic!("{first:?}\n{second:?}");
}

fn of(pid: u32) -> Option<TaskRecord> {
    all().into_iter().find(|task| task.pid == pid)
}

/// Parses the numbers of a line whose fields are separated by spaces. A field that is not a number becomes 0.
fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect()
}

fn proc_file(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap()
}

/// Returns the number after `name` in a text whose lines consist of a name and a number.
fn named(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line[name.len()..].trim().parse().unwrap()
}

#[test]
fn a_count_below_zero_is_zero() {
    // Offset of `threads` in the record, in bytes. The ids, the flags, the name, the start, the thread's counters and
    // its waiting time come before.
    const THREADS: usize = 4 * 4 + 16 + 8 * (1 + 5 + 1);
    let mut record = [0; RECORD_BYTES];
    record[12..16].copy_from_slice(&(LEADER | RSS).to_ne_bytes());
    record[THREADS..THREADS + 8].copy_from_slice(&(-1_i64).to_ne_bytes());
    record[THREADS + 8..THREADS + 16].copy_from_slice(&(-7_i64).to_ne_bytes());
    let process = TaskRecord::parse(&record).process.unwrap();
    assert_eq!((process.threads, process.rss_pages), (0, Some(0)));
}

#[test]
fn a_sleeping_process_is_as_proc_shows_it() {
    let mut child = Command::new("sleep").arg("100").stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    while proc_file(pid, "wchan") != "hrtimer_nanosleep" && !proc_file(pid, "stat").contains("(sleep) S") {
        thread::yield_now();
    }
    let task = of(pid).unwrap();
    let stat = proc_file(pid, "stat");
    let stat = numbers(stat.rsplit(')').next().unwrap()); // begins with field 3 of /proc/PID/stat
    let status = proc_file(pid, "status");
    let [ran, waited, _] = numbers(&proc_file(pid, "schedstat"))[..] else { panic!() };
    let statm = numbers(&proc_file(pid, "statm"));
    child.kill().unwrap();
    child.wait().unwrap();

    assert_eq!((task.pid, task.tgid, task.parent), (pid, pid, std::process::id()));
    assert_eq!(&task.comm[..6], b"sleep\0");
    assert!(!task.runnable);
    let ticks = rustix::param::clock_ticks_per_second();
    assert_eq!(task.started.0 / (1_000_000_000 / ticks), stat[22 - 3]);
    assert_eq!(task.own.ran, Nanos(ran));
    assert_eq!(task.own.major_faults, stat[12 - 3]);
    let switches = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|kind| named(&status, kind));
    assert_eq!(task.own.switches, switches.iter().sum::<u64>());
    assert_eq!(task.waited, Some(Nanos(waited)));
    let process = task.process.unwrap();
    assert_eq!(process.threads, 1);
    let slack = (3 * 32.max(2 * crate::online_cpus().len()) * crate::online_cpus().len()) as u64;
    assert!(process.rss_pages.unwrap().abs_diff(statm[1]) <= slack, "{:?} {}", process.rss_pages, statm[1]);
}

#[test]
fn this_thread_is_running_and_belongs_to_this_process() {
    let tasks = all();
    let own = std::process::id();
    let find = |pid| tasks.iter().find(|task| task.pid == pid).unwrap();
    let here = find(gettid().as_raw_nonzero().get() as u32);
    assert!(here.runnable);
    assert_eq!((here.tgid, here.process.is_none()), (own, true));
    assert_eq!(find(own).parent, Pid::as_raw(getppid()) as u32);
    assert!(!tasks.iter().any(|task| task.comm.starts_with(b"kthreadd") || task.comm.starts_with(b"ksoftirqd")));
}

#[test]
fn what_a_process_used_is_what_its_threads_use_and_what_its_ended_threads_used() {
    let mut shell = Command::new("python3");
    let script = "import threading, time, sys
def burn():
    until = time.thread_time() + 0.05
    while time.thread_time() < until: pass
for _ in range(3):
    t = threading.Thread(target=burn); t.start(); t.join()
print('done', flush=True)
sys.stdin.read()";
    let mut child = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    // The child has written its output and is about to sleep. While it sleeps, its CPU clock does not advance.
    while of(child.id()).unwrap().runnable {
        thread::yield_now();
    }
    let task = of(child.id()).unwrap();
    let clock = sys::process_cpu(child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = task.process.unwrap().ended;
    assert_eq!(task.own.ran + ended.ran, clock);
    assert!(ended.ran >= Nanos(150_000_000), "{ended:?}");
    let children = of(std::process::id()).unwrap().process.unwrap();
    assert!(children.children_user + children.children_system >= Nanos(150_000_000));
}

#[test]
fn ids_are_those_of_the_readers_pid_namespace() {
    if std::env::var_os("IN_A_PID_NAMESPACE").is_some() {
        let tasks = all();
        assert!(tasks.iter().all(|task| task.tgid == 1), "{tasks:?}");
        let leader = tasks.iter().find(|task| task.pid == 1).unwrap();
        assert_eq!((leader.parent, std::process::id()), (0, 1));
        assert_eq!(leader.process.as_ref().unwrap().threads, tasks.len() as u64);
        return;
    }
    let mut again = Command::new("unshare");
    again.args(["--pid", "--fork"]).arg(std::env::current_exe().unwrap());
    again.args(["--exact", "ebpf::tasks::tests::ids_are_those_of_the_readers_pid_namespace"]);
    let output = again.env("IN_A_PID_NAMESPACE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A reader that returns bytes in pieces of the given sizes, and the rest in one piece.
struct Pieces<'a>(&'a [u8], std::vec::IntoIter<usize>);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.1.next().unwrap_or(usize::MAX).min(buffer.len());
        self.0.read(&mut buffer[..size])
    }
}

proptest! {
    #[test]
    fn records_may_be_cut_anywhere_but_at_the_end(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), RECORD_BYTES), 0..20),
        sizes in prop::collection::vec(1..600usize, 0..50),
        missing in 0..RECORD_BYTES,
    ) {
        let bytes = records.concat();
        let whole: Vec<TaskRecord> = bytes.as_chunks().0.iter().map(TaskRecord::parse).collect();
        let (mut cut, mut buffer) = (Vec::new(), vec![0; 2 * RECORD_BYTES]);
        parse_all(Pieces(&bytes, sizes.clone().into_iter()), &mut buffer, &mut cut).unwrap();
        prop_assert_eq!(cut.len(), records.len());
        prop_assert_eq!(&cut, &whole);
        let short = &bytes[..bytes.len().saturating_sub(missing)];
        let read = parse_all(Pieces(short, sizes.into_iter()), &mut buffer, &mut Vec::new());
        prop_assert_eq!(read.is_ok(), short.len() % RECORD_BYTES == 0);
    }

    #[test]
    fn a_record_ends_where_its_last_field_does(bytes in prop::collection::vec(any::<u8>(), RECORD_BYTES)) {
        let mut bytes: [u8; RECORD_BYTES] = bytes.try_into().unwrap();
        bytes[12] |= LEADER as u8;
        let parse = |last: u64| {
            let mut bytes = bytes;
            bytes[RECORD_BYTES - 8..].copy_from_slice(&last.to_ne_bytes());
            TaskRecord::parse(&bytes).process.unwrap().children_major_faults
        };
        prop_assert_eq!((parse(1), parse(u64::MAX)), (1, u64::MAX));
    }
}
