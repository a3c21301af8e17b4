import unittest

from ..memory import (
    CLASS_BYTES,
    CPU,
    ENABLED,
    HEADER,
    MAGIC,
    PENDING,
    PENDING_MOST,
    PHASES,
    SLOT,
    SUMS,
    UNUSED,
    counted,
)

HEADER_SIZE = 896


def memory(classes: list[str], workers: list[list[int]]) -> bytes:
    """Each worker has this number of requests of each class, with a microsecond in every phase. Each worker's last
    request of the first class is pending."""
    slot_size = -(-(SLOT.size + PENDING_MOST * PENDING.size + len(classes) * CLASS_BYTES) // 128) * 128
    head = HEADER.pack(MAGIC, 4, HEADER_SIZE, slot_size, len(workers) + 1, len(classes), 1, 16, 0, 7, 2, 0, b"test")
    head += b"".join(name.encode().ljust(48, b"\0") for name in classes)
    data = bytearray(head.ljust(HEADER_SIZE, b"\0"))
    for requests in workers:
        # The 20th request is pending, in the entry 19 % 16. Bit 1 says that the second copy of the second class's sums
        # is current.
        slot = bytearray(SLOT.pack(7, 7, 1, 0, 0, 0, 0, 20, 19 << 16 | 2, 5000, 0))
        places = [bytes(PENDING.size)] * PENDING_MOST
        places[19 % PENDING_MOST] = PENDING.pack(5 << 32 | 0b111111 << 16, 10, *[1000] * len(PHASES))
        slot += b"".join(places)
        for index, number in enumerate(requests):
            summed = number - (index == 0)
            current = SUMS.pack(summed, 10 * summed, 0, 0, *[summed, 1000 * summed, 0] * len(PHASES))
            slot += b"".join([bytes(SUMS.size), current] if index == 1 else [current, bytes(SUMS.size)])
            slot += CPU.pack(number, 100 * number, 200 * number, 0, 0, 1)
            slot += bytes(CLASS_BYTES - 2 * SUMS.size - CPU.size)
        data += slot.ljust(slot_size, b"\0")
    return bytes(data) + bytes(slot_size)


class MemoryTest(unittest.TestCase):
    def test_the_layout_matches_the_header_file(self) -> None:
        self.assertEqual((HEADER.size, SLOT.size, PENDING.size, SUMS.size, CLASS_BYTES), (104, 128, 64, 192, 5888))
        self.assertEqual((HEADER.unpack(memory(["a"], []) [:104])[6], ENABLED), (1, 28))
        self.assertLessEqual(UNUSED + 4, HEADER_SIZE)

    def test_workers_are_summed(self) -> None:
        found = counted(memory(["a", "b"], [[3, 0], [4, 5]]))
        self.assertEqual((found.requests, found.thread_cpu_ns, found.lost), (12, 10_000, 2))
        first = found.classes["a"]
        self.assertEqual((first.requests, first.bytes, first.cpu_count, first.cpu_mixed), (7, 70, 7, 2))
        self.assertAlmostEqual(first.cpu_us, 0.3)
        self.assertEqual(set(first.phase_ns), {7000})

    def test_counts_can_be_subtracted(self) -> None:
        before, after = (counted(memory(["a"], [[n]])) for n in (3, 10))
        self.assertEqual((after - before).classes["a"].requests, 7)
        self.assertEqual((after - before).classes["a"].phase_count, (7,) * len(PHASES))

    def test_other_memory_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            counted(bytes(4096))


if __name__ == "__main__":
    unittest.main()
