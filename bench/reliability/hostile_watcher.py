#!/usr/bin/env python3
"""Sends a load generator the largest samples that a watching side can make, at ten times the requested rate.

    python3 bench/reliability/hostile_watcher.py --build target/release --seconds 60

For each collection of a sample, the watching side follows the protocol at first, and then sends messages of 4 MiB. In a
second load it sends smaller messages, which the generator accepts. Compared with a load without a watching side, the
generator's peak memory may grow by 64 MiB at most. The Record must be complete: every scheduled call is accounted for,
and `server.sources` says why the stream broke. Exits with 1 if any check fails.
"""

import argparse
import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from shared import calls_ended, parser, target

MAX_GROWTH = 64 << 20
MAX_MESSAGE = 4 << 20
#: Maximum number of elements of a collection in this program's messages. The load generator accepts this number in
#: collections of all kinds.
MAX_ELEMENTS = 6_000
PROTOCOL = "brimful.watch/3"
NONCE = "0123456789abcdef0123456789abcdef"

#: For each collection: a sample with `*` in place of the elements, and one element. In the element, `#` is replaced by
#: the element's number.
COLLECTIONS = {
    "module classes": ('{"module":{"servers":[{"classes":[*]}]}}', "{}"),
    "module servers": ('{"module":{"servers":[*]}}', "{}"),
    "processes": ('{"process":[*]}', "{}"),
    "process ids": ('{"process":[{"pids":[*]}]}', "1"),
    "quotas": ('{"process":[{"quotas":[*]}]}', "{}"),
    "CPUs": ('{"kernel":{"cpus":{*}}}', '"#":{}'),
    "interfaces": ('{"network":{"interfaces":[*]}}', '{"name":""}'),
    "ports": ('{"connections":{"ports":[*]}}', '{"connections":{"established":1}}'),
    "request ports": ('{"requests":{"ports":[*]}}', "{}"),
    "request sizes": ('{"requests":{"ports":[{"sizes":[*]}]}}', "{}"),
    "one name": ('{"process":[{"name":"*"}]}', ""),
}


def main() -> int:
    options = parse()
    program = options.build.resolve() / "brimful"
    failures = 0
    with target(program) as (url, _), tempfile.TemporaryDirectory() as place:
        plain = load(program, url, min(options.seconds, 5), Path(place), watcher=None)
        print(f"without a watching side: {plain.peak >> 20} MiB at most")
        trials = [(name, most) for name in options.collection or COLLECTIONS for most in (sys.maxsize, MAX_ELEMENTS)]
        for name, most in trials:
            watcher = Watcher(filled(*COLLECTIONS[name], most))
            result = load(program, url, options.seconds, Path(place), watcher)
            wrong = result.faults(plain.peak)
            failures += bool(wrong)
            print(
                f"{name}: {watcher.sent} messages of {len(watcher.message) >> 10} KiB sent, memory "
                f"{(result.peak - plain.peak) / 2**20:+.1f} MiB, exit {result.code}, {result.source!r}: "
                f"{'; '.join(wrong) or 'ok'}",
                flush=True,
            )
    return 1 if failures else 0


def parse() -> argparse.Namespace:
    arguments = parser(__doc__)
    arguments.add_argument("--seconds", type=float, default=60, help="length of each load [default: %(default)s]")
    arguments.add_argument(
        "--collection", nargs="+", choices=COLLECTIONS, help="only these collections [default: all]"
    )
    return arguments.parse_args()


def sample(groups: str) -> bytes:
    """A message with these groups. When it is sent, `%AT%` is replaced by the time in nanoseconds."""
    overhead = {"samples": 1, "per_sample_us": 1.0, "monitor_cpu_s": 0.0, "kernel_cpu_s": 0.0}
    text = f'{{"at":%AT%,"groups":{groups}}}'
    return f'{{"sample":{{"sample":{text},"overhead":{json.dumps(overhead)}}}}}\n'.encode()


