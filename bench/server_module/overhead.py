"""What the module takes from a saturated server: connections kept, one small file, server and load on a CPU each."""

from ..monitor.case import Case, Figure, Outcome
from . import toggle
from .bed import Bed

# A host's speed drifts within a fifth of a second: the shorter slices are, the more alike is what they are compared
# with. For as long a run, the control's interval is a quarter as wide with slices of 20 ms as with such of 200 ms.
SLICE_S = 0.02
CLIENTS = 64


def case(kind: str, title: str) -> Case:
    return Case(
        f"overhead-{kind}",
        f"What the module takes from a saturated {title}",
        (
            Figure("throughput", "loss of throughput", "%", required=1, aim=0.5),
            Figure("cpu", "more CPU per request", "%", required=1, aim=0.5),
        ),
        lambda bed: measure(bed, kind),
    )


def measure(bed: Bed, kind: str) -> Outcome:
    outcome = Outcome()
    lasting = 1.3 * bed.seconds + 60
    with (
        bed.aside(),
        bed.server(kind) as server,
        bed.load(server.url, "--clients", CLIENTS, "--duration", f"{lasting:.0f}s") as load,
    ):
        found = warm(server, load, bed, f"overhead-{kind}")
    judge(outcome, kind, found)
    return outcome


def warm(server: object, load: object, bed: Bed, name: str) -> dict:
    """Caches are filled and all connections are there before the first slice counts."""
    toggle.measure(server, load, 2, SLICE_S, f"{name}, warm-up")
    return toggle.measure(server, load, bed.seconds, SLICE_S, name)


def judge(outcome: Outcome, kind: str, found: dict[str, list[list[toggle.Slice]]]) -> None:
    rows = []
    for turn, quartets in found.items():
        throughput = toggle.loss(quartets, "bytes_per_s")
        cost = toggle.change(quartets, "cpu_s_per_byte")
        if turn == toggle.MODULE:
            outcome.measured |= {"throughput": throughput, "cpu": cost}
        rows.append([turn, str(len(quartets)), throughput.signed(), cost.signed()])
    outcome.table(
        f"Saturated {kind} on one CPU, slices of {SLICE_S:g} s; value and 95 % interval",
        ["toggled", "quartets", "loss of throughput, %", "more CPU per request, %"],
        rows,
    )
    share = toggle.busy(found)
    outcome.notes.append(f"{kind} had {100 * share:.1f} % of its CPU")
    if share < toggle.SATURATED:
        outcome.notes.append(f"{kind} was NOT saturated: the generator or other work was the limit")
    outcome.raw = toggle.raw(found)


NGINX = case("nginx", "nginx")
APACHE = case("apache", "Apache, event")
