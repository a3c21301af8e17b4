"""Measures, prints and stores the cases of a benchmark, or prints stored results again."""

import json
from collections.abc import Collection
from pathlib import Path

from .. import command
from ..side_by_side.tools import Failed
from . import report
from .case import Case


def show(path: Path, cases: list[Case]) -> int:
    """Prints the tables of stored results, and the programs that were absent."""
    document = json.loads(path.read_text())
    print(report.text(cases, document), *document.get("absent", {}).values(), sep="\n\n")
    return 0


def measure(document: dict, cases: list[Case], bed: object, only: Collection[str] | None, out: Path | None) -> int:
    """Measures the cases named in `only`, or all, and adds their results to the document."""
    print(report.header(document), *document.get("absent", {}).values(), sep="\n", end="\n\n", flush=True)
    for case in cases:
        if only and case.name not in only:
            continue
        document["cases"].append(run(case, bed))
        print(report.case_text(case, document["cases"][-1]), end="\n\n", flush=True)
        if out:
            command.write(out, document)
    print(report.requirements_text(cases, document))
    if out:
        command.say(f"\nraw results: {out}")
    return 0


def run(case: Case, bed: object) -> dict:
    try:
        return {"name": case.name} | case.measure(bed).document()
    except Failed as failure:
        return {"name": case.name, "error": str(failure)}
