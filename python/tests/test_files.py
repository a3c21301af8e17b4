"""Which files a fleet replaces, and which it leaves behind."""

import os
import tempfile
import unittest
from pathlib import Path

import brimful
from brimful import fleet
from brimful.fleet import shard_records

from .servers import target

LOAD = {"rate": 100, "duration": "300ms", "seed": 5}


class Kept(unittest.TestCase):
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
        # A run that was killed while it wrote.
        (self.directory / ".brimful-shard-7.part").write_text('{"schema"')
        with target("--service", "page=50us") as url:
            fleet.run(url, shards=3, directory=self.directory, **LOAD)
            outcome = fleet.run(url, shards=2, directory=self.directory, **LOAD)
        records = [self.directory / f"shard-{index}.json" for index in (1, 2)]
        self.assertEqual(list(outcome.shards.values()), records)
        self.assertEqual(sorted(self.directory.iterdir()), sorted([*records, *others]))
        self.assertEqual({other.read_text() for other in others}, {"precious"})

    def test_a_directory_with_files_of_the_users_own_by_such_names_is_refused(self) -> None:
        with target("--service", "page=50us") as url:
            whole = brimful.load(url, **LOAD)
            fleet.run(url, shards=2, directory=self.directory, **LOAD)
        own = self.directory / "shard-3.json"
        records = [(self.directory / f"shard-{index}.json").read_bytes() for index in (1, 2)]
        # Neither JSON, nor a document, nor a Record, nor a shard's, nor of the shard that the name says.
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
        # What is written first goes by another name, which may be a link as well.
        for name in (".brimful-shard-1.part", "shard-1.next"):
            (self.directory / name).symlink_to(self.outside)
        shard_records.write(self.directory, 1, b"{}")
        self.assertEqual((link.read_text(), link.is_symlink()), ("{}", False))
        self.assertEqual(self.outside.read_text(), "precious")

    def test_a_pipe_by_such_a_name_is_refused_and_not_waited_for(self) -> None:
        os.mkfifo(self.directory / "shard-1.json")
        with self.assertRaisesRegex(brimful.UsageError, "shard-1.json is not the Record of a shard"):
            shard_records.prepare(self.directory)
