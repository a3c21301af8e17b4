"""The kernel's run counts and run times of the eBPF programs of a process.

Counting is off by default because it costs a little time. It is on while a descriptor of BPF_ENABLE_STATS is open, so
that it cannot stay on by accident (bpf(2)). /proc/PID/fdinfo names the programs that a process's descriptors keep
loaded.
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
    """Makes the kernel count runs and run times within the `with` block."""
    descriptor = bpf(ENABLE_STATS, 0)
    try:
        yield
    finally:
        os.close(descriptor)


def programs(pids: Iterable[int]) -> set[int]:
    """IDs of the programs that descriptors of these processes keep loaded, directly or through a link."""
    found = set()
    for pid in pids:
        for info in Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.update(map(int, re.findall(r"^prog_id:\s*(\d+)$", info.read_text(), re.MULTILINE)))
    return found


def ran(program: int) -> tuple[int, int]:
    """The number of counted runs of a program, and their total time in nanoseconds."""
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
        raise Failed("this kernel does not count the runs of eBPF programs: boot Linux 5.8 or newer") from None


def bpf(command: int, argument: int) -> int:
    """Calls bpf(2) with attributes whose first word is the argument, and returns the new descriptor."""
    attributes = ctypes.create_string_buffer(struct.pack("=I", argument), ATTRIBUTES_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(SYSCALL[platform.machine()], command, attributes, ATTRIBUTES_BYTES)
    if descriptor < 0:
        raise Failed(f"bpf(2) failed: {os.strerror(ctypes.get_errno())}; run as root")
    return descriptor
