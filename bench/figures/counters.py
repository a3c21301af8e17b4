"""Kernel counters: connection requests of a network namespace, and the work of each CPU.

SYNs are counted where they are sent, because no server counter gives their number. PassiveOpens + ListenDrops is close.
But Linux also counts a ListenDrop when the accept queue is full for the ACK that ends a handshake, or for data after
it, so one connection can be counted many times. A veth pair loses a packet only if /proc/net/softnet_stat counts it
(`packets_lost`), so the number of SYNs sent is the number that arrived.

All counters only grow. A `Snapshot` holds all of them at one instant of CLOCK_MONOTONIC; `between` turns two snapshots
into rates per second and shares of a CPU. CPU times are ticks of /proc/stat. With CONFIG_TICK_CPU_ACCOUNTING they are
samples: shares over a second or two are rough, and the interrupts of an idle CPU whose tick is stopped are not counted.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """Ticks of one CPU since boot, and the counts of its network softirqs."""

    busy: int
    softirq: int
    steal: int
    net_rx: int
    packets: int
    packets_dropped: int


@dataclass(frozen=True)
class Snapshot:
    """All counters at one instant."""

    at_ns: int
    server: dict
    client: dict
    cpus: dict


def snapshot(server, client, proc=Path("/proc")):
    """Reads all counters. `server` and `client` are process IDs inside the two namespaces."""
    return Snapshot(time.monotonic_ns(), tcp(proc, server), tcp(proc, client), cpus(proc))


def between(before, after, server_cpu, client_cpu):
    """Rates per second and shares of a CPU between two snapshots, keyed by the tables' column names."""
    seconds = (after.at_ns - before.at_ns) / 1e9

    def server(name):
        return (after.server[name] - before.server[name]) / seconds

    def client(name):
        return (after.client[name] - before.client[name]) / seconds

    def cpu(number, field):
        return (getattr(after.cpus[number], field) - getattr(before.cpus[number], field)) / seconds

    return {
        "seconds": seconds,
        "syn": client("ActiveOpens") + client("TCPSynRetrans"),
        "syn_repeated": client("TCPSynRetrans"),
        "accepted": server("PassiveOpens"),
        "dropped": server("ListenDrops"),
        "cookies": server("SyncookiesSent"),
        "server_busy": cpu(server_cpu, "busy") / TICKS_PER_S,
        "server_softirq": cpu(server_cpu, "softirq") / TICKS_PER_S,
        "client_busy": cpu(client_cpu, "busy") / TICKS_PER_S,
        "steal": sum(cpu(n, "steal") for n in after.cpus) / TICKS_PER_S,
        "server_net_rx": cpu(server_cpu, "net_rx"),
        "client_net_rx": cpu(client_cpu, "net_rx"),
        "server_packets": cpu(server_cpu, "packets"),
        "client_packets": cpu(client_cpu, "packets"),
        "packets_lost": sum(cpu(n, "packets_dropped") for n in after.cpus),
    }


def busy(seconds, proc=Path("/proc")):
    """The average number of busy CPUs over this time."""
    before = cpus(proc)
    time.sleep(seconds)
    after = cpus(proc)
    return sum(after[n].busy - before[n].busy for n in after) / TICKS_PER_S / seconds


def tcp(proc, pid):
    """The TCP counters of a process's network namespace, by name."""
    text = "".join((proc / str(pid) / "net" / name).read_text() for name in ("snmp", "netstat"))
    found = paired_lines(text)
    return found["Tcp"] | found["TcpExt"]


def cpus(proc):
    """The counters of every online CPU, by its number."""
    stat = stat_ticks((proc / "stat").read_text())
    net_rx = softirqs((proc / "softirqs").read_text(), "NET_RX")
    packets = softnet((proc / "net" / "softnet_stat").read_text())
    return {n: Cpu(*stat[n], net_rx[n], *packets[n]) for n in stat}


def paired_lines(text):
    """Parses /proc/net/netstat and /proc/net/snmp: a line of names, then a line of values, with equal prefixes."""
    lines = [line.split() for line in text.splitlines()]
    return {
        names[0].rstrip(":"): dict(zip(names[1:], map(int, values[1:])))
        for names, values in zip(lines[::2], lines[1::2])
    }


def stat_ticks(text):
    """Parses /proc/stat: (busy, softirq, steal) of each CPU, in ticks. Stolen time does not count as busy."""
    found = {}
    for line in text.splitlines():
        name, *values = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, values[:8])
            found[int(name[3:])] = (user + nice + system + irq + softirq, softirq, steal)
    return found


def softirqs(text, kind):
    """Parses /proc/softirqs: the number of softirqs of one kind that each CPU has run."""
    header, *rows = text.splitlines()
    numbers = [int(name.removeprefix("CPU")) for name in header.split()]
    for row in rows:
        name, *values = row.split()
        if name == kind + ":":
            return dict(zip(numbers, map(int, values)))
    raise ValueError(f"/proc/softirqs has no line {kind}: this kernel does not count receive work per CPU")


def softnet(text):
    """Parses /proc/net/softnet_stat: (packets processed, lost to a full queue) by CPU, whose number is column 12."""
    rows = [[int(value, 16) for value in line.split()] for line in text.splitlines()]
    return {row[12]: (row[0], row[1]) for row in rows}
