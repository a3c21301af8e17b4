"""The cost of looking up a listening socket: the time that each further port adds to a sample of the connections group.

The difference between a sample of many ports and one of a single port leaves out the clock reading and the work that is
done once for all ports. It includes other work per port, with eBPF the reading of the gauges, so it is an upper bound.
"""

import contextlib
import json
import socket

from .bed import Bed, Running, helper, note
from .case import Case, Figure, Outcome
from .stats import Estimate
from .tools import missing

PORTS = 9


def measure(bed: Bed) -> Outcome:
    rounds = 100 if bed.quick else 1000
    note("lookup")
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(PORTS)]
        ports = [str(listener.getsockname()[1]) for listener in listeners]
        flags = ["--ports", ",".join(ports), "--rounds", str(rounds)]
        running = stack.enter_context(Running([bed.program("probe"), "lookup", *flags], bed.server_cpu))
        found = json.loads(running.finish(120))
        ss = ss_us(bed, ports[0], 3 if bed.quick else 10)
    outcome = Outcome(raw={"inside": found, "ss_us": ss})
    rows = []
    for key, kind in (("ebpf", "eBPF"), ("plain", "without eBPF")):
        if (estimate := per_port(found[key])) is not None:
            rows.append([f"each further port, {kind}", str(estimate)])
            rows.append([f"sample of one port, {kind}", str(Estimate.spread(found[key]["one_port_us"]))])
            outcome.measured.setdefault("lookup", estimate)
    if ss:
        rows.append(["ss -ltn '( sport = :P )', whole process", str(Estimate.spread(ss))])
    else:
        outcome.notes.append(missing("ss"))
    outcome.table("CPU µs, median (least–greatest)", ["", "µs"], rows)
    return outcome


def per_port(found: dict) -> Estimate | None:
    """Microseconds per further port, from medians of five blocks of samples; a median ignores interrupts."""
    one_port = found["one_port_us"]
    all_ports = found["all_ports_us"]
    size = min(len(one_port), len(all_ports)) // 5
    if size == 0:
        return None
    blocks = [(one_port[i : i + size], all_ports[i : i + size]) for i in range(0, 5 * size, size)]
    return Estimate.spread([(middle(many) - middle(single)) / (PORTS - 1) for single, many in blocks])


def ss_us(bed: Bed, port: str, rounds: int) -> list[float]:
    if (path := bed.programs.path("ss")) is None:
        return []
    found = []
    for _ in range(rounds):
        with Running(helper("account.py", path, "-ltnH", f"( sport = :{port} )")) as running:
            found.append(json.loads(running.finish(30))["cpu_us"])
    return found


def middle(values: list[float]) -> float:
    return Estimate.spread(values).value


CASE = Case(
    "lookup",
    "Look-up of a listening socket",
    (Figure("lookup", "listener look-up", "µs", required=10, aim=5),),
    measure,
)
