"""The figures that brimful shares with other monitors, and how to compute each from their output, in brimful's units.

A tool rounds its figures, and two minutes that begin at slightly different times may differ by one or two events at
their ends. Differences that small do not count, however large they are in percent; the table marks them. Figures that a
tool defines differently do not count either; `differs` says how.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Table = dict[str, dict[str, float]]

# Number of events by which the counts of two monitors may differ, because their measurements do not begin and end at
# the same instant.
EDGE_EVENTS = 2
PAGE_KIB = 4
SECTOR_KIB = 0.5


@dataclass(frozen=True)
class Readings:
    """The parsed output of all monitors; empty for a tool that is not installed."""

    seconds: float
    brimful: dict
    sar: Table
    pidstat: Table
    vmstat: dict[str, float]
    # Two scraped pages: from the beginning and from the end of the minute.
    node_exporter: list[Table]

    def sum_of(self, tool: Table, columns: str, row: str = "") -> float:
        return sum(tool[column][row] for column in columns.split())

    def rate(self, metric: str, **labels: str) -> float:
        """Growth per second of a node_exporter's counter, summed over the series with these labels."""
        return (self.total(1, metric, **labels) - self.total(0, metric, **labels)) / self.seconds

    def total(self, page: int, metric: str, **labels: str) -> float:
        wanted = [f'{name}="{value}"' for name, value in labels.items()]
        series = self.node_exporter[page][metric]
        return sum(value for found, value in series.items() if all(label in found.split(",") for label in wanted))


@dataclass(frozen=True)
class Theirs:
    """How to compute a figure from a tool's output."""

    value: Callable[[Readings], float]
    # Maximum rounding error of the tool's output: half a unit of its last digit.
    rounded: float = 0.0
    differs: str = ""


@dataclass(frozen=True)
class Shared:
    """A figure of brimful, and of the tools that have it too."""

    name: str
    ours: Callable[[dict], float | None]
    # By how much one event changes the rate, as a function of the measured seconds: 1/seconds for a counter of events.
    event: Callable[[float], float] = field(default=lambda seconds: 1 / seconds)
    sar: Theirs | None = None
    pidstat: Theirs | None = None
    vmstat: Theirs | None = None
    node_exporter: Theirs | None = None


@dataclass(frozen=True)
class Line:
    """One comparison of brimful with a tool."""

    tool: str
    ours: float
    theirs: float
    counts: bool
    remark: str

    @property
    def percent(self) -> float:
        greater = max(abs(self.ours), abs(self.theirs))
        return 100 * abs(self.ours - self.theirs) / greater if greater else 0.0

    @property
    def difference(self) -> str:
        return f"{self.percent:.2f}"


def compared(shared: Shared, readings: Readings) -> Iterator[Line]:
    """The comparisons with every installed tool that has the figure; none if brimful lacks it."""
    ours = shared.ours(readings.brimful)
    if ours is None:
        return
    for tool in ("sar", "pidstat", "vmstat", "node_exporter"):
        theirs: Theirs | None = getattr(shared, tool)
        if theirs is None or not getattr(readings, tool):
            continue
        try:
            value = theirs.value(readings)
        except KeyError as absent:
            yield Line(tool, ours, float("nan"), False, f"not measured: {absent}")
            continue
        # Maximum difference that can result from rounding, and from the different beginnings and ends of the two
        # measurements.
        slack = theirs.rounded + EDGE_EVENTS * shared.event(readings.seconds)
        small = abs(ours - value) <= slack
        remark = theirs.differs or (f"within rounding and edges, {slack:.2g}" if small else "")
        yield Line(tool, ours, value, not (small or theirs.differs), remark)


def at(*path: str) -> Callable[[dict], float | None]:
    """A function that finds a figure in brimful's document; None if it or an object around it is absent."""

    def find(document: dict) -> float | None:
        for key in path:
            if document is None:
                return None
            document = document.get(key)
        return document

    return find


def program(key: str) -> Callable[[dict], float | None]:
    """A function that finds a figure of the first program. Totals are divided by the seconds of the minute."""

    def find(document: dict) -> float | None:
        found = document["process"][0].get(key) if document["process"] else None
        if found is None or key == "rss_bytes":
            return found
        return found / sum(interval["length_s"] for interval in document["intervals"])

    return find


def sar(columns: str, row: str = "", scale: float = 1, rounded: float = 0.005, differs: str = "") -> Theirs:
    return Theirs(lambda r: scale * r.sum_of(r.sar, columns, row), scale * rounded * len(columns.split()), differs)


