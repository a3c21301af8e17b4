"""Starts a Ray cluster on the hosts of a test bed, and runs the loads of `test_far_hosts` on it. It runs on client1:

    brimful testbed --clients 3 -- ip netns exec client1 python3 -m tests.far_cluster DIRECTORY SERVER HEAD HOST…

The head node runs no shard. Each other host has its own name and boot id, as separate machines do, and the wall clock
of the last one is ahead. All hosts share CLOCK_MONOTONIC, by which the tests check when each shard started. The Records
of the loads are written to DIRECTORY.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import brimful
from brimful import fleet

#: How far the clock of the last host is ahead, in nanoseconds.
AHEAD_NS = 3_000_000_000
#: The port of the head node. Ray chooses all other ports.
PORT = 6379
#: Maximum number of attempts to start a node.
MAX_TRIES = 5
#: A shell script that runs in its own namespaces. It sets the host name ($1) and the boot id (from the file $2), and
#: then executes the program in the other arguments.
AS_HOST = 'hostname "$1"; mount --bind "$2" /proc/sys/kernel/random/boot_id; shift 2; exec "$@"'


def main(directory: Path, server: str, head: str, *hosts: str) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_host("server", [brimful.binary(), "target", "--listen", f"{server}:80"]))
        first = [f"--node-ip-address={head}", "--head", f"--port={PORT}", "--num-cpus=0", "--include-dashboard=false"]
        join(stack, head, 1, as_host("client1", first, directory))
        for number, address in enumerate(hosts, 2):
            flags = [f"--node-ip-address={address}", f"--address={head}:{PORT}", "--num-cpus=1"]
            environment = with_clock_ahead(directory, AHEAD_NS) if number == len(hosts) + 1 else None
            join(stack, head, number, as_host(f"client{number}", flags, directory), environment)
        together(directory, f"http://{server}/", f"{head}:{PORT}")
        cut_off(directory, f"http://{server}/", f"{head}:{PORT}", f"client{len(hosts) + 1}")


def together(directory: Path, url: str, address: str) -> None:
    """Runs a load without any disturbance."""
    records = directory / "together"
    outcome = fleet.run(url, shards=2, address=address, rate=100, duration="2s", seed=3, directory=records)
    outcome.record.save(directory / "together.json")


def cut_off(directory: Path, url: str, address: str, host: str) -> None:
    """Runs a load, and cuts one host off the network once both hosts have sent a Record."""
    records = directory / "cut-off"
    cut: list[str] = []

    def on_second(figures: fleet.Figures, present: int) -> None:
        if not cut and len(list(records.glob("shard-*.json"))) == 2:
            cut.append(host)
            subprocess.run(["ip", "netns", "exec", host, "ip", "link", "set", "wan", "down"], check=True)

    outcome = fleet.run(
        url, shards=2, address=address, rate=100, duration="20s", seed=3, directory=records, on_second=on_second
    )
    outcome.record.save(directory / "cut-off.json")


@contextlib.contextmanager
def on_host(
    name: str, words: list[str], environment: dict[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """Runs a program on a host, and terminates it at the end of the block."""
    command = ["ip", "netns", "exec", name, *words]
    with subprocess.Popen(command, env={**os.environ, **(environment or {})}, stdout=sys.stderr) as process:
        try:
            yield process
        finally:
            process.terminate()


def join(
    stack: contextlib.ExitStack, head: str, number: int, words: list[str], environment: dict[str, str] | None = None
) -> None:
    """Starts the node of a host, and waits until the cluster has `number` nodes. Ray ends a node that takes longer than
    half a minute, as may happen on a busy machine. Then it is started again."""
    for _ in range(MAX_TRIES):
        process = stack.enter_context(on_host(f"client{number}", words, environment))
        while process.poll() is None:
            if count_nodes(head) >= number:
                return
            time.sleep(0.2)
    raise RuntimeError(f"client{number} does not join the cluster: see its message above")


def as_host(name: str, flags: list[str], directory: Path) -> list[str]:
    """Returns the command that starts a node as a host of its own."""
    boot = directory / f"{name}.boot"
    boot.write_text(f"{uuid.uuid4()}\n")
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *flags]
    return ["unshare", "--uts", "--mount", "sh", "-c", AS_HOST, "sh", name, str(boot), *ray]


def with_clock_ahead(directory: Path, ahead_ns: int) -> dict[str, str]:
    """Returns an environment in which the wall clock is ahead. Time namespaces cannot do that: they shift only other
    clocks. Instead, Python's `time.time_ns` is replaced, and brimful gets earlier start times."""
    place = directory / "ahead"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        f"import time\ntrue_time_ns = time.time_ns\ntime.time_ns = lambda: true_time_ns() + {ahead_ns}\n"
    )
    program = place / "brimful"
    program.write_text(
        f"""#!{sys.executable}
import os, sys
def with_earlier_start(word):
    if not word.startswith("--start-at="):
        return word
    seconds, _, nanoseconds = word.partition("=")[2].partition(".")
    start_ns = int(seconds) * 10**9 + int(nanoseconds) - {ahead_ns}
    return f"--start-at={{start_ns // 10**9}}.{{start_ns % 10**9:09}}"
os.execv({brimful.binary()!r}, [{brimful.binary()!r}, *map(with_earlier_start, sys.argv[1:])])
"""
    )
    program.chmod(0o755)
    path = os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "BRIMFUL_BINARY": str(program)}


def count_nodes(head: str) -> int:
    """Returns the number of nodes that have joined the cluster."""
    import ray

    with contextlib.suppress(OSError, RuntimeError):
        if not ray.is_initialized():
            socket.create_connection((head, PORT), 1).close()
            ray.init(f"{head}:{PORT}", log_to_driver=False, logging_level="ERROR")
        return sum(node["Alive"] for node in ray.nodes())
    return 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    # End without Ray's cleanup, which would wait for the host that the test has disconnected.
    sys.stderr.flush()
    os._exit(0)
