"""The other monitors: how they are asked for what brimful's four groups tell, and how their answers are read.

All of them are run with `LC_ALL=C`. What sysstat prints at the end as `Average:` is, for counters, the difference
between its last and its first reading by the time between them, which is what can be compared.
"""

import urllib.request

from .bed import Bed, Running

# CPUs, tasks and switches, paging, swapping, disks, memory, pressure, interfaces, sockets, TCP, interrupts.
SAR = ("-u ALL -P ALL -w -B -W -b -d -r -q CPU,IO,MEM -n DEV,EDEV,SOCK,TCP,ETCP -I SUM").split()
# CPU, memory, switches.
PIDSTAT = "-u -r -w".split()
# Debian's build leaves loopback out; connections by state and processes have to be asked for.
NODE_EXPORTER = (
    "--collector.tcpstat --collector.processes --collector.netdev.device-exclude=^$ --log.level=error".split()
)


def sar(bed: Bed, samples: int, interval_s: int = 1) -> list[str]:
    return [bed.program("sar"), *SAR, str(interval_s), str(samples)]


def pidstat(bed: Bed, samples: int, *which: str) -> list[str]:
    return [bed.program("pidstat"), *PIDSTAT, *which, "1", str(samples)]


def vmstat(bed: Bed, samples: int, interval_s: int = 1) -> list[str]:
    """Its first line is about the time since boot: one more."""
    return [bed.program("vmstat"), "-n", str(interval_s), str(samples + 1)]


class NodeExporter(Running):
    """node_exporter on a port of 127.0.0.1."""

    def __init__(self, bed: Bed, port: int) -> None:
        super().__init__([bed.program("node_exporter"), f"--web.listen-address=127.0.0.1:{port}", *NODE_EXPORTER])
        self._port = port

    def scrape(self, collector: str | None = None) -> str:
        """Its metrics; of one collector if it is named."""
        which = f"?collect[]={collector}" if collector else ""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics{which}", timeout=30) as page:
            return page.read().decode()


def averages(printed: str) -> dict[str, dict[str, float]]:
    """What sar or pidstat says in its `Average:` lines, as {column: {row: value}}.

    A row's name is its CPU, its device or its pid; "" where a table has only one row.
    """
    found: dict[str, dict[str, float]] = {}
    columns: list[str] = []
    for line in printed.splitlines():
        if not line.startswith("Average:"):
            continue
        words = line.split()[1:]
        # A line of names has none that is a number; a line of values ends with one, or with a command after it.
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
    """vmstat's last line, by the names above its columns."""
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
