"""One load by many shards. The driver checks that the shards are compatible, and starts them at the same instant. It
reads and keeps their Records twice a second, and merges the Records at the end.

Each shard writes its Record once a second, and the driver keeps a copy. So when a shard or its host dies, or is cut off
from the network, less than its last two seconds are lost. The merged Record has the time from which results are
missing, and its verdict says whether that matters. If this process dies, the shards stop, and their Records stay in the
directory that the caller named.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .. import _binary
from .._command import run_command
from .._scratch import Scratch
from ..documents import Record
from . import shard_records
from .client_limit import CALIBRATE, LIMIT_ONLY, ClientLimit, combined
from .clock import Offset, measure
from .place import Description, Figures, ShardState, Place

#: Time between two readings of the shards' Records. A shard writes its Record once per second.
STATE_INTERVAL_S = 0.5
#: Time between two calls of `on_second`.
REPORT_INTERVAL_S = 1.0
#: A shard is lost if its host has not answered for this time.
ANSWER_TIMEOUT_S = 10.0
#: Interval at which the driver checks whether a shard has measured its limit.
LIMIT_INTERVAL_S = 0.2
#: Maximum time to wait for the final results after the shards were stopped.
STOP_TIMEOUT_S = 10.0
#: Exit codes of a shard that may have run its load.
RAN_CODES = (0, 1, 3, 4, 130)
#: Exit codes of a shard that may have refused to run its load. It has refused if it has also written no Record.
REFUSED_CODES = (2, 3)


class PendingAnswer(Protocol):
    """The answer to a request, which may still be on its way."""

    def get(self, timeout_s: float) -> Any:
        """Returns the answer. Raises TimeoutError if it has not arrived within this time, and PlaceLost if it never
        will."""
        ...


class PlaceHandle(Protocol):
    """A handle of a `Place` on this host or on another."""

    def ask(self, method: str, *arguments: Any) -> PendingAnswer:
        """Calls a method of the place, without waiting for the result."""
        ...

    def release(self) -> None:
        """Frees the place, even if it no longer answers."""


class PlaceLost(Exception):
    """A place no longer exists, because its process or its host has ended."""


class FleetError(_binary.BrimfulError):
    """The shards are not compatible, or could not start."""

    def __init__(self, message: str, exit_code: int = 3) -> None:
        super().__init__(message, exit_code)


@dataclass
class Load:
    """The load that the shards generate together."""

    #: The URL and the flags of `brimful load`. `{NAME}` is replaced by the path of a file with the content
    #: `files[NAME]`. With `--calibrate`, the limit of the shards is measured before the load.
    arguments: Sequence[str]
    seed: int
    #: The contents of files that every shard needs, by name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Ranges of addresses (CIDR) from which the shards connect, assigned to the shards in turn.
    source_ips: Sequence[str] = ()
    #: CPUs to which the shards are pinned, assigned to the shards in turn.
    cpus: Sequence[int] = ()
    #: Objectives that the merged results must meet, such as `p99<50ms`.
    slo: Sequence[str] = ()


@dataclass
class Outcome:
    """The results of a load."""

    #: The Record of the whole load, merged from the shards' Records.
    record: Record
    #: The files of the shards' own Records, by shard index from 1; empty unless the caller named a directory. The
    #: Record of a lost shard ends at the time of its loss.
    shards: dict[int, Path]
    #: Seconds from the creation of the driver to the planned start of all shards.
    start_s: float


@dataclass
class Shard:
    """The driver's knowledge of one shard."""

    index: int
    place: PlaceHandle
    description: Description | None = None
    offset: Offset = Offset()
    #: The exit code of the shard's process; None while it is running.
    code: int | None = None
    #: The reason why the shard is lost; None if it is not lost.
    lost: str | None = None
    stderr: str = ""
    figures: Figures | None = None
    #: The time of the last answer from the shard's host, by `time.monotonic`.
    answered_at: float = 0.0
    has_record: bool = False
    #: The request for the shard's state that the host has not answered yet; None if there is no such request.
    pending: PendingAnswer | None = None

    @property
    def is_over(self) -> bool:
        return self.code is not None or self.lost is not None

    def name(self, shards: int) -> str:
        host = f" on {self.description.host}" if self.description else ""
        return f"shard {self.index}/{shards}{host}"


