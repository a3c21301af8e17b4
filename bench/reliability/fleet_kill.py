#!/usr/bin/env python3
"""Kills the driver of a fleet (SIGKILL) at random instants, and checks that nothing is left behind.

    python3 bench/reliability/fleet_kill.py --build target/release --count 100

One second after the kill, no process of the fleet may be left, and no new control group or network namespace of
brimful. The Records of `--keep` must be readable, and end at most two seconds before the kill. After the next run there
must be no temporary file, and the directory of `--keep` must contain only that run's files. Exits with 1 if any check
fails.
"""

import argparse
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from shared import MARK, ROOT, groups_and_namespaces, parser, processes, target

#: Maximum time from the start of the command to the kill, in seconds. A kill may happen from the start of Python to
#: some seconds into the load.
LATEST_KILL_S = 8.0
GRACE_S = 1.0
MAX_AGE_S = 2.0
#: Matches a line of progress at 2 s or later. The driver prints it only after it has stored a Record of each shard.
SEEN = re.compile(r"^([2-9]|\d{2,})s: ")


def main() -> int:
    options = parse()
    program = options.build.resolve() / "brimful"
    if not program.exists():
        print(f"fleet_kill: {program} is missing: make build", file=sys.stderr)
        return 3
    drawn = random.Random(options.seed)
    failures = 0
    ages: list[float] = []
    with target(program) as (url, _):
        for number in range(1, options.count + 1):
            after_s = drawn.uniform(0, LATEST_KILL_S)
            # About half of the loads are short, so that some kills happen while the Records are merged, or after the
            # driver has ended.
            duration_s = drawn.choice([60.0, drawn.uniform(1, 4)])
            wrong, age_s = trial(program, url, options.shards, duration_s, after_s)
            ages += [] if age_s is None else [age_s]
            failures += bool(wrong)
            kept = "no unfinished Record" if age_s is None else f"Records end {age_s:.2f} s before"
            result = "; ".join(wrong) or "ok"
            print(f"{number}: load of {duration_s:.1f} s, kill after {after_s:.2f} s, {kept}: {result}", flush=True)
    oldest = f" (the oldest ended {max(ages):.2f} s before)" if ages else ""
    unfinished = f"{len(ages)} with unfinished Records{oldest}"
    print(f"{options.count} kills, {unfinished}, {failures} failures; seed {options.seed}")
    return 1 if failures else 0


def parse() -> argparse.Namespace:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=20, help="number of kills [default: %(default)s]")
    arguments.add_argument("--shards", type=int, default=2, help="shards of each fleet [default: %(default)s]")
    arguments.add_argument(
        "--seed", type=int, default=secrets.randbits(32), help="seed of the instants [default: random]"
    )
    return arguments.parse_args()


def trial(
    program: Path, url: str, shards: int, duration_s: float, after_s: float
) -> tuple[list[str], float | None]:
    """Kills one fleet, and runs another after it. Returns the faults, and the time from the end of the oldest
    unfinished Record to the kill."""
    with tempfile.TemporaryDirectory(prefix="brimful-fleet-kill-") as directory:
        kept, scratch = Path(directory, "kept"), Path(directory, "tmp")
        scratch.mkdir()
        mark = secrets.token_hex(16)
        paths = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": paths, MARK: mark}
        command = [str(program), "fleet", "run", f"--shards={shards}", f"--keep={kept}", "--rate=200"]
        before = groups_and_namespaces()

        with open(Path(directory, "stderr"), "w+") as stderr:
            driver = subprocess.Popen(
                [*command, f"--duration={duration_s}s", url],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
            try:
                time.sleep(after_s)
            finally:
                driver.send_signal(signal.SIGKILL)
                killed_at = time.time()
                driver.wait()
            stderr.seek(0)
            seen = any(SEEN.match(line) for line in stderr)
        time.sleep(GRACE_S)
        wrong = [f"{words} is left" for words in processes(mark)]
        wrong += [f"{path} is left" for path in sorted(groups_and_namespaces() - before)]
        faults, age_s = judge_records(kept, shards, killed_at, seen)
        wrong += faults

        done = subprocess.run(
            [*command, "--duration=300ms", "--quiet", url], env=environment, capture_output=True, text=True, timeout=120
        )
        if done.returncode not in (0, 4):
            wrong.append(f"the next run ended with {done.returncode}: {done.stderr.strip()}")
        wrong += [f"{path.name} is left in the directory for temporary files" for path in scratch.iterdir()]
        expected = {f"shard-{index}.json" for index in range(1, shards + 1)}
        found = {path.name for path in kept.iterdir()} if kept.is_dir() else set()
        if found != expected:
            wrong.append(f"after the next run the directory of --keep contains {sorted(found)}")
        return wrong, age_s


def judge_records(kept: Path, shards: int, killed_at: float, seen: bool) -> tuple[list[str], float | None]:
    """The faults of the kept Records, and the time from the end of the oldest unfinished one to the kill."""
    wrong: list[str] = []
    ages: list[float] = []
    records = 0
    for path in sorted(kept.glob("shard-*.json")):
        try:
            record = json.loads(path.read_text())
            began = datetime.fromisoformat(record["started_at"].replace("Z", "+00:00")).timestamp()
            records += 1
            if record["shards"][0]["lost_at_s"] is not None:
                ages.append(killed_at - began - record["duration_s"])
        except (ValueError, LookupError, TypeError) as error:
            wrong.append(f"{path.name} is not a Record: {error!r}")
    if seen and records != shards:
        wrong.append(f"{records} of {shards} Records are kept")
    age_s = max(ages, default=None)
    if age_s is not None and age_s > MAX_AGE_S:
        wrong.append(f"a Record ends {age_s:.2f} s before the kill")
    return wrong, age_s


if __name__ == "__main__":
    sys.exit(main())
