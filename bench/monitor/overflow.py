"""SYNs and drops when the accept queue overflows, compared with a count of the packets, in a network namespace.

The figures of `brimful watch` are rates over the time from its first to its last sample. No packets arrive during these
two samples, so a rate times that time is an exact count.
"""

import json
import subprocess
import time

from ..figures.testbed import Host, TestbedError
from ..side_by_side.tools import Failed
from . import brimful
from .bed import Bed, helper, note
from .case import Case, Figure, Outcome
from .stats import Estimate

BACKLOG, CONNECTS = 8, 50
# Pause before the first SYN and after the last SYN, in seconds. The monitor takes its first sample in the first pause,
# and its last sample in the second.
QUIET_S = 1.5
RUNS = (("full", "ebpf", ()), ("full", "plain", ("--no-ebpf",)), ("drained", "ebpf", ()))
FIGURES = {"SYN": "syn_per_s", "accepted": "accepted_per_s", "dropped": "dropped_per_s"}


def measure(bed: Bed) -> Outcome:
    # Duration of the overflow, in seconds. The kernel first repeats a SYN every second, so the overflow ends between
    # two repetitions.
    overflowing_s = 2.6 if bed.quick else 6.6
    try:
        host = Host(bed.server_cpu)
    except TestbedError as error:
        raise Failed(str(error)) from None
    outcome, rows = Outcome(), []
    try:
        for kind, key, flags in RUNS:
            note(f"overflow: {kind} {key}")
            packets, server = run(bed, host, kind, overflowing_s, flags)
            true_counts = {"SYN": packets["syns"], "accepted": packets["accepted"]}
            true_counts["dropped"] = true_counts["SYN"] - true_counts["accepted"]
            ours = counts(server)
            rows.append([f"{kind}: packets", *map(str, true_counts.values())])
            rows.append(
                [f"{kind}: brimful watch {' '.join(flags)}".strip(), *(f"{count:.6g}" for count in ours.values())]
            )
            outcome.raw[f"{kind} {key}"] = {"packets": true_counts, "brimful": ours}
            # Round the difference: the counts are products of a rate and a time, which are not exactly whole numbers.
            error = sum(abs(round(ours[name] - true_counts[name], 3)) for name in FIGURES)
            outcome.measured[f"{kind} {key}"] = Estimate.exact(error)
    finally:
        host.close()
    title = f"{CONNECTS} connections begun at a listener with backlog {BACKLOG}"
    outcome.table(title, ["", *FIGURES], rows)
    return outcome


def run(bed: Bed, host: Host, kind: str, overflowing_s: float, flags: tuple[str, ...]) -> tuple[dict, dict]:
    """The count of the packets, and brimful's document of the same time."""
    arguments = [kind, BACKLOG, CONNECTS, overflowing_s]
    pipes = {"stdout": subprocess.PIPE, "text": True}
    flood = host.start(helper("syns.py", *arguments), stdin=subprocess.PIPE, **pipes)
    port = flood.stdout.readline().strip()
    duration = overflowing_s + 2 * QUIET_S + 1
    command = brimful.watch(bed, "--port", port, "--interval", "250ms", "--duration", f"{duration:g}s", *flags)
    watching = host.start(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **pipes)
    time.sleep(QUIET_S)
    print(file=flood.stdin, flush=True)
    packets = json.loads(flood.stdout.readline())
    printed, errors = watching.communicate(timeout=duration + 30)
    flood.communicate()
    if watching.returncode:
        raise Failed(f"brimful watch: exit {watching.returncode}: {errors.strip()}")
    return packets, brimful.server(printed)


def counts(server: dict) -> dict[str, float]:
    """The counts, computed from brimful's rates per second."""
    if not (listener := server["listener"]):
        raise Failed(f"brimful watch saw no listener: {server['sources'].get('listener')}")
    seconds = brimful.seconds(server)
    absent = [name for name, key in FIGURES.items() if listener[key] is None]
    if absent:
        raise Failed(f"brimful watch has no figure for {', '.join(absent)}: {server['sources'].get('listener')}")
    return {name: listener[key] * seconds for name, key in FIGURES.items()}


CASE = Case(
    "overflow",
    "SYNs and drops in a forced overflow",
    (
        Figure("full ebpf", "SYNs, accepts, drops at a full queue, eBPF", "off by", required=0),
        Figure("full plain", "the same without eBPF", "off by", required=0),
        Figure("drained ebpf", "the same with the queue drained once: the kernel also counts ACKs as drops", "off by"),
    ),
    measure,
)