class Driver:
    """Runs one load on these places, one shard on each."""

    def __init__(
        self,
        places: Sequence[PlaceHandle],
        load: Load,
        *,
        lead_s: float | None = None,
        directory: str | os.PathLike[str] | None = None,
        on_second: Callable[[Figures, int], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
        interval_s: float = STATE_INTERVAL_S,
        keeps_places: bool = False,
        limits: dict[str, ClientLimit] | None = None,
    ) -> None:
        self.load = load
        self.flags = [word for word in load.arguments if word != CALIBRATE]
        #: The limit of each shard on a host, by the host's boot id.
        self.limits = limits or {}
        self.shards = [Shard(index, place) for index, place in enumerate(places, 1)]
        # Time until the start. By default, it is longer for more shards: shards on one host share its CPUs while they
        # start.
        self.lead_s = 1.0 + 0.1 * len(places) if lead_s is None else lead_s
        #: The directory that the caller named for the shards' Records; None if there is none.
        self.directory = None if directory is None else Path(directory)
        #: The temporary directory for the shards' Records, if the caller named no directory.
        self.scratch: Scratch | None = None
        self.on_second = on_second
        self.on_note = on_note
        self.stop = stop or threading.Event()
        self.interval_s = interval_s
        #: Whether to keep the places (the processes that start the shards) for another load. Places that were lost are
        #: not kept.
        self.keeps_places = keeps_places
        self.created_at = time.monotonic()

    def run(self) -> Outcome:
        """Runs the load to its end. After Ctrl-C, or when `stop` is set, the shards stop, and the outcome has their results
        so far."""
        if self.directory is None:
            self.scratch = Scratch()
        else:
            shard_records.prepare(self.directory)
        interrupted = False
        try:
            self.prepare()
            if CALIBRATE in self.load.arguments and not self.limits:
                self.measure_limits()
            start_s = self.start()
            try:
                self.observe()
            except KeyboardInterrupt:
                interrupted = True
                self.finish()
            record = self.merge()
        finally:
            self.close()
        outcome = Outcome(record, {} if self.directory is None else self.files(), start_s)
        if interrupted:
            stopped = _binary.Interrupted()
            stopped.result = outcome
            raise stopped
        return outcome

    # ---- Before the load ----

    def prepare(self) -> None:
        """Checks that all places answer and have the same version, and measures the offsets of their clocks."""
        for shard, answer in self.ask_all("describe"):
            shard.description = self.require(shard, answer, "does not answer")
        own = _binary.version()
        different = [shard for shard in self.shards if shard.description and shard.description.version != own]
        if different:
            versions = ", ".join(
                f"{shard.name(len(self.shards))}: {shard.description.version}"
                for shard in different[:5]
                if shard.description
            )
            raise FleetError(
                f"the hosts have different versions of brimful (here: {own}; {versions}): install the same version "
                "on all, like `pip install brimful==VERSION`",
                2,
            )
        self.measure_clocks()

    def measure_clocks(self) -> None:
        """Measures the offset of each host's clock, once per host."""
        offsets = {Place().describe().boot: Offset()}
        for shard in self.shards:
            assert shard.description is not None
            boot = shard.description.boot
            if boot not in offsets:
                offsets[boot] = measure(functools.partial(self.clock_of, shard))
            shard.offset = offsets[boot]
            if shard.offset.is_too_large:
                raise FleetError(
                    f"the clock of {shard.description.host} is {shard.offset.ahead_ns / 1e9:+.0f} s off this host's: set it, "
                    "like `chronyc makestep`, and keep it synchronized"
                )

    def clock_of(self, shard: Shard) -> int:
        """Reads the clock of a shard's host, in nanoseconds since 1970."""
        time_ns: int = self.require(shard, shard.place.ask("clock"), "does not answer")
        return time_ns

    # ---- The limit of the shards ----

    def client_limit(self) -> ClientLimit:
        """Measures the largest load that the shards can generate together, without running the load."""
        try:
            self.prepare()
            self.measure_limits()
            return self.limit()
        finally:
            self.close()

    def measure_limits(self) -> None:
        """Measures the limit of one shard on each host."""
        first_shards: dict[str, Shard] = {}
        for shard in self.shards:
            first_shards.setdefault(self.boot(shard), shard)
        self.report("measuring the largest load that the shards can generate (about 10 s)")
        for shard in first_shards.values():
            flags = [*self.common_flags(shard), CALIBRATE, LIMIT_ONLY, "--out={record}", *without_watching(self.flags)]
            self.require(shard, shard.place.ask("start", flags, self.load.files), "cannot start")
        for boot, shard in first_shards.items():
            limit = ClientLimit.from_record(self.wait_for_limit(shard).record)
            assert shard.description is not None
            shards_on_host = sum(self.boot(other) == boot for other in self.shards)
            cpus = len(set(self.load.cpus)) or shard.description.cpus
            self.limits[boot] = limit.per_shard(shards_on_host, cpus)
            self.report(f"  {shard.description.host}: {self.limits[boot]} by each of {shards_on_host}")

    def limit(self) -> ClientLimit:
        """Returns the limit of all shards together."""
        return combined(self.limits[self.boot(shard)] for shard in self.shards)

    def wait_for_limit(self, shard: Shard) -> ShardState:
        """Waits for the end of a shard that measures its limit. Returns its last state, with its last Record."""
        record: bytes | None = None
        while True:
            state: ShardState = self.require(shard, shard.place.ask("state"), "has ended")
            # The state contains a Record only if it has changed since the last call. The shard writes its last Record
            # before it ends.
            record = state.record or record
            if state.code is not None:
                state = dataclasses.replace(state, record=record)
                break
            if self.stop.wait(LIMIT_INTERVAL_S):
                shard.place.ask("stop")
                time.sleep(LIMIT_INTERVAL_S)
        self.require(shard, shard.place.ask("close"), "has ended")
        if state.code not in RAN_CODES or (state.code in REFUSED_CODES and state.record is None):
            raise self.refusal(shard, "measure its limit", state)
        return state

    def refusal(self, shard: Shard, task: str, state: ShardState) -> FleetError:
        """Returns an error with the last message of a shard that could not do its task."""
        code = state.code if state.code in REFUSED_CODES else REFUSED_CODES[-1]
        error = _binary.exception_of(_binary.Finished(code, "", state.stderr, False))
        return FleetError(f"{shard.name(len(self.shards))} could not {task}: {error}", code)

    def boot(self, shard: Shard) -> str:
        """Returns the boot id of a shard's host."""
        assert shard.description is not None
        return shard.description.boot

    def report(self, text: str) -> None:
        if self.on_note is not None:
            self.on_note(text)

    # ---- The start of the load ----

    def start(self) -> float:
        """Sends the start time to all shards. Returns the seconds from the creation of this driver to that time."""
        at_ns = time.time_ns() + int(self.lead_s * 1e9)
        start = time.monotonic() + self.lead_s
        answers = [
            (shard, shard.place.ask("start", self.command_line(shard, at_ns), self.load.files)) for shard in self.shards
        ]
        for shard, answer in answers:
            self.require(shard, answer, "cannot start")
            shard.answered_at = time.monotonic()
        return start - self.created_at

    def command_line(self, shard: Shard, at_ns: int) -> list[str]:
        """Returns the command line of a shard: a part of the load that starts at `at_ns`, in nanoseconds since 1970."""
        flags = [*self.common_flags(shard), f"--shard={shard.index}/{len(self.shards)}", "--keep={record}"]
        flags.append(f"--start-at={at_ns // 10**9}.{at_ns % 10**9:09}")
        if shard.offset != Offset():
            flags.append(f"--clock-ahead={shard.offset.flag()}")
        if self.limits and self.boot(shard) in self.limits:
            flags += self.limits[self.boot(shard)].flags()
        # Only the first shard monitors the server.
        return [*flags, *(self.flags if shard.index == 1 else without_watching(self.flags))]

    def common_flags(self, shard: Shard) -> list[str]:
        """Returns the subcommand and the flags that a shard needs for every task: its seed, address and CPU."""
        turn = shard.index - 1
        flags = ["load", "--quiet", f"--seed={self.load.seed}", "--until-stdin-ends"]
        if self.load.source_ips:
            flags.append(f"--source-ip={self.load.source_ips[turn % len(self.load.source_ips)]}")
        if self.load.cpus:
            flags.append(f"--cpus={self.load.cpus[turn % len(self.load.cpus)]}")
        return flags

    # ---- During the load ----

    def observe(self) -> None:
        """Reads the shards' Records until all shards have ended."""
        due = time.monotonic()
        reported_at = due
        while not all(shard.is_over for shard in self.shards):
            due = max(due + self.interval_s, time.monotonic())
            if self.stop.wait(max(0.0, due - time.monotonic())):
                self.finish()
                return
            self.read_states(self.interval_s)
            self.fail_if_refused()
            if self.on_second is not None and due >= reported_at + REPORT_INTERVAL_S:
                reported_at = due
                self.on_second(self.figures(), sum(shard.lost is None for shard in self.shards))

    def finish(self) -> None:
        """Stops all shards, and reads their last results."""
        for shard in self.running():
            shard.place.ask("stop")
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.05)
            self.read_states(0.5)
        for shard in self.running():
            shard.lost = "it did not stop"

    def read_states(self, timeout_s: float) -> None:
        """Reads the states of all shards at once. An answer that does not arrive in time is read by the next call."""
        deadline = time.monotonic() + timeout_s
        for shard in self.running():
            # Do not ask a host again before it has answered.
            shard.pending = shard.pending or shard.place.ask("state")
        for shard in self.running():
            try:
                assert shard.pending is not None
                self.store(shard, shard.pending.get(max(0.0, deadline - time.monotonic())))
                shard.pending = None
            except TimeoutError:
                if time.monotonic() > shard.answered_at + ANSWER_TIMEOUT_S:
                    shard.lost = f"it did not answer for {ANSWER_TIMEOUT_S:.0f} s"
                    shard.place.release()
            except PlaceLost as lost:
                shard.lost = str(lost)

    def store(self, shard: Shard, state: ShardState) -> None:
        """Stores the state of a shard, and its Record if it is new."""
        shard.answered_at = time.monotonic()
        shard.code = state.code
        shard.stderr = state.stderr
        shard.figures = state.figures or shard.figures
        if state.record is not None:
            shard_records.write(self.records(), shard.index, state.record)
            shard.has_record = True
        if state.code is not None and state.code < 0:
            shard.lost = f"it was ended by signal {-state.code}"
        elif state.code not in (None, *RAN_CODES, *REFUSED_CODES):
            shard.lost = f"it failed with exit code {state.code}"

    def fail_if_refused(self) -> None:
        """Raises if a shard has refused its command line, or cannot run on its host. Such a shard is not lost."""
        for shard in self.shards:
            if shard.code in REFUSED_CODES and not shard.has_record:
                raise self.refusal(shard, "start", ShardState(shard.code, stderr=shard.stderr))

    def figures(self) -> Figures:
        """Returns the figures of all shards together."""
        return sum((shard.figures for shard in self.shards if shard.figures), Figures())

    # ---- After the load ----

    def merge(self) -> Record:
        """Merges the Records of the shards."""
        files = [str(path) for path in self.files().values()]
        if not files:
            reasons = "; ".join(f"{shard.name(len(self.shards))}: {shard.lost}" for shard in self.shards if shard.lost)
            raise FleetError(f"no shard has any results ({reasons or 'all were stopped too early'}): run it again")
        lost = [shard.index for shard in self.shards if not shard.has_record]
        try:
            return run_command(Record, ["merge", "--quiet"], files, {"lost": lost, "slo": list(self.load.slo)})
        except _binary.Interrupted as interrupted:
            # Ctrl-C has interrupted the load, not the merging of the Records, so the merged Record is complete.
            if isinstance(interrupted.result, Record):
                return interrupted.result
            raise

    def files(self) -> dict[int, Path]:
        """Returns the files of the shards' Records, by index."""
        return {shard.index: self.path(shard) for shard in self.shards if shard.has_record}

    def close(self) -> None:
        """Ends the shards that still run. Their Records are removed unless the caller named a directory."""
        for shard in self.shards:
            if shard.lost is None:
                try:
                    shard.place.ask("close").get(5.0)
                except (PlaceLost, TimeoutError):
                    pass
            if shard.lost is not None or not self.keeps_places:
                shard.place.release()
        if self.scratch is not None:
            self.scratch.close()

    def path(self, shard: Shard) -> Path:
        return shard_records.record_path(self.records(), shard.index)

    def records(self) -> Path:
        """The directory of the shards' Records."""
        if self.directory is not None:
            return self.directory
        assert self.scratch is not None
        return self.scratch.path

    def running(self) -> list[Shard]:
        return [shard for shard in self.shards if not shard.is_over]

    def ask_all(self, method: str) -> list[tuple[Shard, PendingAnswer]]:
        return [(shard, shard.place.ask(method)) for shard in self.shards]

    def require(self, shard: Shard, answer: PendingAnswer, problem: str) -> Any:
        """Waits for an answer without which the load cannot go on. If it fails, the error begins with `problem`."""
        try:
            return answer.get(60.0)
        except (PlaceLost, TimeoutError) as error:
            raise FleetError(f"{shard.name(len(self.shards))} {problem}: {error or 'no answer within 60 s'}") from error


def without_watching(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments without the flags that make `brimful load` watch the server.

    >>> without_watching(["--watch", "--rate=5", "--process", "nginx", "--watch-from=h:1", "--token-file", "t"])
    ['--rate=5']
    """
    switches = {"--watch", "--no-ebpf"}
    valued = {"--process", "--watch-from", "--token-file", "--watch-ca"}
    kept: list[str] = []
    value_follows = False
    for word in arguments:
        flag, has_value, _ = word.partition("=")
        if value_follows:
            value_follows = False
        elif flag in valued:
            value_follows = not has_value
        elif word not in switches:
            kept.append(word)
    return kept


def progress_line(figures: Figures, present: int, shards: int) -> str:
    """Returns the line of progress that is printed each second."""
    failed = f", {figures.failed:,} failed" if figures.failed else ""
    p99 = "" if figures.p99_us is None else f"; 99 % within {figures.p99_us / 1e3:.3g} ms"
    lost = "" if present == shards else f"; {shards - present} of {shards} shards lost"
    return f"{figures.t_s:.0f}s: {figures.completed:,} calls completed ({figures.completed_per_s:,.0f}/s){failed}{p99}{lost}"
