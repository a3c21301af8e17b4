//! Reads every thread of user space in one pass over the kernel's list of tasks.
//!
//! There are two programs. `walk` does the whole pass in one call, and writes into memory that this process has mapped.
//! `walk` needs Linux 6.7. The kernel runs `tasks` once for each task (`iter/task`, Linux 5.9), and this process reads
//! the output from a descriptor. `tasks` costs more than three times as much per thread.
//!
//! The counters are the scheduler's at the moment of the pass. For a thread that is on a CPU, `ran` is the value at the
//! CPU's last tick. A pass takes some time, and a thread may end during the pass. Such a thread may be missing both
//! from the living threads and from `ended` of the process, so a sum may miss a thread for one pass. Process ids are
//! numbers in the reader's pid namespace. A parent outside of this namespace has the id 0.
//!
//! Sources: kernel/sched/core.c, kernel/sched/cputime.c, kernel/exit.c (`__exit_signal`), kernel/bpf/task_iter.c.

use super::object::{AttachedProgram, CallableProgram, Program};
use super::{EbpfError, at_least_zero};
use brimful_core::Nanos;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The loaded program that lists the threads: `walk` or `tasks`.
pub(crate) struct TaskIterator {
    method: Method,
}

enum Method {
    /// The program `walk`, and the number of threads that its map has room for.
    Walk(CallableProgram, u32),
    /// The program `tasks`, and a read buffer.
    Iterate(AttachedProgram, Vec<u8>),
}

/// State and resource usage of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRecord {
    /// The thread's id.
    pub(crate) pid: u32,
    /// The id of the process that the thread belongs to.
    pub(crate) tgid: u32,
    /// The id of the process's parent; 0 if the parent is outside of the reader's pid namespace.
    pub(crate) parent: u32,
    /// The thread's name, padded with zeros.
    pub(crate) comm: [u8; 16],
    /// Whether the thread is on a CPU or waits for one.
    pub(crate) runnable: bool,
    /// Whether the thread has ended. The record of an ended main thread remains until the parent waits for the process.
    pub(crate) ended: bool,
    /// Time from boot to the start of the thread, suspended time included: field 22 of /proc/PID/stat.
    pub(crate) started: Nanos,
    /// The resources that the thread has used.
    pub(crate) own: Counters,
    /// Total time that the thread waited for a CPU, without the current wait; `None` if the kernel does not measure
    /// waits (it was built without `CONFIG_SCHED_INFO`).
    pub(crate) waited: Option<Nanos>,
    /// Values of the whole process; `None` except for the main thread, whose `pid` equals its `tgid`.
    pub(crate) process: Option<ProcessRecord>,
}

/// The resources used by one thread, or by all ended threads of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Time on a CPU, by the scheduler's clock.
    pub(crate) ran: Nanos,
    /// Time on a CPU in user mode. The kernel counts ticks, unless it measures the time exactly
    /// (`CONFIG_VIRT_CPU_ACCOUNTING`). If the kernel counts ticks, /proc shows `ran`, split in the proportion of `user`
    /// and `system`.
    pub(crate) user: Nanos,
    /// Time on a CPU in the kernel, measured like `user`.
    pub(crate) system: Nanos,
    /// Number of page faults that waited for a disk.
    pub(crate) major_faults: u64,
    /// Number of context switches away from the thread, voluntary or not.
    pub(crate) switches: u64,
}

/// State and resource usage of a whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessRecord {
    /// Number of threads. The last thread counts until the parent has waited for the process. If the number is zero,
    /// the resources of the last thread may already be included in `ended`.
    pub(crate) threads: u64,
    /// Number of resident pages of files, of anonymous memory and of shared memory. Each CPU has a count of its own,
    /// which it adds to the total only when the count is large (lib/percpu_counter.c). So for each kind of memory, the
    /// total may be wrong by about 32 pages per CPU. `None` if the process has no memory any more, or if the kernel's
    /// count cannot be read.
    pub(crate) rss_pages: Option<u64>,
    /// The resources used by the ended threads. The usage of the whole process is `ended` plus `own` of each living
    /// thread.
    pub(crate) ended: Counters,
    /// CPU time in user mode of the child processes that this process has waited for, including their children.
    pub(crate) children_user: Nanos,
    /// CPU time in the kernel of the child processes that `children_user` includes.
    pub(crate) children_system: Nanos,
    /// Number of major faults of the child processes that `children_user` includes.
    pub(crate) children_major_faults: u64,
}

