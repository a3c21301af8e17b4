#!/usr/bin/env python3
"""Kills `brimful load --keep` and `brimful survey` (SIGKILL) at random instants, and checks that nothing is left
behind.

    python3 bench/reliability/load_kill.py --build target/release --count 1000

One second after the kill, no process that the command started may be left, and no new control group or network
namespace of brimful. The server must be allowed on the same CPUs as before. The Record of `--keep` must be readable,
and end at most two seconds before the kill. The next run must leave only its own files. Exits with 1 if any check
fails.
"""

import argparse
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from shared import MARK, groups_and_namespaces, parser, processes, target

LATEST_KILL_S = {"load": 4.0, "survey": 15.0}
GRACE_S = 1.0
MAX_AGE_S = 2.0


def main() -> int:
    options = parse()
    program = options.build.resolve() / "brimful"
    drawn = random.Random(options.seed)
    failures, ages = 0, []
    with target(program) as (url, server):
        for number in range(1, options.count + 1):
            kind = drawn.choice(options.kind)
            after_s = drawn.uniform(0, LATEST_KILL_S[kind])
            wrong, age_s = trial(program, kind, url, server, after_s)
            failures += bool(wrong)
            ages += [] if age_s is None else [age_s]
            if wrong or number % 50 == 0:
                print(f"{number}: {kind} killed after {after_s:.2f} s: {'; '.join(wrong) or 'ok'}", flush=True)
    oldest = f", the oldest Record ended {max(ages):.2f} s before its kill" if ages else ""
    print(f"{options.count} kills, {len(ages)} with a Record{oldest}; {failures} failures; seed {options.seed}")
    return 1 if failures else 0


def parse() -> argparse.Namespace:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=50, help="number of kills [default: %(default)s]")
    arguments.add_argument(
        "--kind", nargs="+", choices=LATEST_KILL_S, default=list(LATEST_KILL_S), help="commands to kill [default: both]"
    )
    arguments.add_argument(
        "--seed", type=int, default=secrets.randbits(32), help="seed of the instants [default: random]"
    )
    return arguments.parse_args()


def trial(program: Path, kind: str, url: str, server: int, after_s: float) -> tuple[list[str], float | None]:
    """Kills one command, and runs another after it. Returns the faults, and the time from the end of the kept Record to
    the kill."""
    with tempfile.TemporaryDirectory(prefix="brimful-load-kill-") as directory:
        place, kept = Path(directory, "out"), Path(directory, "out", "kept.json")
        place.mkdir()
        mark = secrets.token_hex(16)
        environment = {**os.environ, "TMPDIR": directory, MARK: mark}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": place}
        load = [str(program), "load", url, "--rate", "500", "--keep", str(kept)]
        survey = [str(program), "survey", url, "--level", "300ms", "--report", "report.html", "--out", "survey.json"]
        allowed, before = os.sched_getaffinity(server), groups_and_namespaces()

        victim = subprocess.Popen([*load, "-d", "60s"] if kind == "load" else survey, **quiet)
        time.sleep(after_s)
        victim.kill()
        killed_at = time.time()
        victim.wait()
        time.sleep(GRACE_S)

        wrong = [f"{words} is left" for words in processes(mark)]
        wrong += [f"{path} is left" for path in sorted(groups_and_namespaces() - before)]
        if os.sched_getaffinity(server) != allowed:
            wrong.append("the server is still restricted to some CPUs")
        age_s = None
        if kept.exists():
            try:
                record = json.loads(kept.read_text())
                began = datetime.fromisoformat(record["started_at"].replace("Z", "+00:00")).timestamp()
                age_s = killed_at - began - record["duration_s"]
            except (ValueError, LookupError) as error:
                wrong.append(f"the kept file is not a Record: {error!r}")
        elif kind == "load" and after_s > MAX_AGE_S:
            wrong.append("no Record was kept")
        if age_s is not None and age_s > MAX_AGE_S:
            wrong.append(f"the kept Record ends {age_s:.2f} s before the kill")
        if kind == "load":
            following = [*load, "-n", "5"]
            files = {"kept.json"}
        else:
            # A later run that writes the same output must delete the temporary files of the killed run.
            following = [*load[:3], "-n", "5", "--html", "report.html", "--out", "survey.json"]
            files = {"report.html", "survey.json"}
        done = subprocess.run(following, env=environment, cwd=place, capture_output=True, text=True, timeout=120)
        if done.returncode not in (0, 4):
            wrong.append(f"the next run ended with {done.returncode}: {done.stderr.strip()[:200]}")
        found = {path.name for path in place.iterdir()}
        if found != files:
            wrong.append(f"after the next run the directory contains {sorted(found)}")
        return wrong, age_s


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
