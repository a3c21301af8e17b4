//! Every thread of user space in one pass, by the kernel's own lists of its tasks.
//!
//! Two programs do it. `walk` does all of it in one call and writes into memory that is mapped here; it takes Linux
//! 6.7. `tasks` is run by the kernel for each task in turn (`iter/task`, Linux 5.9) and is read from a descriptor; it
//! costs more than three times as much per thread.
//!
//! Figures are as the scheduler holds them at the moment of the walk. Of a thread that is on a CPU right now, `ran` is
//! as old as that CPU's last tick. A walk is not one instant: a thread that ends during it may be found neither among
//! the living nor in its process's `ended`, so that a sum can fall short by one thread for one pass. Process ids are
//! those of the pid namespace of the reader, where 0 is a parent outside it.
//!
//! Sources: kernel/sched/core.c, kernel/sched/cputime.c, kernel/exit.c (`__exit_signal`), kernel/bpf/task_iter.c.

use super::object::{Attached, Callable, Program};
use super::{EbpfError, at_least_zero};
use brimful_core::Nanos;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The program, ready to run.
pub(crate) struct TaskIterator {
    method: Method,
}

enum Method {
    /// `walk`, with room for as many threads.
    Walk(Callable, u32),
    /// `tasks`, and a buffer to read by.
    Iterate(Attached, Vec<u8>),
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
    /// It has ended, and somebody may still wait for it.
    pub(crate) ended: bool,
    /// When it was started, since boot and with the time the machine was suspended: field 22 of /proc/PID/stat.
    pub(crate) started: Nanos,
    /// What it has used.
    pub(crate) own: Counters,
    /// How long it waited for a CPU, without the present wait; `None` if the kernel keeps no account of that
    /// (`CONFIG_SCHED_INFO`).
    pub(crate) waited: Option<Nanos>,
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
    /// Page faults that had to wait for a disk.
    pub(crate) major_faults: u64,
    /// Times it left a CPU, of its own will or not.
    pub(crate) switches: u64,
}

/// What concerns a whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessRecord {
    /// Threads it has, the last one until somebody has waited for the process. Where it is zero, what that one had used
    /// may be in `ended` already.
    pub(crate) threads: u64,
    /// Resident pages of files, of anonymous and of shared memory. The kernel counts per CPU and adds up now and then:
    /// up to 32 pages of each kind are missing or too many per CPU (lib/percpu_counter.c). `None` if the process has no
    /// memory any more.
    pub(crate) rss_pages: Option<u64>,
    /// What its ended threads had used. The process has used this and what its living threads have.
    pub(crate) ended: Counters,
    /// Time in user mode of its children that it has waited for, and of theirs.
    pub(crate) children_user: Nanos,
    /// Time in the kernel of the same.
    pub(crate) children_system: Nanos,
    /// Major faults of the same.
    pub(crate) children_major_faults: u64,
}

impl TaskIterator {
    /// Loads the program. It costs nothing until it is read.
    pub(crate) fn open() -> Result<TaskIterator, EbpfError> {
        let method = Method::walk(1024).or_else(|_| Method::iterate())?;
        Ok(TaskIterator { method })
    }

    /// Replaces what is in `into` by all threads there are now.
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
        Ok(Method::Walk(Callable::load(Program::Walk, room, RECORD_BYTES)?, room))
    }

    fn iterate() -> Result<Method, EbpfError> {
        Ok(Method::Iterate(Attached::attach(Program::Tasks, &[], 0)?, vec![0; 64 << 10]))
    }
}

fn parse_words(words: &[AtomicU64; RECORD_BYTES / 8]) -> TaskRecord {
    let mut bytes = [0; RECORD_BYTES];
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.load(Relaxed).to_ne_bytes();
    }
    TaskRecord::parse(&bytes)
}

/// Reads to the end. Records may be cut anywhere between one read and the next.
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

// --- The record, as `struct record` in `bpf/task.h` ------------------------------------------------------------------

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
        // The kernel keeps both as signed numbers.
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

/// The fields of a record that have not been taken yet.
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

    /// The next `N` bytes; zeros past the end, where [`TaskRecord::parse`] does not go.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *taken
    }
}

#[cfg(test)]
#[cfg(feature = "ebpf")]
mod tests;
