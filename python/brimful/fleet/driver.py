"""One load by many shards: checks that they fit together, starts them at one instant, reads their Records twice
a second, keeps them, and merges them.

Each shard writes its Record once a second, and the driver keeps a copy. So when a shard or its host dies, or is cut
off, less than its last two seconds are lost. The merged Record says from when on results are missing, and the verdict
whether that matters. If this process dies, the shards stop, and their Records stay in the directory that the caller
named.
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
from .._command import call
from .._scratch import Scratch
from ..documents import Record
from . import shard_records
from .client_limit import CALIBRATE, ONLY, ClientLimit, together
from .clock import Offset, measure
from .place import Description, Figures, Look, Place

#: How often the driver reads the shards' Records. A shard writes its Record every second, 0.15 s after that second's end.
LOOK_INTERVAL_S = 0.5
#: How often `on_second` is called.
REPORT_INTERVAL_S = 1.0
#: A place that has not answered for this time is lost.
ANSWER_TIMEOUT_S = 10.0
#: How often the driver checks whether a shard has measured its limit.
LIMIT_INTERVAL_S = 0.2
#: How long the driver waits for the last results of stopped shards.
STOP_TIMEOUT_S = 10.0
#: Exit codes of a shard that has run its load, and of one that could not.
ENDED, REFUSED = (0, 1, 3, 4, 130), (2, 3)


class Pending(Protocol):
    """An answer that has been requested."""

    def get(self, timeout_s: float) -> Any:
        """Returns the answer. Raises TimeoutError if it does not come in this time, and Lost if it never will."""
        ...


class Room(Protocol):
    """A `Place` on this host or on another."""

    def ask(self, method: str, *arguments: Any) -> Pending:
        """Calls a method of the place."""
        ...

    def give_up(self) -> None:
        """Releases a place that is lost."""


class Lost(Exception):
    """A place is gone: its process or its host has ended."""


class FleetError(_binary.BrimfulError):
    """The shards do not fit together, or could not start."""

    def __init__(self, message: str, exit_code: int = 3) -> None:
        super().__init__(message, exit_code)


@dataclass
class Load:
    """The load that the shards generate together."""

    #: URL and flags of `brimful load`, as on its command line; `{NAME}` in them is the path of that file. With
    #: `--calibrate` the limit of the shards is measured first.
    words: Sequence[str]
    seed: int
    #: The contents of the files that every shard needs, by name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Addresses to connect from: one CIDR per shard, in turn.
    source_ips: Sequence[str] = ()
    #: CPUs for the shards of one host, one per shard, in turn.
    cpus: Sequence[int] = ()
    #: Objectives of the merged load, such as `p99<50ms`.
    slo: Sequence[str] = ()


@dataclass
class Outcome:
    """The results of a load."""

    #: The merged Record.
    record: Record
    #: The file of each shard's own Record, by the shard's index from 1, if a directory for them was given. The Record of
    #: a lost shard ends where it was lost.
    shards: dict[int, Path]
    #: Seconds from the call to the scheduled start of all shards.
    start_s: float


@dataclass
class Shard:
    """What the driver knows about one shard."""

    index: int
    room: Room
    description: Description | None = None
    offset: Offset = Offset()
    code: int | None = None
    lost: str | None = None
    said: str = ""
    figures: Figures | None = None
    heard_at: float = 0.0
    has_record: bool = False
    pending: Pending | None = None

    @property
    def is_over(self) -> bool:
        return self.code is not None or self.lost is not None

    def name(self, of: int) -> str:
        host = f" on {self.description.host}" if self.description else ""
        return f"shard {self.index}/{of}{host}"


class Driver:
    """Runs one load."""

    def __init__(
        self,
        rooms: Sequence[Room],
        load: Load,
        *,
        lead_s: float | None = None,
        directory: str | os.PathLike[str] | None = None,
        on_second: Callable[[Figures, int], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
        every_s: float = LOOK_INTERVAL_S,
        leaves_rooms: bool = False,
        limits: dict[str, ClientLimit] | None = None,
    ) -> None:
        self.load = load
        self.flags = [word for word in load.words if word != CALIBRATE]
        #: The limit of a shard by the boot id of its host.
        self.limits = limits or {}
        self.shards = [Shard(index, room) for index, room in enumerate(rooms, 1)]
        # Starting a shard takes this long. Shards on one host share its CPUs while they start.
        self.lead_s = 1.0 + 0.1 * len(rooms) if lead_s is None else lead_s
        #: The caller's directory for the shards' Records, if there is one.
        self.directory = None if directory is None else Path(directory)
        #: The temporary directory for them otherwise.
        self.scratch: Scratch | None = None
        self.on_second = on_second
        self.on_note = on_note
        self.stop = stop or threading.Event()
        self.every_s = every_s
        #: Whether the places stay open for another load, unless they are lost.
        self.leaves_rooms = leaves_rooms
        self.began = time.monotonic()

    def run(self) -> Outcome:
        """Runs the load to its end. After Ctrl-C, or when `stop` is set, the shards stop, and the result is what they have
        measured."""
        if self.directory is None:
            self.scratch = Scratch()
        else:
            shard_records.prepare(self.directory)
        interrupted = False
        try:
            self.get_ready()
            if CALIBRATE in self.load.words and not self.limits:
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

    # Before the load.

    def get_ready(self) -> None:
        """Checks that all places answer and have the same version, and measures their clocks."""
        of = len(self.shards)
        for shard, answer in self.ask_all("describe"):
            shard.description = self.require(shard, answer, "is not there")
        own = _binary.version()
        other = [shard for shard in self.shards if shard.description and shard.description.version != own]
        if other:
            versions = ", ".join(
                f"{shard.name(of)}: {shard.description.version}" for shard in other[:5] if shard.description
            )
            raise FleetError(
                f"the hosts have different versions of brimful (here: {own}; {versions}): install the same everywhere, "
                "like `pip install brimful==VERSION`",
                2,
            )
        self.measure_clocks()

    def measure_clocks(self) -> None:
        """Measures the clock of each host once."""
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
                    "like `chronyc makestep`, and see that it is kept right"
                )

    def clock_of(self, shard: Shard) -> int:
        """Returns the clock of a shard's host, in nanoseconds since 1970."""
        shown: int = self.require(shard, shard.room.ask("clock"), "is not there")
        return shown

    # The limit of the shards.

    def client_limit(self) -> ClientLimit:
        """Measures the largest load that the shards can generate together, and runs no load."""
        try:
            self.get_ready()
            self.measure_limits()
            return self.limit()
        finally:
            self.close()

    def measure_limits(self) -> None:
        """Measures the limit of one shard on each host."""
        firsts: dict[str, Shard] = {}
        for shard in self.shards:
            firsts.setdefault(self.boot(shard), shard)
        self.report("measuring the largest load that the shards can generate (some 10 s)")
        for shard in firsts.values():
            words = [*self.own_words(shard), CALIBRATE, ONLY, "--out={kept}", *without_watching(self.flags)]
            self.require(shard, shard.room.ask("start", words, self.load.files), "cannot start")
        for boot, shard in firsts.items():
            limit = ClientLimit.from_record(self.ended(shard).kept)
            assert shard.description is not None
            here = sum(self.boot(other) == boot for other in self.shards)
            cpus = len(set(self.load.cpus)) or shard.description.cpus
            self.limits[boot] = limit.of_each(here, cpus)
            self.report(f"  {shard.description.host}: {self.limits[boot]} by each of {here}")

    def limit(self) -> ClientLimit:
        """Returns the limit of all shards together."""
        return together(self.limits[self.boot(shard)] for shard in self.shards)

    def ended(self, shard: Shard) -> Look:
        """Waits for the end of a shard that measures its limit. Returns how it ended, with the last Record it kept."""
        kept: bytes | None = None
        while True:
            look: Look = self.require(shard, shard.room.ask("look"), "is gone")
            # A place hands on each Record once, and a shard writes its last one before it ends.
            kept = look.kept or kept
            if look.code is not None:
                look = dataclasses.replace(look, kept=kept)
                break
            if self.stop.wait(LIMIT_INTERVAL_S):
                shard.room.ask("stop")
                time.sleep(LIMIT_INTERVAL_S)
        self.require(shard, shard.room.ask("close"), "is gone")
        if look.code not in ENDED or (look.code in REFUSED and look.kept is None):
            raise self.refusal(shard, "measure its limit", look)
        return look

    def refusal(self, shard: Shard, what: str, look: Look) -> FleetError:
        """Returns the error that a shard ended with."""
        code = look.code if look.code in REFUSED else REFUSED[-1]
        said = _binary.error(_binary.Ended(code, "", look.said, False))
        return FleetError(f"{shard.name(len(self.shards))} could not {what}: {said}", code)

    def boot(self, shard: Shard) -> str:
        """Returns the boot id of a shard's host."""
        assert shard.description is not None
        return shard.description.boot

    def report(self, text: str) -> None:
        if self.on_note is not None:
            self.on_note(text)

    # Starting the load.

    def start(self) -> float:
        """Sends all shards the start time. Returns the seconds from the call of `run` to that time."""
        at_ns = time.time_ns() + int(self.lead_s * 1e9)
        begins = time.monotonic() + self.lead_s
        pending = [(shard, shard.room.ask("start", self.words(shard, at_ns), self.load.files)) for shard in self.shards]
        for shard, answer in pending:
            self.require(shard, answer, "cannot start")
            shard.heard_at = time.monotonic()
        return begins - self.began

    def words(self, shard: Shard, at_ns: int) -> list[str]:
        """Returns the command line of a shard of the load."""
        words = [*self.own_words(shard), f"--shard={shard.index}/{len(self.shards)}", "--keep={kept}"]
        words.append(f"--start-at={at_ns // 10**9}.{at_ns % 10**9:09}")
        if shard.offset != Offset():
            words.append(f"--clock-ahead={shard.offset.flag()}")
        if self.limits and self.boot(shard) in self.limits:
            words += self.limits[self.boot(shard)].flags()
        # Only one shard watches the server.
        return [*words, *(self.flags if shard.index == 1 else without_watching(self.flags))]

    def own_words(self, shard: Shard) -> list[str]:
        """Returns the flags that a shard has in every run: its seed, address and CPU."""
        turn = shard.index - 1
        words = ["load", "--quiet", f"--seed={self.load.seed}", "--until-stdin-ends"]
        if self.load.source_ips:
            words.append(f"--source-ip={self.load.source_ips[turn % len(self.load.source_ips)]}")
        if self.load.cpus:
            words.append(f"--cpus={self.load.cpus[turn % len(self.load.cpus)]}")
        return words

    # During the load.

    def observe(self) -> None:
        """Reads the shards' Records until all shards have ended."""
        due = time.monotonic()
        reported_at = due
        while not all(shard.is_over for shard in self.shards):
            due = max(due + self.every_s, time.monotonic())
            if self.stop.wait(max(0.0, due - time.monotonic())):
                self.finish()
                return
            self.look(self.every_s)
            self.fail_if_none_began()
            if self.on_second is not None and due >= reported_at + REPORT_INTERVAL_S:
                reported_at = due
                self.on_second(self.figures(), sum(shard.lost is None for shard in self.shards))

    def finish(self) -> None:
        """Stops all shards, and reads their last results."""
        for shard in self.running():
            shard.room.ask("stop")
        until = time.monotonic() + STOP_TIMEOUT_S
        while self.running() and time.monotonic() < until:
            time.sleep(0.05)
            self.look(0.5)
        for shard in self.running():
            shard.lost = "it did not stop"

    def look(self, timeout_s: float) -> None:
        """Asks all shards at once. One that does not answer in time is read at the next look."""
        until = time.monotonic() + timeout_s
        for shard in self.running():
            # A host that has not answered yet is not asked again.
            shard.pending = shard.pending or shard.room.ask("look")
        for shard in self.running():
            try:
                assert shard.pending is not None
                self.note(shard, shard.pending.get(max(0.0, until - time.monotonic())))
                shard.pending = None
            except TimeoutError:
                if time.monotonic() > shard.heard_at + ANSWER_TIMEOUT_S:
                    shard.lost = f"nothing was heard of it for {ANSWER_TIMEOUT_S:.0f} s"
                    shard.room.give_up()
            except Lost as lost:
                shard.lost = str(lost)

    def note(self, shard: Shard, look: Look) -> None:
        """Stores what a shard answered."""
        shard.heard_at = time.monotonic()
        shard.code, shard.said = look.code, look.said
        shard.figures = look.figures or shard.figures
        if look.kept is not None:
            shard_records.write(self.records(), shard.index, look.kept)
            shard.has_record = True
        if look.code is not None and look.code < 0:
            shard.lost = f"it was ended by signal {-look.code}"
        elif look.code not in (None, *ENDED, *REFUSED):
            shard.lost = f"it failed with exit code {look.code}"

    def fail_if_none_began(self) -> None:
        """Raises if a shard refused its command line or its host cannot run the load. Such a shard is not lost."""
        for shard in self.shards:
            if shard.code in REFUSED and not shard.has_record:
                raise self.refusal(shard, "begin", Look(shard.code, said=shard.said))

    def figures(self) -> Figures:
        """Returns the figures of all shards together."""
        return sum((shard.figures for shard in self.shards if shard.figures), Figures())

    # The end.

    def merge(self) -> Record:
        """Merges the Records of the shards."""
        files = [str(path) for path in self.files().values()]
        if not files:
            reasons = "; ".join(f"{shard.name(len(self.shards))}: {shard.lost}" for shard in self.shards if shard.lost)
            raise FleetError(f"no shard has any results ({reasons or 'they were stopped before that'}): run it again")
        lost = [shard.index for shard in self.shards if not shard.has_record]
        try:
            return call(Record, ["merge", "--quiet"], files, {"lost": lost, "slo": list(self.load.slo)})
        except _binary.Interrupted as interrupted:
            # The load was interrupted, as its Record says; the merge was not.
            if isinstance(interrupted.result, Record):
                return interrupted.result
            raise

    def files(self) -> dict[int, Path]:
        """Returns the files of the shards' Records, by index."""
        return {shard.index: self.path(shard) for shard in self.shards if shard.has_record}

    def close(self) -> None:
        """Ends the shards that still run. Their Records stay only in a directory that the caller named."""
        for shard in self.shards:
            if shard.lost is None:
                try:
                    shard.room.ask("close").get(5.0)
                except (Lost, TimeoutError):
                    pass
            if shard.lost is not None or not self.leaves_rooms:
                shard.room.give_up()
        if self.scratch is not None:
            self.scratch.close()

    def path(self, shard: Shard) -> Path:
        return shard_records.path(self.records(), shard.index)

    def records(self) -> Path:
        """The directory of the shards' Records."""
        if self.directory is not None:
            return self.directory
        assert self.scratch is not None
        return self.scratch.path

    def running(self) -> list[Shard]:
        return [shard for shard in self.shards if not shard.is_over]

    def ask_all(self, method: str) -> list[tuple[Shard, Pending]]:
        return [(shard, shard.room.ask(method)) for shard in self.shards]

    def require(self, shard: Shard, answer: Pending, what: str) -> Any:
        """Waits for an answer without which the load cannot start."""
        try:
            return answer.get(60.0)
        except (Lost, TimeoutError) as error:
            raise FleetError(f"{shard.name(len(self.shards))} {what}: {error or 'it does not answer'}") from error


def without_watching(words: Sequence[str]) -> list[str]:
    """Removes the flags that make `brimful load` watch the server.

    >>> without_watching(["--watch", "--rate=5", "--process", "nginx", "--watch-from=h:1", "--token-file", "t"])
    ['--rate=5']
    """
    alone, valued = {"--watch", "--no-ebpf"}, {"--process", "--watch-from", "--token-file", "--watch-ca"}
    kept: list[str] = []
    value_follows = False
    for word in words:
        flag, is_whole, _ = word.partition("=")
        if value_follows:
            value_follows = False
        elif flag in valued:
            value_follows = not is_whole
        elif word not in alone:
            kept.append(word)
    return kept


def figures_line(figures: Figures, there: int, of: int) -> str:
    """Returns the line of progress that is printed each second."""
    failed = f", {figures.failed:,} failed" if figures.failed else ""
    p99 = "" if figures.p99_us is None else f"; 99 % within {figures.p99_us / 1e3:.3g} ms"
    lost = "" if there == of else f"; {of - there} of {of} shards lost"
    return f"{figures.t_s:.0f}s: {figures.completed:,} calls completed ({figures.completed_per_s:,.0f}/s){failed}{p99}{lost}"
