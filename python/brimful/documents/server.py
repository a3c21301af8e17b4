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
    #: Number of threads in the whole machine that waited for a disk.
    blocked: int | None = None
    #: Offset between the server's and the generator's clocks, if the server is on another host.
    clock: ClockOffset | None = None
    #: Number of connections of all watched ports together, by TCP state.
    connections: dict[str, int] | None = None
    #: Context switches per second of the whole machine.
    context_switches_per_s: float | None = None
    #: Figures of each watched CPU that was online for the whole interval.
    cores: list[Core] | None = None
    #: Shares of the time of all watched CPUs together. All CPUs are watched unless the user names some.
    cpu: CpuShares | None = None
    #: Numbers of the watched CPUs.
    cpus: list[int] | None = None
    #: Traffic of all disks together; partitions are not counted separately.
    disk: Disk | None = None
    #: Traffic of each disk, by name, if the disk was present for the whole interval.
    disks: dict[str, Disk] | None = None
    #: Processes and threads started per second in the whole machine.
    forks_per_s: float | None = None
    #: Speed of the server's host when `brimful watch` began there.
    host_probe: HostProbe | None = None
    #: Interrupts of the whole machine.
    interrupts: Interrupts | None = None
    #: The main figures in successive intervals of the run.
    intervals: list[ServerInterval] | None = None
    #: The listening sockets of all watched ports together.
    listener: Listener | None = None
    #: Memory of the whole machine.
    memory: Memory | None = None
    #: Figures of the Server Module, if the server has loaded it.
    module: Module | None = None
    #: Figures of the network namespace of the server.
    network: Network | None = None
    #: Cost of monitoring.
    overhead: Overhead | None = None
    #: Traffic between memory and disks.
    paging: Paging | None = None
    #: Figures of each watched port.
    ports: list[Port] | None = None
    #: Pressure stall information: the share of time for which work waited for a resource.
    pressure: Pressure | None = None
    #: Figures of the server's programs.
    process: list[Program] | None = None
    #: Requests observed on the server's sockets, if that was requested.
    requests: SocketRequests | None = None
    #: Number of threads in the whole machine that ran or waited for a CPU, excluding the monitor's own.
    runnable: int | None = None
    #: The source of each kind of figures, or `none: …` with the reason and what to do about it.
    sources: dict[str, str] | None = None
