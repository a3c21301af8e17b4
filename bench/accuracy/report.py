"""The tables, made from stored results alone: each server's surveys, and the requirements on all of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ..side_by_side.report import table
from ..side_by_side.stats import spread
from .measure import LIMIT_S
from .reading import FRACTIONS, GIVEN_HOST, response_key

MINUS = "−"
COLUMNS = {
    "saturation": "saturation",
    "saturation_drift_corrected": "drift-corrected",
    **{response_key(fraction): f"R at {fraction * 100:.0f} %" for fraction in FRACTIONS},
    "response_given_host": f"R at {GIVEN_HOST * 100:.0f} % given host",
}


@dataclass(frozen=True)
class Requirement:
    """An upper bound on the median or the worst value of a figure over all surveys."""

    text: str
    values: Callable[[list[dict]], list[float]]
    unit: str = "%"
    median: float | None = None
    worst: float | None = None


def text(document: dict) -> str:
    """The whole report."""
    parts = [header(document), errors_text(document), outcome_text(document), overall_text(document), notes(document)]
    return "\n\n".join(part for part in parts if part)


def line(row: dict) -> str:
    """The progress line of one survey that has just ended."""
    start = f"{row['repetition'] + 1}: {row['server']:20} {row['seconds']:4.0f} s "
    if error := row.get("error"):
        return f"{start} {error}"
    figures = [f"{COLUMNS[key]} {signed(row['errors'][key])} %" for key in ("saturation", response_key(GIVEN_HOST))]
    return f"{start} {', '.join(figures)}; {verdict(row)}"


def header(document: dict) -> str:
    host, settings, common = document["host"], document["settings"], document["surveys_with"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items() if version)
    server_cpu, generator_cpu = common["cpus"]
    return "\n".join(
        [
            f"{document['date']}  {host['cpu']}, {host['cores']} cores, Linux {host['kernel']}",
            f"{settings['repetitions']} repetitions, order by seed {common['seed']}, "
            f"calibration runs of {common['level'] or 'the usual length'}; "
            f"servers on CPU {server_cpu}, client on CPU {generator_cpu}",
            f"commit {document['commit']}; {common['brimful']} ({common['binary']}); {versions}",
        ]
    )


def errors_text(document: dict) -> str:
    """The table of prediction errors."""
    head = ["server", *COLUMNS.values(), "utilization, points"]
    rows = []
    for server, good in by_server(document):
        cells = [three([row["errors"][key] for row in good]) for key in COLUMNS]
        rows.append([server, *cells, three([row["utilization"] for row in good], signed_too=False)])
    sound = measured_well(document)
    for name, pick in (("median, absolute", median), ("worst, absolute", max)):
        cells = [absolute([row["errors"][key] for row in sound], pick) for key in COLUMNS]
        rows.append([f"**{name}**", *cells, absolute([row["utilization"] for row in sound], pick)])
    title = "## predicted ÷ measured − 1, in %: median (least … greatest)"
    left_out = len(finished(document)) - len(sound)
    note = (
        f"The last two rows are over single surveys, {len(sound)} of them; "
        f"they leave out {left_out} that were not measured well by their own verdict."
    )
    return "\n".join([title, "", *table(head, rows), "", note])


def outcome_text(document: dict) -> str:
    """The table of verdicts and intervals, and of how well the measurements agree with them."""
    head = [
        "server", "measured/s", "client's max/s", "intervals that hold", "verdict", "valid, but beyond 2 × interval",
        "levels in doubt", "host speed", "seconds",
    ]  # fmt: skip
    rows = []
    for server, good in by_server(document):
        all_surveys = [row for row in document["surveys"] if row["server"] == server]
        speeds = [speed for row in good for speed in row["host_speed"]]
        rows.append(
            [
                server,
                rate([row["measured_rate"] for row in good]),
                rate([row["client_max_rate"] for row in good]),
                shares(good),
                verdicts(all_surveys),
                beyond(good),
                str(sum(row["levels_in_doubt"] for row in good)),
                f"{min(speeds):.2f} … {max(speeds):.2f}" if speeds else "-",
                three([row["seconds"] for row in good], signed_too=False, percent=False),
            ]
        )
    return "\n".join(["## What the surveys say of themselves", "", *table(head, rows)])


def overall_text(document: dict) -> str:
    """The table of requirements, each with the measured figure and whether it is met."""
    sound = measured_well(document)
    rows = [judged(requirement, sound) for requirement in REQUIREMENTS]
    kinds = intervals(sound)
    held, count = total(kinds)
    enough = met(held >= 0.8 * count) if count else "not measured"
    rows.append(["90 % intervals that hold", "≥ 80 %", share(kinds), enough])
    valid = [row for row in sound if row["valid"]]
    for what, counts in (
        ("valid, saturation beyond twice its interval", lambda kind: kind == "saturation"),
        ("valid, any figure beyond twice its interval", lambda kind: True),
    ):
        wrong = sum(any(counts(kind) for kind, _ in row["valid_beyond_twice"]) for row in valid)
        known = count and valid
        rows.append([what, "0", f"{wrong} of {len(valid)}", met(wrong == 0) if known else "not measured"])
    # The duration of a survey that was stopped at the time limit counts as well.
    with_length = [row for row in document["surveys"] if "error" not in row or row["seconds"] >= LIMIT_S]
    rows.append(judged(SECONDS, with_length))
    made, good = len(document["surveys"]), len(finished(document))
    rows.append(["surveys that wrote a document", "-", f"{good} of {made}", "-"])
    by_kind = "; ".join(f"{kind} {held} of {count}" for kind, (held, count) in kinds.items())
    lines = ["## requirements", "", *table(["", "required", "measured", ""], rows)]
    return "\n".join([*lines, "", f"Intervals that hold, by kind: {by_kind}."] if by_kind else lines)


def notes(document: dict) -> str:
    """The skipped servers, the failed surveys and the servers that the client could not saturate."""
    lines = [f"{server} was skipped: {why}" for server, why in document["absent"].items()]
    lines += [
        f"{row['server']}, repetition {row['repetition'] + 1}: {row['error']}"
        for row in document["surveys"]
        if "error" in row
    ]
    for server, good in by_server(document):
        limited = [row for row in good if row["client_limited"]]
        if limited:
            codes = ", ".join(dict.fromkeys(code for row in limited for code in row["reasons"]))
            share_limited = f"{len(limited)} of {len(good)} ({codes})"
            lines.append(f"{server}: the client, not the server, was the limit in {share_limited}")
    return "\n".join(f"- {line}" for line in lines)


REQUIREMENTS = [
    Requirement(
        "saturation, absolute error",
        lambda rows: percents(row["errors"]["saturation"] for row in rows),
        median=5,
        worst=12,
    ),
    # This requirement counts where the host's speed changes by more than 5 % between calibration and level.
    Requirement(
        "saturation, drift-corrected, absolute error",
        lambda rows: percents(row["errors"]["saturation_drift_corrected"] for row in rows),
        median=5,
        worst=12,
    ),
    Requirement(
        "mean response at 80 % given the host's speed, absolute error",
        lambda rows: percents(row["errors"]["response_given_host"] for row in rows),
        median=15,
        worst=40,
    ),
    Requirement(
        "utilization at held-out levels, greatest absolute error",
        lambda rows: percents(row["utilization"] for row in rows),
        unit="points",
        worst=5,
    ),
]
SECONDS = Requirement("length of a survey", lambda rows: [row["seconds"] for row in rows], unit="s", worst=180)


def judged(requirement: Requirement, surveys: list[dict]) -> list[str]:
    values = requirement.values(surveys)
    bounds = [(name, bound) for name, bound in (("median", requirement.median), ("worst", requirement.worst)) if bound]
    required = ", ".join(f"{name} ≤ {bound:g} {requirement.unit}" for name, bound in bounds)
    if not values:
        return [requirement.text, required, "-", "not measured"]
    found = {"median": median(values), "worst": max(values)}
    measured = ", ".join(f"{name} {value:.1f} {requirement.unit}" for name, value in found.items())
    return [requirement.text, required, measured, met(all(found[name] <= bound for name, bound in bounds))]


def met(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def finished(document: dict) -> list[dict]:
    """The surveys that wrote a document."""
    return [row for row in document["surveys"] if "error" not in row]


def measured_well(document: dict) -> list[dict]:
    return [row for row in finished(document) if row["measured_well"]]


def by_server(document: dict) -> list[tuple[str, list[dict]]]:
    """Every server that was surveyed, in the order of the list of servers, with its finished surveys."""
    tried = {row["server"] for row in document["surveys"]}
    good = finished(document)
    return [(name, [row for row in good if row["server"] == name]) for name in document["servers"] if name in tried]


def intervals(rows: Sequence[dict]) -> dict[str, tuple[int, int]]:
    """For each kind, the number of intervals that contain the measurement, and the number of all."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        for kind, (held, count) in row["intervals"].items():
            held_before, count_before = found.get(kind, (0, 0))
            found[kind] = (held_before + held, count_before + count)
    return found


