"""The tables, made from stored results alone."""

from ..side_by_side.report import table
from .case import Case, Figure
from .stats import Estimate


def header(document: dict) -> str:
    host = document["host"]
    versions = ", ".join(f"{tool} {version}" for tool, version in document["versions"].items() if version)
    return "\n".join(
        [
            f"{document['date']}  {host['cpu']}, {host['cores']} cores, Linux {host['kernel']}",
            f"commit {document['commit']}; {versions}",
            *(["quick: too short for meaningful figures"] if document["settings"]["quick"] else []),
        ]
    )


def case_text(case: Case, result: dict) -> str:
    """One case: its tables, and the remarks on them."""
    lines = [f"## {case.title} ({case.name})"]
    if error := result.get("error"):
        return "\n".join([*lines, "", f"not measured: {error}"])
    for stored in result["tables"]:
        lines += ["", stored["title"], "", *table(stored["head"], stored["rows"])]
    if result["notes"]:
        lines += ["", *result["notes"]]
    return "\n".join(lines)


def requirements_text(cases: list[Case], document: dict) -> str:
    """The table of requirements, each with the measured figure."""
    rows = []
    for result in document["cases"]:
        case = next(case for case in cases if case.name == result["name"])
        for figure in case.figures:
            found = result.get("measured", {}).get(figure.key)
            estimate = Estimate(**found) if found else None
            rows.append(
                [
                    f"{case.name}: {figure.text}",
                    bound(figure, figure.required),
                    bound(figure, figure.aim),
                    f"{shown(estimate)} {figure.unit}" if estimate else "-",
                    verdict(figure, estimate) if estimate else "not measured",
                ]
            )
    return "\n".join(["## requirements", "", *table(["", "required", "aim", "measured", ""], rows)])


def text(cases: list[Case], document: dict) -> str:
    """The whole report."""
    by_name = {case.name: case for case in cases}
    results = [case_text(by_name[result["name"]], result) for result in document["cases"]]
    return "\n\n".join([header(document), *results, requirements_text(cases, document)])


def bound(figure: Figure, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if value == 0 else f"{'≥' if figure.at_least else '≤'} {value:g}"


def shown(estimate: Estimate) -> str:
    return estimate.signed() if estimate.interval else str(estimate)


def verdict(figure: Figure, estimate: Estimate) -> str:
    """Whether the figure meets its bounds. An interval that contains the required bound leaves the verdict open."""
    if figure.required is None and figure.aim is None:
        return "-"
    best, worst = estimate.value, estimate.value
    if estimate.interval:
        best, worst = (estimate.high, estimate.low) if figure.at_least else (estimate.low, estimate.high)
    if figure.meets(worst, figure.aim):
        return "aim met"
    if figure.meets(worst, figure.required):
        return "met"
    if figure.required is None:
        return "aim missed"
    return "NOT MET" if not figure.meets(best, figure.required) else "open: measure longer"
