"""The machine that the results are from, and its kernel's counters."""

import os
import platform
import re
from pathlib import Path


def describe() -> dict:
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release()}


def counter(table: str, protocol: str, name: str) -> int:
    """One counter of /proc/net/snmp or /proc/net/netstat: pairs of lines, names and then values."""
    lines = [
        line.split() for line in Path("/proc/net", table).read_text().splitlines() if line.startswith(protocol + ":")
    ]
    names, values = lines
    return int(values[names.index(name)])


def connection_attempts() -> int:
    """Connections begun by any program in this network namespace."""
    return counter("snmp", "Tcp", "ActiveOpens")


def ignored_attempts() -> int:
    """Attempts that the kernel ignored because an accept queue was full."""
    return counter("netstat", "TcpExt", "ListenOverflows")


def cpu_busy_s(cpu: int) -> float:
    """Seconds for which this CPU was busy with any program, interrupts and kernel threads included."""
    for line in Path("/proc/stat").read_text().splitlines():
        fields = line.split()
        if fields[0] == f"cpu{cpu}":
            user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[1:8])
            return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    raise ValueError(f"there is no CPU {cpu}")


def memory_kib(pid: int) -> tuple[int, int]:
    """Current and peak resident memory of a process in KiB; zeros when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    sizes = dict(re.findall(r"^(VmRSS|VmHWM):\s*(\d+) kB$", status, re.MULTILINE))
    return int(sizes.get("VmRSS", 0)), int(sizes.get("VmHWM", 0))
