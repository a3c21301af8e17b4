"""The module's effect on a saturated server: kept-alive connections, one small file, server and load on separate
CPUs."""

from collections.abc import Sequence

from ..monitor.case import Case, Figure, Outcome
from . import toggle
from .bed import Bed

# Length of a slice, in seconds. Slices are short, because the speed of a host changes within a fifth of a second. With
# slices of 20 ms, the control's confidence interval is a quarter as wide as with slices of 200 ms, in runs of equal
# length.
SLICE_S = 0.02
# Number of starts of the server, without and with `--quick`. The memory layout, and with it the number of cache misses,
# differs from start to start. So results differ more between starts than between the quartets of one start.
STARTS, QUICK_STARTS = 16, 2
# Seconds of measurement after each start of the server. A longer measurement has more starts.
START_S = 26
CLIENTS = 64
# The classes of a large configuration. Together with the class of all other requests, the module has at most 16
# classes.
CLASSES = [f"class{i:02}" for i in range(15)]
WORKERS = 8


def case(kind: str, title: str) -> Case:
    return Case(
        f"overhead-{kind}",
        f"The module's effect on a saturated {title}",
        (Figure("throughput", "loss of throughput", "%", required=1, aim=0.5),),
        lambda bed: measure(bed, kind),
    )


def files() -> dict[str, int]:
    """A file of each class, and one of no class. All URLs are equally long, and so are all responses."""
    return {f"{name}/file": 1294 for name in [*CLASSES, "another"]}


def class_rules() -> list[str]:
    return [f"{name}=url /{name}/*" for name in CLASSES]


def class_flags(bed: Bed) -> list[object]:
    """The flags of a load that requests all classes equally often."""
    path = bed.directory / "classes.toml"
    names = [*CLASSES, "another"]
    path.write_text("".join(f'[[class]]\nname = "{name}"\npath = "/{name}/file"\n\n' for name in names))
    return ["--workload", path, "--clients", CLIENTS]


def measure_classes(bed: Bed) -> Outcome:
    return measure(bed, "nginx", class_flags(bed), files=files(), classes=class_rules(), workers=WORKERS)


def measure(bed: Bed, kind: str, flags: Sequence[object] = ("--clients", CLIENTS), **configuration: object) -> Outcome:
    starts = QUICK_STARTS if bed.quick else max(STARTS, round(bed.seconds / START_S))
    seconds = bed.seconds / starts
    runs = []
    for start in range(starts):
        with (
            bed.aside(),
            bed.server(kind, **configuration) as server,
            bed.load(server.url, *flags, "--duration", f"{1.5 * seconds + 60:.0f}s") as load,
        ):
            # A warm-up whose results are discarded: it fills the caches and opens all connections.
            toggle.measure(server, load, 2, SLICE_S, f"overhead-{kind}, start {start + 1} of {starts}, warm-up")
            runs.append(toggle.measure(server, load, seconds, SLICE_S, f"overhead-{kind}, start {start + 1}"))
    outcome = Outcome()
    judge(outcome, kind, runs)
    return outcome


def judge(outcome: Outcome, kind: str, runs: list[dict[str, list[list[toggle.Slice]]]]) -> None:
    rows = []
    for turn in (toggle.MODULE, toggle.CONTROL):
        throughput = toggle.loss_of_runs([run[turn] for run in runs], "bytes_per_s")
        if turn == toggle.MODULE:
            outcome.measured["throughput"] = throughput
        rows.append([turn, str(len(runs)), str(sum(len(run[turn]) for run in runs)), throughput.signed()])
    outcome.table(
        f"Saturated {kind} on one CPU, slices of {SLICE_S:g} s; value and 95 % interval between starts",
        ["toggled", "starts", "quartets", "loss of throughput, %"],
        rows,
    )
    of_each = sorted(toggle.loss(run[toggle.MODULE], "bytes_per_s").value for run in runs)
    outcome.notes.append("loss in each start, %: " + ", ".join(f"{value:.2f}" for value in of_each))
    share = sum(map(toggle.busy, runs)) / len(runs)
    outcome.notes.append(f"{kind} used {100 * share:.1f} % of its CPU")
    if share < toggle.SATURATED:
        outcome.notes.append(f"{kind} was NOT saturated: the generator or other work was the limit")
    outcome.raw = {"starts": [toggle.raw(run) for run in runs]}


NGINX = case("nginx", "nginx")
NGINX_CLASSES = Case(
    "overhead-nginx-classes",
    f"The module's effect on a saturated nginx with {WORKERS} workers and {len(CLASSES) + 1} classes",
    (Figure("throughput", "loss of throughput", "%", required=1, aim=0.5),),
    measure_classes,
)
APACHE = case("apache", "Apache, event")
