#!/usr/bin/env python3
"""Runs a long load beyond the server's capacity, and checks the generator's memory, descriptors and call counts.

    python3 bench/reliability/soak.py --build target/release --minutes 120 --rate 50000

Runs loads one after another, each for --minutes: HTTP/1 and HTTP/2 at --rate calls per second, then sessions, then a
`watch` at 10 ms. After the first tenth, resident memory may grow by 1 MiB at most. The watch opens files for the time
of a sample, so its descriptors are the fewest in a tenth of the time, and they must not grow. In each Record, the numbers of scheduled and of ended calls must be equal. Exits with 1 if any check
fails.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import calls_ended, parser

MAX_GROWTH_KB = 1024
READING_INTERVAL_S = 1.0
CALLS_OF_SESSION = 5
SESSIONS = """[[class]]
name = "page"
path = "/"

[load.sessions]
rate = {rate}
calls = {calls}
think_s = 0.02
"""


def main() -> int:
    options = parse()
    program = str(options.build.resolve() / "brimful")
    failures = 0
    listen = [program, "target", "--listen", "127.0.0.1:0", "--with-parent", "--service", "page=100us"]
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as server, tempfile.TemporaryDirectory() as place:
        try:
            url = server.stdout.readline().split()[-1] + "/"
            lasts = f"{options.minutes * 60:.0f}s"
            workload = Path(place, "sessions.toml")
            workload.write_text(SESSIONS.format(rate=options.rate / CALLS_OF_SESSION, calls=CALLS_OF_SESSION))
            load = [program, "load", url, "--json", "-q", "-d", lasts]
            commands = {
                "HTTP/1": [*load, "--rate", str(options.rate), "--timeout", "1s"],
                "HTTP/2": [*load, "--rate", str(options.rate), "--timeout", "1s", "--http", "2"],
                "sessions": [*load, "--workload", str(workload), "--timeout", "1s"],
                "watch": [program, "watch", "--process", str(server.pid), "-d", lasts, "--interval", "10ms", "--json"],
            }
            for name in options.load or commands:
                wrong = soak(name, commands[name], Path(place, "record.json"), options.minutes * 60)
                failures += bool(wrong)
        finally:
            server.terminate()
    return 1 if failures else 0


def parse() -> argparse.Namespace:
    arguments = parser(__doc__)
    arguments.add_argument("--minutes", type=float, default=120, help="length of each load [default: %(default)s]")
    arguments.add_argument("--rate", type=int, default=50_000, help="calls per second [default: %(default)s]")
    arguments.add_argument("--load", nargs="+", choices=["HTTP/1", "HTTP/2", "sessions", "watch"], help="only these")
    return arguments.parse_args()


def soak(name: str, command: list[str], out: Path, lasts_s: float) -> str:
    """Runs a command and prints its figures. Returns its faults, or an empty string."""
    readings: list[tuple[float, int, int]] = []
    with open(out, "w+") as stdout, open(out.with_suffix(".err"), "w+") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
        began = time.monotonic()
        while process.poll() is None:
            elapsed = time.monotonic() - began
            if reading := memory_and_descriptors(process.pid):
                readings.append((elapsed, *reading))
            time.sleep(READING_INTERVAL_S)
        stderr.seek(0)
        errors = stderr.read().strip()
    # Leave out the start and the last two seconds: memory may grow at the end, when the Record is made.
    steady = [reading for reading in readings if lasts_s / 10 <= reading[0] <= lasts_s - 2]
    if not steady:
        print(f"{name}: ended after {readings[-1][0] if readings else 0:.0f} s: {errors[-300:]}", flush=True)
        return "too short"
    growth = max(kb for _, kb, _ in steady) - steady[0][1]
    tenths = [[reading for reading in steady if int(10 * reading[0] / lasts_s) == tenth] for tenth in range(1, 10)]
    most_kb = [f"{max(kb for _, kb, _ in tenth):,}" for tenth in tenths if tenth]
    print(f"{name}: most memory in each tenth, in KiB: {' '.join(most_kb)}", flush=True)
    descriptors = [min(number for *_, number in tenth) for tenth in tenths if tenth]
    wrong = []
    if growth > MAX_GROWTH_KB:
        wrong.append(f"memory grew by {growth} KiB")
    if name == "watch" and max(descriptors) > descriptors[0]:
        wrong.append(f"descriptors grew from {descriptors[0]} to {max(descriptors)}")
    account = ""
    if name != "watch":
        counts = json.loads(out.read_text())["counts"]
        ended = calls_ended(counts)
        account = f"{counts['scheduled']:,} scheduled, {ended:,} accounted for, {counts['completed']:,} completed; "
        if ended != counts["scheduled"]:
            wrong.append("the calls do not add up")
    print(
        f"{name}: {steady[0][1]:,} KiB after a tenth of the time, then {growth:+,} KiB at most; "
        f"descriptors {min(descriptors)} to {max(descriptors)}; "
        f"{account}exit {process.returncode}: {'; '.join(wrong) or 'ok'}",
        flush=True,
    )
    return "; ".join(wrong)


def memory_and_descriptors(pid: int) -> tuple[int, int] | None:
    """Resident memory in KiB and the number of open descriptors, or None if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return None
    lines = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return (int(lines[0]), descriptors) if lines else None


if __name__ == "__main__":
    sys.exit(main())
