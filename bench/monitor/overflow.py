"""SYNs and drops when the accept queue overflows, against a count of the packets themselves, in a namespace of its own.

The figures of `brimful watch` are rates over the time from its first to its last sample; both are taken while nothing
happens, so that rate times time is the number there was.
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
# Until the monitor has certainly begun, and after everything is over.
QUIET_S = 1.5
RUNS = (("full", "ebpf", ()), ("full", "plain", ("--no-ebpf",)), ("drained", "ebpf", ()))
FIGURES = {"SYN": "syn_per_s", "accepted": "accepted_per_s", "dropped": "dropped_per_s"}


def measure(bed: Bed) -> Outcome:
    # Repeated SYNs come a second apart at first.
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
            there = {"SYN": packets["syns"], "accepted": packets["accepted"]}
            there["dropped"] = there["SYN"] - there["accepted"]
            ours = counts(server)
            rows.append([f"{kind}: packets", *map(str, there.values())])
            rows.append(
                [f"{kind}: brimful watch {' '.join(flags)}".strip(), *(f"{count:.6g}" for count in ours.values())]
            )
            outcome.raw[f"{kind} {key}"] = {"packets": there, "brimful": ours}
            # What a rate times a time is short of a whole number.
            off = sum(abs(round(ours[name] - there[name], 3)) for name in FIGURES)
            outcome.measured[f"{kind} {key}"] = Estimate.exact(off)
    finally:
        host.close()
    title = f"{CONNECTS} connections begun at a listener with backlog {BACKLOG}"
    outcome.table(title, ["", *FIGURES], rows)
    return outcome


def run(bed: Bed, host: Host, kind: str, overflowing_s: float, flags: tuple[str, ...]) -> tuple[dict, dict]:
    """What the packets say, and what brimful says of the same time."""
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
    printed, complaints = watching.communicate(timeout=duration + 30)
    flood.communicate()
    if watching.returncode:
        raise Failed(f"brimful watch: exit {watching.returncode}: {complaints.strip()}")
    return packets, brimful.server(printed)


def counts(server: dict) -> dict[str, float]:
    """How often, of what is given per second."""
    if not (listener := server["listener"]):
        raise Failed(f"brimful watch saw no listener: {server['sources'].get('listener')}")
    seconds = brimful.seconds(server)
    absent = [name for name, key in FIGURES.items() if listener[key] is None]
    if absent:
        raise Failed(f"brimful watch does not say {', '.join(absent)}: {server['sources'].get('listener')}")
    return {name: listener[key] * seconds for name, key in FIGURES.items()}


CASE = Case(
    "overflow",
    "SYNs and drops in a forced overflow",
    (
        Figure("full ebpf", "SYNs, accepts, drops at a full queue, eBPF", "off by", required=0),
        Figure("full plain", "the same without eBPF", "off by", required=0),
        Figure("drained ebpf", "the same with the queue drained once: kernels count more than SYNs", "off by"),
    ),
    measure,
)
