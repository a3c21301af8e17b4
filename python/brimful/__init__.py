"""How much traffic a web server can take: brimful from Python.

Documents go in and come out, as on the command line; each function is one command. What the command would exit with is
an exception where nothing was measured (`UsageError`, `HostError`), and the result's `exit_code` where something was.
Times have their units in their names.

    >>> import brimful
    >>> record = brimful.load("http://127.0.0.1:8080/", rate=1000, duration="10s")  # doctest: +SKIP
    >>> record.response_time_us.p99, record.verdict.valid  # doctest: +SKIP
    (1240.5, True)

In a notebook the last value of a cell shows the report.
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
from ._binary import find as binary
from ._binary import version as version
from ._command import call, files
from .documents import Calibration, Forecast, Model, Profile, Record, Server, Site, Solution, Survey, WhatIf

__all__ = [
    "BrimfulError",
    "Calibration",
    "Forecast",
    "HostError",
    "Interrupted",
    "Model",
    "Profile",
    "Record",
    "Server",
    "Site",
    "Solution",
    "Survey",
    "UsageError",
    "WhatIf",
    "binary",
    "characterize",
    "load",
    "merge",
    "plan",
    "survey",
    "version",
    "watch",
]

# Under this name the exceptions are shown and caught.
for _kind in (BrimfulError, HostError, Interrupted, UsageError):
    _kind.__module__ = __name__

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

    `rate` is in calls per second; times are written as on the command line, like "500ms". `flags` are those of
    `brimful load`: `new_connection=True`, `header=["Accept: text/html"]`, `watch=True`.
    """
    given = {"rate": rate, "clients": clients, "duration": duration, "requests": requests, "workload": workload}
    return call(Record, ["load", "--quiet"], [url], {**given, "slo": list(slo), "seed": seed, **flags})


def survey(
    url: str | None = None,
    *,
    demo: bool = False,
    process: Sequence[str] = (),
    on_line: Callable[[str], None] | None = None,
    **flags: Any,
) -> Survey:
    """Measures how much traffic a server can take, in some two minutes. `on_line` receives each line of progress.

    `flags` are those of `brimful survey`.
    """
    command = ["survey"] if on_line else ["survey", "--quiet"]
    arguments = [] if url is None else [url]
    given = {"demo": demo, "process": list(process), **flags}
    return call(Survey, command, arguments, given, page="--report", on_line=on_line)


def watch(
    *,
    port: Sequence[int] | int = (),
    process: Sequence[str] | str = (),
    duration: str | None = None,
    **flags: Any,
) -> Server:
    """Watches a server for a time: its programs, its port, the network and the machine. The default is one interval.

    `flags` are those of `brimful watch`.
    """
    once = duration is None and "count" not in flags
    given = {"port": port, "process": process, "duration": duration, "once": once, **flags}
    return call(Server, ["watch", "--quiet"], [], given)


def characterize(*logs: Path, **flags: Any) -> Profile:
    """Describes a site's traffic from its access logs, and makes the Workload that has it.

    `flags` are those of `brimful characterize`.
    """
    return call(Profile, ["characterize", "--quiet"], [os.fspath(log) for log in logs], flags, page="--html")


def merge(*records: "Path | Mapping[str, Any] | Record", lost: Sequence[int] = ()) -> Record:
    """Merges the Records of the shards of one load. The result is exact.

    Of the shards in `lost` nothing was seen.
    """
    with files(records) as names:
        return call(Record, ["merge", "--quiet"], names, {"lost": list(lost)})
