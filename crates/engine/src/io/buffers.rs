//! The ring of buffers from which the kernel takes one whenever bytes arrive (`io_uring_register_buf_ring(3)`), so that
//! idle connections need no receive buffer.

use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Number of buffers, a power of two. They are used in turn, so all of them together should fit into the CPU's cache.
pub const BUFFER_COUNT: u16 = 128;
/// Size of a buffer in bytes. A response that fits into one buffer needs one read.
pub const BUFFER_BYTES: usize = 16384;
/// Distance between buffers in bytes: an odd number of cache lines, since otherwise all buffers would begin in the same
/// cache set.
const STRIDE: usize = BUFFER_BYTES + 17 * 64;
const _: () = assert!(STRIDE % (2 * 64) == 64);
const PAGE: usize = 4096;
/// Offset of the first buffer, after the ring of descriptors.
const DATA: usize = BUFFER_COUNT as usize * size_of::<BufRingEntry>();

/// One block of memory: the kernel's ring of descriptors, followed by the buffers.
///
/// Invariant: a buffer belongs to this program from its completion until [`Buffers::recycle`], otherwise to the
/// kernel.
pub struct Buffers {
    memory: NonNull<u8>,
    tail: u16,
}

impl Buffers {
    pub fn new() -> Buffers {
        let layout = Buffers::layout();
        // SAFETY: the size of the layout is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        let mut buffers = Buffers { memory, tail: 0 };
        (0..BUFFER_COUNT).for_each(|id| buffers.recycle(id));
        buffers
    }

    fn layout() -> Layout {
        const {
            match Layout::from_size_align(DATA + BUFFER_COUNT as usize * STRIDE, PAGE) {
                Ok(layout) => layout,
                Err(_) => panic!("a page is a power of two"),
            }
        }
    }

    /// Address of the ring.
    pub fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The first `length` bytes of a buffer that the kernel has filled.
    pub fn get(&self, id: u16, length: usize) -> &[u8] {
        let start = DATA + usize::from(id % BUFFER_COUNT) * STRIDE;
        // SAFETY: the range lies within `memory`, all of which is initialized. The kernel does not write to a filled
        // buffer before it is given back, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), length.min(BUFFER_BYTES)) }
    }

    /// Gives this buffer back to the kernel, which may then fill it again.
    pub fn recycle(&mut self, id: u16) {
        let ring = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the index is below BUFFER_COUNT, so the entry lies within the descriptors. The kernel reads only entries
        // before the tail, which were published by the store below.
        let entry = unsafe { &mut *ring.add(usize::from(self.tail % BUFFER_COUNT)) };
        entry.set_addr(self.address() + (DATA + usize::from(id % BUFFER_COUNT) * STRIDE) as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `ring` is the base of the ring, page-aligned and initialized; the kernel reads the tail atomically.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(ring).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout. The owner drops the ring first, which ends the kernel's use.
        unsafe { dealloc(self.memory.as_ptr(), Buffers::layout()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_apart_and_inside() {
        let buffers = Buffers::new();
        let starts: Vec<usize> = (0..BUFFER_COUNT).map(|id| buffers.get(id, BUFFER_BYTES).as_ptr() as usize).collect();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == STRIDE));
        assert!(starts[0] >= buffers.address() as usize + DATA);
        let end = starts[usize::from(BUFFER_COUNT) - 1] + BUFFER_BYTES;
        assert!(end <= buffers.address() as usize + Buffers::layout().size());
        assert_eq!(buffers.get(0, usize::MAX).len(), BUFFER_BYTES);
        assert_eq!(buffers.tail, BUFFER_COUNT);
    }
}