def vmstat(columns: str, scale: float = 1) -> Theirs:
    """The sum of vmstat's columns, which are whole numbers."""
    return Theirs(
        lambda r: scale * sum(r.vmstat[column] for column in columns.split()), scale * 0.5 * len(columns.split())
    )


def grown(metric: str, scale: float = 1, **labels: str) -> Theirs:
    """The growth per second of a counter of node_exporter."""
    return Theirs(lambda r: scale * r.rate(metric, **labels))


def now(metric: str, differs: str = "", **labels: str) -> Theirs:
    """A gauge of node_exporter at the end of the minute."""
    return Theirs(lambda r: r.total(1, metric, **labels), differs=differs)


def pidstat(column: str, scale: float = 1, rounded: float = 0.005) -> Theirs:
    """The sum of pidstat's column over the server's processes."""
    return Theirs(lambda r: scale * sum(r.pidstat[column].values()), scale * rounded * 2)


def share(name: str, sar_columns: str, vmstat_column: str, modes: str) -> Shared:
    """A share of all CPU time. An event is a clock tick of one CPU."""

    def of_modes(readings: Readings) -> float:
        total = readings.rate("node_cpu_seconds_total")
        return sum(readings.rate("node_cpu_seconds_total", mode=mode) for mode in modes.split()) / total

    return Shared(
        f"cpu.{name}",
        at("cpu", name),
        event=lambda seconds: 0.01 / seconds,
        sar=sar(sar_columns, "all", 0.01),
        vmstat=vmstat(vmstat_column, 0.01),
        node_exporter=Theirs(of_modes),
    )


