"""Tests of the files that a fleet replaces, and of its temporary files."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import brimful
from brimful import _scratch, fleet
from brimful.fleet import shard_records

from .servers import target, wait_until

LOAD = {"rate": 100, "duration": "300ms", "seed": 5}


class KeepDirectory(unittest.TestCase):
    """`fleet run --keep DIR`."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name, "kept")
        self.directory.mkdir()
        self.outside = Path(directory.name, "outside.txt")
        self.outside.write_text("precious")

    def test_records_of_an_earlier_run_are_replaced_and_other_files_stay(self) -> None:
        others = [self.directory / name for name in ("notes.json", "shard.json", "shards-1.json")]
        for other in others:
            other.write_text("precious")
        # An incomplete file of an earlier run that was killed.
        (self.directory / ".brimful-shard-7.part").write_text('{"schema"')
        with target("--service", "page=50us") as url:
            fleet.run(url, shards=3, directory=self.directory, **LOAD)
            outcome = fleet.run(url, shards=2, directory=self.directory, **LOAD)
        records = [self.directory / f"shard-{index}.json" for index in (1, 2)]
        self.assertEqual(list(outcome.shards.values()), records)
        self.assertEqual(sorted(self.directory.iterdir()), sorted([*records, *others]))
        self.assertEqual({other.read_text() for other in others}, {"precious"})

    def test_a_directory_with_other_files_of_these_names_is_refused(self) -> None:
        with target("--service", "page=50us") as url:
            whole = brimful.load(url, **LOAD)
            fleet.run(url, shards=2, directory=self.directory, **LOAD)
        own = self.directory / "shard-3.json"
        records = [(self.directory / f"shard-{index}.json").read_bytes() for index in (1, 2)]
        # These contents are, in this order: not JSON, not a document, not a Record, not the Record of a shard, and the
        # Records of two other shards.
        for content in (b"precious", b"[]", b'{"shards": [{"index": 3}]}', whole.text.encode(), *records):
            own.write_bytes(content)
            with self.assertRaisesRegex(brimful.UsageError, "shard-3.json is not the Record of a shard.*choose another"):
                fleet.run("http://127.0.0.1:1/", shards=1, directory=self.directory, **LOAD)
            self.assertEqual(own.read_bytes(), content)
        own.rename(self.directory / "shard-old.json")
        with self.assertRaisesRegex(brimful.UsageError, "shard-old.json is not the Record of a shard"):
            fleet.run("http://127.0.0.1:1/", shards=1, directory=self.directory, **LOAD)
        self.assertEqual(len(list(self.directory.iterdir())), 3)

    def test_links_are_not_followed(self) -> None:
        link = self.directory / "shard-1.json"
        link.symlink_to(self.outside)
        with self.assertRaisesRegex(brimful.UsageError, "shard-1.json is not the Record of a shard"):
            shard_records.prepare(self.directory)
        self.assertTrue(link.is_symlink())
        link.unlink()
        # The temporary names, under which the file is first written, may be links too.
        for name in (".brimful-shard-1.part", "shard-1.next"):
            (self.directory / name).symlink_to(self.outside)
        shard_records.write(self.directory, 1, b"{}")
        self.assertEqual((link.read_text(), link.is_symlink()), ("{}", False))
        self.assertEqual(self.outside.read_text(), "precious")

    def test_a_pipe_of_this_name_is_refused_without_waiting(self) -> None:
        os.mkfifo(self.directory / "shard-1.json")
        with self.assertRaisesRegex(brimful.UsageError, "shard-1.json is not the Record of a shard"):
            shard_records.prepare(self.directory)


class ScratchDirectories(unittest.TestCase):
    """Temporary directories."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def start(self, code: str) -> "subprocess.Popen[str]":
        """Starts a Python process whose directory for temporary files is this test's."""
        path = os.pathsep.join([str(Path(brimful.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "TMPDIR": str(self.directory), "PYTHONPATH": path}
        return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)

    def test_the_next_fleet_removes_the_files_of_a_driver_that_was_killed(self) -> None:
        run = "from brimful import fleet; fleet.run({!r}, shards=2, rate=100, duration={!r}, on_second={})"
        print_completed = "lambda figures, present: print(figures.completed, flush=True)"
        with target("--service", "page=50us") as url:
            with self.start(run.format(url, "10m", print_completed)) as driver:
                assert driver.stdout is not None
                driver.stdout.readline()
                shards = Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split()
                self.assertEqual(len(shards), 2)
                driver.send_signal(signal.SIGKILL)
            # Wait until the shards have stopped by themselves. A zombie process counts as stopped.
            wait_until(lambda: not any(is_running(pid) for pid in shards))
            self.assertEqual(len(list(self.directory.iterdir())), 3)
            with self.start(run.format(url, "300ms", None)) as driver:
                self.assertEqual(driver.wait(), 0)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_directories_in_use_and_other_files_stay(self) -> None:
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        (self.directory / "brimful-scratch-link").symlink_to(elsewhere)
        make_scratch = "from brimful._scratch import Scratch; scratch = Scratch(); print(scratch.path, flush=True); "
        with self.start(make_scratch + "import time; time.sleep(600)") as holder:
            assert holder.stdout is not None
            held = Path(holder.stdout.readline().strip())
            with self.start(make_scratch + "scratch.close()") as another:
                self.assertEqual(another.wait(), 0)
            names = {"elsewhere", "brimful-scratch-link", held.name}
            self.assertEqual({path.name for path in self.directory.iterdir()}, names)
            holder.kill()
        with self.start(make_scratch + "scratch.close()") as another:
            self.assertEqual(another.wait(), 0)
        self.assertEqual({path.name for path in self.directory.iterdir()}, names - {held.name})

    def test_a_directory_that_is_removed_before_it_is_locked_is_replaced(self) -> None:
        made: list[Path] = []

        def make(prefix: str) -> str:
            made.append(self.directory / f"{prefix}{len(made)}")
            if made[-1].name != f"{prefix}0":
                made[-1].mkdir()
            return str(made[-1])

        def lock(descriptor: int, operation: int) -> None:
            if len(made) == 2:
                made[1].rmdir()

        with mock.patch("tempfile.mkdtemp", make), mock.patch("fcntl.flock", lock), _scratch.Scratch() as path:
            self.assertEqual((path, path.is_dir()), (made[2], True))
        self.assertEqual(list(self.directory.iterdir()), [])


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