def filled(groups: str, element: str, most: int) -> bytes:
    """A sample of 4 MiB, or a sample with `most` elements if it is smaller than 4 MiB."""
    room = MAX_MESSAGE - len(groups) - 500
    if element:
        count = room // (len(element) + (7 if "#" in element else 1))
        content = ",".join(element.replace("#", str(number)) for number in range(min(count, most)))
    else:
        content = "x" * room
    return sample(groups.replace("*", content))


class Watcher(threading.Thread):
    """A watching side that knows the token and sends the same message repeatedly."""

    def __init__(self, message: bytes) -> None:
        super().__init__(daemon=True)
        self.message = message
        self.token = secrets.token_hex(16)
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self) -> None:
        connection, _ = self.listener.accept()
        with connection, self.listener:
            try:
                interval_s = self.begin(connection)
                # Send one sample first: the load generator waits for it before it begins the load.
                connection.sendall(sample("{}").replace(b"%AT%", str(time.monotonic_ns()).encode()))
                while True:
                    time.sleep(interval_s / 10)
                    connection.sendall(self.message.replace(b"%AT%", str(time.monotonic_ns()).encode()))
                    self.sent += 1
            except OSError:
                return

    def begin(self, connection: socket.socket) -> float:
        """Does the handshake: greeting, proof of the token, comparison of clocks, list of groups. Returns the shortest
        interval that the generator requested, in seconds."""

        def say(message: dict) -> None:
            connection.sendall(json.dumps(message).encode() + b"\n")

        say({"greeting": {"protocol": PROTOCOL, "version": "9", "nonce": NONCE}})
        lines = connection.makefile("rb")
        generator = json.loads(lines.readline())["hello"]["nonce"]
        statement = f"{PROTOCOL} server {NONCE} {generator}".encode()
        say({"welcome": {"proof": hmac.new(self.token.encode(), statement, "sha256").hexdigest()}})
        for line in lines:
            request = json.loads(line)
            if "clock" in request:
                say({"clock": {"at": time.monotonic_ns()}})
            elif "watch" in request:
                every = request["watch"]["every"]
                say({"watching": {"every": every, "sources": {}}})
                return min(every.values()) / 1e9
        raise ConnectionError("the generator closed the connection")


class Result:
    """A load that has ended: exit code, peak memory in bytes, Record and standard error."""

    def __init__(self, code: int, peak: int, document: dict | None, stderr: str) -> None:
        self.code = code
        self.peak = peak
        self.document = document
        self.stderr = stderr

    @property
    def source(self) -> str:
        server = (self.document or {}).get("server") or {}
        return server.get("sources", {}).get("monitor", "")

    def faults(self, plain_peak: int) -> list[str]:
        if self.document is None:
            return [f"no Record: {self.stderr[-200:]}"]
        wrong = []
        if self.peak - plain_peak > MAX_GROWTH:
            wrong.append("too much memory")
        if calls_ended(self.document["counts"]) != self.document["counts"]["scheduled"]:
            wrong.append("the calls do not add up")
        if not self.source:
            wrong.append("the Record does not say how the watching side ended")
        return wrong


def load(program: Path, url: str, seconds: float, place: Path, watcher: Watcher | None) -> Result:
    """Runs a load with this watching side, if any, and records its peak memory."""
    command = [str(program), "load", url, "--rate", "500", "-d", f"{seconds:.0f}s", "--json", "-q"]
    environment = dict(os.environ)
    if watcher:
        watcher.start()
        command += ["--watch-from", watcher.address]
        environment["BRIMFUL_TOKEN"] = watcher.token
    with open(place / "record.json", "w+") as out, open(place / "stderr", "w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        peak = 0
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                status = ""
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]) << 10)
            time.sleep(0.05)
        out.seek(0)
        err.seek(0)
        text = out.read()
        return Result(process.returncode, peak, json.loads(text) if text else None, err.read())


if __name__ == "__main__":
    sys.exit(main())
