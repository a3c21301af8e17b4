"""Reads the module's shared memory, whose layout is in server-module/recorder.h, and switches recording on and off.

This reader is independent of brimful's own (crates/monitor/src/module), so that each can be checked with the other.
"""

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0x316C75666D697262
PHASES = ("head", "parse", "process", "upstream", "send", "log")
HEADER = struct.Struct("=Q10IQ48s")
NAME_BYTES, CLASSES_MOST, BUCKETS = 48, 16, 112
SLOT = struct.Struct("=2I9Q48x")
PENDING = struct.Struct(f"=2Q{len(PHASES)}Q")
PENDING_MOST = 16
SUMS = struct.Struct(f"=4Q{3 * len(PHASES)}Q16x")
CPU = struct.Struct("=6Q80x")
CLASS_BYTES = 2 * SUMS.size + CPU.size + len(PHASES) * BUCKETS * 8
ENABLED = 28
# Offset of an unused word behind the class names. It is in the same page of memory as ENABLED.
UNUSED = HEADER.size + CLASSES_MOST * NAME_BYTES


@dataclass(frozen=True)
class Class:
    """Sums over the requests of one class since the memory was created."""

    requests: int
    bytes: int
    cpu_count: int
    cpu_ns: int
    cpu_mixed: int
    phase_ns: tuple[int, ...]
    phase_count: tuple[int, ...]

    def __sub__(self, other: "Class") -> "Class":
        return Class(
            *(getattr(self, name) - getattr(other, name) for name in list(Class.__annotations__)[:5]),
            tuple(a - b for a, b in zip(self.phase_ns, other.phase_ns, strict=True)),
            tuple(a - b for a, b in zip(self.phase_count, other.phase_count, strict=True)),
        )

    @property
    def cpu_us(self) -> float:
        """CPU time per request, in the phases that are the server's own."""
        return self.cpu_ns / 1000 / self.cpu_count


NOTHING = Class(0, 0, 0, 0, 0, (0,) * len(PHASES), (0,) * len(PHASES))


@dataclass(frozen=True)
class Counted:
    """The sums of all classes over all workers."""

    classes: dict[str, Class]
    thread_cpu_ns: int
    lost: int

    @property
    def requests(self) -> int:
        return sum(sums.requests for sums in self.classes.values())

    def __sub__(self, other: "Counted") -> "Counted":
        classes = {name: sums - other.classes[name] for name, sums in self.classes.items()}
        return Counted(classes, self.thread_cpu_ns - other.thread_cpu_ns, self.lost - other.lost)


class Memory:
    """The mapped shared memory. Switching writes a single word."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            self._map = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)

    def switch(self, on: bool) -> None:
        struct.pack_into("=I", self._map, ENABLED, on)

    def switch_unused(self, on: bool) -> None:
        struct.pack_into("=I", self._map, UNUSED, on)

    def counted(self) -> Counted:
        return counted(self._map)


def counted(data: bytes | mmap.mmap) -> Counted:
    magic, layout, header_size, slot_size, slots, classes, *_, lost, _made, _server = HEADER.unpack_from(data)
    if magic != MAGIC or layout != 4:
        raise ValueError("this is not the Server Module's memory, or it has another layout")
    names = [name_at(data, HEADER.size + NAME_BYTES * i) for i in range(classes)]
    sums = {name: NOTHING for name in names}
    cpu_ns = 0
    for slot in range(slots):
        at = header_size + slot * slot_size
        head = SLOT.unpack_from(data, at)
        if head[2] == 0:
            continue
        cpu_ns += head[9]
        for i, name in enumerate(names):
            sums[name] = added(sums[name], class_at(data, at, i))
    return Counted(sums, cpu_ns, lost)


def class_at(data: bytes | mmap.mmap, slot: int, index: int) -> Class:
    """One class in one slot: its sums, and the pending requests that are not in the sums yet. A busy server may add a
    request to the sums at the same time; the error is at most a few requests."""
    recorded, folded = SLOT.unpack_from(data, slot)[7:9]
    at = slot + SLOT.size + PENDING_MOST * PENDING.size + index * CLASS_BYTES
    requests, size, _failed, _aborted, *times = SUMS.unpack_from(data, at + (folded >> index & 1) * SUMS.size)
    cpu_count, parse, process, log, _squares, mixed = CPU.unpack_from(data, at + 2 * SUMS.size)
    counts, sums_ns = list(times[::3]), list(times[1::3])
    for request in range(folded >> 16, recorded):
        what, more, *time_ns = PENDING.unpack_from(data, slot + SLOT.size + request % PENDING_MOST * PENDING.size)
        if what & 0xFF == index:
            requests, size = requests + 1, size + more
            for phase in (phase for phase in range(len(PHASES)) if what >> 16 + phase & 1):
                counts[phase] += 1
                sums_ns[phase] += time_ns[phase]
    return Class(requests, size, cpu_count, parse + process + log, mixed, tuple(sums_ns), tuple(counts))


def added(first: Class, second: Class) -> Class:
    return first - (NOTHING - second)


def name_at(data: bytes | mmap.mmap, at: int) -> str:
    return bytes(data[at : at + NAME_BYTES]).split(b"\0", 1)[0].decode("utf-8", "replace")
