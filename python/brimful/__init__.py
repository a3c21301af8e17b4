"""How much traffic a web server can take: brimful from Python.

Each function runs one command: it takes and returns documents, as the command line does. If the command wrote no
document, the function raises an exception (`UsageError`, `HostError`); otherwise the result has the exit code in
`exit_code`. Names of times include their units.

    >>> import brimful
    >>> record = brimful.load("http://127.0.0.1:8080/", rate=1000, duration="10s")  # doctest: +SKIP
    >>> record.response_time_us.p99, record.verdict.valid  # doctest: +SKIP
    (1240.5, True)

In a notebook, a result at the end of a cell is shown as its report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from . import plan as plan
from ._binary import BrimfulError as BrimfulError
from ._binary import HostError as HostError
from ._binary import Interrupted as Interrupted
from ._binary import UsageError as UsageError
from ._binary import find_program as binary
from ._binary import version as version
from ._command import as_files, run_command
from .documents import (
    AbTest,
    Calibration,
    Comparison,
    Forecast,
    History,
    Model,
    Profile,
    Record,
    Server,
    Site,
    Solution,
    Survey,
    Sweep,
    WhatIf,
)

__all__ = [
    "AbTest",
    "BrimfulError",
    "Calibration",
    "Comparison",
    "Forecast",
    "History",
    "HostError",
    "Interrupted",
    "Model",
    "Profile",
    "Record",
    "Server",
    "Site",
    "Solution",
    "Survey",
    "Sweep",
    "UsageError",
    "WhatIf",
    "ab",
    "binary",
    "characterize",
    "compare",
    "history",
    "load",
    "merge",
    "plan",
    "survey",
    "sweep",
    "version",
    "watch",
]

# Tracebacks show the exceptions under this module name, which users write to catch them: `brimful.UsageError`.
for _exception in (BrimfulError, HostError, Interrupted, UsageError):
    _exception.__module__ = __name__

Path = Union[str, "os.PathLike[str]"]


def load(
    url: str,
    *,
    rate: float | str | None = None,
    clients: int | str | None = None,
    duration: str | None = None,
    requests: int | str | None = None,
    workload: Path | None = None,
    slo: Sequence[str] = (),
    seed: int | None = None,
    **flags: Any,
) -> Record:
    """Generates one load and measures it.

    `rate` is in calls per second. Times are written as on the command line, like "500ms". `flags` are the flags of
    `brimful load`: `new_connection=True`, `header=["Accept: text/html"]`, `watch=True`.
    """
    own_flags = {"rate": rate, "clients": clients, "duration": duration, "requests": requests, "workload": workload}
    return run_command(Record, ["load", "--quiet"], [url], {**own_flags, "slo": list(slo), "seed": seed, **flags})


def sweep(
    url: str,
    *,
    rates: str | None = None,
    s_clients: str | None = None,
    duration: str | None = None,
    **flags: Any,
) -> Sweep:
    """Makes the same load at rising `rates`, like "100:16000:x2", or with rising numbers of `s_clients`.

    Each level lasts `duration`. `flags` are the flags of `brimful load`.
    """
    own_flags = {"sweep": rates, "sweep_clients": s_clients, "duration": duration}
    return run_command(Sweep, ["load", "--quiet"], [url], {**own_flags, **flags}, page="--html")


def survey(
    url: str | None = None,
    *,
    demo: bool = False,
    process: Sequence[str] = (),
    on_line: Callable[[str], None] | None = None,
    **flags: Any,
) -> Survey:
    """Measures how much traffic a server can take, in about two minutes. `on_line` receives each line of progress.

    `flags` are the flags of `brimful survey`.
    """
    command = ["survey"] if on_line else ["survey", "--quiet"]
    arguments = [] if url is None else [url]
    all_flags = {"demo": demo, "process": list(process), **flags}
    return run_command(Survey, command, arguments, all_flags, page="--report", on_line=on_line)


def watch(
    *,
    port: Sequence[int] | int = (),
    process: Sequence[str] | str = (),
    duration: str | None = None,
    **flags: Any,
) -> Server:
    """Watches a server: its programs, its port, the network and the machine. The default duration is one interval.

    `flags` are the flags of `brimful watch`.
    """
    once = duration is None and "count" not in flags
    all_flags = {"port": port, "process": process, "duration": duration, "once": once, **flags}
    return run_command(Server, ["watch", "--quiet"], [], all_flags)


def characterize(*logs: Path, **flags: Any) -> Profile:
    """Describes the traffic of a site from its access logs, and derives a Workload with the same properties.

    `flags` are the flags of `brimful characterize`.
    """
    return run_command(Profile, ["characterize", "--quiet"], [os.fspath(log) for log in logs], flags, page="--html")


def merge(*records: "Path | Mapping[str, Any] | Record", lost: Sequence[int] = ()) -> Record:
    """Merges the Records of the shards of one load. The result is exact.

    `lost` are the indices of shards that have no Record.
    """
    with as_files(records) as names:
        return run_command(Record, ["merge", "--quiet"], names, {"lost": list(lost)})


def compare(
    a: "Sequence[Path | Mapping[str, Any] | Record | Survey]",
    b: "Sequence[Path | Mapping[str, Any] | Record | Survey]",
    *,
    max_regression: Sequence[str] = (),
) -> Comparison:
    """Compares the Records or Surveys of side B with those of side A.

    `max_regression` are limits like "p99:5%"; if one is exceeded, the result's `exit_code` is 1.
    """
    with as_files([*a, *b]) as names:
        sides = [*names[: len(a)], "vs", *names[len(a) :]]
        return run_command(Comparison, ["compare"], sides, {"max_regression": list(max_regression)}, page="--html")


def ab(
    a: str,
    b: str,
    *,
    commands: bool = False,
    until: str | None = None,
    duration: str | None = None,
    max_regression: Sequence[str] = (),
    **flags: Any,
) -> AbTest:
    """Compares two running servers until the interval of their difference is as narrow as `until`, like "1%".

    `a` and `b` are URLs or, with `commands`, commands that start servers on the port `{port}`. `flags` are the flags of
    `brimful ab`.
    """
    sides = {"a": a, "b": b} if commands else {}
    own_flags = {"until": until, "duration": duration, "max_regression": list(max_regression)}
    arguments = [] if commands else [a, b]
    return run_command(AbTest, ["ab", "--quiet"], arguments, {**sides, **own_flags, **flags}, page="--html")


def history(*runs: "Path | Mapping[str, Any] | Record | Survey", new: int | None = None) -> History:
    """Finds the runs from which the figures of a server changed. `runs` are documents, files or directories of them.

    If a new change is for the worse, the result's `exit_code` is 1. A change is new if its first run is among the newest
    `new` runs.
    """
    with as_files(runs) as names:
        return run_command(History, ["history"], names, {"new": new}, page="--html")
