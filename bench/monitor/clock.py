"""CPU time of other processes, by their CPU clocks in nanosecond resolution, and their memory."""

import time
from collections.abc import Iterable
from pathlib import Path

from ..side_by_side.host import memory_kib


def process_cpu_s(pid: int) -> float:
    """CPU time of all threads of a process (the clock of clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def cpu_s(pids: Iterable[int]) -> float:
    return sum(map(process_cpu_s, pids))


def family(pid: int) -> list[int]:
    """A process and its current descendants."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def resident_kib(pid: int) -> int:
    """Resident memory of a process and its descendants."""
    return sum(memory_kib(member)[0] for member in family(pid))
