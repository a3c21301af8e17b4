"""One load from many processes or machines, with one Record that is as exact as a single process's Record.

Each shard generates part I of N of one schedule, which all derive from the same seed (`brimful load --shard I/N`). All
shards start at the same instant, and their histograms are merged bin for bin. Without an address, shards are processes
of this machine; with an address, they are actors of the Ray cluster there.

    >>> from brimful import fleet
    >>> outcome = fleet.run("http://10.0.0.5/", shards=8, address="auto", rate=400_000)  # doctest: +SKIP
    >>> outcome.record.verdict.valid, [part.host for part in outcome.record.shards]  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .._binary import UsageError
from .._command import to_flags
from .driver import Driver, FleetError, Load, Outcome, PlaceHandle
from .local import LocalPlace
from .place import Figures

__all__ = ["Figures", "FleetError", "Outcome", "run"]


def run(
    url: str,
    *,
    shards: int,
    address: str | None = None,
    shards_per_node: int = 1,
    cpus_per_shard: float = 1,
    scales: bool = False,
    workload: "str | os.PathLike[str] | None" = None,
    seed: int | None = None,
    source_ips: Sequence[str] = (),
    cpus: Sequence[int] = (),
    slo: Sequence[str] = (),
    lead_s: float | None = None,
    directory: "str | os.PathLike[str] | None" = None,
    on_second: Callable[[Figures, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
    **flags: Any,
) -> Outcome:
    """Runs one load that is split into `shards` shards.

    `flags` are the flags of `brimful load`, such as `rate` and `clients`. They describe the whole load. With `address`
    (a Ray cluster, such as `auto`, `10.0.0.1:6379` or `ray://10.0.0.1:10001`) each node runs `shards_per_node` shards,
    and with `scales` the cluster starts more nodes. Without `address` the shards are processes of this host, on `cpus`
    in turn. `source_ips` are assigned to the shards in turn. `slo` are objectives of the whole load. The load starts
    `lead_s` seconds after the shards were asked to start. Each shard's own Record is kept in `directory`, during and
    after the load.

    Once a second, `on_second` receives the figures of all shards together and the number of shards that are not lost.
    `calibrate=True` first measures the largest load that the shards can generate, and reports it to `on_note`; a larger
    load is invalid. When `stop` is set, all shards stop, and the result is what they have measured.
    """
    return run_command_line(
        [*to_flags(flags), "--", url],
        shards=shards,
        address=address,
        shards_per_node=shards_per_node,
        cpus_per_shard=cpus_per_shard,
        scales=scales,
        workload=workload,
        seed=seed,
        source_ips=source_ips,
        cpus=cpus,
        slo=slo,
        lead_s=lead_s,
        directory=directory,
        on_second=on_second,
        on_note=on_note,
        stop=stop,
    )


def run_command_line(
    line: Sequence[str],
    *,
    shards: int,
    address: str | None,
    shards_per_node: int,
    cpus_per_shard: float,
    scales: bool,
    workload: "str | os.PathLike[str] | None",
    seed: int | None,
    source_ips: Sequence[str],
    cpus: Sequence[int],
    slo: Sequence[str],
    lead_s: float | None,
    directory: "str | os.PathLike[str] | None",
    on_second: Callable[[Figures, int], None] | None,
    on_note: Callable[[str], None] | None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Runs the load of a command line: `line` has the URL and the flags of `brimful load`."""
    arguments = list(line)
    files = {}
    if workload is not None:
        files["workload.toml"] = _text(Path(workload))
        arguments.insert(0, "--workload={workload.toml}")
    load = Load(
        arguments=arguments,
        seed=secrets.randbits(32) if seed is None else seed,
        files=files,
        source_ips=source_ips,
        cpus=cpus,
        slo=slo,
    )
    with open_places(address, shards, shards_per_node, cpus_per_shard, scales) as places:
        return Driver(
            places, load, lead_s=lead_s, directory=directory, on_second=on_second, on_note=on_note, stop=stop
        ).run()


@contextlib.contextmanager
def open_places(
    address: str | None, shards: int, shards_per_node: int, cpus_per_shard: float, scales: bool
) -> Iterator[Sequence[PlaceHandle]]:
    """Yields a place for each shard."""
    if shards < 1 or shards_per_node < 1:
        raise UsageError("a fleet has one shard or more: give --shards and --shards-per-node at least 1", 2)
    if address is None:
        yield [LocalPlace() for _ in range(shards)]
    else:
        from . import on_ray

        with on_ray.open_places(address, shards, shards_per_node, cpus_per_shard, scales) as places:
            yield places


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", 2) from error
