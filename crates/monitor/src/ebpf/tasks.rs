//! Every thread of user space in one pass, by the kernel's own walk over its tasks (`iter/task`).
//!
//! Figures are as the scheduler holds them at the moment of the walk. Of a thread that is on a CPU right now, `ran` is as old
//! as that CPU's last tick. A walk is not one instant: a thread that ends during it may be found neither among the living
//! nor in its process's `ended`, so that a sum can fall short by one thread for one pass. Process ids are those of the pid
//! namespace of the reader, where 0 is a parent outside it.
//!
//! Sources: kernel/sched/core.c, kernel/sched/cputime.c, kernel/exit.c (`__exit_signal`), kernel/bpf/task_iter.c.

use super::EbpfError;
use super::object::{Attached, Program};
use brimful_core::Nanos;
use std::io::{self, Read};

/// The program, ready to run.
pub(crate) struct TaskIterator {
    attached: Attached,
    buffer: Vec<u8>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRecord {
    /// The thread's id.
    pub(crate) pid: u32,
    /// The id of the process it belongs to.
    pub(crate) tgid: u32,
    /// The id of that process's parent.
    pub(crate) parent: u32,
    /// The thread's name, padded with zeros.
    pub(crate) comm: [u8; 16],
    /// On a CPU, or waiting for one.
    pub(crate) runnable: bool,
    /// When it was started, since boot and with the time the machine was suspended: field 22 of /proc/PID/stat.
    pub(crate) started: Nanos,
    /// What it has used.
    pub(crate) own: Counters,
    /// Its waits for a CPU; `None` if the kernel keeps no account of them (`CONFIG_SCHED_INFO`).
    pub(crate) queue: Option<Queue>,
    /// What concerns the whole process; there only in the record of its leader, whose `pid` is its `tgid`.
    pub(crate) process: Option<ProcessRecord>,
}

/// What a thread has used, or all those of a process that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Time on a CPU, by the scheduler's clock.
    pub(crate) ran: Nanos,
    /// Time on a CPU in user mode, by ticks unless the kernel accounts exactly (`CONFIG_VIRT_CPU_ACCOUNTING`). What
    /// /proc shows is `ran`, split in the proportion of this and `system`.
    pub(crate) user: Nanos,
    /// Time on a CPU in the kernel, likewise.
    pub(crate) system: Nanos,
    /// Page faults that took no I/O.
    pub(crate) minor_faults: u64,
    /// Page faults that did.
    pub(crate) major_faults: u64,
    /// Times it left a CPU of its own will.
    pub(crate) voluntary: u64,
    /// Times it was taken from a CPU.
    pub(crate) involuntary: u64,
    /// Bytes moved; `None` if the kernel does not count them (`CONFIG_TASK_IO_ACCOUNTING`).
    pub(crate) storage: Option<Storage>,
}

/// Bytes that went to and came from storage, not the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Storage {
    /// Read.
    pub(crate) read_bytes: u64,
    /// Written, or made dirty to be written later.
    pub(crate) written_bytes: u64,
}

/// Waits for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
    /// How long, without the present wait.
    pub(crate) waited: Nanos,
    /// How often it came to a CPU.
    pub(crate) scheduled: u64,
}

/// What concerns a whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessRecord {
    /// Threads it has.
    pub(crate) threads: u64,
    /// Resident pages of files, of anonymous and of shared memory. The kernel counts per CPU and adds up now and then: up
    /// to 32 pages of each kind are missing or too many per CPU (lib/percpu_counter.c). `None` if the process has no
    /// memory any more.
    pub(crate) rss_pages: Option<u64>,
    /// What its ended threads had used. The process has used this and what its living threads have.
    pub(crate) ended: Counters,
    /// Time in user mode of its children that it has waited for, and of theirs.
    pub(crate) children_user: Nanos,
    /// Time in the kernel of the same.
    pub(crate) children_system: Nanos,
    /// Minor faults of the same.
    pub(crate) children_minor_faults: u64,
    /// Major faults of the same.
    pub(crate) children_major_faults: u64,
}

