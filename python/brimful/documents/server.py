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
    """The monitor's figures of a server over a run."""
    #: Threads that waited for a disk, whole machine.
    blocked: int | None = None
    #: Offset between the server's and the generator's clocks, if the server is on another host.
    clock: ClockOffset | None = None
    #: Connections of all watched ports together, by TCP state.
    connections: dict[str, int] | None = None
    #: Context switches, whole machine.
    context_switches_per_s: float | None = None
    #: Each watched CPU that was online for the whole interval.
    cores: list[Core] | None = None
    #: The CPUs that were watched (all, or those named), together.
    cpu: CpuShares | None = None
    #: Numbers of the watched CPUs.
    cpus: list[int] | None = None
    #: All disks together; partitions are not counted separately.
    disk: Disk | None = None
    #: Each disk by name, if it was present for the whole interval.
    disks: dict[str, Disk] | None = None
    #: Processes and threads started, whole machine.
    forks_per_s: float | None = None
    #: Speed of the server's host when `brimful watch` began there.
    host_probe: HostProbe | None = None
    #: Interrupts, whole machine.
    interrupts: Interrupts | None = None
    #: The run in intervals.
    intervals: list[ServerInterval] | None = None
    #: The listening sockets of all watched ports together.
    listener: Listener | None = None
    #: Memory.
    memory: Memory | None = None
    #: Figures of the Server Module, if the server has loaded it.
    module: Module | None = None
    #: The network of the server's namespace.
    network: Network | None = None
    #: Cost of monitoring.
    overhead: Overhead | None = None
    #: Traffic between memory and disks.
    paging: Paging | None = None
    #: Each watched port.
    ports: list[Port] | None = None
    #: Pressure stall information: the share of time for which work waited for a resource.
    pressure: Pressure | None = None
    #: The server's programs.
    process: list[Program] | None = None
    #: Requests observed on the server's sockets, if that was requested.
    requests: SocketRequests | None = None
    #: Threads that ran or waited for a CPU, whole machine, without the monitor's own.
    runnable: int | None = None
    #: The source of each kind of figures, or `none: …` with the reason and what to do about it.
    sources: dict[str, str] | None = None
