#!/usr/bin/env python3
"""Steps the wall clock by an hour, forwards and back, during a load and a watch, and stops another load for 30 seconds.

    python3 bench/reliability/clock_steps.py --build target/release

Only the program sees the steps: a library loaded with LD_PRELOAD shifts the wall clock that it reads. The calls of each
Record must add up, no response time may contain a step, and the samples of the watch must have plausible lengths. The
verdict of the stopped load must say that the generator did not run. Needs a C compiler. Exits with 1 if any check
fails.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import calls_ended, parser, target

LOAD_S = 9
SHIM = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Seconds after the first reading, and the offset of the clock from then on. */
static const long steps[][2] = {{2, 3600}, {4, -3600}, {6, 0}};

int clock_gettime(clockid_t clock, struct timespec *now) {
    static long began;
    struct timespec steady;
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed || clock != CLOCK_REALTIME)
        return failed;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
    if (!began)
        began = steady.tv_sec;
    long offset = 0;
    for (unsigned n = 0; n < sizeof steps / sizeof *steps; n++)
        if (steady.tv_sec - began >= steps[n][0])
            offset = steps[n][1];
    now->tv_sec += offset;
    return 0;
}
"""


def main() -> int:
    options = parse()
    program = str(options.build.resolve() / "brimful")
    failures = 0
    with target(Path(program)) as (url, server), tempfile.TemporaryDirectory() as place:
        shim = compiled(Path(place))
        load = [program, "load", url, "--rate", "1000", "--json", "-q", "-d"]
        watch = [program, "watch", "--process", str(server), "-d", f"{LOAD_S}s", "--interval", "500ms", "--json"]
        kept = str(Path(place, "kept.json"))
        trials = {
            "load": (load_faults, run([*load, f"{LOAD_S}s", "--keep", kept], shim), LOAD_S),
            "watch": (watch_faults, run(watch, shim), LOAD_S),
            "stopped load": (stopped_faults, stopped([*load, "40s"], options.stop_s), 40),
        }
        for name, (faults, document, lasts_s) in trials.items():
            wrong = faults(document, lasts_s)
            failures += bool(wrong)
            print(f"{name}: {'; '.join(wrong) or 'ok'}", flush=True)
    return 1 if failures else 0


def parse() -> argparse.Namespace:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--stop-s", type=float, default=30, help="seconds for which the load is stopped [default: %(default)s]"
    )
    return arguments.parse_args()


def compiled(place: Path) -> Path:
    source, library = place / "clock.c", place / "clock.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def run(command: list[str], shim: Path) -> dict:
    environment = {**os.environ, "LD_PRELOAD": str(shim)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LOAD_S + 60)
    return document(done.stdout, done.stderr)


def stopped(command: list[str], seconds: float) -> dict:
    """Runs a load, and stops it with SIGSTOP for this number of seconds."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)
    return document(*process.communicate(timeout=120))


def document(stdout: str, stderr: str) -> dict:
    if not stdout:
        raise SystemExit(f"clock_steps: the program printed no document: {stderr}")
    return json.loads(stdout)


def sums_faults(record: dict) -> list[str]:
    counts = record["counts"]
    return [] if calls_ended(counts) == counts["scheduled"] else ["the calls do not add up"]


def load_faults(record: dict, lasts_s: float) -> list[str]:
    wrong = sums_faults(record)
    if record["counts"]["scheduled"] != 1000 * lasts_s:
        wrong.append(f"{record['counts']['scheduled']} calls were scheduled")
    slowest_us = record["response_time_us"]["max"]
    if slowest_us > 5e6:
        wrong.append(f"a call took {slowest_us / 1e6:.0f} s")
    return wrong


def watch_faults(server: dict, lasts_s: float) -> list[str]:
    lengths = [interval["length_s"] for interval in server["intervals"]]
    if not lengths or min(lengths) <= 0 or max(lengths) > lasts_s:
        return [f"intervals of {min(lengths, default=0)} to {max(lengths, default=0)} s"]
    return []


def stopped_faults(record: dict, _: float) -> list[str]:
    wrong = sums_faults(record)
    reasons = json.dumps(record["verdict"])
    if record["verdict"]["valid"] or "did not run" not in reasons and "stalled" not in reasons:
        wrong.append(f"the verdict does not say that the generator did not run: {reasons}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
