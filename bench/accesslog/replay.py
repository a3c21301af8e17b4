"""Holds a replay at the log's own speed against the log: how many requests came in another second than they should.

A log of some seconds with bursts is replayed to nginx, whose own log has milliseconds. When each request came is
shifted by the median of all, as the two logs' clocks begin anywhere; then requests are counted by second in both. The
requirement: the sum of the differences is at most 1 % of the requests.

python3 -m bench.accesslog.replay --build target/release
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from .. import command
from ..calibration.subjects import files, nginx
from ..monitor.bed import Running
from ..side_by_side.servers import free_port
from ..side_by_side.tools import Failed

# At most this share of the requests may be counted in another second.
REQUIRED = 0.01
LINE = re.compile(r"^([0-9.]+) ([0-9.]+) \S*[?&]n=([0-9]+)", re.MULTILINE)


def times(seconds: int, rate: float, seed: int) -> list[float]:
    """When requests come: Poisson arrivals, and half of all in bunches of some milliseconds."""
    draw = random.Random(seed)
    found, at = [], 0.0
    while (at := at + draw.expovariate(rate / 2)) < seconds:
        found.append(at)
    at = 0.0
    while (at := at + draw.expovariate(rate / 2 / 50)) < seconds:
        found += [at + draw.random() * 0.02 for _ in range(50)]
    return sorted(round(one, 3) for one in found if one < seconds)


def moved(source: list[float], came: dict[int, float]) -> float:
    """The share of requests that are counted in another second."""
    shift = statistics.median(came[n] - at for n, at in enumerate(source))
    before = Counter(int(at) for at in source)
    after = Counter(int(came[n] - shift) if came[n] >= shift else -1 for n in range(len(source)))
    return sum(abs(before[second] - after[second]) for second in before.keys() | after.keys()) / len(source)


def measure(brimful: Path, options: argparse.Namespace, directory: Path) -> dict:
    source = times(options.seconds, options.rate, options.seed)
    log = directory / "source.log"
    begin = 1_772_445_600
    with log.open("w") as file:
        for n, at in enumerate(source):
            stamp = f"{begin + at:.3f}"
            file.write(f'{{"ts":{stamp},"method":"GET","uri":"/page.html?n={n}","status":200,"size":1}}\n')
    os.chmod(directory, 0o755)
    files(directory / "www")
    port, arrived = free_port(), directory / "arrived.log"
    conf = nginx(directory, port, f"access_log {arrived} arrived;")
    form = "access_log off;\n    log_format arrived '$msec $request_time $request_uri';"
    path = directory / "nginx.conf"
    path.write_text(conf.replace("access_log off;", form, 1))
    with Running(["/usr/sbin/nginx", "-e", str(directory / "error.log"), "-c", str(path)], options.server_cpu):
        url = f"http://127.0.0.1:{port}/"
        await_answer(url)
        args = [str(brimful), "replay", str(log), url, "--json", "--quiet"]
        done = subprocess.run(args, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise Failed(f"brimful replay: exit {done.returncode}: {done.stderr}")
    record = json.loads(done.stdout)
    came = {int(n): float(at) - float(took) for at, took, n in LINE.findall(arrived.read_text())}
    if len(came) != len(source):
        raise Failed(f"{len(source)} requests are in the log, and {len(came)} came")
    lateness = record["lateness_us"]
    return {
        "requests": len(source),
        "moved": moved(source, came),
        "valid": record["verdict"]["valid"],
        "lateness_p99_us": lateness["p99"],
        "lateness_max_us": lateness["max"],
    }


def await_answer(url: str) -> None:
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise Failed("nginx does not answer")


def main() -> int:
    parser = argparse.ArgumentParser(prog="replay", description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--build", type=Path, default=command.TARGET / "release", help="directory of brimful")
    parser.add_argument("--seconds", type=command.positive, default=20, help="length of the log [default: %(default)s]")
    parser.add_argument("--rate", type=float, default=500, help="requests per second of it [default: %(default)s]")
    parser.add_argument("--runs", type=command.positive, default=3, help="[default: %(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[default: %(default)s]")
    parser.add_argument("--server-cpu", type=int, default=0, help="[default: %(default)s]")
    options = parser.parse_args()
    worst = 0.0
    for run in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
            options.seed += run
            found = measure(options.build.resolve() / "brimful", options, Path(directory))
        worst = max(worst, found["moved"])
        print(
            f"{found['requests']:,} requests: {100 * found['moved']:.2f} % in another second; "
            f"{'valid' if found['valid'] else 'not valid'}, late by {found['lateness_p99_us']:.0f} µs (99 %), "
            f"{found['lateness_max_us']:.0f} µs at most"
        )
    print(f"required: at most {100 * REQUIRED:.0f} %: {'ok' if worst <= REQUIRED else 'MISSED'}")
    return 0 if worst <= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
