//! A BPF array of one element, mapped: reading it takes no system call. All of this module's `unsafe` is here.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// The kernel changes the memory by atomic additions while we read; we cannot write to it.
pub(super) struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Mapping {
    /// Maps the first `bytes` of an array made with `BPF_F_MMAPABLE`.
    pub(super) fn of(array: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: a new mapping, at an address of the kernel's choice, touches no memory of ours.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, array, 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::Other)?;
        Ok(Mapping { start, bytes })
    }

    /// What is there now. Loads must be relaxed: those are what atomics allow on memory that is mapped for reading
    /// only.
    pub(super) fn words(&self) -> &[AtomicU64] {
        let words = self.bytes / size_of::<AtomicU64>();
        // SAFETY: `start` is the beginning of a page, so it is aligned; `bytes` are mapped from there on until `self`
        // is dropped, which the lifetime of the slice ends before; every bit pattern is an AtomicU64; and all others
        // that access the memory, which are in the kernel, do so atomically.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `of` mapped exactly this, and no slice from `words` is left. It can fail for no reason but these.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

// SAFETY: the memory belongs to no thread, and it is only ever read, atomically.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}
