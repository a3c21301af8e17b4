//! A function that waits for descriptors, and three system calls without a safe wrapper. All `unsafe` code of this
//! crate is here and in `ebpf/object/mapping.rs`.

pub use brimful_os::clock::{now, suspended_time, thread_cpu};

use brimful_core::Nanos;
use rustix::event::{PollFd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

/// Waits until at least one of the descriptors is ready. Returns false if none is ready at the time `until`.
pub fn wait(fds: &mut [PollFd<'_>], until: Nanos) -> io::Result<bool> {
    loop {
        let left = (until - now()).0;
        let left = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        match poll(fds, Some(&left)) {
            Ok(0) if now() < until => {}
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// CPU time of a process, including its exited threads; `None` if there is no such process.
///
/// The clock id is the one that clock_getcpuclockid(3) returns: the complement of the pid, above three bits that mean
/// "whole process, scheduler time". Any user may read this clock.
pub fn process_cpu(pid: u32) -> Option<Nanos> {
    const SCHED: libc::clockid_t = 2;
    let pid = libc::clockid_t::try_from(pid).ok().filter(|&pid| pid > 0 && pid < 1 << 28)?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, exclusively borrowed timespec; the kernel checks the clock id.
    let done = unsafe { libc::clock_gettime((!pid << 3) | SCHED, &mut time) };
    (done == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32).into())
}

/// Tries to create an io_uring of the smallest size. It is closed at once.
pub fn try_io_uring() -> io::Result<()> {
    let mut params = [0u32; 30]; // struct io_uring_params: 120 bytes; all zero requests no special features
    // SAFETY: `params` has the size and alignment of struct io_uring_params and outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    owned(fd).map(drop)
}

/// Tries to create a BPF map of the smallest size. It is closed at once.
pub fn try_bpf() -> io::Result<()> {
    const MAP_CREATE: libc::c_long = 0;
    const ARRAY: u32 = 2;
    let attributes = [ARRAY, 4, 4, 1]; // type, key size, value size, entries: the head of union bpf_attr
    // SAFETY: the kernel reads `size_of_val` bytes of `attributes`, which outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, attributes.as_ptr(), size_of_val(&attributes)) };
    owned(fd).map(drop)
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(fd) {
        // SAFETY: the system call has just returned this descriptor; no other code owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_os::clock;

    #[test]
    fn the_clock_of_this_process_is_found_by_its_pid() {
        let found = || process_cpu(std::process::id()).unwrap();
        let (before, found, after) = (clock::process_cpu(), found(), clock::process_cpu());
        assert!(before <= found && found <= after, "{before} {found} {after}");
        assert_eq!(process_cpu(0), None);
        assert_eq!(process_cpu(u32::MAX), None);
    }
}
