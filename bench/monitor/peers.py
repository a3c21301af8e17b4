"""The other monitors: command lines for the figures of brimful's four groups, and parsers of their output.

All of them run with `LC_ALL=C`. sysstat prints an `Average:` at the end. For a counter, the average is the growth from
the first to the last reading, divided by the time between these readings. brimful's rates have the same definition.
"""

import urllib.request

from .bed import Bed, Running

# Arguments of sar for CPUs, tasks and switches, paging, swapping, disks, memory, pressure, interfaces, sockets, TCP and
# interrupts.
SAR = ("-u ALL -P ALL -w -B -W -b -d -r -q CPU,IO,MEM -n DEV,EDEV,SOCK,TCP,ETCP -I SUM").split()
# Arguments of pidstat for CPU time, memory and context switches.
PIDSTAT = "-u -r -w".split()
# Arguments of node_exporter that enable the metrics of processes and of connections by state, which it leaves out by
# default. In Debian's build, the loopback device must be enabled too.
NODE_EXPORTER = (
    "--collector.tcpstat --collector.processes --collector.netdev.device-exclude=^$ --log.level=error".split()
)


def sar(bed: Bed, samples: int, interval_s: int = 1) -> list[str]:
    return [bed.program("sar"), *SAR, str(interval_s), str(samples)]


def pidstat(bed: Bed, samples: int, *which: str) -> list[str]:
    return [bed.program("pidstat"), *PIDSTAT, *which, "1", str(samples)]


def vmstat(bed: Bed, samples: int, interval_s: int = 1) -> list[str]:
    """vmstat's command line, with one more sample: its first line covers the time since boot."""
    return [bed.program("vmstat"), "-n", str(interval_s), str(samples + 1)]


class NodeExporter(Running):
    """node_exporter on a port of 127.0.0.1."""

    def __init__(self, bed: Bed, port: int) -> None:
        super().__init__([bed.program("node_exporter"), f"--web.listen-address=127.0.0.1:{port}", *NODE_EXPORTER])
        self._port = port

    def scrape(self, collector: str | None = None) -> str:
        """The metrics of all collectors, or of one."""
        which = f"?collect[]={collector}" if collector else ""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics{which}", timeout=30) as page:
            return page.read().decode()


def averages(printed: str) -> dict[str, dict[str, float]]:
    """The `Average:` lines of sar or pidstat, as {column: {row: value}}.

    A row's name is its CPU, its device or its pid; "" where a table has only one row.
    """
    found: dict[str, dict[str, float]] = {}
    columns: list[str] = []
    for line in printed.splitlines():
        if not line.startswith("Average:"):
            continue
        words = line.split()[1:]
        # Skip lines of column titles: unlike lines of values, they contain no number.
        if not any(map(is_number, words)):
            columns = words
            continue
        values = dict(zip(columns, words, strict=False))
        key = next((name for name in ("PID", "CPU", "IFACE", "DEV", "INTR") if name in values), None)
        for name, word in values.items():
            if name not in (key, "UID") and is_number(word):
                found.setdefault(name, {})[values[key] if key else ""] = float(word)
    return found


def vmstat_line(printed: str) -> dict[str, float]:
    """vmstat's last line, by column name."""
    lines = [line.split() for line in printed.splitlines()]
    names = next(words for words in lines if words and words[0] == "r")
    return dict(zip(names, map(float, lines[-1]), strict=True))


def metrics(page: str) -> dict[str, dict[str, float]]:
    """Prometheus's text format, as {metric: {labels: value}}."""
    found: dict[str, dict[str, float]] = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.partition("{")
            found.setdefault(name, {})[labels.removesuffix("}")] = float(value)
    return found


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