def total(kinds: dict[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(held for held, _ in kinds.values()), sum(count for _, count in kinds.values())


def share(kinds: dict[str, tuple[int, int]]) -> str:
    held, count = total(kinds)
    return f"{held / count * 100:.0f} % of {count}" if count else "-"


def shares(rows: Sequence[dict]) -> str:
    """The share of all surveys together, with the least and the greatest share of a single survey."""
    totals = [total(intervals([row])) for row in rows]
    single = [held / count * 100 for held, count in totals if count]
    extremes = f" ({min(single):.0f} … {max(single):.0f})" if len(single) > 1 else ""
    return share(intervals(rows)) + extremes


def verdict(row: dict) -> str:
    if "error" in row:
        return "failed"
    if row["valid"]:
        return "valid"
    return " + ".join(dict.fromkeys(row["reasons"]))


def verdicts(rows: Sequence[dict]) -> str:
    """Each verdict with its number of surveys, the most frequent first."""
    counts = Counter(map(verdict, rows)).most_common()
    return ", ".join(name if len(rows) == 1 else f"{name} {count}" for name, count in counts)


def beyond(rows: Sequence[dict]) -> str:
    """The figures of valid surveys whose measurement was outside the interval at twice its width."""
    if not any(row["valid"] and row["intervals"] for row in rows):
        return "-"
    counts = Counter(f"{kind} {where}".strip() for row in rows for kind, where in row["valid_beyond_twice"])
    return ", ".join(f"{what} ({count})" if count > 1 else what for what, count in counts.items()) or "none"


def rate(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):,.0f}" if known else "-"


def three(values: Sequence[float | None], signed_too: bool = True, percent: bool = True) -> str:
    """Median, least and greatest; the median alone where there is one value."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    show = signed if signed_too else lambda value: f"{value * 100:.1f}" if percent else f"{value:.0f}"
    middle, least, greatest = map(show, spread(known))
    return middle if len(known) == 1 else f"{middle} ({least} … {greatest})"


def absolute(values: Iterable[float | None], pick: Callable[[list[float]], float]) -> str:
    known = percents(values)
    return f"{pick(known):.1f}" if known else "-"


def percents(values: Iterable[float | None]) -> list[float]:
    """The absolute values in percent, without absent ones."""
    return [abs(value) * 100 for value in values if value is not None]


def signed(share_off: float | None) -> str:
    return "-" if share_off is None else f"{share_off * 100:+.1f}".replace("-", MINUS)
