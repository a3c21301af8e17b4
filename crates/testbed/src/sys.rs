//! The test bed's unsafe code: entering namespaces, opening a TUN device, and real-time scheduling.
#![allow(unsafe_code, reason = "rustix has no safe functions for these system calls")]

use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::ioctl::{self, Opcode, Updater};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::os::fd::OwnedFd;

/// `TUNSETIFF` of linux/if_tun.h. It is defined as `_IOW('T', 202, int)`, although its argument is a `struct ifreq`.
const TUNSETIFF: Opcode = ioctl::opcode::write::<i32>(b'T', 202);
/// Flag of a device that transfers IP packets instead of Ethernet frames.
const IFF_TUN: u16 = 0x0001;
/// Flag of a device whose packets have no additional header from the driver.
const IFF_NO_PI: u16 = 0x1000;
/// Size of a device's name in bytes, including its terminating zero.
const NAME_LENGTH: usize = 16;

/// The part of `struct ifreq` (net/if.h) that `TUNSETIFF` uses, padded to at least the size of the struct: 40 bytes on
/// 64-bit machines, 32 bytes on others.
#[repr(C, align(8))]
#[derive(Debug)]
struct InterfaceRequest {
    name: [u8; NAME_LENGTH],
    flags: u16,
    rest: [u8; 22],
}

/// Moves the calling thread to new namespaces of the kinds in `flags`.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: `unshare` can invalidate file descriptors of other threads only with the flag FILES, which is removed
    // here.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }
}

/// Gives the calling thread real-time scheduling (`SCHED_FIFO`, sched(7)): when it is ready, it runs before all
/// ordinary threads of its CPU.
pub fn set_realtime_scheduling() -> io::Result<()> {
    // The kernel's `struct sched_param` has only this field. musl's own function always fails, so the system call is
    // made directly.
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
/// descriptor is closed. Segmentation and checksum offloads are not enabled, so packets are not longer than the MTU,
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
