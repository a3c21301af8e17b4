"""The runs: one framework under the load of one case, and what its Record says."""

import contextlib
import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..accuracy import client
from ..accuracy.measure import warm_up
from ..accuracy.reading import CLIENT_LIMITS
from ..accuracy.repeat import MAX_ERROR_SHARE, MAX_OTHER_WORK, other_work
from ..side_by_side.tools import Failed
from . import contract
from .cases import Case
from .frameworks import Framework

# The server was the limit if its CPU was busy for at least this share of the run.
MIN_SERVER_BUSY = 0.95
# Length of the same load before each run, in seconds. The figures contain neither this load nor the opening of the
# connections.
RAMP_S = 2
# Maximum number of attempts at a run that other programs disturb. The last attempt counts, as in a survey.
ATTEMPTS = 2


@dataclass(frozen=True)
class Bench:
    """The program, the directories, the CPUs and the length of all runs. `records` has the Records of all runs."""

    brimful: str
    directory: Path
    records: Path
    server_cpu: int
    generator_cpu: int
    seconds: int

    def record(self, case: str, connections: int, framework: str, repetition: int) -> Path:
        return self.records / case / str(connections) / framework / f"{repetition}.json"


def runs(
    bench: Bench, framework: Framework, case: Case, connections: Sequence[int], repetition: int
) -> Iterator[dict]:
    """Starts a framework, checks its answers, warms it up, and yields the figures at each number of connections."""
    place = bench.directory / f"{framework.name}-{case.name}-{repetition}"
    head = {"framework": framework.name, "case": case.name, "repetition": repetition}
    left = list(connections)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        try:
            url, pids = stack.enter_context(framework.running(place, bench.server_cpu))
            load = prepared(bench, framework, case, url)
            while left:
                record = bench.record(case.name, left[0], framework.name, repetition)
                found = measured(bench, [*load, *case.load_flags(left[0])], pids, record)
                yield head | {"connections": left.pop(0)} | found
        except (Failed, OSError, ValueError, KeyError) as error:
            # The server may be in an unknown state. It is not measured again in this repetition.
            text = str(error) if isinstance(error, Failed) else f"the Record cannot be read: {error!r}"
            for number in left:
                yield head | {"connections": number, "error": text}


def prepared(bench: Bench, framework: Framework, case: Case, url: str) -> list[str]:
    """Checks the answers of a server and warms it up. Returns the beginning of the command that loads it."""
    address = urlsplit(url)
    contract.check(address.hostname, address.port, case.exchanges())
    # A Workload names files relative to the working directory.
    in_directory = ["env", f"--chdir={bench.directory}"]
    load = [*in_directory, bench.brimful, "load", url, "--cpus", str(bench.generator_cpu), "--quiet"]
    warm_up([*load, "--workload", str(case.file)], min(framework.warm_up, case.max_warm_up))
    return load


def measured(bench: Bench, load: Sequence[str], pids: Sequence[int], record: Path) -> dict:
    """The figures of a run. A run that other programs disturbed is made once more."""
    for _ in range(ATTEMPTS):
        run(bench, load, pids, record)
        found = figures(json.loads(record.read_text()), bench.server_cpu)
        if (found["other_work"] or 0) <= MAX_OTHER_WORK:
            break
    return found


def run(bench: Bench, load: Sequence[str], pids: Sequence[int], record: Path) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    watched = [argument for pid in pids for argument in ("--process", str(pid))]
    flags = ["--warm-up", f"{RAMP_S}s", "--duration", f"{bench.seconds}s", "--out", str(record)]
    client.load([*load, *watched, *flags], "load", RAMP_S + bench.seconds)


def figures(record: dict, server_cpu: int) -> dict:
    """The figures of a Record, and the reason for which the run cannot be ranked, if any."""
    times, verdict, server = (record.get(key) or {} for key in ("response_time_us", "verdict", "server"))
    rate = record["rates"]["completed"]
    processes = server.get("process") or []
    return {
        "rate": rate,
        "p50_us": times.get("p50"),
        "p99_us": times.get("p99"),
        "error_share": verdict.get("error_share") or 0.0,
        "cpu_us_per_request": sum(one["cores"] for one in processes) / rate * 1e6 if processes and rate else None,
        "server_busy": busy(record, server_cpu),
        "client_busy": record["generator"]["busy"],
        "other_work": other_work(record, server_cpu),
        "valid": verdict["valid"],
        "messages": [reason["message"] for reason in verdict["reasons"]],
        "doubt": doubt(record, server_cpu),
    }


def busy(record: dict, cpu: int) -> float | None:
    """The share of the run in which a CPU was not idle; None if it was not watched."""
    cores = (record.get("server") or {}).get("cores") or []
    return next((1 - core["idle"] for core in cores if core["cpu"] == cpu), None)


def doubt(record: dict, server_cpu: int) -> str | None:
    """The reason for which a run does not describe the limit of the server; None if it does.

    The verdict of brimful says whether the client was the limit. A closed load with too few clients, or a server that
    waits, leaves the server's CPU idle: then the rate is not that of a saturated server either.
    """
    verdict = record["verdict"]
    if not verdict["valid"]:
        codes = [reason["code"] for reason in verdict["reasons"]]
        limited = any(code in CLIENT_LIMITS for code in codes)
        return f"{'the client was the limit' if limited else 'the run is invalid'} ({', '.join(codes)})"
    share = verdict.get("error_share") or 0.0
    if share >= MAX_ERROR_SHARE:
        return f"{share * 100:.1f} % of the requests failed"
    server_busy, other = busy(record, server_cpu), other_work(record, server_cpu)
    if server_busy is None or other is None:
        return "the server was not watched"
    if other > MAX_OTHER_WORK:
        return f"other programs used {other * 100:.0f} % of the server's CPU"
    if server_busy < MIN_SERVER_BUSY:
        return f"the server was not the limit: its CPU was idle for {(1 - server_busy) * 100:.0f} % of the run"
    return None


def comparisons(bench: Bench, rows: Sequence[dict]) -> list[dict]:
    """The throughputs of each two frameworks of one case, compared by `brimful compare`."""
    paths: dict[str, list[Path]] = {}
    for row in rows:
        path = bench.record(row["case"], row["connections"], row["framework"], row["repetition"])
        paths.setdefault(row["framework"], []).append(path)
    return [
        {"a": a, "b": b} | compared(bench.brimful, paths[a], paths[b]) for a, b in itertools.combinations(paths, 2)
    ]


def compared(brimful: str, a: Sequence[Path], b: Sequence[Path]) -> dict:
    """The difference in throughput of B from A, as a share of A, with its 95 % interval."""
    command = [brimful, "compare", *map(str, a), "vs", *map(str, b), "--json"]
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    try:
        figure = next(one for one in json.loads(done.stdout)["figures"] if one["name"] == "throughput")
    except (ValueError, KeyError, StopIteration):
        return {"differs": None, "error": client.last_line(done.stderr)}
    return {key: figure[key] for key in ("differs", "difference", "interval95", "p")}
