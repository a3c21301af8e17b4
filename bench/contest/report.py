"""The tables, made from stored results alone."""

import math
from collections.abc import Iterator, Sequence

from ..side_by_side.report import table
from . import ranking
from .ranking import Standing

HEAD = [
    "rank", "framework", "requests/s", "p50", "p99", "errors", "CPU/request", "server CPU", "client CPU", "verdict",
]  # fmt: skip
UNKNOWN = "–"


def text(document: dict) -> str:
    """The whole report: a table for each case and number of connections, and what was not measured."""
    parts = [group_text(document, group, rows) for group, rows in groups(document["runs"])]
    return "\n\n".join([part for part in (*parts, notes(document)) if part])


def groups(rows: Sequence[dict]) -> Iterator[tuple[tuple[str, int], list[dict]]]:
    """The runs of each case at each number of connections, in the order in which they were measured first."""
    found: dict[tuple[str, int], list[dict]] = {}
    for row in rows:
        found.setdefault((row["case"], row["connections"]), []).append(row)
    yield from found.items()


def group_text(document: dict, group: tuple[str, int], rows: Sequence[dict]) -> str:
    case, connections = group
    known = [one for one in document["comparisons"] if (one["case"], one["connections"]) == group]
    found = ranking.standings(rows, known)
    title = f"{document['cases'][case]}: {case}, {connections} connections"
    return "\n".join([title, "", *table(HEAD, [cells(one) for one in found]), *after(found)])


def cells(one: Standing) -> list[str]:
    figures = one.figures
    return [
        str(one.rank or UNKNOWN),
        one.framework,
        rate(figures["rate"], one.half_width),
        time(figures["p50_us"]),
        time(figures["p99_us"]),
        percent(figures["error_share"]),
        time(figures["cpu_us_per_request"]),
        percent(figures["server_busy"]),
        percent(figures["client_busy"]),
        verdict(one),
    ]


def verdict(one: Standing) -> str:
    if one.reason:
        return f"no rank: {one.reason}"
    runs = "" if one.counted == one.runs else f", in {one.counted} of {one.runs} runs"
    return f"the server was the limit{runs}"


def after(found: Sequence[Standing]) -> list[str]:
    """The frameworks that cannot be distinguished, and what brimful says about runs that do not count."""
    named = ", ".join(f"{one} and {other}" for one, other in ranking.pairs_that_tie(found))
    lines = [f"Cannot be distinguished: {named}."] if named else []
    if doubtful := ", ".join(faster_without_rank(found)):
        lines.append(f"Without a rank, but measured at a higher rate than a ranked framework: {doubtful}.")
    lines += [f"- {one.framework}: {one.message}" for one in found if one.message]
    return ["", *lines] if lines else []


def faster_without_rank(found: Sequence[Standing]) -> list[str]:
    """The frameworks without a rank that may be faster than a ranked one."""
    least = min((one.figures["rate"] for one in found if one.rank), default=math.inf)
    return [one.framework for one in found if not one.rank and (one.figures["rate"] or 0) > least]


def notes(document: dict) -> str:
    """The skipped frameworks, and the failed comparisons."""
    lines = [f"{name} was skipped: {why}" for name, why in document["absent"].items()]
    lines += [
        f"{pair['case']}, {pair['connections']} connections: {pair['a']} and {pair['b']} could not be compared: "
        f"{pair['error']}"
        for pair in document["comparisons"]
        if "error" in pair
    ]
    return "\n".join(f"- {line}" for line in lines)


def line(row: dict) -> str:
    """The progress line of one run that has just ended."""
    start = f"{row['repetition'] + 1}: {row['case']:14} {row['connections']:5} {row['framework']:10}"
    if error := row.get("error"):
        return f"{start} {error}"
    return f"{start} {row['rate']:9,.0f}/s  {row['doubt'] or 'the server was the limit'}"


def rate(value: float | None, half_width: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if half_width is None else f"{value:,.0f} ± {half_width:,.0f}"


def time(us: float | None) -> str:
    """A time with three significant digits and its unit."""
    if us is None:
        return UNKNOWN
    value, unit = next(((us / size, unit) for size, unit in ((1e6, "s"), (1e3, "ms")) if us >= size), (us, "µs"))
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {unit}"


def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share * 100:.1f} %"
