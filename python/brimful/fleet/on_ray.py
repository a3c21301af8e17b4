"""Shards as actors of a Ray cluster, on hosts of their own. Nothing listens beyond what Ray itself opens.

Ray decides where; a placement group ensures that the hosts differ (STRICT_SPREAD), with the same number of shards
on each as were asked for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _binary
from .driver import FleetError, Lost
from .place import Place

#: How the address of a client port begins.
CLIENT = "ray://"
#: The directory with one token file per cluster, named after the cluster's address; relative to the home directory.
TOKENS = Path(".ray", "auth_tokens")
#: How long Ray may take to find the hosts, some of which it may have to start.
READY_S = 60.0
#: How long a host may take to accept a connection.
REACH_S = 10.0
#: A cluster's client port forks a process for each connection while gRPC's threads run. A few of a hundred such
#: processes crash (ray-project/ray issue 63202). Ray reports that in these words, and the connection is tried again.
CRASHED = "Starting Ray client server failed", "Proxy failed to Connect to backend"
TRIES = 3
#: Python's error on a host without this package, which Ray's message contains, and our explanation of it.
MISSING = "No module named 'brimful'"
NO_PACKAGE = "no Python package `brimful`: `pip install brimful` there, for the Python that Ray runs with"


@dataclass(frozen=True)
class Answer:
    """The answer of an actor."""

    reference: Any

    def get(self, timeout_s: float) -> Any:
        import ray.exceptions

        try:
            return ray.get(self.reference, timeout=timeout_s)
        except ray.exceptions.GetTimeoutError as error:
            raise TimeoutError from error
        except ray.exceptions.RayTaskError as error:
            raise Lost(f"{error.cause}") from error
        except ray.exceptions.RayError as error:
            if MISSING in str(error):
                raise Lost(f"its host has {NO_PACKAGE}") from error
            raise Lost(f"its host or its process is gone ({_first_line(error)})") from error


@dataclass(frozen=True)
class RayRoom:
    """A place in an actor."""

    actor: Any

    def ask(self, method: str, *arguments: Any) -> Answer:
        return Answer(getattr(self.actor, method).remote(*arguments))

    def give_up(self) -> None:
        import ray.exceptions

        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(self.actor)


@contextlib.contextmanager
def rooms(
    address: str,
    shards: int,
    shards_per_node: int = 1,
    cpus_per_shard: float = 1,
    scales: bool = False,
    ready_s: float = READY_S,
) -> Iterator[list[RayRoom]]:
    """Returns a place for each shard, on the hosts of the cluster at this address. A cluster that `scales` starts hosts
    on request."""
    ray = _connected(address)
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    sizes = [min(shards_per_node, shards - first) for first in range(0, shards, shards_per_node)]
    _check(ray, sizes, shards, cpus_per_shard, scales)
    group = placement_group([{"CPU": size * cpus_per_shard} for size in sizes], strategy="STRICT_SPREAD")
    try:
        if not group.wait(timeout_seconds=ready_s):
            raise FleetError(
                f"{_wanted(sizes, shards, cpus_per_shard)}, which were not free within {ready_s:.0f} s: stop what else runs "
                "on them (`ray status` shows it), or make fewer shards"
            )
        actors = []
        for index in range(shards):
            strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index // shards_per_node)
            options = {"num_cpus": cpus_per_shard, "max_restarts": 0, "scheduling_strategy": strategy}
            try:
                actors.append(ray.remote(Place).options(**options).remote())
            except ModuleNotFoundError as error:  # By its client port, the head node looks at it.
                if MISSING not in str(error):
                    raise
                raise FleetError(f"the cluster's head node has {NO_PACKAGE}") from error
        yield [RayRoom(actor) for actor in actors]
    finally:
        with contextlib.suppress(ray.exceptions.RayError):
            remove_placement_group(group)


def _connected(address: str) -> Any:
    imported = sys.modules.get("ray")
    if imported is None or not imported.is_initialized():
        _use_token(address)
    try:
        import ray.exceptions
    except ImportError as error:
        message = (
            "a fleet of several machines runs on Ray, which is not installed: `pip install 'brimful[fleet]'`; or leave out "
            "the address, and the shards are processes of this machine"
        )
        raise _binary.HostError(message, 3) from error
    if not ray.is_initialized():
        try:
            _reach(address)
            _connect(ray, address)
        except Exception as error:  # It raises whatever its parts raise.
            place = _token_file(address)
            token = f"; if the cluster asks for a token, put the head's in {place}" if place else ""
            raise FleetError(
                f"no Ray cluster can be reached at {address} ({_first_line(error)}): start one with `ray start --head`, and "
                f"give its address, like 10.0.0.1:6379, ray://10.0.0.1:10001 or auto{token}"
            ) from error
    return ray


def _connect(ray: Any, address: str) -> None:
    for further in reversed(range(TRIES)):
        try:
            with _in_root():
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            return
        except Exception as error:  # It raises whatever its parts raise.
            if not further or not any(words in str(error) for words in CRASHED):
                raise


@contextlib.contextmanager
def _in_root() -> Iterator[None]:
    """Connects from the root directory. Ray's workers search for modules first in the working directory that this
    process has when it connects. Other users may be able to write to that; only root can write to `/`."""
    here = os.getcwd()
    os.chdir("/")
    try:
        yield
    finally:
        os.chdir(here)


def _use_token(address: str) -> None:
    """Makes Ray send the token for this client port, if there is one, and no other token.

    Ray itself knows one token, and sends it to every address if RAY_AUTH_MODE is `token`. A program that listens at a
    mistyped address would receive it, and could use the cluster."""
    if not address.startswith(CLIENT):
        return
    file = _token_file(address)
    if file is None or not file.is_file():
        if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
            place = f"put this cluster's token in {file}, or " if file else ""
            raise FleetError(
                f"no Ray token is for {address}, and with RAY_AUTH_MODE=token Ray would send one that may be another "
                f"cluster's: {place}unset RAY_AUTH_MODE if it asks for none"
            )
        return
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file), "RAY_AUTH_TOKEN": None}
    # Ray reads these when it is imported, and keeps the token.
    if "ray" in sys.modules and any(os.environ.get(name) != value for name, value in settings.items()):
        raise FleetError(
            f"Ray was imported before it could know the token for {address}: call the fleet before `import ray`, and "
            "from a process of its own for each cluster"
        )
    for name, value in settings.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _token_file(address: str) -> Path | None:
    """The path of the token file for a client port, which may not exist; None if the address cannot be a file name."""
    name = address.removeprefix(CLIENT).lower()
    is_plain = re.fullmatch(r"[0-9a-z.:_\[\]-]+", name) is not None and name.strip(".") != ""
    return Path.home() / TOKENS / name if address.startswith(CLIENT) and is_plain else None


def _reach(address: str) -> None:
    """Whether anything listens there. Ray itself tries for minutes, and then ends this process."""
    host, colon, port = address.removeprefix(CLIENT).rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()


def _check(ray: Any, sizes: list[int], shards: int, cpus: float, scales: bool) -> None:
    """Raises if the cluster has too few hosts and does not scale by itself."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    large = [node for node in nodes if node["Resources"].get("CPU", 0) >= max(sizes) * cpus]
    if len(large) >= len(sizes) or scales:
        return
    names = ", ".join(f"{node['NodeManagerHostname']}: {node['Resources'].get('CPU', 0):g}" for node in nodes[:8])
    per_node = -(-shards // max(len(nodes), 1))
    raise FleetError(
        f"{_wanted(sizes, shards, cpus)}, and Ray has {len(large)} such of {len(nodes)} (CPUs by node: {names}): start more "
        f"nodes, make fewer shards, or put {per_node} on a node (--shards-per-node {per_node})"
    )


def _wanted(sizes: list[int], shards: int, cpus: float) -> str:
    each = f"{max(sizes) * cpus:g} CPU{'' if max(sizes) * cpus == 1 else 's'}"
    return f"{shards} shards on {len(sizes)} nodes of their own (STRICT_SPREAD) take {len(sizes)} nodes with {each}"


def _first_line(error: BaseException) -> str:
    """Shortens an error message: its first line, and the last line if the first one announces more."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
