"""What the kernel counts about the eBPF programs of a process: how often they ran, and for how long.

Counting is off by default, as it costs a little. It is on for as long as a descriptor of BPF_ENABLE_STATS is open, so
that it cannot stay on by accident (bpf(2); /proc/PID/fdinfo names the programs that a process's descriptors keep at
work).
"""

import contextlib
import ctypes
import os
import platform
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..side_by_side.tools import Failed

SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
PROG_GET_FD_BY_ID = 13
ENABLE_STATS = 32
ATTRIBUTES_BYTES = 128


@contextlib.contextmanager
def counting() -> Iterator[None]:
    """Has the kernel count while this is entered."""
    descriptor = bpf(ENABLE_STATS, 0)
    try:
        yield
    finally:
        os.close(descriptor)


def programs(pids: Iterable[int]) -> set[int]:
    """Programs that descriptors of these processes keep at work, by themselves or by a link."""
    found = set()
    for pid in pids:
        for info in Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.update(map(int, re.findall(r"^prog_id:\s*(\d+)$", info.read_text(), re.MULTILINE)))
    return found


def ran(program: int) -> tuple[int, int]:
    """How often it ran while that was counted, and for how many nanoseconds together."""
    descriptor = bpf(PROG_GET_FD_BY_ID, program)
    try:
        return runs_in(Path(f"/proc/self/fdinfo/{descriptor}").read_text())
    finally:
        os.close(descriptor)


def runs_in(fdinfo: str) -> tuple[int, int]:
    found = dict(re.findall(r"^(run_cnt|run_time_ns):\s*(\d+)$", fdinfo, re.MULTILINE))
    try:
        return int(found["run_cnt"]), int(found["run_time_ns"])
    except KeyError:
        raise Failed("this kernel does not say how often an eBPF program ran: boot Linux 5.8 or newer") from None


def bpf(command: int, argument: int) -> int:
    """The system call, with an attribute whose first word is the argument; the descriptor that it returns."""
    attributes = ctypes.create_string_buffer(struct.pack("=I", argument), ATTRIBUTES_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(SYSCALL[platform.machine()], command, attributes, ATTRIBUTES_BYTES)
    if descriptor < 0:
        raise Failed(f"bpf(2) refuses to count: {os.strerror(ctypes.get_errno())}; run as root")
    return descriptor