impl TaskIterator {
    /// Loads the program. It costs nothing until it is read.
    pub(crate) fn open() -> Result<TaskIterator, EbpfError> {
        let attached = Attached::attach(Program::Tasks, &[], 0)?;
        Ok(TaskIterator { attached, buffer: vec![0; 64 << 10] })
    }

    /// Replaces what is in `into` by all threads there are now, in the order of their ids.
    pub(crate) fn read(&mut self, into: &mut Vec<TaskRecord>) -> io::Result<()> {
        into.clear();
        parse_all(self.attached.pass()?, &mut self.buffer, into)
    }
}

/// Reads to the end. Records may be cut anywhere between one read and the next.
fn parse_all(mut from: impl Read, buffer: &mut [u8], into: &mut Vec<TaskRecord>) -> io::Result<()> {
    let mut held = 0;
    loop {
        let more = from.read(&mut buffer[held..])?;
        let (records, rest) = buffer[..held + more].as_chunks();
        into.extend(records.iter().map(TaskRecord::parse));
        let done = records.len() * RECORD;
        held = rest.len();
        buffer.copy_within(done..done + held, 0);
        match (more, held) {
            (0, 0) => return Ok(()),
            (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}

// --- The record, as `struct record` in `bpf/tasks.bpf.c` -------------------------------------------------------------

const RECORD: usize = 4 * 4 + 16 + 8 * (1 + 9 + 2 + 2 + 9 + 4);
const LEADER: u32 = 1 << 0;
const RUNNABLE: u32 = 1 << 1;
const SCHED: u32 = 1 << 2;
const IO: u32 = 1 << 3;
const RSS: u32 = 1 << 4;

impl TaskRecord {
    fn parse(bytes: &[u8; RECORD]) -> TaskRecord {
        let mut fields = Fields(bytes);
        let [pid, tgid, parent, flags] = std::array::from_fn(|_| fields.u32());
        let comm = fields.take();
        let started = fields.nanos();
        let own = fields.counters(flags);
        let queue = Queue { waited: fields.nanos(), scheduled: fields.u64() };
        let (threads, rss_pages) = (fields.u64(), fields.u64());
        let process = ProcessRecord {
            threads,
            rss_pages: (flags & RSS != 0).then_some(rss_pages),
            ended: fields.counters(flags),
            children_user: fields.nanos(),
            children_system: fields.nanos(),
            children_minor_faults: fields.u64(),
            children_major_faults: fields.u64(),
        };
        TaskRecord {
            pid,
            tgid,
            parent,
            comm,
            runnable: flags & RUNNABLE != 0,
            started,
            own,
            queue: (flags & SCHED != 0).then_some(queue),
            process: (flags & LEADER != 0).then_some(process),
        }
    }
}

/// The fields of a record that have not been taken yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn counters(&mut self, flags: u32) -> Counters {
        Counters {
            ran: self.nanos(),
            user: self.nanos(),
            system: self.nanos(),
            minor_faults: self.u64(),
            major_faults: self.u64(),
            voluntary: self.u64(),
            involuntary: self.u64(),
            storage: {
                let storage = Storage { read_bytes: self.u64(), written_bytes: self.u64() };
                (flags & IO != 0).then_some(storage)
            },
        }
    }

    fn nanos(&mut self) -> Nanos {
        Nanos(self.u64())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    /// The next `N` bytes; zeros past the end, where [`TaskRecord::parse`] does not go.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *taken
    }
}

#[cfg(test)]
#[cfg(feature = "ebpf")]
mod tests {
    use super::*;
    use crate::sys;
    use proptest::prelude::*;
    use rustix::process::{Pid, getppid};
    use rustix::thread::gettid;
    use std::process::{Command, Stdio};
    use std::{fs, thread};

    fn all() -> Vec<TaskRecord> {
        let mut tasks = Vec::new();
        TaskIterator::open().expect("this test must run as root").read(&mut tasks).unwrap();
        tasks
    }

    fn of(pid: u32) -> Option<TaskRecord> {
        all().into_iter().find(|task| task.pid == pid)
    }

    /// The numbers in a line of fields; what is no number becomes 0.
    fn numbers(text: &str) -> Vec<u64> {
        text.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect()
    }

    fn proc_file(pid: u32, file: &str) -> String {
        fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap()
    }

    /// The number after `name` in a file of such lines.
    fn named(text: &str, name: &str) -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().parse().unwrap()
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
        let stat = numbers(stat.rsplit(')').next().unwrap()); // from field 3 on
        let (status, io) = (proc_file(pid, "status"), proc_file(pid, "io"));
        let [ran, waited, scheduled] = numbers(&proc_file(pid, "schedstat"))[..] else { panic!() };
        let statm = numbers(&proc_file(pid, "statm"));
        child.kill().unwrap();
        child.wait().unwrap();

        assert_eq!((task.pid, task.tgid, task.parent), (pid, pid, std::process::id()));
        assert_eq!(&task.comm[..6], b"sleep\0");
        assert!(!task.runnable);
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(task.started.0 / (1_000_000_000 / ticks), stat[22 - 3]);
        assert_eq!(task.own.ran, Nanos(ran));
        assert_eq!(task.own.minor_faults, stat[10 - 3]);
        assert_eq!(task.own.major_faults, stat[12 - 3]);
        assert_eq!(task.own.voluntary, named(&status, "voluntary_ctxt_switches:"));
        assert_eq!(task.own.involuntary, named(&status, "nonvoluntary_ctxt_switches:"));
        assert_eq!(task.queue, Some(Queue { waited: Nanos(waited), scheduled }));
        let storage = Storage { read_bytes: named(&io, "read_bytes:"), written_bytes: named(&io, "write_bytes:") };
        assert_eq!(task.own.storage, Some(storage));
        let process = task.process.unwrap();
        assert_eq!(process.threads, 1);
        let slack = (3 * 32.max(2 * crate::cpu_count()) * crate::cpu_count()) as u64;
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
        assert!(tasks.is_sorted_by_key(|task| task.pid));
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
        // It has written and goes to sleep; its clock stands still from then on.
        while of(child.id()).unwrap().runnable {
            thread::yield_now();
        }
        let task = of(child.id()).unwrap();
        let clock = sys::process_cpu(child.id()).unwrap();
        let minor = proc_file(child.id(), "stat");
        let minor = numbers(minor.rsplit(')').next().unwrap())[10 - 3];
        child.kill().unwrap();
        child.wait().unwrap();
        let ended = task.process.unwrap().ended;
        assert_eq!(task.own.ran + ended.ran, clock);
        assert!(ended.ran >= Nanos(150_000_000), "{ended:?}");
        assert_eq!(task.own.minor_faults + ended.minor_faults, minor);
        let children = of(std::process::id()).unwrap().process.unwrap();
        assert!(children.children_user + children.children_system > Nanos(0));
        assert!(children.children_minor_faults >= minor);
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

    /// Gives its bytes in pieces of these sizes.
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
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), RECORD), 0..20),
            sizes in prop::collection::vec(1..600usize, 0..50),
            missing in 0..RECORD,
        ) {
            let bytes = records.concat();
            let whole: Vec<TaskRecord> = bytes.as_chunks().0.iter().map(TaskRecord::parse).collect();
            let (mut cut, mut buffer) = (Vec::new(), vec![0; 2 * RECORD]);
            parse_all(Pieces(&bytes, sizes.clone().into_iter()), &mut buffer, &mut cut).unwrap();
            prop_assert_eq!(cut.len(), records.len());
            prop_assert_eq!(&cut, &whole);
            let short = &bytes[..bytes.len().saturating_sub(missing)];
            let read = parse_all(Pieces(short, sizes.into_iter()), &mut buffer, &mut Vec::new());
            prop_assert_eq!(read.is_ok(), short.len() % RECORD == 0);
        }

        #[test]
        fn a_record_ends_where_its_last_field_does(bytes in prop::collection::vec(any::<u8>(), RECORD)) {
            let mut bytes: [u8; RECORD] = bytes.try_into().unwrap();
            bytes[12] |= LEADER as u8;
            let parse = |last: u64| {
                let mut bytes = bytes;
                bytes[RECORD - 8..].copy_from_slice(&last.to_ne_bytes());
                TaskRecord::parse(&bytes).process.unwrap().children_major_faults
            };
            prop_assert_eq!((parse(1), parse(u64::MAX)), (1, u64::MAX));
        }
    }
}
