"""The tables, made from stored results alone: medians with the least and the greatest, ratios paired by repetition."""

from collections.abc import Iterable, Sequence
from statistics import median

from .case import Case, Requirement
from .cases import CASES
from .entry import BEFORE
from .stats import spread
from .tools import KNOWN

TITLES = {
    "attempts_per_s": "attempts/s",
    "bytes_per_connection": "bytes/connection",
    "connections": "connections",
    "core_us_per_request": "core µs/request",
    "cpu_percent": "CPU %",
    "cpu_us_per_request": "CPU µs/request",
    "few_rss_kib": "RSS, few (KiB)",
    "growth_high_kib_per_min": "at most",
    "growth_kib_per_min": "growth KiB/min",
    "growth_low_kib_per_min": "at least",
    "ignored_per_s": "ignored/s",
    "lateness_max_us": "max",
    "lateness_p50_us": "late µs: p50",
    "lateness_p90_us": "p90",
    "lateness_p99.9_us": "p99.9",
    "lateness_p99_us": "p99",
    "many_rss_kib": "RSS, many (KiB)",
    "missing": "missing",
    "overload_factor": "offered ÷ capacity",
    "own_lateness_p50_us": "own p50",
    "own_lateness_p99_us": "own p99",
    "peak_rss_mib": "peak RSS MiB",
    "requests_per_s": "requests/s",
}


def text(document: dict) -> str:
    """The whole report."""
    return "\n\n".join(
        [header(document), *(case_text(document, case) for case in document["cases"]), requirements_text(document)]
    )


def header(document: dict) -> str:
    host, settings = document["host"], document["settings"]
    versions = ", ".join(
        f"{tool} {version}"
        for tool, version in document["versions"].items()
        if version and tool != "brimful-bench-server"
    )
    return "\n".join(
        [
            f"{document['date']}  {host['cpu']}, {host['cores']} cores, Linux {host['kernel']}",
            f"{settings['repetitions']} repetitions of {settings['seconds']} s; "
            f"server on CPU {settings['server_cpu']}, generator on CPU {settings['generator_cpu']}",
            f"commit {document['commit']}; {versions}",
        ]
    )


def case_text(document: dict, result: dict) -> str:
    """One case: the values of every tool, brimful's ratios to them, and the absent or failed tools."""
    case = by_name(result["name"])
    tools = list(dict.fromkeys(run["tool"] for run in sorted(result["runs"], key=lambda run: order(case, run["tool"]))))
    rows = [
        [tool + (" *" if tool == judged(result) else "")]
        + [cell(values(result, tool, column)) for column in case.columns]
        for tool in tools
        if any("values" in run for run in runs(result, tool))
    ]
    lines = [f"## {case.title} ({case.name})", ""]
    if rows:
        lines += table(["", *(TITLES[column] for column in case.columns)], rows)
    peers = [tool for tool in tools if not tool.startswith("brimful")]
    compared = [
        [f"{ours} / {peer}"] + [cell(ratios(result, ours, peer, metric)) for metric in case.compared]
        for peer in peers
        for ours in tools
        # An earlier version of brimful is compared only with the current version with the same engine.
        if ours.startswith("brimful") and peer in (peer.replace(BEFORE, "brimful"), ours.replace("brimful", BEFORE))
    ]
    compared = [row for row in compared if any(entry != "-" for entry in row[1:])]
    if compared:
        lines += ["", *table(["ratio", *(TITLES[metric] for metric in case.compared)], compared)]
    return "\n".join([*lines, *notes(result, tools)])


