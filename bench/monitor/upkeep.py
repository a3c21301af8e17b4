"""What the gauges cost while connections come and go: by the kernel's account of the program, and by toggling it.

On loopback both ends of a connection are here, and the program runs at every change of either. A server whose clients
are elsewhere has half of the runs.
"""

import contextlib
import time
from collections.abc import Callable

from ..side_by_side.report import figure
from ..side_by_side.tools import Failed
from . import bpf, brimful, toggle
from .bed import Bed, Running, Server, note
from .case import Case, Figure, Outcome
from .stats import Estimate

# A connection for each request.
CLOSE = ("-H", "Connection: close")
# Loading and detaching the programs takes a fraction of this.
SETTLE_S = 0.7
SLICE_S = 2
# How often the programs are counted, and for how long each time.
STRETCHES, STRETCH_S = 5, 2
# An interval in which nothing is sampled, so that only the gauges are at work.
NEVER = "1h"


def measure(bed: Bed) -> Outcome:
    quartets_wanted = 2 if bed.quick else 9
    lasting = quartets_wanted * len(toggle.PATTERN) * (SLICE_S + SETTLE_S + 1) + STRETCHES * STRETCH_S + 30
    outcome = Outcome()
    with bed.aside(), bed.server() as server, bed.saturate(server, lasting, *CLOSE) as load:
        time.sleep(1)
        note("upkeep: the program's own time")
        stretches = counted(bed, server)
        if not stretches:
            outcome.notes.append("gauges: brimful watch keeps no eBPF program at work here")
            return outcome
        note("upkeep: with and without")
        with Switch(bed, server, lasting) as switch:
            quartets = [toggle.quartet(server, load, switch, SLICE_S, SETTLE_S) for _ in range(quartets_wanted)]
    outcome.raw = {"stretches": stretches, "quartets": toggle.raw(quartets)}
    outcome.measured["program"] = Estimate.spread([one["ns"] / 1000 / one["connections"] for one in stretches])
    changed = toggle.change(quartets, "cpu_us_per_connection")
    without = toggle.mean(quartets, "cpu_us_per_connection")
    per_connection = [without * percent / 100 for percent in (changed.value, changed.low, changed.high)]
    outcome.measured["cpu"] = Estimate(*per_connection, changed.of, interval=True)

    def each(figure_of: Callable[[dict], float]) -> str:
        return str(Estimate.spread([figure_of(one) for one in stretches]))

    outcome.table(
        "Connections as fast as they come, nginx closes them",
        ["", ""],
        [
            ["connections/s", each(lambda one: one["connections"] / one["seconds"])],
            ["runs of the program per connection, both ends", each(lambda one: one["runs"] / one["connections"])],
            ["time of a run, ns", each(lambda one: one["ns"] / one["runs"])],
            ["CPU µs per connection without, nginx and generator", figure(without)],
            ["change with the gauges, %, and its 95 % interval", changed.signed()],
        ],
    )
    return outcome


def counted(bed: Bed, server: Server) -> list[dict]:
    """How often the programs ran, and how long; nothing if there are none."""
    with Running(watch(bed, server, 3600)) as running, bpf.counting():
        time.sleep(SETTLE_S)
        running.check()
        programs = bpf.programs(running.pids)
        stretches = []
        for _ in range(STRETCHES if programs else 0):
            begun, before = server.done()
            runs_before, ns_before = totals(programs)
            time.sleep(STRETCH_S)
            ended, after = server.done()
            runs, ns = totals(programs)
            stretches.append(
                {
                    "seconds": ended - begun,
                    "connections": after.connections - before.connections,
                    "runs": runs - runs_before,
                    "ns": ns - ns_before,
                }
            )
        return stretches


def totals(programs: set[int]) -> tuple[int, int]:
    found = [bpf.ran(program) for program in programs]
    return sum(runs for runs, _ in found), sum(ns for _, ns in found)


class Switch:
    """Attaches the gauges by starting `brimful watch`, and detaches them by ending it."""

    def __init__(self, bed: Bed, server: Server, lasting: float) -> None:
        self._command = watch(bed, server, lasting)
        self._stack = contextlib.ExitStack()
        self._running: Running | None = None

    def __call__(self, on: bool) -> None:
        if on and self._running is None:
            self._running = self._stack.enter_context(Running(self._command))
        elif not on and self._running is not None:
            if self._running.ended():
                raise Failed(f"brimful watch has ended too early: {self._running.complaint()}")
            self._stack.close()
            self._running = None

    def __enter__(self) -> "Switch":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def watch(bed: Bed, server: Server, lasting: float) -> list[str]:
    return brimful.watch(bed, "--port", server.port, "--interval", NEVER, "--duration", f"{lasting:.0f}s")


CASE = Case(
    "upkeep",
    "Upkeep of the gauges",
    (
        Figure("program", "eBPF program's own time per connection, both ends", "µs", required=1),
        Figure("cpu", "CPU per connection, with less without", "µs"),
    ),
    measure,
)
