"""The tables, made from stored results alone: each server's surveys, and the requirements on all of them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from ..side_by_side.report import table
from ..side_by_side.stats import spread
from . import floor, requirements
from .floor import Pair
from .reading import FRACTIONS, GIVEN_HOST, response_key
from .requirements import (
    NOT_MEASURED,
    half_width,
    intervals,
    measured_spread,
    objective_error,
    objective_holds,
    percents,
    share,
    total,
)

MINUS = "−"
COLUMNS = {
    "saturation": "saturation",
    "saturation_drift_corrected": "drift-corrected",
    **{response_key(fraction): f"R at {fraction * 100:.0f} %" for fraction in FRACTIONS},
    "response_given_host": f"R at {GIVEN_HOST * 100:.0f} % given host",
}


def text(document: dict) -> str:
    """The whole report."""
    parts = [
        header(document),
        errors_text(document),
        objective_text(document),
        floor_text(document),
        outcome_text(document),
        overall_text(document),
        notes(document),
    ]
    return "\n\n".join(part for part in parts if part)


def line(row: dict) -> str:
    """The progress line of one survey that has just ended."""
    start = f"{row['repetition'] + 1}: {row['server']:20} {row['seconds']:4.0f} s "
    if error := row.get("error"):
        return f"{start} {error}"
    errors = {"saturation": row["errors"]["saturation"], "rate under the objective": objective_error(row)}
    found = [f"{name} {signed(error)} %" for name, error in errors.items() if error is not None]
    if twice := floor.pairs([row]):
        found.append(f"floor {log_ratio(median(pair.floor() for pair in twice))}")
    return f"{start} {'; '.join([', '.join(found), verdict(row)] if found else [verdict(row)])}"


def header(document: dict) -> str:
    host, settings, common = document["host"], document["settings"], document["surveys_with"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items() if version)
    server_cpu, generator_cpu = common["cpus"]
    return "\n".join(
        [
            f"{document['date']}  {host['cpu']}, {host['cores']} cores, Linux {host['kernel']}",
            f"{settings['repetitions']} repetitions, order by seed {common['seed']}, "
            f"levels of {common['level'] or 'the usual length'}; "
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


def objective_text(document: dict) -> str:
    """The table of the rate under the default objective."""
    title = "## the rate at which 1 % of the calls take longer than 10 × the p99 of light load"
    known = [row for row in finished(document) if row.get("objective")]
    if not known:
        return "\n".join([title, "", f"{NOT_MEASURED}: no survey in these results has this objective."])
    head = [
        "server", "predicted ÷ measured − 1, %", "interval holds", "half-width, %", "measured/s", "spread, %",
        "outcomes",
    ]  # fmt: skip
    rows = []
    for server, good in by_server(document):
        own = [row for row in good if row.get("objective")]
        held = [holds for row in own if (holds := objective_holds(row)) is not None]
        rates = [rate for row in own if (rate := row["objective"]["measured"]) is not None]
        apart = measured_spread([row for row in own if row["measured_well"]], server)
        outcomes = Counter(row["objective"]["outcome"].replace("_", " ") for row in own).most_common()
        rows.append(
            [
                server,
                three([objective_error(row) for row in own]),
                f"{sum(held)} of {len(held)}" if held else "-",
                three([half_width(row) for row in own], signed_too=False),
                ", ".join(f"{rate:,.0f}" for rate in rates) or "-",
                "-" if apart is None else f"{apart * 100:.1f}",
                ", ".join(name if count == 1 else f"{name} {count}" for name, count in outcomes) or "-",
            ]
        )
    note = (
        "The half-width is that of the 90 % interval, over the prediction. The spread is the greatest less the least "
        "of three rates, over their mean. It needs three surveys that were measured well and have a measured rate."
    )
    return "\n".join([title, "", *table(head, rows), "", note])


def floor_text(document: dict) -> str:
    """The table of the levels that were measured twice, over all servers."""
    title = "## mean response times, compared with a repetition of the measurement"
    sound = measured_well(document)
    groups = floor.by_level(floor.pairs(sound))
    levels = [level for row in sound for level in row.get("levels", [])]
    if not groups:
        all_levels = [level for row in finished(document) for level in row.get("levels", [])]
        repeated = sum(level["repeated"] is not None for level in all_levels)
        doubted = f"of {repeated} levels measured twice, each is in doubt in one measurement, or its survey is"
        why = doubted if repeated else "no level in these results was measured twice"
        return "\n".join([title, "", f"{NOT_MEASURED}: {why}."])
    head = [
        "level", "measured twice", "median log error", "median floor", "ratio", "interval score of the survey",
        "of a repetition", "ratio", "survey's intervals that hold", "repetition's",
    ]  # fmt: skip
    rows = []
    for (workload, fraction), group in groups.items():
        of_all = sum(level["workload"] == workload and abs(level["fraction"] - fraction) < 0.005 for level in levels)
        rows.append([f"{workload} at {fraction * 100:.0f} %", f"{len(group)} of {of_all}", *floor_cells(group)])
    lasted = [level["minutes_after_start"] for level in levels if level.get("minutes_after_start") is not None]
    note = (
        "Log errors and floors are absolute natural logarithms of ratios, with the factor in parentheses; a perfect "
        "predictor has a ratio of about 0.7. Interval scores are means in log units: lower is better. Levels in doubt "
        f"in either measurement are left out. Repetitions began {min(lasted):.1f} to {max(lasted):.1f} minutes "
        "after the start of their survey."
    )
    return "\n".join([title, "", *table(head, rows), "", note])


def floor_cells(group: Sequence[Pair]) -> list[str]:
    """The errors and the scores of one level."""
    ratio, scores = floor.over_floor(group), floor.scores(group)
    cells = [
        log_ratio(median(pair.log_error() for pair in group)),
        log_ratio(median(pair.floor() for pair in group)),
        "-" if ratio is None else f"{ratio:.2f}",
    ]
    if scores is None:
        return [*cells, *["too few"] * 2, *["-"] * 3]
    of_repetition = scores.survey / scores.repetition if scores.repetition else None
    return [
        *cells,
        f"{scores.survey:.2f}",
        f"{scores.repetition:.2f}",
        "-" if of_repetition is None else f"{of_repetition:.2f}",
        f"{scores.survey_holds} of {scores.pairs}",
        f"{scores.repetition_holds} of {scores.pairs}",
    ]


def log_ratio(value: float) -> str:
    """A logarithm of a ratio, and the ratio."""
    return f"{value:.2f} (× {math.exp(value):.2f})"


def overall_text(document: dict) -> str:
    """The table of requirements, each with the measured figure and whether it is met."""
    rows = requirements.rows(document)
    kinds = intervals(measured_well(document))
    by_kind = "; ".join(f"{kind} {held} of {count}" for kind, (held, count) in kinds.items())
    lines = ["## requirements", "", *table(["", "required", "aim", "measured", ""], rows), "", lengths(document)]
    return "\n".join([*lines, "", f"Intervals that hold, by kind: {by_kind}."] if by_kind else lines)


def lengths(document: dict) -> str:
    """The wall time of thorough surveys, and of all surveys together."""
    thorough = [row for row in document["surveys"] if requirements.is_thorough(document, row)]
    known = [seconds for row in thorough if (seconds := requirements.length(row)) is not None]
    hours = sum(row.get("wall_s", row["seconds"]) for row in document["surveys"]) / 3600
    of_thorough = f"median {median(known):.0f} s, worst {max(known):.0f} s" if known else NOT_MEASURED
    return f"Length of the {len(thorough)} thorough surveys: {of_thorough}. All surveys together: {hours:.2f} hours."


def notes(document: dict) -> str:
    """The skipped servers, the failed surveys and repetitions, and the servers that the client could not saturate."""
    lines = [f"{server} was skipped: {why}" for server, why in document["absent"].items()]
    lines += [
        f"{row['server']}, repetition {row['repetition'] + 1}: {row['error']}"
        for row in document["surveys"]
        if "error" in row
    ]
    lines += [
        f"{row['server']}, repetition {row['repetition'] + 1}: {level['workload']} at {level['fraction'] * 100:.0f} % "
        f"was not measured again: {level['repeat_error']}"
        for row in finished(document)
        for level in row.get("levels", [])
        if level.get("repeat_error")
    ]
    for server, good in by_server(document):
        limited = [row for row in good if row["client_limited"]]
        if limited:
            codes = ", ".join(dict.fromkeys(code for row in limited for code in row["reasons"]))
            share_limited = f"{len(limited)} of {len(good)} ({codes})"
            lines.append(f"{server}: the client, not the server, was the limit in {share_limited}")
    return "\n".join(f"- {line}" for line in lines)


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


def signed(share_off: float | None) -> str:
    return "-" if share_off is None else f"{share_off * 100:+.1f}".replace("-", MINUS)
