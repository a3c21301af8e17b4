"""What machine the results are from, and what its kernel has counted."""

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
    """How often anyone on this host began to connect."""
    return counter("snmp", "Tcp", "ActiveOpens")


def ignored_attempts() -> int:
    """How many attempts met a full accept queue."""
    return counter("netstat", "TcpExt", "ListenOverflows")


def cpu_busy_s(cpu: int) -> float:
    """Seconds this CPU has worked, for anyone: also what the kernel did in interrupts and its own threads."""
    for line in Path("/proc/stat").read_text().splitlines():
        fields = line.split()
        if fields[0] == f"cpu{cpu}":
            user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[1:8])
            return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    raise ValueError(f"there is no CPU {cpu}")


def memory_kib(pid: int) -> tuple[int, int]:
    """Resident memory of a process, now and at most, in KiB; zeros when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    sizes = dict(re.findall(r"^(VmRSS|VmHWM):\s*(\d+) kB$", status, re.MULTILINE))
    return int(sizes.get("VmRSS", 0)), int(sizes.get("VmHWM", 0))
