"""A Ray cluster on the hosts of a test bed, and the loads that `test_far_hosts` asks it for. It runs on client1:

    brimful testbed --clients 3 -- ip netns exec client1 python3 -m tests.far_cluster DIRECTORY SERVER HEAD HOST…

The head node takes no shard. Each other host has a name and a boot id of its own, as machines have, and the wall clock
of the last one is ahead. All have the same CLOCK_MONOTONIC, which tells the truth about when each shard began. What
became of the loads is in DIRECTORY, by their names.
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

#: How far the last host's clock is ahead.
AHEAD_NS = 3_000_000_000
#: Of the head node. Its other ports are its business.
PORT = 6379
#: How often a node is started before that is given up.
TRIES = 5
#: In namespaces of its own: its name, its boot id, and then the program.
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
    """A load that nothing disturbs."""
    kept = directory / "together"
    outcome = fleet.run(url, shards=2, address=address, rate=100, duration="2s", seed=3, directory=kept)
    outcome.record.save(directory / "together.json")


def cut_off(directory: Path, url: str, address: str, host: str) -> None:
    """A load of which one host is cut off once something has been heard of both."""
    kept = directory / "cut-off"
    cut: list[str] = []

    def on_second(figures: fleet.Figures, there: int) -> None:
        if not cut and len(list(kept.glob("shard-*.json"))) == 2:
            cut.append(host)
            subprocess.run(["ip", "netns", "exec", host, "ip", "link", "set", "wan", "down"], check=True)

    outcome = fleet.run(
        url, shards=2, address=address, rate=100, duration="20s", seed=3, directory=kept, on_second=on_second
    )
    outcome.record.save(directory / "cut-off.json")


@contextlib.contextmanager
def on_host(
    name: str, words: list[str], environment: dict[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """A program on a host, until it is not needed any more."""
    command = ["ip", "netns", "exec", name, *words]
    with subprocess.Popen(command, env={**os.environ, **(environment or {})}, stdout=sys.stderr) as process:
        try:
            yield process
        finally:
            process.terminate()


def join(
    stack: contextlib.ExitStack, head: str, number: int, words: list[str], environment: dict[str, str] | None = None
) -> None:
    """Has the node of a host join, as the cluster's node of this number. Ray gives one up that takes half a minute,
    which on a busy machine it may; then it is started again."""
    for _ in range(TRIES):
        process = stack.enter_context(on_host(f"client{number}", words, environment))
        while process.poll() is None:
            if nodes(head) >= number:
                return
            time.sleep(0.2)
    raise RuntimeError(f"client{number} does not join the cluster; see its message above")


def as_host(name: str, flags: list[str], directory: Path) -> list[str]:
    """What starts a node as a host of its own."""
    boot = directory / f"{name}.boot"
    boot.write_text(f"{uuid.uuid4()}\n")
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *flags]
    return ["unshare", "--uts", "--mount", "sh", "-c", AS_HOST, "sh", name, str(boot), *ray]


def with_clock_ahead(directory: Path, ahead_ns: int) -> dict[str, str]:
    """The environment of programs to which the wall clock is ahead: a time namespace shifts all clocks but that one. To
    Python it is `time.time_ns`; brimful is given instants that have passed."""
    place = directory / "ahead"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        f"import time\nshown = time.time_ns\ntime.time_ns = lambda: shown() + {ahead_ns}\n"
    )
    program = place / "brimful"
    program.write_text(
        f"""#!{sys.executable}
import os, sys
def sooner(word):
    if not word.startswith("--start-at="):
        return word
    whole, _, part = word.partition("=")[2].partition(".")
    at = int(whole) * 10**9 + int(part) - {ahead_ns}
    return f"--start-at={{at // 10**9}}.{{at % 10**9:09}}"
os.execv({brimful.binary()!r}, [{brimful.binary()!r}, *map(sooner, sys.argv[1:])])
"""
    )
    program.chmod(0o755)
    path = os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "BRIMFUL_BINARY": str(program)}


def nodes(head: str) -> int:
    """How many have joined."""
    import ray

    with contextlib.suppress(OSError, RuntimeError):
        if not ray.is_initialized():
            socket.create_connection((head, PORT), 1).close()
            ray.init(f"{head}:{PORT}", log_to_driver=False, logging_level="ERROR")
        return sum(node["Alive"] for node in ray.nodes())
    return 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    # Ray would wait for the host that is cut off.
    sys.stderr.flush()
    os._exit(0)
