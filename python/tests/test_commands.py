"""Calls each function with the real program."""

import doctest
import os
import pickle
import signal
import tempfile
import threading
import time
import unittest
from pathlib import Path

import brimful
import brimful._command
import brimful.fleet.clock
import brimful.fleet.driver
from brimful import plan

from .servers import target

MODEL = {
    "stations": [{"name": "cpu", "type": "queue", "servers": 1, "scheduling": "ps"}],
    "classes": [{"name": "page", "type": "open", "rate": 100}],
    "demands": [[0.002]],
}


class Commands(unittest.TestCase):
    def test_examples_in_the_documentation(self) -> None:
        flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
        for module in (brimful, plan, brimful._command, brimful.fleet.clock, brimful.fleet.driver):
            result = doctest.testmod(module, optionflags=flags)
            self.assertEqual(result.failed, 0, module.__name__)

    def test_load_returns_the_record_and_the_output_of_the_command(self) -> None:
        limits = Path("/proc/self/limits").read_text()
        with target("--service", "page=100us") as url:
            record = brimful.load(
                url, rate=200, duration="500ms", seed=3, slo=["p99<10s"], header=["Accept: text/html"]
            )
        self.assertEqual((record.counts.scheduled, record.counts.completed, record.seed), (100, 100, 3))
        self.assertEqual(record.counts.status.status_2xx, 100)
        self.assertTrue(record.objectives and record.objectives[0].met)
        self.assertIn("Verdict", record.text)
        self.assertIn("<pre>", record._repr_html_())
        self.assertEqual(sum(row["completed"] for row in record.rows()), 100)
        self.assertEqual(Path("/proc/self/limits").read_text(), limits)

    def test_records_are_compared_and_are_a_history(self) -> None:
        with target("--service", "page=100us") as url:
            records = [brimful.load(url, rate=100, duration="500ms", seed=seed) for seed in range(4)]
            tested = brimful.ab(url, url, rate=100, slice="100ms", duration="2s")
        # The load generator may have been late on a busy host. Mark all runs as valid, because comparisons leave out
        # invalid ones.
        runs = [record.source | {"verdict": {"valid": True, "reasons": []}} for record in records]
        compared = brimful.compare(runs[:2], runs[2:], max_regression=["throughput:50%"])
        self.assertEqual([figure.name for figure in compared.figures][:2], ["throughput", "mean"])
        self.assertEqual(len(compared.limits or []), 1)
        self.assertIn("<html", compared.page or "")
        self.assertEqual(len(brimful.history(*runs).runs), 4)
        self.assertTrue(any("the same server" in warning for warning in tested.warnings or []))

    def test_an_exception_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(brimful.UsageError, "ftp"):
            brimful.load("ftp://127.0.0.1/", rate=1)
        with self.assertRaisesRegex(brimful.UsageError, "--no-such-flag"):
            brimful.load("http://127.0.0.1/", rate=1, no_such_flag=True)
        with self.assertRaises(brimful.HostError) as caught:
            brimful.load("http://127.0.0.1:1/", rate=1)
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertIn("start the server first", str(caught.exception))
        with self.assertRaisesRegex(brimful.UsageError, "a document is a path"):
            plan.solve(5)  # type: ignore[arg-type]

    def test_exceptions_survive_pickling(self) -> None:
        # Ray transfers exceptions between processes by pickle.
        for error in (brimful.HostError("no port is left", 3), brimful.UsageError("--rate 0", 2)):
            restored = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(restored), str(restored)), (type(error), str(error)))
            self.assertEqual(restored.exit_code, error.exit_code)

    def test_ctrl_c_ends_a_load_and_keeps_its_results(self) -> None:
        with target("--service", "page=100us") as url:
            began = time.monotonic()
            threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt) as caught:
                brimful.load(url, rate=100, duration="10m")
        self.assertLess(time.monotonic() - began, 120)
        record = caught.exception.result
        self.assertTrue(record.interrupted and record.counts.completed > 0)

    def test_other_threads_run_during_a_load(self) -> None:
        turns = 0
        done = threading.Event()

        def count() -> None:
            nonlocal turns
            while not done.wait(0.01):
                turns += 1

        counter = threading.Thread(target=count)
        counter.start()
        with target("--service", "page=100us") as url:
            brimful.load(url, rate=50, duration="1s")
        done.set()
        counter.join()
        self.assertGreater(turns, 5)

    def test_the_planner(self) -> None:
        solution = plan.solve(MODEL)
        self.assertAlmostEqual(solution.response_time[0], 0.002 / 0.8)
        self.assertEqual(solution.bottleneck, "cpu")
        self.assertIn("<iframe", solution._repr_html_())
        changed = plan.what_if(MODEL, "page.rate=4x")
        self.assertAlmostEqual(changed.after.solution.response_time[0], 0.002 / 0.2)
        with tempfile.TemporaryDirectory() as directory:
            series = Path(directory, "series.csv")
            hours = (f"2026-01-{1 + i // 24:02}T{i % 24:02}:00:00Z,{1000 + 100 * (i % 24)}\n" for i in range(24 * 21))
            series.write_text("time,requests\n" + "".join(hours))
            forecast = plan.forecast(series, horizon="7d", limit="10")
        self.assertTrue(forecast.headline)

    def test_records_of_a_watched_server_yield_a_model(self) -> None:
        with target("--service", "page=1ms") as url:
            port = int(url.rsplit(":", 1)[1].strip("/"))
            watched = brimful.watch(port=port, duration="300ms", no_ebpf=True)
            records = [brimful.load(url, rate=rate, duration="700ms", watch=True, no_ebpf=True) for rate in (100, 300)]
        self.assertTrue(watched.ports)
        self.assertEqual([record.server is not None for record in records], [True, True])
        calibration = plan.calibrate(*records)
        self.assertTrue(calibration.headline)
        self.assertTrue(plan.solve(calibration).response_time)

    def test_characterize_reads_a_log(self) -> None:
        line = '127.0.0.1 - - [10/Oct/2026:13:{:02}:{:02} +0000] "GET /{} HTTP/1.1" 200 512\n'
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory, "access.log")
            log.write_text("".join(line.format(i // 60, i % 60, i % 7) for i in range(600)))
            profile = brimful.characterize(log)
        self.assertEqual((profile.requests, profile.lines.parsed), (600, 600))
