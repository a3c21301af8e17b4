"""Tests of shards as actors of a Ray cluster: nodes on this machine that communicate only through Ray."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import brimful
from brimful import fleet
from brimful.fleet.driver import FleetError

from .servers import target

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None


#: Content of a file `sitecustomize.py` that hides this package from Python.
WITHOUT_PACKAGE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "brimful":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


@unittest.skipIf(ray is None, "Ray is not installed: pip install 'brimful[fleet]'")
class OnRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        # Ray's own tests also start several nodes on one machine in this way: each node has its own processes.
        cls.client_port = free_port()
        head = {"num_cpus": 2, "include_dashboard": False, "ray_client_server_port": cls.client_port}
        cls.cluster = Cluster(initialize_head=True, head_node_args=head)
        cls.second = cls.cluster.add_node(num_cpus=2)
        cls.cluster.wait_for_nodes()

    @classmethod
    def tearDownClass(cls) -> None:
        ray.shutdown()
        cls.cluster.shutdown()

    def test_each_shard_runs_on_its_own_node_and_the_record_is_of_the_whole_load(self) -> None:
        with target("--service", "page=100us") as url:
            outcome = fleet.run(url, shards=2, address=self.cluster.address, rate=200, duration="1s", seed=3)
            alone = brimful.load(url, rate=200, duration="1s", seed=3)
        self.assertEqual(outcome.record.counts.scheduled, alone.counts.scheduled)
        self.assertEqual(outcome.record.counts.completed, alone.counts.completed)
        self.assertEqual([part.lost_at_s for part in outcome.record.shards], [None, None])

    def test_a_fleet_can_use_the_client_port(self) -> None:
        # Run the load in another process, which is not connected to the cluster yet.
        command = [sys.executable, "-m", "brimful.fleet", "run", "--shards", "2", "--rate", "200", "--duration", "1s"]
        address = f"--address=ray://127.0.0.1:{self.client_port}"
        with target("--service", "page=100us") as url:
            done = subprocess.run([*command, "--json", "--quiet", address, url], capture_output=True, text=True)
        self.assertEqual(done.stderr.count("error"), 0, done.stderr)
        record = json.loads(done.stdout)
        self.assertEqual((record["counts"]["completed"], len(record["shards"])), (200, 2))

    def test_no_actor_loads_modules_from_the_drivers_directory(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            ran = Path(directory, "ran")
            for name in ("brimful/__init__.py", "json.py"):
                planted = Path(directory, name)
                planted.parent.mkdir(exist_ok=True)
                planted.write_text(f"open({str(ran)!r}, 'w').close()\n")
            command = [brimful.binary(), "fleet", "run", "--shards", "2", "--rate", "200", "--duration", "1s", "--quiet"]
            with target("--service", "page=100us") as url:
                done = subprocess.run(
                    [*command, "--json", f"--address={self.cluster.address}", url],
                    cwd=directory, capture_output=True, text=True,
                )  # fmt: skip
            self.assertFalse(ran.exists(), done.stderr)
            self.assertEqual(json.loads(done.stdout)["counts"]["completed"], 200)

    def test_a_shard_whose_node_dies_is_lost(self) -> None:
        third = self.cluster.add_node(num_cpus=4)
        self.cluster.wait_for_nodes()
        dead = []

        def on_second(figures: fleet.Figures, present: int) -> None:
            if figures.t_s > 1.0 and not dead:
                dead.append(True)
                self.cluster.remove_node(third, allow_graceful=False)

        with target("--service", "page=100us") as url:
            # The cluster has three nodes, one of which will be killed. Each runs one shard.
            outcome = fleet.run(
                url, shards=3, address=self.cluster.address, rate=120, duration="20s", on_second=on_second, cpus_per_shard=2
            )
        lost = [part for part in outcome.record.shards if part.lost_at_s is not None]
        self.assertEqual(len(lost), 1)
        self.assertTrue(0 < lost[0].lost_at_s < 20)
        self.assertIn("shard_lost", [reason.code for reason in outcome.record.verdict.reasons])

    def test_a_shard_whose_actor_is_killed_is_lost(self) -> None:
        killed = []

        def on_second(figures: fleet.Figures, present: int) -> None:
            if figures.t_s > 1.0 and not killed:
                killed.append(actor_pid())
                os.kill(killed[0], signal.SIGKILL)

        with target("--service", "page=100us") as url:
            outcome = fleet.run(url, shards=2, address=self.cluster.address, rate=100, duration="8s", on_second=on_second)
        self.assertEqual(sum(part.lost_at_s is not None for part in outcome.record.shards), 1)

    def test_a_host_without_the_package_is_reported(self) -> None:
        # Python executes `sitecustomize.py` when it starts.
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "sitecustomize.py").write_text(WITHOUT_PACKAGE)
            node = self.cluster.add_node(num_cpus=4, env_vars={"PYTHONPATH": directory})
            self.cluster.wait_for_nodes()
            try:
                # Two of the shards use all CPUs of the other two nodes, so the third shard runs on this node.
                with self.assertRaisesRegex(FleetError, "does not answer: its host has no Python package `brimful`: `pip"):
                    fleet.run("http://127.0.0.1:1/", shards=3, address=self.cluster.address, rate=1, cpus_per_shard=2)
            finally:
                self.cluster.remove_node(node)

    def test_missing_nodes_and_servers_are_reported(self) -> None:
        with self.assertRaisesRegex(FleetError, r"9 shards need 9 nodes .* but \d of \d are large enough"):
            fleet.run("http://127.0.0.1:1/", shards=9, address=self.cluster.address, rate=1)
        with self.assertRaisesRegex(FleetError, "could not start: nothing listens"):
            fleet.run("http://127.0.0.1:1/", shards=2, address=self.cluster.address, rate=1)


@unittest.skipIf(ray is None, "Ray is not installed: pip install 'brimful[fleet]'")
class OnNoCluster(unittest.TestCase):
    def test_a_cluster_that_cannot_be_reached_is_reported(self) -> None:
        code = "from brimful import fleet; fleet.run('http://127.0.0.1:1/', shards=2, address={!r}, rate=1)"
        # Run the load in another process, which is not connected to a cluster. Nothing listens on port 1.
        for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
            done = subprocess.run([sys.executable, "-c", code.format(address)], capture_output=True, text=True)
            self.assertIn(f"no Ray cluster can be reached at {address} (", done.stderr)
            self.assertIn("start one with `ray start --head`", done.stderr)


class WithoutRay(unittest.TestCase):
    @unittest.skipUnless(ray is None, "Ray is installed")
    def test_the_error_says_what_to_install(self) -> None:
        with self.assertRaisesRegex(brimful.HostError, r"pip install 'brimful\[fleet\]'"):
            fleet.run("http://127.0.0.1:1/", shards=2, address="auto", rate=1)


def actor_pid() -> int:
    """Returns the process id of an actor that runs a shard."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as line:
                    if line.read().startswith(b"ray::Place"):
                        return int(name)
            except OSError:
                continue
    raise AssertionError("no actor runs a shard")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
