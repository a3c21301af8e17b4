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

#: How often the driver reads the shards' Records. A shard writes one each second, with its results of 0.15 s before.
EVERY_S = 0.5
#: How often `on_second` is called.
TOLD_S = 1.0
#: A place that has not answered for so long is lost.
PATIENCE_S = 10.0
#: How often it is looked whether a shard has found what it can offer.
FINDING_S = 0.2
#: After a stop that long is waited for what shards have to tell.
STOPPING_S = 10.0
#: Exit codes of a shard that has made its load, and of one that cannot.
ENDED, REFUSED = (0, 1, 3, 4, 130), (2, 3)


class Pending(Protocol):
    """An answer that is under way."""

    def get(self, timeout_s: float) -> Any:
        """The answer; TimeoutError if it has not come by then, Lost if it never will."""
        ...


class Room(Protocol):
    """A `Place`, wherever that is."""

    def ask(self, method: str, *arguments: Any) -> Pending:
        """Calls one of its methods."""
        ...

    def give_up(self) -> None:
        """Lets go of it: it has been lost."""


class Lost(Exception):
    """A place is no more."""


class FleetError(_binary.BrimfulError):
    """A fleet that does not fit together, or that could not begin."""

    def __init__(self, message: str, exit_code: int = 3) -> None:
        super().__init__(message, exit_code)


@dataclass
class Load:
    """What the shards are to make together."""

    #: URL and flags of `brimful load`, as on its command line; `{NAME}` in them is the file of that name. `--calibrate`
    #: has what the shards can offer found beforehand.
    words: Sequence[str]
    seed: int
    #: Files that every shard needs, by name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Addresses to connect from, in turn: one CIDR for each shard.
    source_ips: Sequence[str] = ()
    #: CPUs for the shards, in turn: for those on one host.
    cpus: Sequence[int] = ()
    #: Objectives of the whole, like `p99<50ms`.
    slo: Sequence[str] = ()


@dataclass
class Outcome:
    """What became of a load."""

    #: The whole.
    record: Record
    #: Each shard's own Record, by its index from 1, where a directory for them was given; those that were lost have
    #: what was seen until then.
    shards: dict[int, Path]
    #: Seconds from the call to the instant at which all were to begin.
    start_s: float


