//! Receive buffers from which the kernel chooses one when bytes arrive (`io_uring_register_buf_ring(3)`). Idle
//! connections therefore need no buffer.

use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Number of buffers, a power of two. All of them together (2 MiB) fit into the caches of most CPUs.
pub const BUFFER_COUNT: u16 = 128;
/// Size of a buffer in bytes. A response that fits into one buffer needs one read.
pub const BUFFER_BYTES: usize = 16384;
/// Distance between the starts of two adjacent buffers, in bytes: an odd number of 64-byte cache lines. With a power of
/// two, the buffers would all begin in the same set of the CPU's cache and evict one another.
const STRIDE: usize = BUFFER_BYTES + 17 * 64;
const _: () = assert!(STRIDE % (2 * 64) == 64);
const PAGE: usize = 4096;
/// Offset of the first buffer in bytes, directly after the kernel's ring of buffer descriptors.
const DATA: usize = BUFFER_COUNT as usize * size_of::<BufRingEntry>();

/// The receive buffers, in one block of memory: the kernel's ring of buffer descriptors, then the buffers.
///
/// Invariant: this program may access a buffer from the completion that fills it until [`Buffers::recycle`]. At all
/// other times, only the kernel may.
pub struct Buffers {
    memory: NonNull<u8>,
    tail: u16,
}

impl Buffers {
    /// Allocates the ring and the buffers, and hands all buffers to the kernel.
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

    /// Address of the ring of buffer descriptors, for its registration in the kernel.
    pub fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The first `length` bytes of the buffer `id`, which the kernel has filled.
    pub fn get(&self, id: u16, length: usize) -> &[u8] {
        let start = DATA + usize::from(id % BUFFER_COUNT) * STRIDE;
        // SAFETY: the range lies within `memory`, all of which is initialized. The kernel does not write to a filled
        // buffer until it is recycled, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), length.min(BUFFER_BYTES)) }
    }

    /// Hands this buffer to the kernel, which may fill it again.
    pub fn recycle(&mut self, id: u16) {
        let ring = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the index is below BUFFER_COUNT, so the entry lies within the descriptors. The kernel reads an entry
        // only after the store to the tail below has published it.
        let entry = unsafe { &mut *ring.add(usize::from(self.tail % BUFFER_COUNT)) };
        entry.set_addr(self.address() + (DATA + usize::from(id % BUFFER_COUNT) * STRIDE) as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `ring` is the base of the ring, page-aligned and initialized. The kernel reads the tail atomically.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(ring).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: `memory` was allocated with the same layout. The owner drops the io_uring first, so the kernel no
        // longer uses the buffers.
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
