"""Tests of shards on the emulated hosts of `brimful testbed`. Each host has its own address, name and boot id, and
delays that differ by direction. The clock of one host is ahead. One host is cut off at the end.

Requires root, `/dev/net/tun` and iproute2, as the test bed does. No bound depends on the load of this machine.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import brimful
from brimful import Record

from .far_cluster import AHEAD_NS

#: Packets to the head node (client 1) are delayed by 2 ms from client 2, and by 4 ms from client 3. Packets from the
#: head node are not delayed.
BED = ["testbed", "--clients", "3", "--rtt", "0ms..4ms", "--up-share", "100%", "--quiet"]
HOSTS = ["{server}", "{client 1}", "{client 2}", "{client 3}"]


@unittest.skipIf(importlib.util.find_spec("ray") is None, "Ray is not installed: pip install 'brimful[fleet]'")
class FarHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory(prefix="brimful-far-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        inside = ["ip", "netns", "exec", "client1", sys.executable, "-m", "tests.far_cluster", directory.name, *HOSTS]
        # Disable Ray's tokens: the driver may connect before the head node has made a token. They are not needed in the
        # isolated network of the test bed.
        path = os.pathsep.join([os.getcwd(), str(Path(brimful.__file__).parents[1])])
        done = subprocess.run(
            [brimful.binary(), *BED, "--", *inside],
            env={**os.environ, "PYTHONPATH": path, "BRIMFUL_BINARY": brimful.binary(), "RAY_AUTH_MODE": "disabled"},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"the cluster ended with {done.returncode}:\n{done.stderr[-4000:]}")

    def records_by_host(self, name: str) -> dict[str, dict]:
        """Returns each shard's own Record, by its host."""
        records = [json.loads(path.read_text()) for path in (self.directory / name).glob("shard-*.json")]
        return {record["shards"][0]["host"]: record for record in records}

    def test_each_shard_runs_on_its_own_host_and_the_record_is_of_the_whole_load(self) -> None:
        record = Record.load(self.directory / "together.json")
        self.assertEqual(sorted(part.host for part in record.shards), ["client2", "client3"])
        self.assertEqual([part.lost_at_s for part in record.shards], [None, None])
        self.assertEqual((record.counts.scheduled, record.counts.completed), (200, 200))

    def test_clock_offsets_are_within_their_stated_errors(self) -> None:
        for host, part in self.records_by_host("together").items():
            shard = part["shards"][0]
            true_offset_us = AHEAD_NS / 1e3 if host == "client3" else 0.0
            self.assertLessEqual(abs(shard["clock_ahead_us"] - true_offset_us), shard["clock_error_us"], host)
            # The delay is only in one direction, which the probes cannot detect. So the error must be at least half of
            # the delay.
            self.assertGreaterEqual(shard["clock_error_us"], 1_000 if host == "client2" else 2_000, host)

    def test_shards_start_at_the_same_instant_within_the_stated_errors(self) -> None:
        start_times_us = []
        errors = []
        for part in self.records_by_host("together").values():
            shard = part["shards"][0]
            # The planned start of the shard, on the monotonic clock that all hosts of the test bed share.
            start_times_us.append(part["started_monotonic_ns"] / 1e3 - shard["offset_us"])
            errors.append(shard["clock_error_us"])
        self.assertLessEqual(abs(start_times_us[0] - start_times_us[1]), sum(errors))

    def test_results_of_a_host_that_is_cut_off_are_kept(self) -> None:
        record = Record.load(self.directory / "cut-off.json")
        lost = {part.host: part.lost_at_s for part in record.shards}
        self.assertIsNone(lost["client2"])
        self.assertTrue(0 < lost["client3"] < 20, lost)
        self.assertGreater(self.records_by_host("cut-off")["client3"]["counts"]["completed"], 0)
        scheduled = [part["counts"]["scheduled"] for part in self.records_by_host("cut-off").values()]
        self.assertEqual(record.counts.scheduled, sum(scheduled))
        self.assertFalse(record.verdict.valid)
        self.assertIn("shard_lost", [reason.code for reason in record.verdict.reasons])
