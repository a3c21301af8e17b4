//! A BPF array that is mapped into memory, so that reading takes no system call. All `unsafe` code of the eBPF modules
//! is here.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// The mapped memory of a BPF array. The mapping is read-only; only the kernel writes to the memory, possibly while
/// this process reads it.
pub(super) struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Mapping {
    /// Maps the first `bytes` bytes of an array that was created with `BPF_F_MMAPABLE`.
    pub(super) fn new(array: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses an unused address, so the new mapping changes no memory of this process.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, array, 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::Other)?;
        Ok(Mapping { start, bytes })
    }

    /// The mapped words. Loads must be relaxed: in memory that is mapped read-only, Rust allows only relaxed loads of
    /// atomics.
    pub(super) fn words(&self) -> &[AtomicU64] {
        let words = self.bytes / size_of::<AtomicU64>();
        // SAFETY: `start` is the beginning of a page, so it is aligned. From `start` on, `bytes` bytes are mapped until
        // `self` is dropped, and the slice's lifetime ends earlier. Every bit pattern is a valid AtomicU64. Only the
        // kernel writes to the memory, and the atomic type allows changes while this process reads.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this range, and no slice from `words` is left. For such a range munmap cannot
        // fail.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

// SAFETY: the memory belongs to no thread, and this process only reads it, by atomic loads.
unsafe impl Send for Mapping {}
// SAFETY: the memory belongs to no thread, and this process only reads it, by atomic loads.
unsafe impl Sync for Mapping {}