# Number of connections that may be opened or closed between the last readings of the two tools.
RATE_AT_END = 50
MEAN = "the tool's mean over the minute, ours at the end"
ALL_PORTS = "the tool's covers all ports"
# Maximum size of a single disk request, in KiB.
REQUEST_KIB = 64
SHARED = (
    share("user", "%usr %nice", "us", "user nice"),
    share("system", "%sys %irq %soft", "sy", "system irq softirq"),
    share("idle", "%idle %iowait", "id wa", "idle iowait"),
    share("steal", "%steal", "st", "steal"),
    Shared(
        "context_switches_per_s",
        at("context_switches_per_s"),
        sar=sar("cswch/s"),
        vmstat=vmstat("cs"),
        node_exporter=grown("node_context_switches_total"),
    ),
    Shared("forks_per_s", at("forks_per_s"), sar=sar("proc/s"), node_exporter=grown("node_forks_total")),
    Shared(
        "interrupts.all_per_s",
        at("interrupts", "all_per_s"),
        sar=sar("all", "sum"),
        vmstat=vmstat("in"),
        node_exporter=grown("node_intr_total"),
    ),
    Shared(
        "paging.page_ins_per_s",
        at("paging", "page_ins_per_s"),
        event=lambda seconds: REQUEST_KIB / PAGE_KIB / seconds,
        sar=sar("pgpgin/s", scale=1 / PAGE_KIB),
        vmstat=vmstat("bi", 1 / PAGE_KIB),
        node_exporter=grown("node_vmstat_pgpgin", 1 / PAGE_KIB),
    ),
    Shared(
        "paging.page_outs_per_s",
        at("paging", "page_outs_per_s"),
        event=lambda seconds: REQUEST_KIB / PAGE_KIB / seconds,
        sar=sar("pgpgout/s", scale=1 / PAGE_KIB),
        vmstat=vmstat("bo", 1 / PAGE_KIB),
        node_exporter=grown("node_vmstat_pgpgout", 1 / PAGE_KIB),
    ),
    Shared(
        "paging.major_faults_per_s",
        at("paging", "major_faults_per_s"),
        sar=sar("majflt/s"),
        node_exporter=grown("node_vmstat_pgmajfault"),
    ),
    Shared(
        "disk.reads_per_s",
        at("disk", "reads_per_s"),
        sar=sar("rtps"),
        node_exporter=grown("node_disk_reads_completed_total"),
    ),
    Shared(
        "disk.writes_per_s",
        at("disk", "writes_per_s"),
        sar=sar("wtps"),
        node_exporter=grown("node_disk_writes_completed_total"),
    ),
    Shared(
        "disk.blocks_read_per_s",
        at("disk", "blocks_read_per_s"),
        event=lambda seconds: REQUEST_KIB / SECTOR_KIB / seconds,
        sar=sar("bread/s"),
        node_exporter=grown("node_disk_read_bytes_total", 1 / 512),
    ),
    Shared(
        "disk.blocks_written_per_s",
        at("disk", "blocks_written_per_s"),
        event=lambda seconds: REQUEST_KIB / SECTOR_KIB / seconds,
        sar=sar("bwrtn/s"),
        node_exporter=grown("node_disk_written_bytes_total", 1 / 512),
    ),
    Shared(
        "memory.available_bytes",
        at("memory", "available_bytes"),
        event=lambda _: 0,
        sar=sar("kbavail", scale=1024, rounded=0.5, differs=MEAN),
        node_exporter=now("node_memory_MemAvailable_bytes"),
    ),
    Shared(
        "pressure.cpu.some",
        at("pressure", "cpu", "some"),
        # The kernel updates the totals of PSI every two seconds. So a total may lack two seconds of stall, which are
        # EDGE_EVENTS (2) events of one second each.
        event=lambda seconds: 1 / seconds,
        sar=sar("%scpu", scale=0.01),
        node_exporter=grown("node_pressure_cpu_waiting_seconds_total"),
    ),
    Shared(
        "pressure.io.some",
        at("pressure", "io", "some"),
        event=lambda seconds: 1 / seconds,
        sar=sar("%sio", scale=0.01),
        node_exporter=grown("node_pressure_io_waiting_seconds_total"),
    ),
    *(
        Shared(
            f"network.interfaces.lo.{ours}",
            at("network", "interfaces", "lo", ours),
            event=lambda seconds, size=size: size / seconds,
            sar=sar(column, "lo", scale),
            node_exporter=grown(metric, device="lo"),
        )
        for ours, column, scale, size, metric in (
            ("rx_packets_per_s", "rxpck/s", 1, 1, "node_network_receive_packets_total"),
            ("tx_packets_per_s", "txpck/s", 1, 1, "node_network_transmit_packets_total"),
            ("rx_bytes_per_s", "rxkB/s", 1024, 1500, "node_network_receive_bytes_total"),
            ("tx_bytes_per_s", "txkB/s", 1024, 1500, "node_network_transmit_bytes_total"),
        )
    ),
    *(
        Shared(
            f"network.tcp.{ours}",
            at("network", "tcp", ours),
            sar=sar(column),
            node_exporter=grown(f"node_netstat_Tcp_{metric}") if metric else None,
        )
        for ours, column, metric in (
            ("segments_in_per_s", "iseg/s", "InSegs"),
            ("segments_out_per_s", "oseg/s", "OutSegs"),
            ("retransmitted_per_s", "retrans/s", "RetransSegs"),
            ("active_opens_per_s", "active/s", "ActiveOpens"),
            ("passive_opens_per_s", "passive/s", "PassiveOpens"),
            ("resets_out_per_s", "orsts/s", "OutRsts"),
        )
    ),
    Shared(
        "network.tcp.time_wait",
        at("network", "tcp", "time_wait"),
        event=lambda _: RATE_AT_END,
        sar=sar("tcp-tw", rounded=0.5, differs=MEAN),
        node_exporter=now("node_sockstat_TCP_tw"),
    ),
    Shared(
        "network.tcp.in_use",
        at("network", "tcp", "in_use"),
        event=lambda _: RATE_AT_END,
        sar=sar("tcpsck", rounded=0.5, differs=MEAN),
        node_exporter=now("node_sockstat_TCP_inuse"),
    ),
    Shared(
        "listener.accepted_per_s",
        at("listener", "accepted_per_s"),
        sar=sar("passive/s", differs=ALL_PORTS),
        node_exporter=Theirs(lambda r: r.rate("node_netstat_Tcp_PassiveOpens"), differs=ALL_PORTS),
    ),
    Shared("process.cpu_s", program("cpu_s"), event=lambda seconds: 0.01 / seconds, pidstat=pidstat("%CPU", 0.01)),
    Shared(
        "process.cpu_s_user", program("cpu_s_user"), event=lambda seconds: 0.01 / seconds, pidstat=pidstat("%usr", 0.01)
    ),
    Shared(
        "process.cpu_s_system",
        program("cpu_s_system"),
        event=lambda seconds: 0.01 / seconds,
        pidstat=pidstat("%system", 0.01),
    ),
    Shared("process.rss_bytes", program("rss_bytes"), event=lambda _: 0, pidstat=pidstat("RSS", 1024, 0.5)),
    Shared("process.major_faults", program("major_faults"), pidstat=pidstat("majflt/s")),
    Shared(
        "process.context_switches",
        program("context_switches"),
        pidstat=Theirs(lambda r: sum(r.pidstat["cswch/s"].values()) + sum(r.pidstat["nvcswch/s"].values()), 0.02),
    ),
)
