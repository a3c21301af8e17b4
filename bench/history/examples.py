"""Reads the series with known changes in the sources of Apache Otava: those of its tests and of its documentation."""

import ast
import csv
from pathlib import Path

Series = list[float]

#: For each file: its lists of numbers that are used, by position, and the index of the first value after each change.
#: The changes are those that the file's tests expect at p < 0.001 or, if they do not use it, at the largest smaller
#: threshold. Those of tigerbeetle_test.py are Otava's own results with shorter windows than its default.
TESTS = {
    "tests/analysis_test.py": {0: [10]},
    "tests/change_point_divisive_test.py": {0: [5, 8]},
    "tests/series_test.py": {0: [6], 1: [4]},
    "tests/tigerbeetle_test.py": {0: [15, 61, 71, 95, 117, 131, 142, 148, 192, 212, 260]},
}
#: For each column of this file: the changes that docs/CSV.md shows.
EXAMPLE = "tests/resources/sample.csv"
COLUMNS = {"metric1": [], "metric2": [6]}
#: Shorter lists are not series of runs.
MIN_VALUES = 10


def read(source: Path) -> dict[str, tuple[Series, list[int]]]:
    """The series of Otava's source directory, and their changes, by name."""
    examples = {}
    for file, changes in TESTS.items():
        series = series_of((source / file).read_text())
        for position, points in changes.items():
            examples[f"{file}, list {position + 1}"] = (series[position], points)
    with (source / EXAMPLE).open() as rows:
        table = list(csv.DictReader(rows))
    for column, points in COLUMNS.items():
        examples[f"{EXAMPLE}, {column}"] = ([float(row[column]) for row in table], points)
    return examples


def series_of(program: str) -> list[Series]:
    """The lists of at least MIN_VALUES numbers in a Python program, in the order of the text."""
    lists = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.List)]
    lists.sort(key=lambda node: (node.lineno, node.col_offset))
    values = [[number(element) for element in node.elts] for node in lists]
    return [list(map(float, series)) for series in values if None not in series and len(series) >= MIN_VALUES]


def number(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, (int, float)) else None