@dataclass
class Shard:
    """One of them, as it is seen from here."""

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
        every_s: float = EVERY_S,
        leaves_rooms: bool = False,
        limits: dict[str, ClientLimit] | None = None,
    ) -> None:
        self.load = load
        self.flags = [word for word in load.words if word != CALIBRATE]
        #: What a shard can offer, by its host's boot.
        self.limits = limits or {}
        self.shards = [Shard(index, room) for index, room in enumerate(rooms, 1)]
        # A shard takes so long to get ready, and they share this host's CPUs where they are all here.
        self.lead_s = 1.0 + 0.1 * len(rooms) if lead_s is None else lead_s
        #: The caller's directory for the shards' Records, if there is one.
        self.directory = None if directory is None else Path(directory)
        #: The temporary directory for them otherwise.
        self.scratch: Scratch | None = None
        self.on_second = on_second
        self.on_note = on_note
        self.stop = stop or threading.Event()
        self.every_s = every_s
        #: For another load, unless they are lost.
        self.leaves_rooms = leaves_rooms
        self.began = time.monotonic()

    def run(self) -> Outcome:
        """Runs it to its end. After Ctrl-C, or when `stop` is set, the shards stop and what they have seen is the
        result."""
        if self.directory is None:
            self.scratch = Scratch()
        else:
            shard_records.prepare(self.directory)
        interrupted = False
        try:
            self.get_ready()
            if CALIBRATE in self.load.words and not self.limits:
                self.find_limits()
            start_s = self.start()
            try:
                self.look_on()
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

    # Before it begins.

    def get_ready(self) -> None:
        """Makes sure that all places are there, fit together, and what their clocks show."""
        of = len(self.shards)
        for shard, answer in self.ask_all("describe"):
            shard.description = self.need(shard, answer, "is not there")
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
        """One measurement for each host."""
        offsets = {Place().describe().boot: Offset()}
        for shard in self.shards:
            assert shard.description is not None
            boot = shard.description.boot
            if boot not in offsets:
                offsets[boot] = measure(functools.partial(self.clock_of, shard))
            shard.offset = offsets[boot]
            if shard.offset.is_hopeless:
                raise FleetError(
                    f"the clock of {shard.description.host} is {shard.offset.ahead_ns / 1e9:+.0f} s off this host's: set it, "
                    "like `chronyc makestep`, and see that it is kept right"
                )

    def clock_of(self, shard: Shard) -> int:
        """What its host's clock shows."""
        shown: int = self.need(shard, shard.room.ask("clock"), "is not there")
        return shown

    # What they can offer.

    def client_limit(self) -> ClientLimit:
        """Finds what the shards can offer together, and makes no load."""
        try:
            self.get_ready()
            self.find_limits()
            return self.limit()
        finally:
            self.close()

    def find_limits(self) -> None:
        """By one shard of each host."""
        firsts: dict[str, Shard] = {}
        for shard in self.shards:
            firsts.setdefault(self.boot(shard), shard)
        self.note_that("what the shards can offer before they are the limit themselves (some 10 s)")
        for shard in firsts.values():
            words = [*self.own_words(shard), CALIBRATE, ONLY, "--out={kept}", *without_watching(self.flags)]
            self.need(shard, shard.room.ask("start", words, self.load.files), "cannot start")
        for boot, shard in firsts.items():
            found = ClientLimit.of(self.ended(shard).kept)
            assert shard.description is not None
            here = sum(self.boot(other) == boot for other in self.shards)
            cpus = len(set(self.load.cpus)) or shard.description.cpus
            self.limits[boot] = found.of_each(here, cpus)
            self.note_that(f"  {shard.description.host}: {self.limits[boot]} by each of {here}")

    def limit(self) -> ClientLimit:
        """Of all together."""
        return together(self.limits[self.boot(shard)] for shard in self.shards)

    def ended(self, shard: Shard) -> Look:
        """How a shard that makes no part of the load has ended, and the last that it has kept."""
        kept: bytes | None = None
        while True:
            look: Look = self.need(shard, shard.room.ask("look"), "is gone")
            # What is handed on once is not handed on again, and a shard writes it before it ends.
            kept = look.kept or kept
            if look.code is not None:
                look = dataclasses.replace(look, kept=kept)
                break
            if self.stop.wait(FINDING_S):
                shard.room.ask("stop")
                time.sleep(FINDING_S)
        self.need(shard, shard.room.ask("close"), "is gone")
        if look.code not in ENDED or (look.code in REFUSED and look.kept is None):
            raise self.could_not(shard, "find what it can offer", look)
        return look

    def could_not(self, shard: Shard, what: str, look: Look) -> FleetError:
        """Why a shard has refused."""
        code = look.code if look.code in REFUSED else REFUSED[-1]
        said = _binary.error(_binary.Ended(code, "", look.said, False))
        return FleetError(f"{shard.name(len(self.shards))} could not {what}: {said}", code)

    def boot(self, shard: Shard) -> str:
        """Which host it is on."""
        assert shard.description is not None
        return shard.description.boot

    def note_that(self, text: str) -> None:
        if self.on_note is not None:
            self.on_note(text)

    # Begins.

    def start(self) -> float:
        """Tells all when to begin; returns in how many seconds from the call that was."""
        at_ns = time.time_ns() + int(self.lead_s * 1e9)
        begins = time.monotonic() + self.lead_s
        pending = [(shard, shard.room.ask("start", self.words(shard, at_ns), self.load.files)) for shard in self.shards]
        for shard, answer in pending:
            self.need(shard, answer, "cannot start")
            shard.heard_at = time.monotonic()
        return begins - self.began

    def words(self, shard: Shard, at_ns: int) -> list[str]:
        """The command line of one."""
        words = [*self.own_words(shard), f"--shard={shard.index}/{len(self.shards)}", "--keep={kept}"]
        words.append(f"--start-at={at_ns // 10**9}.{at_ns % 10**9:09}")
        if shard.offset != Offset():
            words.append(f"--clock-ahead={shard.offset.flag()}")
        if self.limits and self.boot(shard) in self.limits:
            words += self.limits[self.boot(shard)].flags()
        # The server is watched once.
        return [*words, *(self.flags if shard.index == 1 else without_watching(self.flags))]

    def own_words(self, shard: Shard) -> list[str]:
        """Where it is, whatever it does."""
        turn = shard.index - 1
        words = ["load", "--quiet", f"--seed={self.load.seed}", "--until-stdin-ends"]
        if self.load.source_ips:
            words.append(f"--source-ip={self.load.source_ips[turn % len(self.load.source_ips)]}")
        if self.load.cpus:
            words.append(f"--cpus={self.load.cpus[turn % len(self.load.cpus)]}")
        return words

    # Goes on.

    def look_on(self) -> None:
        """Until all are over."""
        due = time.monotonic()
        told = due
        while not all(shard.is_over for shard in self.shards):
            due = max(due + self.every_s, time.monotonic())
            if self.stop.wait(max(0.0, due - time.monotonic())):
                self.finish()
                return
            self.look(self.every_s)
            self.fail_if_none_began()
            if self.on_second is not None and due >= told + TOLD_S:
                told = due
                self.on_second(self.figures(), sum(shard.lost is None for shard in self.shards))

    def finish(self) -> None:
        """Stops all, and hears what they have to tell."""
        for shard in self.running():
            shard.room.ask("stop")
        until = time.monotonic() + STOPPING_S
        while self.running() and time.monotonic() < until:
            time.sleep(0.05)
            self.look(0.5)
        for shard in self.running():
            shard.lost = "it did not stop"

    def look(self, timeout_s: float) -> None:
        """At all, at once; who does not answer in time may do so the next time."""
        until = time.monotonic() + timeout_s
        for shard in self.running():
            # What a slow host has been asked it is not asked again.
            shard.pending = shard.pending or shard.room.ask("look")
        for shard in self.running():
            try:
                assert shard.pending is not None
                self.note(shard, shard.pending.get(max(0.0, until - time.monotonic())))
                shard.pending = None
            except TimeoutError:
                if time.monotonic() > shard.heard_at + PATIENCE_S:
                    shard.lost = f"nothing was heard of it for {PATIENCE_S:.0f} s"
                    shard.room.give_up()
            except Lost as lost:
                shard.lost = str(lost)

    def note(self, shard: Shard, look: Look) -> None:
        """Keeps what was seen."""
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
        """A shard that refuses its command line, or whose host cannot make the load, is no loss but a mistake."""
        for shard in self.shards:
            if shard.code in REFUSED and not shard.has_record:
                raise self.could_not(shard, "begin", Look(shard.code, said=shard.said))

    def figures(self) -> Figures:
        """Of all shards together."""
        return sum((shard.figures for shard in self.shards if shard.figures), Figures())

    # Ends.

    def merge(self) -> Record:
        """The Record of the whole."""
        files = [str(path) for path in self.files().values()]
        if not files:
            reasons = "; ".join(f"{shard.name(len(self.shards))}: {shard.lost}" for shard in self.shards if shard.lost)
            raise FleetError(f"no shard has seen anything ({reasons or 'they were stopped before that'}): run it again")
        lost = [shard.index for shard in self.shards if not shard.has_record]
        try:
            return call(Record, ["merge", "--quiet"], files, {"lost": lost, "slo": list(self.load.slo)})
        except _binary.Interrupted as interrupted:
            # That the load was, which its Record says; not the merging.
            if isinstance(interrupted.result, Record):
                return interrupted.result
            raise

    def files(self) -> dict[int, Path]:
        """What each shard has seen."""
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

    def need(self, shard: Shard, answer: Pending, what: str) -> Any:
        """An answer without which nothing can begin."""
        try:
            return answer.get(60.0)
        except (Lost, TimeoutError) as error:
            raise FleetError(f"{shard.name(len(self.shards))} {what}: {error or 'it does not answer'}") from error


def without_watching(words: Sequence[str]) -> list[str]:
    """The flags that are not about watching the server.

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
    """What is told each second."""
    failed = f", {figures.failed:,} failed" if figures.failed else ""
    p99 = "" if figures.p99_us is None else f"; 99 % within {figures.p99_us / 1e3:.3g} ms"
    lost = "" if there == of else f"; {of - there} of {of} shards lost"
    return f"{figures.t_s:.0f}s: {figures.completed:,} calls completed ({figures.completed_per_s:,.0f}/s){failed}{p99}{lost}"
