"""Written by document_types.py from schema/server.schema.json."""

from __future__ import annotations

from dataclasses import dataclass

from .._documents import Document
from .common import (
    ClockOffset, Core, CpuShares, Disk, HostProbe, Interrupts, Listener, Memory, Module, Network, Overhead, Paging,
    Port, Pressure, Program, ServerInterval, SocketRequests,
)


@dataclass(kw_only=True)
class Server(Document):
    """What the monitor saw of a server over a run."""
    #: Threads that waited for a disk, whole machine.
    blocked: int | None = None
    #: How the server's clock was brought to the generator's, if the server is on another host.
    clock: ClockOffset | None = None
    #: Connections of all watched ports together, by TCP state.
    connections: dict[str, int] | None = None
    #: Whole machine.
    context_switches_per_s: float | None = None
    #: Each of them that was online all the time.
    cores: list[Core] | None = None
    #: The CPUs that were watched (all, or those named), together.
    cpu: CpuShares | None = None
    #: Which CPUs those are.
    cpus: list[int] | None = None
    #: Whole disks together.
    disk: Disk | None = None
    #: Each whole disk by name, if it was there all the time.
    disks: dict[str, Disk] | None = None
    #: Processes and threads started, whole machine.
    forks_per_s: float | None = None
    #: How fast the server's host was when `brimful watch` began there.
    host_probe: HostProbe | None = None
    #: Work that devices asked for.
    interrupts: Interrupts | None = None
    #: The course of the run.
    intervals: list[ServerInterval] | None = None
    #: The listening sockets of all watched ports together.
    listener: Listener | None = None
    #: Memory.
    memory: Memory | None = None
    #: What the Server Module saw from inside the server, if it is loaded there.
    module: Module | None = None
    #: The network of the server's namespace.
    network: Network | None = None
    #: What watching cost.
    overhead: Overhead | None = None
    #: Traffic between memory and disks.
    paging: Paging | None = None
    #: Each watched port.
    ports: list[Port] | None = None
    #: Pressure stall information: the share of time in which work waited for want of something.
    pressure: Pressure | None = None
    #: The server's programs.
    process: list[Program] | None = None
    #: Requests as the server's sockets show them, if that was asked for.
    requests: SocketRequests | None = None
    #: Threads that ran or waited for a CPU, whole machine, the monitor's own left out.
    runnable: int | None = None
    #: Where each kind of figures comes from, or `none: …` with the reason and what to do about it.
    sources: dict[str, str] | None = None
