"""What seeing requests at sockets takes from a saturated nginx: `brimful watch --requests`, started and ended.

The programs of a slice are loaded before it and attached within it, so a slice here is as long as several of theirs, and
begins when the watch has loaded them. The watch is on the server's CPU, where it costs most. Beside its default share of
the time it takes turns with being attached all the time, which says what one request costs, and with nothing.
"""

import contextlib
import itertools
import json
import signal
import subprocess
import time
from collections.abc import Callable

from ..command import say
from ..monitor.case import Case, Figure, Outcome
from ..side_by_side.tools import Failed
from . import toggle
from .bed import Bed

CLIENTS = 64
SLICE_S, QUICK_SLICE_S = 4.0, 1.0
# Loading takes the kernel and libbpf some tenths of a second.
LOADING_S = 1.0
DEFAULT, ALWAYS, CONTROL = "20 % of the time", "all the time", "nothing"
TURNS = (DEFAULT, ALWAYS, DEFAULT, CONTROL)


def measure(bed: Bed) -> Outcome:
    outcome = Outcome()
    slice_s = QUICK_SLICE_S if bed.quick else SLICE_S
    quartet_s = len(toggle.PATTERNS[0]) * slice_s + 2 * LOADING_S
    number = max(round(bed.seconds / quartet_s), 2 * len(TURNS))
    lasting = 1.3 * number * quartet_s + 60
    with (
        bed.aside(),
        bed.server("nginx") as server,
        bed.load(server.url, "--clients", CLIENTS, "--duration", f"{lasting:.0f}s") as load,
        contextlib.ExitStack() as stack,
        toggle.punctual(),
    ):
        server.memory.switch(False)
        shares_of = {DEFAULT: "20%", ALWAYS: "100%"}
        watches = {name: stack.enter_context(Watch(bed, server.port, share)) for name, share in shares_of.items()}
        switches: dict[str, Callable[[bool], None]] = {CONTROL: lambda _: None, **watches}
        time.sleep(2)
        found: dict[str, list[list[toggle.Slice]]] = {name: [] for name in switches}
        for done, turn in enumerate(itertools.islice(itertools.cycle(TURNS), number)):
            if done % 10 == 0:
                say(f"overhead-sockets: quartet {done + 1} of {number}")
            pids = server.pids
            found[turn].append([toggle.slice_of(pids, switches[turn], on, slice_s) for on in toggle.PATTERNS[0]])
            switches[turn](False)
            load.check()
        shares = {name: watch.share() for name, watch in watches.items()}
    judge(outcome, found, shares, slice_s)
    return outcome


class Watch:
    """`brimful watch --requests`, which runs while it is on."""

    def __init__(self, bed: Bed, port: int, share: str) -> None:
        self._command = ["taskset", "-c", str(bed.server_cpu), bed.program("brimful"), "watch", "--port", str(port)]
        self._command += ["--groups", "requests", f"--requests={share}", "--json"]
        self._process: subprocess.Popen | None = None
        self._seen: list[dict] = []

    def __call__(self, on: bool) -> None:
        if on and self._process is None:
            self._process = subprocess.Popen(self._command, text=True, stdout=subprocess.PIPE)
            time.sleep(LOADING_S)
        elif not on and self._process is not None:
            process, self._process = self._process, None
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=60)
            server = json.loads(printed)
            if "requests" not in server:
                raise Failed(f"brimful watch sees no requests: {server['sources'].get('requests')}")
            self._seen.append(server["requests"])

    def share(self) -> float:
        """Of the time, in which it was attached."""
        return sum(seen["duty"] for seen in self._seen) / max(len(self._seen), 1)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def judge(outcome: Outcome, found: dict[str, list[list[toggle.Slice]]], shares: dict, slice_s: float) -> None:
    rows = []
    for turn, quartets in found.items():
        throughput = toggle.loss(quartets, "bytes_per_s")
        cost = toggle.change(quartets, "cpu_s_per_byte")
        if turn == DEFAULT:
            outcome.measured |= {"throughput": throughput, "cpu": cost}
        attached = f"{100 * shares[turn]:.1f}" if turn in shares else "-"
        rows.append([turn, str(len(quartets)), throughput.signed(), cost.signed(), attached])
    outcome.table(
        f"Saturated nginx on one CPU, slices of {slice_s:g} s; value and 95 % interval",
        ["attached", "quartets", "loss of throughput, %", "more CPU per request, %", "measured share of the time, %"],
        rows,
    )
    share = toggle.busy(found)
    outcome.notes.append(f"nginx had {100 * share:.1f} % of its CPU")
    if share < toggle.SATURATED:
        outcome.notes.append("nginx was NOT saturated: the generator or other work was the limit")
    outcome.raw = toggle.raw(found) | {"shares": shares}


CASE = Case(
    "overhead-sockets",
    "What seeing requests at sockets takes from a saturated nginx",
    (
        Figure("throughput", "loss of throughput", "%", required=1.5, aim=1),
        Figure("cpu", "more CPU per request", "%", required=1.5, aim=1),
    ),
    measure,
)
