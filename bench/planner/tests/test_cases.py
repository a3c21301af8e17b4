import json
import sys
import unittest
from pathlib import Path
from unittest import mock

from bench.monitor import report
from bench.planner import cases, networks, peers
from bench.planner.cases import CASES, OURS, Bed, Runs
from bench.side_by_side.tools import Failed


class FakeProgram:
    """Answers every request with fixed values."""

    def ask(self, request: dict) -> tuple[dict, float]:
        if "agreement" in request:
            return {"figures": 100, "covered": 95, "farthest_errors": 3.5, "farthest_network": 7}, 5.0
        if "simulate" in request:
            return {"cpu_s": [0.5], "events": 5_000_000}, 5.0
        if "curve" in request:
            return {"cpu_s": [0.003, 0.002], "points": [{"steady": {"response_time": [1.0]}}]}, 5.0
        if "networks" in request:
            solution = {"throughput": [2.0], "queue_length": [[9.0], [4.0]]}
            return [{"model": {}, "solution": solution}] * 2, 5.0
        return {"cpu_s": [0.5], "solution": {"throughput": [1.0, 1.0]}}, 5.0


class FakePeer:
    def __init__(self, name: str, answers: list) -> None:
        self.name, self.answers, self.asked = name, answers, 0

    def ask(self, request: dict, limit_s: float) -> dict:
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if isinstance(answer, Failed):
            raise answer
        return answer


def bed(*peers: FakePeer) -> Bed:
    return Bed(FakeProgram(), list(peers), repetitions=3, limit_s=1, quick=False)


class Repetitions(unittest.TestCase):
    def repeated(self, peer: FakePeer) -> Runs:
        return cases.repeated(bed(peer), {"solve": {}}, {}, "throughput")

    def test_every_solver_runs_in_every_repetition(self) -> None:
        runs = self.repeated(FakePeer("LINE", [{"cpu_s": 1.0, "throughput": [1.0, 1.1]}]))
        self.assertEqual({name: len(seconds) for name, seconds in runs.seconds.items()}, {OURS: 3, "LINE": 3})
        self.assertEqual(list(runs.rows())[1], ["LINE", "1,000", "2.00", "1.0e-01"])

    def test_a_solver_that_fails_once_is_not_run_again_and_has_no_time(self) -> None:
        peer = FakePeer("LINE", [{"cpu_s": 1.0, "throughput": [1.0, 1.0]}, Failed("LINE: not done in 1 s")])
        runs = self.repeated(peer)
        self.assertEqual(peer.asked, 2)
        self.assertEqual(list(runs.seconds), [OURS])
        self.assertEqual(list(runs.rows())[1], ["LINE", "not done in 1 s", "-", "-"])

    def test_the_best_of_the_curves_in_a_process_counts(self) -> None:
        outcome = cases.curve(bed())
        self.assertEqual(outcome.measured["seconds"].value, 2)


class Agreement(unittest.TestCase):
    def test_queue_lengths_are_compared_if_a_solver_has_them(self) -> None:
        ours = {"throughput": [2.0, 0.0], "queue_length": [[9.0, 0.0], [4.0, 0.0]]}
        theirs = {"throughput": [2.0, 0.0], "queues": [1], "queue_length": [[4.4, 0.0]]}
        self.assertAlmostEqual(cases.apart(ours, theirs), 0.1)

    def test_networks_that_a_solver_cannot_solve_are_reported(self) -> None:
        good = {"throughput": [2.0], "queues": [0], "queue_length": [[9.0]]}
        outcome = cases.agreement(bed(FakePeer("LINE", [good, Failed("LINE: load-dependent rates")])))
        self.assertEqual(outcome.raw["LINE"]["compared"], 1)
        self.assertIn("cannot solve 1: LINE: load-dependent rates", outcome.notes[-1])
        self.assertEqual(outcome.measured["covered"].value, 95)


class Tables(unittest.TestCase):
    def test_every_requirement_has_its_line(self) -> None:
        document = {
            "date": "2026-01-01",
            "commit": "abc",
            "host": {"cpu": "Z80", "cores": 1, "kernel": "6"},
            "versions": {"LINE": "3"},
            "settings": {"quick": False},
            "cases": [{"name": case.name} | case.measure(bed()).document() for case in CASES],
        }
        text = report.text(CASES, json.loads(json.dumps(document)))
        for words in ("10.0 million events/s", "500 ms", "NOT MET", "0.50 s", "5.00 MB", "95.0 %"):
            self.assertIn(words, text)
        self.assertEqual(text.count("not measured"), 0)
        self.assertEqual(len({case.name for case in CASES}), len(CASES))


class Networks(unittest.TestCase):
    def test_networks_are_reproducible_and_have_consistent_dimensions(self) -> None:
        self.assertEqual(networks.closed(4, 10, 30), networks.closed(4, 10, 30))
        for model in (networks.closed(2, 3, 1), networks.web_server(), networks.one_queue(), networks.busy_server()):
            self.assertEqual(len(model["demands"]), len(model["stations"]))
            self.assertEqual({len(row) for row in model["demands"]}, {len(model["classes"])})

    def test_the_server_is_not_saturated_at_the_end_of_the_range(self) -> None:
        model = networks.web_server()
        rates = [1.02 * c["rate"] for c in model["classes"]]
        for station, row in zip(model["stations"], model["demands"], strict=True):
            self.assertLess(sum(r * d for r, d in zip(rates, row, strict=True)) / station["servers"], 1)


ECHO = """
import json, sys, time
print(json.dumps({"version": "1"}), flush=True)
for line in filter(str.strip, sys.stdin):
    time.sleep(json.loads(line)["sleep"])
    print(line, end="", flush=True)
"""


class Peers(unittest.TestCase):
    def test_a_missing_solver_is_named_with_its_source(self) -> None:
        with mock.patch("bench.planner.peers.shutil.which", return_value="/nowhere/octave"):
            running, absent = peers.find(Path("/nowhere/python"))
        self.assertEqual(running, [])
        for name, word in (("LINE", "peers.sh"), ("Octave queueing", "Debian"), ("PDQ", "Debian"), ("JMT", "Maven")):
            self.assertIn(word, absent[name])

    def test_an_interpreter_is_reused_and_ended_when_it_exceeds_the_limit(self) -> None:
        peer = peers.Peer("echo", [sys.executable, "-c", ECHO])
        self.addCleanup(peer.end)
        self.assertEqual(peer.ask({"sleep": 0}, 60), {"sleep": 0})
        first = peer._process.pid
        self.assertEqual((peer.ask({"sleep": 0}, 60), peer._process.pid), ({"sleep": 0}, first))
        with self.assertRaisesRegex(Failed, "not done in 0.1 s"):
            peer.ask({"sleep": 600}, 0.1)
        self.assertEqual((peer.ask({"sleep": 0}, 60), peer.version), ({"sleep": 0}, "1"))
        with self.assertRaisesRegex(Failed, "echo: too much"):
            peer.ask({"sleep": 0, "error": "too much"}, 60)
