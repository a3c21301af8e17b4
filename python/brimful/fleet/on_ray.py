"""Shards as actors of a Ray cluster. Only Ray's own ports are opened.

Ray chooses the hosts. A placement group (STRICT_SPREAD) puts each group of `shards_per_node` shards on a host of its
own.
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
from .driver import FleetError, PlaceLost
from .place import Place

#: The URL scheme of the address of a cluster's client port.
CLIENT_SCHEME = "ray://"
#: The directory of files with Ray's tokens, relative to the home directory. Each file is named after the address of its
#: cluster.
TOKEN_DIRECTORY = Path(".ray", "auth_tokens")
#: Maximum time in which Ray must reserve the hosts. This includes the time to start hosts, if Ray starts them.
READY_TIMEOUT_S = 60.0
#: Maximum time in which a host must accept a connection.
CONNECT_TIMEOUT_S = 10.0
#: For each connection to the client port, a cluster forks a process while gRPC's threads are running. A few of a
#: hundred such processes crash (ray-project/ray issue 63202). Ray then reports one of these messages, and this package
#: connects again.
CRASH_MESSAGES = "Starting Ray client server failed", "Proxy failed to Connect to backend"
MAX_TRIES = 3
#: Python's error message on a host without this package. Ray's error message contains it.
PACKAGE_ERROR = "No module named 'brimful'"
#: The message to the user about a host without this package.
PACKAGE_MISSING = "no Python package `brimful`: `pip install brimful` there, for the Python that runs Ray"


@dataclass(frozen=True)
class RayAnswer:
    """The answer of an actor."""

    reference: Any

    def get(self, timeout_s: float) -> Any:
        import ray.exceptions

        try:
            return ray.get(self.reference, timeout=timeout_s)
        except ray.exceptions.GetTimeoutError as error:
            raise TimeoutError from error
        except ray.exceptions.RayTaskError as error:
            raise PlaceLost(f"{error.cause}") from error
        except ray.exceptions.RayError as error:
            if PACKAGE_ERROR in str(error):
                raise PlaceLost(f"its host has {PACKAGE_MISSING}") from error
            raise PlaceLost(f"its host or its process has ended ({_first_line(error)})") from error


@dataclass(frozen=True)
class RayPlace:
    """A handle of a place in an actor."""

    actor: Any

    def ask(self, method: str, *arguments: Any) -> RayAnswer:
        return RayAnswer(getattr(self.actor, method).remote(*arguments))

    def release(self) -> None:
        import ray.exceptions

        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(self.actor)


@contextlib.contextmanager
def open_places(
    address: str,
    shards: int,
    shards_per_node: int = 1,
    cpus_per_shard: float = 1,
    scales: bool = False,
    ready_s: float = READY_TIMEOUT_S,
) -> Iterator[list[RayPlace]]:
    """Yields a place for each shard, on the hosts of the cluster at this address. A cluster that `scales` starts hosts
    on demand."""
    ray = _connected_ray(address)
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    sizes = [min(shards_per_node, shards - first) for first in range(0, shards, shards_per_node)]
    _check_capacity(ray, sizes, shards, cpus_per_shard, scales)
    group = placement_group([{"CPU": size * cpus_per_shard} for size in sizes], strategy="STRICT_SPREAD")
    try:
        if not group.wait(timeout_seconds=ready_s):
            raise FleetError(
                f"{_requirement(sizes, shards, cpus_per_shard)}, which were not free within {ready_s:.0f} s: stop other "
                "programs of the cluster (`ray status` shows them), or use fewer shards"
            )
        actors = []
        for index in range(shards):
            strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index // shards_per_node)
            options = {"num_cpus": cpus_per_shard, "max_restarts": 0, "scheduling_strategy": strategy}
            try:
                actors.append(ray.remote(Place).options(**options).remote())
            except ModuleNotFoundError as error:  # With a client port, the head node imports this package.
                if PACKAGE_ERROR not in str(error):
                    raise
                raise FleetError(f"the cluster's head node has {PACKAGE_MISSING}") from error
        yield [RayPlace(actor) for actor in actors]
    finally:
        with contextlib.suppress(ray.exceptions.RayError):
            remove_placement_group(group)


def _connected_ray(address: str) -> Any:
    imported = sys.modules.get("ray")
    if imported is None or not imported.is_initialized():
        _use_token(address)
    try:
        import ray.exceptions
    except ImportError as error:
        message = (
            "a fleet of several machines runs on Ray, which is not installed: `pip install 'brimful[fleet]'`. Without an "
            "address, the shards are processes of this machine"
        )
        raise _binary.HostError(message, 3) from error
    if not ray.is_initialized():
        try:
            _check_reachable(address)
            _connect(ray, address)
        except Exception as error:  # Ray documents no exception types.
            token_file = _token_file(address)
            token = f"; if the cluster requires a token, copy it from the head node to {token_file}" if token_file else ""
            raise FleetError(
                f"no Ray cluster can be reached at {address} ({_first_line(error)}): start one with `ray start --head`, and "
                f"give its address, like 10.0.0.1:6379, ray://10.0.0.1:10001 or auto{token}"
            ) from error
    return ray


def _connect(ray: Any, address: str) -> None:
    for tries_left in reversed(range(MAX_TRIES)):
        try:
            with _in_root_directory():
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            return
        except Exception as error:  # Ray documents no exception types.
            if tries_left == 0 or not any(message in str(error) for message in CRASH_MESSAGES):
                raise


@contextlib.contextmanager
def _in_root_directory() -> Iterator[None]:
    """Makes `/` the working directory while connecting. Ray's workers search for modules first in the working directory
    that this process has then. Other users may be able to write to the present working directory, but only root can
    write to `/`."""
    previous = os.getcwd()
    os.chdir("/")
    try:
        yield
    finally:
        os.chdir(previous)


def _use_token(address: str) -> None:
    """Makes Ray send the token for this client port, if there is one, and no other token.

    Ray itself has only one token, which it sends to every address if RAY_AUTH_MODE is `token`. A program that listens
    at a mistyped address would receive it, and could then use the cluster."""
    if not address.startswith(CLIENT_SCHEME):
        return
    file = _token_file(address)
    if file is None or not file.is_file():
        if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
            remedy = f"put this cluster's token in {file}, or " if file else ""
            raise FleetError(
                f"there is no Ray token for {address}, and with RAY_AUTH_MODE=token Ray would send a token that may be "
                f"another cluster's: {remedy}unset RAY_AUTH_MODE if the cluster requires none"
            )
        return
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file), "RAY_AUTH_TOKEN": None}
    # Ray reads these variables only when it is imported, and then keeps the token. So they cannot be changed
    # afterwards.
    if "ray" in sys.modules and any(os.environ.get(name) != value for name, value in settings.items()):
        raise FleetError(
            f"Ray was imported before the token for {address} was set: run the fleet before `import ray`, and use a "
            "separate process for each cluster"
        )
    for name, value in settings.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _token_file(address: str) -> Path | None:
    """Returns the path of the token file for a client port, which may not exist. None if the address does not belong to
    a client port, or cannot be a file name."""
    name = address.removeprefix(CLIENT_SCHEME).lower()
    is_plain = re.fullmatch(r"[0-9a-z.:_\[\]-]+", name) is not None and name.strip(".") != ""
    return Path.home() / TOKEN_DIRECTORY / name if address.startswith(CLIENT_SCHEME) and is_plain else None


def _check_reachable(address: str) -> None:
    """Raises OSError if nothing listens at the address. Ray itself would try for minutes, then end this process."""
    host, colon, port = address.removeprefix(CLIENT_SCHEME).rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()


def _check_capacity(ray: Any, sizes: list[int], shards: int, cpus: float, scales: bool) -> None:
    """Raises if the cluster has too few hosts, unless it `scales`."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    large = [node for node in nodes if node["Resources"].get("CPU", 0) >= max(sizes) * cpus]
    if len(large) >= len(sizes) or scales:
        return
    names = ", ".join(f"{node['NodeManagerHostname']}: {node['Resources'].get('CPU', 0):g}" for node in nodes[:8])
    per_node = -(-shards // max(len(nodes), 1))
    raise FleetError(
        f"{_requirement(sizes, shards, cpus)}, but {len(large)} of {len(nodes)} are large enough (CPUs by node: {names}): "
        f"start more nodes, use fewer shards, or run {per_node} on each node (--shards-per-node {per_node})"
    )


def _requirement(sizes: list[int], shards: int, cpus: float) -> str:
    each = f"{max(sizes) * cpus:g} CPU{'' if max(sizes) * cpus == 1 else 's'}"
    nodes = f"{len(sizes)} node{'' if len(sizes) == 1 else 's'}"
    return f"{shards} shards need {nodes} with {each} each"


def _first_line(error: BaseException) -> str:
    """Returns the first line of an error message, followed by the last line if the first one ends with a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
