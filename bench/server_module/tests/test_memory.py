import unittest

from ..memory import BUCKETS, CLASS, ENABLED, HEADER, MAGIC, MEANINGLESS, PHASES, SLOT, TIMES, counted

HEADER_SIZE = 896


def memory(classes: list[str], workers: list[list[int]]) -> bytes:
    """Each worker has so many requests of each class, a microsecond each in every phase."""
    slot_size = -(-(SLOT.size + len(classes) * (CLASS.size + len(PHASES) * TIMES.size)) // 128) * 128
    head = HEADER.pack(MAGIC, 2, HEADER_SIZE, slot_size, len(workers) + 1, len(classes), 1, 16, 0, 7, 2, 0, b"test")
    head += b"".join(name.encode().ljust(48, b"\0") for name in classes)
    data = bytearray(head.ljust(HEADER_SIZE, b"\0"))
    for requests in workers:
        slot = bytearray(SLOT.pack(7, 7, 1, 0, 0, 0, 0, 5000, 0))
        for number in requests:
            times = [1000 * number, 0] * len(PHASES)
            slot += CLASS.pack(number, 10 * number, *times, 0, 0, number, 100 * number, 200 * number, 0, 0, 1)
            slot += TIMES.pack(*[0] * 7, number, *[0] * (BUCKETS - 8)) * len(PHASES)
        data += slot.ljust(slot_size, b"\0")
    return bytes(data) + bytes(slot_size)


class MemoryTest(unittest.TestCase):
    def test_it_is_laid_out_as_the_header_file_says(self) -> None:
        self.assertEqual((HEADER.size, SLOT.size, CLASS.size, TIMES.size), (104, 128, 256, 896))
        self.assertEqual((HEADER.unpack(memory(["a"], []) [:104])[6], ENABLED), (1, 28))
        self.assertLessEqual(MEANINGLESS + 4, HEADER_SIZE)

    def test_workers_are_summed(self) -> None:
        found = counted(memory(["a", "b"], [[3, 0], [4, 5]]))
        self.assertEqual((found.requests, found.thread_cpu_ns, found.lost), (12, 10_000, 2))
        one = found.classes["a"]
        self.assertEqual((one.requests, one.bytes, one.cpu_count, one.cpu_mixed), (7, 70, 7, 2))
        self.assertAlmostEqual(one.cpu_us, 0.3)
        self.assertEqual(set(one.phase_ns), {7000})

    def test_what_happened_in_between_is_a_difference(self) -> None:
        before, after = (counted(memory(["a"], [[n]])) for n in (3, 10))
        self.assertEqual((after - before).classes["a"].requests, 7)
        self.assertEqual((after - before).classes["a"].phase_count, (7,) * len(PHASES))

    def test_something_else_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            counted(bytes(4096))


if __name__ == "__main__":
    unittest.main()