impl TaskIterator {
    /// Loads `walk`, or `tasks` if the kernel cannot run `walk`. The program costs nothing until [`read`](Self::read)
    /// runs it.
    pub(crate) fn open() -> Result<TaskIterator, EbpfError> {
        let method = Method::walk(1024).or_else(|_| Method::iterate())?;
        Ok(TaskIterator { method })
    }

    /// Reads all current threads. The records replace the contents of `into`.
    pub(crate) fn read(&mut self, into: &mut Vec<TaskRecord>) -> io::Result<()> {
        into.clear();
        loop {
            match &mut self.method {
                Method::Iterate(attached, buffer) => return parse_all(attached.iterate()?, buffer, into),
                Method::Walk(callable, room) => {
                    let found = callable.call()?;
                    if found <= *room {
                        into.extend(callable.entries().as_chunks().0.iter().take(found as usize).map(parse_words));
                        return Ok(());
                    }
                    self.method = Method::walk(found.saturating_mul(2)).map_err(io::Error::other)?;
                }
            }
        }
    }
}

impl Method {
    fn walk(room: u32) -> Result<Method, EbpfError> {
        Ok(Method::Walk(CallableProgram::load(Program::Walk, room, RECORD_BYTES)?, room))
    }

    fn iterate() -> Result<Method, EbpfError> {
        Ok(Method::Iterate(AttachedProgram::attach(Program::Tasks, &[], 0)?, vec![0; 64 << 10]))
    }
}

fn parse_words(words: &[AtomicU64; RECORD_BYTES / 8]) -> TaskRecord {
    let mut bytes = [0; RECORD_BYTES];
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.load(Relaxed).to_ne_bytes();
    }
    TaskRecord::parse(&bytes)
}

/// Parses records until the end of the input. A read may end anywhere inside a record.
fn parse_all(mut from: impl Read, buffer: &mut [u8], into: &mut Vec<TaskRecord>) -> io::Result<()> {
    let mut held = 0;
    loop {
        let more = from.read(&mut buffer[held..])?;
        let (records, rest) = buffer[..held + more].as_chunks();
        into.extend(records.iter().map(TaskRecord::parse));
        let done = records.len() * RECORD_BYTES;
        held = rest.len();
        buffer.copy_within(done..done + held, 0);
        match (more, held) {
            (0, 0) => return Ok(()),
            (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}

// --- The record: `struct record` in `bpf/task.h` ---------------------------------------------------------------------

const RECORD_BYTES: usize = 4 * 4 + 16 + 8 * (1 + 5 + 1 + 2 + 5 + 3);
const LEADER: u32 = 1 << 0;
const RUNNABLE: u32 = 1 << 1;
const SCHED: u32 = 1 << 2;
const RSS: u32 = 1 << 3;
const ENDED: u32 = 1 << 4;

impl TaskRecord {
    fn parse(bytes: &[u8; RECORD_BYTES]) -> TaskRecord {
        let mut fields = Fields(bytes);
        let [pid, tgid, parent, flags] = std::array::from_fn(|_| fields.u32());
        let comm = fields.take();
        let started = fields.nanos();
        let own = fields.counters();
        let waited = fields.nanos();
        // The kernel stores the numbers of threads and pages as signed integers, and the number of pages may be
        // negative for a moment.
        let (threads, rss_pages) = (at_least_zero(fields.u64()), at_least_zero(fields.u64()));
        let process = ProcessRecord {
            threads,
            rss_pages: (flags & RSS != 0).then_some(rss_pages),
            ended: fields.counters(),
            children_user: fields.nanos(),
            children_system: fields.nanos(),
            children_major_faults: fields.u64(),
        };
        TaskRecord {
            pid,
            tgid,
            parent,
            comm,
            runnable: flags & RUNNABLE != 0,
            ended: flags & ENDED != 0,
            started,
            own,
            waited: (flags & SCHED != 0).then_some(waited),
            process: (flags & LEADER != 0).then_some(process),
        }
    }
}

/// The fields of a record that have not been parsed yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn counters(&mut self) -> Counters {
        Counters {
            ran: self.nanos(),
            user: self.nanos(),
            system: self.nanos(),
            major_faults: self.u64(),
            switches: self.u64(),
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

    /// Takes the next `N` bytes. If fewer bytes are left, returns zeros; this never happens in [`TaskRecord::parse`].
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *taken
    }
}

#[cfg(test)]
#[cfg(feature = "ebpf")]
mod tests;
