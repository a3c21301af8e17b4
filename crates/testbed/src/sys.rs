//! What takes unsafe code: leaving namespaces, making a TUN device, and running before others.
#![allow(unsafe_code, reason = "rustix has no safe way to do these")]

use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::ioctl::{self, Opcode, Updater};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::os::fd::OwnedFd;

/// `TUNSETIFF` of linux/if_tun.h: `_IOW('T', 202, int)`, though its argument is a `struct ifreq`.
const TUNSETIFF: Opcode = ioctl::opcode::write::<i32>(b'T', 202);
/// Packets of IP, not frames of Ethernet.
const IFF_TUN: u16 = 0x0001;
/// No header of the driver's before them.
const IFF_NO_PI: u16 = 0x1000;
/// Room for a device's name and the zero behind it.
const NAME_LENGTH: usize = 16;

/// `struct ifreq` of net/if.h, as far as `TUNSETIFF` goes: 40 bytes on 64-bit machines, 32 on others.
#[repr(C, align(8))]
#[derive(Debug)]
struct InterfaceRequest {
    name: [u8; NAME_LENGTH],
    flags: u16,
    rest: [u8; 22],
}

/// Puts the calling thread into new namespaces of these kinds.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only FILES can make descriptors of one thread useless to another, and it is taken out.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }
}

/// Has the calling thread run as soon as it is ready, before all that others do on its CPU (`SCHED_FIFO`, sched(7)).
pub fn run_before_others() -> io::Result<()> {
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the pointer is valid for the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const least) } {
        0 => Ok(()),
        _ => Err(io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(io::Errno::PERM)),
    }
}

/// Makes a TUN device in the network namespace of the calling thread. Each read from it is one packet that the
/// namespace sent, each write one that it receives; it goes when it is closed. Reads do not block. As no offloads are
/// asked for, packets are no longer than the MTU, and their checksums are right.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let tun = rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    let mut request = InterfaceRequest { name: [0; NAME_LENGTH], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    for (place, byte) in request.name[..NAME_LENGTH - 1].iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which this is at least as long as. The pointer to it is
    // valid for the call, and whatever the kernel writes, a name and flags, is valid for these fields.
    unsafe { ioctl::ioctl(&tun, Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request))? };
    Ok(tun)
}
