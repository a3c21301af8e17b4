"""The planner (`brimful plan`): solves, changes and calibrates queueing models, and forecasts with them.

>>> model = {
...     "stations": [{"name": "cpu", "type": "queue", "servers": 1, "scheduling": "ps"}],
...     "classes": [{"name": "page", "type": "open", "rate": 300}],
...     "demands": [[0.002]],
... }
>>> solution = solve(model)
>>> round(solution.response_time[0], 6), solution.saturation_rate
(0.005, 500.0)
>>> solve({**model, "demands": [[0.004]]})
Traceback (most recent call last):
...
brimful.UsageError: ...
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from ._command import as_files, run_command
from .documents import Calibration, Forecast, Record, Site, Solution, WhatIf
from .documents.model import Model

#: The types that are accepted as a model: a path, parsed JSON, a `Model`, or the result of `calibrate`.
ModelLike = Union[str, "os.PathLike[str]", Mapping[str, Any], Model, Calibration]


def solve(model: ModelLike, *, method: str = "auto", **flags: Any) -> Solution:
    """Solves a model. Throughputs are per second, times in seconds.

    `flags` are the flags of `brimful plan solve`.
    """
    with as_files([_model(model)]) as names:
        return run_command(Solution, ["plan", "solve"], names, {"method": method, **flags}, page="--html")


def what_if(model: ModelLike, *changes: str, **flags: Any) -> WhatIf:
    """Solves a model before and after changes, each like `page.rate=1.5x`.

    `flags` are the flags of `brimful plan what-if`, `slo=["page:p99<50ms"]` among them.
    """
    with as_files([_model(model)]) as names:
        return run_command(WhatIf, ["plan", "what-if"], names, {"set": list(changes), **flags}, page="--html")


def calibrate(*records: "str | os.PathLike[str] | Mapping[str, Any] | Record", **flags: Any) -> Calibration:
    """Derives a model of the server that was loaded and watched in these runs.

    `flags` are the flags of `brimful plan calibrate`.
    """
    with as_files(records) as names:
        return run_command(Calibration, ["plan", "calibrate"], names, flags, page="--html", json_flag=True)


def calibrate_site(log: "Sequence[str | os.PathLike[str]]", **flags: Any) -> Site:
    """Derives a model of a site from its access logs and recorded utilizations (`utilization=FILE`)."""
    return run_command(Site, ["plan", "calibrate"], [], {"log": list(log), **flags}, json_flag=True)


def forecast(*series: "str | os.PathLike[str]", model: ModelLike | None = None, **flags: Any) -> Forecast:
    """Forecasts arrivals from the history in these files, and when they exceed the capacity of the model.

    `flags` are the flags of `brimful plan forecast`.
    """
    with as_files([] if model is None else [_model(model)]) as names:
        model_flag = {"model": names[0]} if names else {}
        return run_command(
            Forecast, ["plan", "forecast"], [os.fspath(path) for path in series], {**model_flag, **flags}, page="--html"
        )


def _model(model: ModelLike) -> Any:
    """Returns the model, taken out of a calibration if necessary."""
    return model.source["model"] if isinstance(model, Calibration) else model
