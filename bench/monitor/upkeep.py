"""The cost of the gauges per connection: by the kernel's account of the eBPF program, and by toggling it.

On loopback both ends of a connection are on this host, and the program runs whenever the state of either end changes. A
server with remote clients has half of the runs.
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

# A header field with which wrk opens a connection for each request.
CLOSE = ("-H", "Connection: close")
# Pause after the monitor is switched on or off, in seconds. Loading or detaching the eBPF programs takes a fraction of
# this time.
SETTLE_S = 0.7
SLICE_S = 2
# Number of time intervals in which the executions of the eBPF program are counted, and their length in seconds.
STRETCHES, STRETCH_S = 5, 2
# A sampling interval that is longer than the measurement, so that only the eBPF program that counts connections runs.
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
            outcome.notes.append("gauges: brimful watch runs no eBPF program on this host")
            return outcome
        note("upkeep: with and without")
        with Switch(bed, server, lasting) as switch:
            quartets = [toggle.quartet(server, load, switch, SLICE_S, SETTLE_S) for _ in range(quartets_wanted)]
    outcome.raw = {"stretches": stretches, "quartets": toggle.raw(quartets)}
    outcome.measured["program"] = Estimate.spread([part["ns"] / 1000 / part["connections"] for part in stretches])
    changed = toggle.change(quartets, "cpu_us_per_connection")
    without = toggle.mean(quartets, "cpu_us_per_connection")
    per_connection = [without * percent / 100 for percent in (changed.value, changed.low, changed.high)]
    outcome.measured["cpu"] = Estimate(*per_connection, changed.of, interval=True)

    def over_stretches(figure_of: Callable[[dict], float]) -> str:
        return str(Estimate.spread([figure_of(part) for part in stretches]))

    connections_per_s = over_stretches(lambda part: part["connections"] / part["seconds"])
    runs_per_connection = over_stretches(lambda part: part["runs"] / part["connections"])
    ns_per_run = over_stretches(lambda part: part["ns"] / part["runs"])
    outcome.table(
        "Maximum rate of connections, closed by nginx",
        ["", ""],
        [
            ["connections/s", connections_per_s],
            ["runs of the program per connection, both ends", runs_per_connection],
            ["time of a run, ns", ns_per_run],
            ["CPU µs per connection without, nginx and generator", figure(without)],
            ["change with the gauges, %, and its 95 % interval", changed.signed()],
        ],
    )
    return outcome


def counted(bed: Bed, server: Server) -> list[dict]:
    """Runs and run time of the programs in each stretch; empty if there are no programs."""
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
                raise Failed(f"brimful watch ended too early: {self._running.complaint()}")
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
        Figure("cpu", "more CPU per connection with the gauges", "µs"),
    ),
    measure,
)
