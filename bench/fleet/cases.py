"""The cases. The docstring of each case is printed above its table."""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import brimful
from brimful import fleet
from brimful.fleet.place import Place

from . import largest as largest_load
from . import offsets as clock_offsets

#: Number of request classes in the Records that are merged.
CLASSES = 20
#: Length of the runs whose Records are merged, in seconds. Such a Record has 300 intervals.
SECONDS = 600
#: Number of Records that one task merges.
FAN_IN = 32
#: Rates in the case `overhead`, in calls per second. Work that is done once per second costs more per call at a low
#: rate.
RATES = [5_000, 20_000]
#: Number of groups of three runs in the case `overhead`, without and with `--quick`.
TRIPLES = {False: 15, True: 2}


def merge(options: argparse.Namespace, directory: Path) -> list[dict]:
    """`brimful merge` of the Records of all shards of a run of ten minutes with 20 classes: wall time, peak memory,
    size of one Record."""
    shard_record = record_of_one_shard(options, directory)
    rows = []
    for number in options.merge:
        files = copies(shard_record, number, directory)
        measured = [
            timed([brimful.binary(), "merge", "--quiet", "--json", *map(str, files)])
            for _ in range(options.repetitions)
        ]
        row = {
            "records": number,
            "how": "one process",
            "wall_s": [wall for wall, _ in measured],
            "peak_mib": max(peak for _, peak in measured) / 2**20,
            "record_kb": files[0].stat().st_size / 1e3,
        }
        rows.append(row)
        if options.address:
            rows.append({"records": number, "how": "tree on Ray"} | by_ray(options, files))
        for file in files:
            file.unlink()
    return rows


def start(options: argparse.Namespace, directory: Path) -> list[dict]:
    """Shards on this machine: the time between their starts, and from the call to the first request."""
    rows = []
    for shards in options.shards:
        skews, firsts = [], []
        for _ in range(options.repetitions):
            with target() as url:
                outcome = fleet.run(url, shards=shards, rate=100 * shards, duration="1s", seed=1)
            offsets = [part.offset_us for part in outcome.record.shards]
            skews.append(max(offsets) - min(offsets))
            firsts.append(outcome.start_s + min(offsets) / 1e6)
        rows.append({"shards": shards, "skew_us": skews, "first_request_s": firsts})
    return rows


def overhead(options: argparse.Namespace, directory: Path) -> list[dict]:
    """CPU time per call of two loads, divided by the CPU time of a bare load. In `kept`, the shard's Record is
    kept and polled each second. `control` is another bare load, and shows the noise of the machine. Runs are
    interleaved, and the order is reversed each time."""
    server, client = (sorted(os.sched_getaffinity(0)) * 2)[:2]
    rows = []
    with target(server) as url:
        for rate in RATES[:1] if options.quick else RATES:
            seconds = 1 if options.quick else 10
            flags = [f"--rate={rate}", f"--duration={seconds}s", f"--cpus={client}", "--seed=1", url]
            bare, again, kept = [], [], []
            for turn in range(TRIPLES[options.quick]):
                order = [(bare, []), (again, []), (kept, ["--shard=1/1", "--keep={kept}", "--until-stdin-ends"])]
                for costs, more in order if turn % 2 else reversed(order):
                    costs.append(cpu_us(["load", "--quiet", *more, *flags], polled=bool(more)) / (rate * seconds))
            rows.append(
                {
                    "rate": rate,
                    "bare_cpu_us": bare,
                    "control": [second / first for first, second in zip(bare, again)],
                    "kept": [second / first for first, second in zip(bare, kept)],
                }
            )
    return rows


def offsets(options: argparse.Namespace, directory: Path) -> list[dict]:
    """The effect of clock errors on the arrival process: index of dispersion, and the greatest count over the mean, in
    windows of three lengths. A simulation, with the same result on every machine."""
    return clock_offsets.offsets(2.0, 2) if options.quick else clock_offsets.offsets()


def largest(options: argparse.Namespace, directory: Path) -> list[dict]:
    """The largest load of several shards: predicted from the calibration of one, and measured."""
    return largest_load.largest(options.shards, options.quick, lambda cpu: target(cpu, "page=0us"))


