"""Shards on hosts of their own, which are those of `brimful testbed`: each with an address, a name and a boot id, ways
of unlike length there and back, and a clock that is ahead. One of them is cut off in the end.

It takes root, `/dev/net/tun` and iproute2, as the test bed does. No bound depends on how busy this machine is.
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

#: The head has none, the others 2 ms and 4 ms to it and nothing back.
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
        # Nobody else reaches the test bed's network, and the driver may ask before the head node has made its token.
        path = os.pathsep.join([os.getcwd(), str(Path(brimful.__file__).parents[1])])
        done = subprocess.run(
            [brimful.binary(), *BED, "--", *inside],
            env={**os.environ, "PYTHONPATH": path, "BRIMFUL_BINARY": brimful.binary(), "RAY_AUTH_MODE": "disabled"},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"the cluster ended with {done.returncode}:\n{done.stderr[-4000:]}")

    def parts(self, name: str) -> dict[str, dict]:
        """Each shard's own Record, by its host."""
        records = [json.loads(path.read_text()) for path in (self.directory / name).glob("shard-*.json")]
        return {record["shards"][0]["host"]: record for record in records}

    def test_each_shard_has_a_host_and_the_whole_is_one_load(self) -> None:
        record = Record.load(self.directory / "together.json")
        self.assertEqual(sorted(part.host for part in record.shards), ["client2", "client3"])
        self.assertEqual([part.lost_at_s for part in record.shards], [None, None])
        self.assertEqual((record.counts.scheduled, record.counts.completed), (200, 200))

    def test_clocks_are_known_to_within_what_is_stated(self) -> None:
        for host, part in self.parts("together").items():
            shard = part["shards"][0]
            really_us = AHEAD_NS / 1e3 if host == "client3" else 0.0
            self.assertLessEqual(abs(shard["clock_ahead_us"] - really_us), shard["clock_error_us"], host)
            # Half of the way there, as nothing is known of the way back.
            self.assertGreaterEqual(shard["clock_error_us"], 1_000 if host == "client2" else 2_000, host)

    def test_shards_begin_at_one_instant_to_within_what_is_stated(self) -> None:
        agreed, errors = [], []
        for part in self.parts("together").values():
            shard = part["shards"][0]
            # When the shard took the instant to be, by the clock that all hosts share.
            agreed.append(part["started_monotonic_ns"] / 1e3 - shard["offset_us"])
            errors.append(shard["clock_error_us"])
        self.assertLessEqual(abs(agreed[0] - agreed[1]), sum(errors))

    def test_what_a_host_that_is_cut_off_had_seen_is_kept(self) -> None:
        record = Record.load(self.directory / "cut-off.json")
        lost = {part.host: part.lost_at_s for part in record.shards}
        self.assertIsNone(lost["client2"])
        self.assertTrue(0 < lost["client3"] < 20, lost)
        self.assertGreater(self.parts("cut-off")["client3"]["counts"]["completed"], 0)
        scheduled = [part["counts"]["scheduled"] for part in self.parts("cut-off").values()]
        self.assertEqual(record.counts.scheduled, sum(scheduled))
        self.assertFalse(record.verdict.valid)
        self.assertIn("shard_lost", [reason.code for reason in record.verdict.reasons])
