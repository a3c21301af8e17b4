//! The test bed's unsafe code: entering namespaces, opening a TUN device, and real-time scheduling.
#![allow(unsafe_code, reason = "rustix has no safe functions for these system calls")]

use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::ioctl::{self, Opcode, Updater};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::os::fd::OwnedFd;

/// `TUNSETIFF` of linux/if_tun.h. Its definition `_IOW('T', 202, int)` says `int`, but its argument is a `struct
/// ifreq`.
const TUNSETIFF: Opcode = ioctl::opcode::write::<i32>(b'T', 202);
/// A flag for a device that transfers IP packets, not Ethernet frames.
const IFF_TUN: u16 = 0x0001;
/// A flag for packets that the driver passes without an additional header.
const IFF_NO_PI: u16 = 0x1000;
/// Size of a device's name in bytes, including its terminating zero.
const NAME_LENGTH: usize = 16;

/// The fields of `struct ifreq` of net/if.h that `TUNSETIFF` uses, padded to the size of the whole struct: 40 bytes on
/// 64-bit machines, 32 on others.
#[repr(C, align(8))]
#[derive(Debug)]
struct InterfaceRequest {
    name: [u8; NAME_LENGTH],
    flags: u16,
    rest: [u8; 22],
}

/// Moves the calling thread into new namespaces of the kinds in `flags`.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only with the flag FILES can `unshare` invalidate file descriptors of other threads. The flag is removed
    // here.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }
}

/// Sets real-time scheduling for the calling thread: when the thread is ready, it runs before all ordinary threads on
/// its CPU (`SCHED_FIFO`, sched(7)).
pub fn set_realtime_scheduling() -> io::Result<()> {
    // The kernel's `struct sched_param` has one field. The system call is made directly, because musl's function always
    // fails.
    let lowest_priority: libc::c_int = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: thread number 0 is the calling thread, and the pointer is valid during the call.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const lowest_priority) } {
        0 => Ok(()),
        _ => Err(io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(io::Errno::PERM)),
    }
}

/// Opens a new TUN device in the network namespace of the calling thread. Each read returns one packet that the
/// namespace sent; each write delivers one packet to the namespace. Reads do not block. The device disappears when its
/// descriptor is closed. Segmentation and checksum offloads are not requested, so packets are not longer than the MTU,
/// and their checksums are correct.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let tun = rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    let mut request = InterfaceRequest { name: [0; NAME_LENGTH], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    for (place, byte) in request.name[..NAME_LENGTH - 1].iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`; `request` is at least as large, and the pointer is valid
    // during the call. The kernel writes a name and flags; all bit patterns are valid in these fields.
    unsafe { ioctl::ioctl(&tun, Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request))? };
    Ok(tun)
}
