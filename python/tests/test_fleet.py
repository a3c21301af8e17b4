"""Tests of shards as processes of this machine, and of lost shards."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import brimful
from brimful import fleet
from brimful.fleet import on_ray
from brimful.fleet.clock import Offset, Probe, estimate
from brimful.fleet.driver import Driver, FleetError, Load
from brimful.fleet.local import ImmediateAnswer, LocalPlace
from brimful.fleet.place import Description, Figures, ShardState

from .servers import target, wait_until

WORKLOAD = """
[[class]]
name = "light"
path = "/light"
weight = 0.7

[[class]]
name = "heavy"
path = "/heavy"
weight = 0.3
"""
SERVICE = ("--service", "light=50us,heavy=200us")


class Fleet(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.workload = self.directory / "workload.toml"
        self.workload.write_text(WORKLOAD)

    def test_shards_generate_exactly_the_load_of_one_process(self) -> None:
        flags = {"rate": 300, "arrivals": "poisson", "duration": "1500ms"}
        kept = self.directory / "kept"
        with target(*SERVICE) as url:
            outcome = fleet.run(url, shards=3, workload=self.workload, seed=7, directory=kept, **flags)
            alone = brimful.load(url, workload=self.workload, seed=7, **flags)
        record = outcome.record
        self.assertEqual(record.counts.scheduled, alone.counts.scheduled)
        self.assertEqual(record.counts.completed, alone.counts.completed)
        for name, of_class in alone.classes.items():
            self.assertEqual(record.classes[name].counts.scheduled, of_class.counts.scheduled, name)
        offered = [[row["offered"] for row in result.rows()][:2] for result in (record, alone)]
        self.assertEqual(offered[0], offered[1])
        # Merge the shards' Records in another order and grouping. The merged histograms must be the same in every bin.
        parts = [outcome.shards[index] for index in (1, 2, 3)]
        pair = brimful.merge(parts[2], parts[0])
        again = brimful.merge(pair, parts[1])
        self.assertEqual(again.source["account"], record.source["account"])
        self.assertEqual(again.source["hdr"], record.source["hdr"])
        self.assertEqual(
            [(part.index, part.of, part.lost_at_s) for part in record.shards], [(i, 3, None) for i in (1, 2, 3)]
        )
        self.assertTrue(all(part.offset_us >= 0 for part in record.shards))
        self.assertIn("These are all 3 shards of the load, on one host, and they began within", record.text)

    def test_results_of_a_shard_that_dies_are_kept(self) -> None:
        killed = threading.Event()
        places = [LocalPlace() for _ in range(2)]

        def on_second(figures: Figures, present: int) -> None:
            # After one second, the driver has a Record of the shard.
            if figures.t_s > 1.0 and not killed.is_set():
                killed.set()
                assert places[1].place.process is not None
                os.kill(places[1].place.process.pid, signal.SIGKILL)

        with target(*SERVICE) as url:
            load = Load(["--rate=100", "--duration=6s", url], seed=1)
            outcome = Driver(places, load, directory=self.directory / "kept", on_second=on_second).run()
        record = outcome.record
        first, second = record.shards
        self.assertIsNone(first.lost_at_s)
        self.assertTrue(0.5 < second.lost_at_s < 6, second)
        self.assertEqual(record.verdict.valid, False)
        reasons = [reason for reason in record.verdict.reasons if reason.code == "shard_lost"]
        self.assertIn("shard 2/2 on ", reasons[0].message)
        own = [json.loads(outcome.shards[i].read_text()) for i in (1, 2)]
        self.assertEqual(record.counts.scheduled, sum(part["counts"]["scheduled"] for part in own))
        self.assertEqual(own[0]["counts"]["scheduled"], 300)
        self.assertTrue(0 < own[1]["counts"]["completed"] < 300)
        self.assertEqual(outcome.record.exit_code, 4)
        self.assertIn("Lost: 2/2 on ", record.text)

    def test_a_shard_that_never_started_is_in_the_record(self) -> None:
        places = [LocalPlace(), LostAtStart()]
        with target(*SERVICE) as url:
            record = Driver(places, Load(["--rate=100", "--duration=2s", url], seed=1)).run().record
        self.assertEqual([part.lost_at_s for part in record.shards], [None, 0.0])
        lost = [reason.message for reason in record.verdict.reasons if reason.code == "shard_lost"]
        self.assertRegex(lost[0], "^50.0 % of the load was missing: shard 2/2 never began")

    def test_a_shard_that_no_longer_answers_is_lost(self) -> None:
        places = [LocalPlace(), CutOff(after=6)]
        with mock.patch.object(fleet.driver, "ANSWER_TIMEOUT_S", 1.5), target(*SERVICE) as url:
            record = Driver(places, Load(["--rate=100", "--duration=6s", url], seed=1)).run().record
        self.assertTrue(record.shards[1].lost_at_s > 0)
        self.assertFalse(record.verdict.valid)

    def test_stop_stops_all_shards(self) -> None:
        stop = threading.Event()
        stopped_at = []

        def on_second(figures: Figures, present: int) -> None:
            if figures.completed and not stop.is_set():
                stopped_at.append(time.monotonic())
                stop.set()

        with target(*SERVICE) as url:
            outcome = fleet.run(url, shards=2, rate=100, duration="10m", on_second=on_second, stop=stop)
        self.assertTrue(outcome.record.interrupted)
        self.assertTrue(all(part.lost_at_s is None for part in outcome.record.shards))
        self.assertLess(time.monotonic() - stopped_at[0], 60)

    def test_shards_that_are_not_compatible_are_refused_by_name(self) -> None:
        load = Load(["--rate=1", "http://127.0.0.1:1/"], seed=1)
        for properties, message in [
            ({"version": "brimful 9.9.9"}, "different versions of brimful .*shard 2/2 on elsewhere: brimful 9.9.9"),
            ({"ahead_ns": 3_600 * 10**9}, r"clock of elsewhere is \+3600 s off this host's: set it"),
            ({"gone": True}, "shard 2/2 does not answer: its host has ended"),
        ]:
            with self.assertRaisesRegex(FleetError, message):
                Driver([LocalPlace(), OtherHost(**properties)], load).run()
        with self.assertRaisesRegex(FleetError, "shard 1/2 on .* could not start: nothing listens at 127.0.0.1:1"):
            Driver([LocalPlace(), LocalPlace()], load).run()
        with self.assertRaisesRegex(brimful.UsageError, "one shard or more"):
            fleet.run("http://127.0.0.1:1/", shards=0, rate=1)
        with self.assertRaisesRegex(brimful.UsageError, "none.toml"):
            fleet.run("http://127.0.0.1:1/", shards=1, rate=1, workload=self.directory / "none.toml")

    def test_hosts_with_and_without_io_uring_run_one_load(self) -> None:
        with target(*SERVICE) as url:
            first = brimful.load(url, rate=50, duration="200ms").generator.engine
            places = [LocalPlace(), WithoutUring()]
            record = Driver(places, Load(["--rate=100", "--duration=300ms", url], seed=1)).run().record
        self.assertEqual(set(record.generator.engine.split(", ")), {first, "epoll"})
        self.assertEqual(record.counts.completed, 30)

    def test_damaged_records_and_those_of_another_load_are_refused_by_name(self) -> None:
        kept = self.directory / "kept"
        with target(*SERVICE) as url:
            outcome = fleet.run(url, shards=2, rate=100, duration="300ms", seed=5, directory=kept)
            other = fleet.run(url, shards=2, rate=200, duration="300ms", seed=5, directory=self.directory / "other")
        damaged = json.loads(outcome.shards[2].read_text())
        damaged["account"]["classes"][0]["response_time"]["histogram"] = "AAAA"
        outcome.shards[2].write_text(json.dumps(damaged))
        with self.assertRaisesRegex(brimful.UsageError, "shard-2.json: its account is damaged"):
            brimful.merge(*outcome.shards.values())
        with self.assertRaisesRegex(brimful.UsageError, "not of one load: the workload of the one"):
            brimful.merge(outcome.shards[1], other.shards[2])
        newer = json.loads(outcome.shards[1].read_text())
        newer["schema"] = "brimful.record/2"
        outcome.shards[1].write_text(json.dumps(newer))
        with self.assertRaisesRegex(brimful.UsageError, "shard-1.json is not a Record .*brimful.record/2"):
            brimful.merge(outcome.shards[1])

    def test_shards_stop_when_the_driver_dies_and_their_records_stay(self) -> None:
        kept = self.directory / "kept"
        with target(*SERVICE) as url:
            code = f"from brimful import fleet; fleet.run({url!r}, shards=2, rate=100, duration='10m', directory={str(kept)!r})"
            driver = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
            wait_until(lambda: len(list(kept.glob("shard-*.json"))) == 2)
            shards = children(driver.pid)
            self.assertEqual(len(shards), 2)
            driver.kill()
            driver.wait()
            wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in shards))
        record = brimful.merge(*kept.glob("shard-*.json"))
        self.assertTrue(record.counts.completed > 0)
        self.assertTrue(all(part.lost_at_s > 0 for part in record.shards))

    def test_the_command_line(self) -> None:
        command = [brimful.binary(), "fleet", "run", "--shards", "2", "--rate", "100", "--duration", "500ms", "--quiet"]
        with target(*SERVICE) as url:
            done = subprocess.run([*command, "--json", "--slo", "p99<1ns", url], capture_output=True, text=True)
            refused = subprocess.run([*command, "--shard", "1/2", url], capture_output=True, text=True)
            no_load = [word for word in command if word not in ("--rate", "100")]
            limit_only = subprocess.run([*no_load, "--calibrate", url], capture_output=True, text=True)
        record = json.loads(done.stdout)
        self.assertEqual((record["counts"]["scheduled"], len(record["shards"]), done.stderr), (50, 2, ""))
        # The objective applies to the whole load, so there is one result, not one for each shard.
        self.assertEqual([(slo["objective"], slo["met"]) for slo in record["objectives"]], [("p99<1ns", False)])
        self.assertEqual(refused.returncode, 2)
        self.assertIn("error: --shard is for one process", refused.stderr)
        self.assertEqual(limit_only.returncode, 2)
        self.assertIn("could not measure its limit: a fleet measures its hosts' limits for a given load", limit_only.stderr)

    def test_a_load_above_the_limit_of_the_shards_is_invalid(self) -> None:
        flags = ["--rate=500k", "--duration=200ms", "--timeout=500ms", "--json", "--calibrate"]
        with target(*SERVICE) as url:
            command = [brimful.binary(), "fleet", "run", "--shards", "2", *flags, url]
            done = subprocess.run(command, capture_output=True, text=True)
        record = json.loads(done.stdout)
        first, second = done.stderr.splitlines()[:2]
        self.assertIn("measuring the largest load that the shards can generate", first)
        # The limit depends on how busy the machine is, so the test reads it from the output.
        each = float(re.search(r": ([0-9,]+)/s.* by each of 2$", second)[1].replace(",", ""))  # Rounded to whole calls.
        self.assertAlmostEqual(record["generator"]["max_rate"], 2 * each, delta=2)
        self.assertIn("beyond_client_max", [reason["code"] for reason in record["verdict"]["reasons"]])
        self.assertEqual(done.returncode, 4)

    def test_one_shard_of_each_host_measures_the_limit_for_all(self) -> None:
        hosts = {"a": [LimitedPlace("a", 30_000), LimitedPlace("a", 1)], "b": [LimitedPlace("b", 12_000, lower_bound=True)]}
        notes: list[str] = []
        load = Load(["--calibrate", "--watch", "--rate=1", "http://h/"], seed=1)
        driver = Driver([*hosts["a"], *hosts["b"]], load, on_note=notes.append)
        limit = driver.client_limit()
        self.assertEqual((limit.max_rate, limit.lower_bound), (72_000, True))
        self.assertEqual(notes[1:], ["  a: 30,000/s by each of 2", "  b: 12,000/s or more by each of 1"])
        self.assertEqual(hosts["a"][1].started, [])
        [arguments] = hosts["a"][0].started
        self.assertIn("--client-limit-only", arguments)
        self.assertNotIn("--watch", arguments)
        arguments = driver.command_line(driver.shards[1], 10**18)
        self.assertIn("--client-max=30000.000", arguments)
        self.assertNotIn("--calibrate", arguments)
        with self.assertRaisesRegex(FleetError, "shard 1/1 on c could not measure its limit: nothing listens there"):
            Driver([LimitedPlace("c", None, stderr="error: nothing listens there")], load).client_limit()


class SurveyFleets(unittest.TestCase):
    """`brimful fleet serve-survey`, which runs the loads of `brimful survey --shards N`."""

    def order(self, process: "subprocess.Popen[str]", workload: str, duration: str, calibrate: bool = False) -> dict:
        assert process.stdin is not None and process.stdout is not None
        flags = [f"--duration={duration}", "--interval=31250000ns", "--warm-connections=4"]
        order = {"workload": workload, "seed": 7, "flags": flags, "calibrate": calibrate}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def test_one_load_after_another(self) -> None:
        load = WORKLOAD + '[load]\narrivals = "poisson"\nrate = 300.0\n'
        command = [sys.executable, "-m", "brimful.fleet", "serve-survey", "--shards=2", "--header=Accept: a/b"]
        with target(*SERVICE) as url:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            with subprocess.Popen([*command, url], **pipes) as process:
                self.assertEqual(json.loads(process.stdout.readline()), {})
                limit = self.order(process, load, "500ms", calibrate=True)["calibration"]
                records = [self.order(process, load, "500ms")["record"] for _ in range(2)]
                refused = self.order(process, "nonsense", "500ms")
                threading.Timer(3, lambda: (process.stdin.write("stop\n"), process.stdin.flush())).start()
                stopped = self.order(process, load, "10m")["record"]
                process.stdin.close()
                self.assertEqual(process.wait(), 0)
            alone = brimful.load(url, workload=self.workload(load), duration="500ms", seed=7)
        for record in records:
            self.assertEqual(record["counts"]["scheduled"], alone.counts.scheduled)
            self.assertEqual(len(record["shards"]), 2)
            self.assertEqual(record["intervals"][0]["length_s"], 1 / 32)
            known = None if limit["lower_bound"] else limit["max_rate"]
            self.assertAlmostEqual(record["generator"]["max_rate"] or 0, known or 0, delta=1)
        self.assertTrue(refused["usage"])
        self.assertIn("could not start", refused["error"])
        self.assertTrue(stopped["interrupted"])

    def workload(self, text: str) -> Path:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = Path(directory.name, "workload.toml")
        path.write_text(text)
        return path

    def test_an_error_at_the_start_is_its_first_answer(self) -> None:
        command = [sys.executable, "-m", "brimful.fleet", "serve-survey", "--shards=0", "http://127.0.0.1:1/"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertIn("one shard or more", json.loads(done.stdout)["error"])


class Clocks(unittest.TestCase):
    def test_the_true_offset_is_within_the_stated_error_for_asymmetric_delays(self) -> None:
        ahead = 123_456_789
        for there_ns, back_ns in [(2_000_000, 0), (0, 2_000_000), (1_000_000, 900_000), (5, 5)]:
            probes = []
            for i in range(8):
                asked, jitter = i * 10**9, (i * 37 % 11) * 10_000
                shown = asked + there_ns + jitter + ahead
                probes.append(Probe(asked, shown, asked + there_ns + back_ns + 2 * jitter))
            offset = estimate(probes)
            self.assertLessEqual(abs(offset.ahead_ns - ahead), offset.error_ns)
            self.assertLessEqual(offset.error_ns, (there_ns + back_ns) // 2 + 1)

    def test_shards_get_the_offset_of_their_clock(self) -> None:
        driver = Driver([LocalPlace()], Load(["--watch", "--rate=1", "http://h/"], seed=9, source_ips=["127.0.0.2/32"]))
        driver.shards[0].offset = Offset(-1_500, 300)
        words = driver.command_line(driver.shards[0], 1_700_000_000_000_000_005)
        for word in (
            "--clock-ahead=-1500ns/300ns",
            "--start-at=1700000000.000000005",
            "--watch",
            "--source-ip=127.0.0.2/32",
        ):
            self.assertIn(word, words)


class Clusters(unittest.TestCase):
    def test_a_connection_is_tried_again_after_a_crash_of_the_client_server(self) -> None:
        crashes = [ConnectionAbortedError(f"RuntimeError: {message}. See its log.") for message in on_ray.CRASH_MESSAGES]
        ray = mock.Mock()
        ray.init.side_effect = [*crashes, None]
        on_ray._connect(ray, "ray://192.0.2.1:10001")
        self.assertEqual(ray.init.call_count, 3)
        for error, tries in (crashes[0], on_ray.MAX_TRIES), (ConnectionError("ray client connection timeout"), 1):
            ray = mock.Mock()
            ray.init.side_effect = error
            with self.assertRaises(type(error)):
                on_ray._connect(ray, "ray://192.0.2.1:10001")
            self.assertEqual(ray.init.call_count, tries)

    def test_ray_does_not_learn_the_working_directory(self) -> None:
        seen: list[str] = []
        ray = mock.Mock()
        ray.init.side_effect = lambda **_: seen.append(os.getcwd())
        here = os.getcwd()
        on_ray._connect(ray, "192.0.2.1:6379")
        self.assertEqual((seen, os.getcwd()), (["/"], here))


class Tokens(unittest.TestCase):
    """Ray has one token for all clusters, in ~/.ray/auth_token or in the environment."""

    ADDRESS = "ray://192.0.2.1:10001"

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = Path(directory.name)
        self.file("auth_token").write_text("of another cluster")
        self.environment = {"HOME": directory.name, "RAY_AUTH_TOKEN": "of another cluster"}
        modules = {name: module for name, module in sys.modules.items() if name != "ray"}
        for patch in (
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.dict(sys.modules, modules, clear=True),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def file(self, name: str) -> Path:
        path = self.home / ".ray" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def test_a_token_is_not_sent_to_another_address(self) -> None:
        self.file("auth_tokens/192.0.2.2:10001").write_text("of that one")
        on_ray._use_token(self.ADDRESS)
        self.assertEqual(dict(os.environ), self.environment)
        os.environ["RAY_AUTH_MODE"] = "token"
        file = f"{self.home}/.ray/auth_tokens/192.0.2.1:10001"
        message = f"there is no Ray token for {self.ADDRESS}, .*put this cluster's token in {file}"
        with self.assertRaisesRegex(FleetError, message):
            on_ray._use_token(self.ADDRESS)

    def test_the_token_of_an_address_is_sent_only_there(self) -> None:
        file = self.file("auth_tokens/192.0.2.1:10001")
        file.write_text("of this one")
        on_ray._use_token(self.ADDRESS)
        sent = {"HOME": str(self.home), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}
        self.assertEqual(dict(os.environ), sent)
        with self.assertRaisesRegex(FleetError, "there is no Ray token for ray://192.0.2.9:10001"):
            on_ray._use_token("ray://192.0.2.9:10001")
        # Ray has already read the first token, and would send it to the other address, too.
        self.file("auth_tokens/192.0.2.9:10001").write_text("of that one")
        sys.modules["ray"] = mock.Mock()
        with self.assertRaisesRegex(FleetError, "a separate process for each cluster"):
            on_ray._use_token("ray://192.0.2.9:10001")
        self.assertEqual(dict(os.environ), sent)

    def test_an_address_cannot_name_a_file_in_another_directory(self) -> None:
        self.file("auth_tokens/none").write_text("")
        for name in ("../auth_token", "..", ".", "", "a/../../auth_token", "h:1/../../auth_token"):
            on_ray._use_token(f"ray://{name}")
            self.assertEqual(dict(os.environ), self.environment, name)


class OtherHost:
    """A place on another host, which may have another version, another time, or have ended."""

    def __init__(self, version: str | None = None, ahead_ns: int = 0, gone: bool = False) -> None:
        self.version = version
        self.ahead_ns = ahead_ns
        self.gone = gone

    def ask(self, method: str, *arguments: object) -> ImmediateAnswer:
        if self.gone:
            return ImmediateAnswer(problem="its host has ended")
        if method == "clock":
            return ImmediateAnswer(time.time_ns() + self.ahead_ns)
        return ImmediateAnswer(Description("elsewhere", "another", 1, self.version or brimful.version(), 1))

    def release(self) -> None:
        pass


class LimitedPlace:
    """A place on a host of its own, whose shard measures this limit or fails. Its Record is returned once, before the
    shard ends."""

    def __init__(self, host: str, max_rate: float | None, lower_bound: bool = False, stderr: str = "") -> None:
        self.host = host
        self.stderr = stderr
        self.limit = {"max_rate": max_rate, "lower_bound": lower_bound, "second_shares_cpus": False}
        self.started: list[list[str]] = []
        self.calls = 0

    def ask(self, method: str, *arguments: object) -> ImmediateAnswer:
        if method == "clock":
            return ImmediateAnswer(time.time_ns())
        if method == "describe":
            return ImmediateAnswer(Description(self.host, self.host, 1, brimful.version(), 2))
        if method == "start":
            self.started.append(arguments[0])
        if method != "state":
            return ImmediateAnswer()
        if self.stderr:
            return ImmediateAnswer(ShardState(3, stderr=self.stderr))
        self.calls += 1
        record = json.dumps({"calibration": self.limit}).encode()
        return ImmediateAnswer(ShardState([None, None, 0][self.calls - 1], record=[None, record, None][self.calls - 1]))

    def release(self) -> None:
        pass


class WithoutUring(LocalPlace):
    """A place on a host whose kernel does not allow io_uring."""

    def ask(self, method: str, *arguments: object) -> ImmediateAnswer:
        if method == "start":
            words, files = arguments
            arguments = ([*words[:1], "--engine=epoll", *words[1:]], files)
        return super().ask(method, *arguments)


class LostAtStart(LocalPlace):
    """A place that is lost right after its start."""

    def ask(self, method: str, *arguments: object) -> ImmediateAnswer:
        return ImmediateAnswer(problem="its host has ended") if method == "state" else super().ask(method, *arguments)


class CutOff(LocalPlace):
    """A place whose network fails after this number of requests for its state."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def ask(self, method: str, *arguments: object) -> ImmediateAnswer:
        if method == "state":
            self.left -= 1
        return NoAnswer() if self.left < 0 else super().ask(method, *arguments)


class NoAnswer(ImmediateAnswer):
    def get(self, timeout_s: float) -> None:
        time.sleep(timeout_s)
        raise TimeoutError


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