def notes(result: dict, tools: Iterable[str]) -> Iterable[str]:
    yield ""
    if others := [
        run["values"]["others_percent"] for run in result["runs"] if "others_percent" in run.get("values", {})
    ]:
        middle, _, most = spread(others)
        yield f"other work on the generator's CPU, kernel threads included: median {middle:.0f} %, at most {most:.0f} %"
    if engine := result["auto"]:
        yield f"* the engine that brimful chooses here ({engine}); the requirements are judged by it"
    for tool in result["absent"]:
        yield f"{tool} is absent ({KNOWN[tool.partition('-')[0] if tool.startswith('brimful') else tool][1]})"
    for tool in tools:
        of_tool = runs(result, tool)
        failed = [run["error"] for run in of_tool if "error" in run]
        if failed:
            yield f"{tool} failed in {len(failed)} of {len(of_tool)} runs: {failed[0]}"
        failures = [run["own"]["failed_calls"] for run in of_tool if run.get("own", {}).get("failed_calls")]
        if failures:
            yield f"{tool} reports failed calls in {len(failures)} of {len(of_tool)} runs, at most {max(failures):,}"
        doubted = [run["own"]["verdict"] for run in of_tool if run.get("own", {}).get("verdict")]
        if doubted:
            codes = ", ".join(sorted({code for verdict in doubted for code in verdict}))
            yield f"{tool} reports that {len(doubted)} of {len(of_tool)} runs are invalid: {codes}"


def requirements_text(document: dict) -> str:
    """The table of requirements, each with the measured value."""
    rows = []
    for result in document["cases"]:
        for requirement in by_name(result["name"]).requirements:
            sign = "≥" if requirement.at_least else "≤"
            bounds = [
                "-" if bound is None else f"{sign} {bound:g}" for bound in (requirement.required, requirement.aim)
            ]
            found = measured(result, requirement)
            rows.append([result["name"], requirement.text, *bounds, cell(found), verdict(result, requirement, found)])
    return "\n".join(["## requirements", "", *table(["case", "", "required", "aim", "measured", ""], rows)])


def measured(result: dict, requirement: Requirement) -> list[float]:
    ours = judged(result)
    if ours is None:
        return []
    if requirement.against is None:
        return values(result, ours, requirement.metric)
    return ratios(result, ours, requirement.against, requirement.metric)


def verdict(result: dict, requirement: Requirement, found: Sequence[float]) -> str:
    if not found:
        return f"not measured: {reason(result, requirement)}"
    middle = median(found)
    if requirement.aim is not None and requirement.meets(middle, requirement.aim):
        return "aim met"
    if requirement.required is None:
        return "aim missed"
    return "met" if requirement.meets(middle, requirement.required) else "NOT MET"


def reason(result: dict, requirement: Requirement) -> str:
    if judged(result) is None:
        return "brimful did not run"
    needed = (judged(result), requirement.against)
    for tool in filter(None, needed):
        if tool in result["absent"]:
            return f"{tool} is absent"
        if all("error" in run for run in runs(result, tool)):
            return f"every run of {tool} failed"
    return f"no {requirement.metric}"


# --- Reading the document ---------------------------------------------------------------------------------------------


def by_name(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def order(case: Case, tool: str) -> int:
    """The position of a tool in the table. An earlier brimful comes after all others."""
    tools = [entry.tool for entry in case.entries]
    return tools.index(tool) if tool in tools else len(tools)


def judged(result: dict) -> str | None:
    return f"brimful-{result['auto']}" if result["auto"] else None


def runs(result: dict, tool: str) -> list[dict]:
    return [run for run in result["runs"] if run["tool"] == tool]


def values(result: dict, tool: str, metric: str) -> list[float]:
    return [run["values"][metric] for run in runs(result, tool) if metric in run.get("values", {})]


def ratios(result: dict, ours: str, peer: str, metric: str) -> list[float]:
    """brimful's value over the peer's, repetition by repetition: a disturbance of the host affects both."""
    theirs = {run["repetition"]: run["values"][metric] for run in runs(result, peer) if metric in run.get("values", {})}
    return [
        run["values"][metric] / theirs[run["repetition"]]
        for run in runs(result, ours)
        if metric in run.get("values", {}) and theirs.get(run["repetition"])
    ]


# --- Layout -----------------------------------------------------------------------------------------------------------


def cell(found: Sequence[float]) -> str:
    if not found:
        return "-"
    middle, least, greatest = spread(found)
    return figure(middle) if least == greatest else f"{figure(middle)} ({figure(least)}–{figure(greatest)})"


def figure(value: float) -> str:
    """Three digits, and no exponents."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table with aligned columns."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (head, *rows)
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
