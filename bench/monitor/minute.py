"""All monitors together over one minute of a loaded nginx: the agreement of their figures, and their memory.

The monitors start and stop within a fraction of a second of one another. Each rate covers the whole minute, from a
monitor's first to its last reading of the same kernel counters. The load is steady, so the small differences between
their minutes do not matter. `shared.py` has each monitor's definition of a figure.
"""

import contextlib
import functools
import time

from ..side_by_side.report import figure
from ..side_by_side.servers import free_port
from ..side_by_side.stats import BLOCKS, slope
from ..side_by_side.tools import Failed
from . import brimful, peers
from .bed import Bed, Running, helper, note
from .case import Case, Figure, Outcome
from .clock import resident_kib
from .sample import warm
from .shared import SHARED, Readings, compared
from .stats import Estimate
from .tools import missing

# Rate of the load in calls per second, and calls per connection. With these, all metrics have values, and the server
# has some idle time.
RATE, CALLS = 4000, 8
# Share of the minute in which programs may grow to their normal size. Memory growth is measured after this.
SETTLING = 1 / 4
WATCH = "brimful watch"


def agreement(bed: Bed) -> Outcome:
    readings, _ = minute(bed)
    outcome = Outcome(raw={"brimful": readings.brimful, "seconds": readings.seconds})
    rows, worst = [], 0.0
    for shared in SHARED:
        for line in compared(shared, readings):
            rows.append(
                [shared.name, line.tool, f"{line.ours:.6g}", f"{line.theirs:.6g}", line.difference, line.remark]
            )
            if line.counts:
                worst = max(worst, line.percent)
    if not rows:
        raise Failed("no other monitor is installed to compare with")
    outcome.table(
        f"The same {readings.seconds:.0f} s by brimful and by each tool",
        ["", "tool", "brimful", "tool's", "% apart", ""],
        rows,
    )
    outcome.measured["agreement"] = Estimate.exact(round(worst, 3))
    outcome.notes += [
        missing(tool) for tool in ("sar", "pidstat", "vmstat", "node_exporter") if not bed.programs.path(tool)
    ]
    return outcome


def memory(bed: Bed) -> Outcome:
    _, sizes = minute(bed)
    outcome = Outcome(raw={"kib": sizes})
    rows = []
    for tool, points in sizes.items():
        settled = [(at, kib) for at, kib in points if at > points[-1][0] * SETTLING]
        last = points[-1][1] / 1024
        growth = "-"
        if len(settled) >= 2 * BLOCKS:
            per_s, half_width = slope(settled)
            growth = f"{60 * per_s:+.1f} ± {60 * half_width:.1f}"
            if tool == WATCH:
                low, high = (60 * (per_s + sign * half_width) for sign in (-1, 1))
                outcome.measured["growth"] = Estimate(60 * per_s, low, high, len(settled), interval=True)
        if tool == WATCH:
            outcome.measured["memory"] = Estimate(
                last, *(bound(kib for _, kib in settled) / 1024 for bound in (min, max)), 1
            )
        rows.append([tool, figure(last), growth])
    title = f"Resident memory after {max(points[-1][0] for points in sizes.values()):.0f} s, children included"
    outcome.table(title, ["", "MiB", "growth, KiB/min"], rows)
    return outcome


@functools.cache
def minute(bed: Bed) -> tuple[Readings, dict[str, list[tuple[float, int]]]]:
    """All monitors' readings, and their resident memory over time (seconds, KiB). Measured once for both cases."""
    seconds = 15 if bed.quick else 60
    note(f"memory, agreement: {seconds} s")
    installed = bed.programs.installed(["sar", "pidstat", "vmstat", "node_exporter"])
    sizes: dict[str, list[tuple[float, int]]] = {}
    with bed.server() as server, contextlib.ExitStack() as stack:
        stack.enter_context(Running(helper("churn.py", bed.scratch("disk"), seconds + 30), bed.generator_cpu))
        stack.enter_context(load(bed, server.port, seconds + 30))
        exporter = stack.enter_context(peers.NodeExporter(bed, free_port())) if "node_exporter" in installed else None
        if exporter:
            warm(exporter)
        time.sleep(2)
        which = ["-p", ",".join(map(str, server.pids))]
        flags = ["--port", server.port, "--interval", "1s", "--duration", f"{seconds}s"]
        commands = {
            WATCH: lambda: brimful.watch(bed, *flags),
            "sar": lambda: peers.sar(bed, seconds),
            "pidstat": lambda: peers.pidstat(bed, seconds, *which),
            "vmstat": lambda: peers.vmstat(bed, 1, seconds),
        }
        lead_s = start_s(bed, server.port)
        running = {WATCH: stack.enter_context(Running(commands[WATCH]()))}
        # brimful starts earlier than the others, because it first loads its eBPF programs. So all begin to sample
        # together.
        time.sleep(lead_s)
        begun = time.monotonic()
        running |= {tool: stack.enter_context(Running(commands[tool]())) for tool in commands if tool in installed}
        pages = [exporter.scrape()] if exporter else []
        all_running = running | ({"node_exporter": exporter} if exporter else {})
        while (at := time.monotonic() - begun) < seconds - 1.5:
            for tool, program in all_running.items():
                program.check()
                sizes.setdefault(tool, []).append((at, resident_kib(program.pid)))
            if exporter:
                # node_exporter is used by scraping it periodically, so scrape it during the measurement too.
                exporter.scrape()
            time.sleep(1 - (time.monotonic() - begun) % 1)
        time.sleep(max(0, begun + seconds - time.monotonic()))
        if exporter:
            pages.append(exporter.scrape())
        printed = {tool: program.finish(30) for tool, program in running.items()}
    watched = brimful.server(printed[WATCH])
    return (
        Readings(
            seconds=brimful.seconds(watched),
            brimful=watched,
            sar=peers.averages(printed.get("sar", "")),
            pidstat=peers.averages(printed.get("pidstat", "")),
            vmstat=peers.vmstat_line(printed["vmstat"]) if "vmstat" in printed else {},
            node_exporter=[peers.metrics(page) for page in pages],
        ),
        sizes,
    )


def start_s(bed: Bed, port: int) -> float:
    """The time that `brimful watch` needs before its first sample."""
    begun = time.monotonic()
    with Running(brimful.watch(bed, "--port", port, "--duration", "1s")) as running:
        running.finish(30)
    return max(0, time.monotonic() - begun - 1)


def load(bed: Bed, port: int, seconds: float) -> Running:
    """A steady open load that leaves both CPUs some idle time."""
    flags = ["-R", RATE, "--calls-per-connection", CALLS, "-d", f"{seconds:.0f}s", "--quiet", "--json"]
    url = f"http://127.0.0.1:{port}/"
    return Running([bed.program("brimful"), "load", url, *map(str, flags)], bed.generator_cpu)


MEMORY = Case(
    "memory",
    "Resident memory",
    (
        Figure("memory", "resident memory after a minute", "MiB", required=20, aim=8),
        Figure("growth", "its growth", "KiB/min"),
    ),
    memory,
)
AGREEMENT = Case(
    "agreement",
    "Agreement with other monitors over a minute",
    (Figure("agreement", "largest difference of a figure that other monitors have too", "%", required=1),),
    agreement,
)