CASES: dict[str, Callable[[argparse.Namespace, Path], list[dict]]] = {
    "merge": merge,
    "start": start,
    "overhead": overhead,
    "offsets": offsets,
    "largest": largest,
}


def record_of_one_shard(options: argparse.Namespace, directory: Path) -> dict:
    """The Record of one shard of a run with 20 classes."""
    workload = directory / "workload.toml"
    classes = (f'[[class]]\nname = "c{i}"\npath = "/page?{i}"\nweight = 1\n' for i in range(CLASSES))
    workload.write_text("\n".join(classes))
    out = directory / "one.json"
    words = ["load", "--quiet", f"--workload={workload}", "--seed=1", "--shard=1/2", f"--out={out}", "--rate=400"]
    with target() as url:
        subprocess.run(
            [brimful.binary(), *words, f"--duration={2 if options.quick else SECONDS}s", url],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return json.loads(out.read_text())


def copies(record: dict, number: int, directory: Path) -> list[Path]:
    """Writes this number of copies of a shard's Record, numbered as the shards of one load."""
    files = []
    for index in range(1, number + 1):
        record["shards"][0] |= {"index": index, "of": number}
        files.append(directory / f"shard-{index}.json")
        files[-1].write_text(json.dumps(record))
    return files


def timed(words: Sequence[str]) -> tuple[float, int]:
    """Runs a command; returns its wall time in seconds and its peak resident memory in bytes."""
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 4):
        raise RuntimeError(f"brimful merge ended with {process.returncode}")
    return time.monotonic() - began, usage.ru_maxrss * 1024


def by_ray(options: argparse.Namespace, files: Sequence[Path]) -> dict:
    """Merges by a tree of Ray tasks, each of which merges up to FAN_IN Records sent over the cluster."""
    import ray

    if not ray.is_initialized():
        # With these variables, the tests also work if the package and the command are not installed.
        variables = {"PYTHONPATH": str(Path(brimful.__file__).parents[1]), "BRIMFUL_BINARY": brimful.binary()}
        ray.init(
            address=options.address, log_to_driver=False, logging_level="ERROR", runtime_env={"env_vars": variables}
        )

    @ray.remote
    def merged(*parts: str) -> str:
        with tempfile.TemporaryDirectory() as place:
            for index, part in enumerate(parts):
                Path(place, f"{index}.json").write_text(part)
            return json.dumps(brimful.merge(*Path(place).iterdir()).source)

    walls = []
    moved = 0
    for _ in range(options.repetitions):
        began = time.monotonic()
        level = [ray.put(file.read_text()) for file in files]
        moved = sum(file.stat().st_size for file in files)
        while len(level) > 1:
            level = [merged.remote(*level[first : first + FAN_IN]) for first in range(0, len(level), FAN_IN)]
        whole = ray.get(level[0])
        walls.append(time.monotonic() - began)
    return {"wall_s": walls, "record_kb": len(whole) / 1e3, "moved_mb": moved / 1e6}


def cpu_us(words: Sequence[str], polled: bool) -> float:
    """User and system CPU time of a whole process, by the kernel's account. If `polled`, this program reads the state
    of the process each second."""
    before, place = resource.getrusage(resource.RUSAGE_CHILDREN), Place()
    place.start(words, {})
    while place.process is not None:
        try:
            place.process.wait(1.0)
            break
        except subprocess.TimeoutExpired:
            if polled:
                place.state()
    if place.state().code not in (0, 4):
        raise RuntimeError(f"brimful load failed: {place.state().stderr}")
    place.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e6 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextlib.contextmanager
def target(cpu: int | None = None, service: str = "page=20us") -> Iterator[str]:
    """Runs the reference server on a free port, pinned to `cpu` if given; yields its URL."""
    command = [brimful.binary(), "target", "--listen", "127.0.0.1:0", "--with-parent", "--service", service]
    command += [] if cpu is None else ["--cpus", str(cpu), "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1] + "/"
        finally:
            process.terminate()
