"""Which runs count, the ranks, and the tables."""

import functools
import json
import subprocess
import tempfile
import unittest
import unittest.mock
from collections.abc import Iterator
from pathlib import Path

from bench.accuracy.subjects import Place
from bench.contest import measure, ranking, report
from bench.contest.cases import CASES
from bench.contest.frameworks import Framework
from bench.side_by_side.tools import Failed

from .made_up import document, pair, record, row


class Doubt(unittest.TestCase):
    def test_a_saturated_server_can_be_ranked(self) -> None:
        found = measure.figures(record(), 0)
        self.assertIsNone(found["doubt"])
        self.assertEqual(found["cpu_us_per_request"], 980)
        self.assertEqual(found["server_busy"], 1)

    def test_a_run_that_was_limited_by_something_else_cannot(self) -> None:
        for expected, made in {
            "the client was the limit (generator_cpu)": record("generator_cpu"),
            "the run is invalid (unbalanced)": record("unbalanced"),
            "2.0 % of the requests failed": record(errors=0.02),
            "other programs used 30 % of the server's CPU": record(cores=0.7),
            "the server was not the limit: its CPU was idle for 20 % of the run": record(idle=0.2, cores=0.79),
            "the server was not watched": record() | {"server": None},
        }.items():
            self.assertEqual(measure.doubt(made, 0), expected)

    def test_a_run_without_answers_has_figures(self) -> None:
        found = measure.figures(record(completed=0.0, errors=1.0) | {"response_time_us": None}, 0)
        self.assertIsNone(found["p50_us"])
        self.assertIsNone(found["cpu_us_per_request"])


class Ranks(unittest.TestCase):
    def test_frameworks_that_cannot_be_distinguished_share_a_rank(self) -> None:
        rows = [row("a", 900), row("b", 1000), row("c", 500)]
        known = [pair("a", "b", False), pair("a", "c", True), pair("b", "c", True)]
        found = ranking.standings(rows, known)
        self.assertEqual([(one.framework, one.rank) for one in found], [("b", 1), ("a", 1), ("c", 3)])
        self.assertEqual(ranking.pairs_that_tie(found), [("b", "a")])

    def test_frameworks_whose_comparison_failed_are_not_distinguished(self) -> None:
        found = ranking.standings([row("a", 900), row("b", 1000)], [pair("a", "b", None)])
        self.assertEqual([one.rank for one in found], [1, 1])

    def test_a_framework_in_doubt_has_no_rank_and_takes_none(self) -> None:
        rows = [row("a", 900), row("b", 5000, doubt="the client was the limit (generator_cpu)")]
        found = ranking.standings(rows, [])
        self.assertEqual([(one.framework, one.rank) for one in found], [("a", 1), ("b", None)])
        self.assertEqual(found[1].reason, "the client was the limit (generator_cpu)")

    def test_most_runs_must_count(self) -> None:
        one, two = row("a", 100, 0), row("a", 110, 1)
        bad = row("a", 9, 2, doubt="2.0 % of the requests failed")
        found = ranking.standing([one, two, bad])
        self.assertEqual((found.reason, found.counted, found.runs), (None, 2, 3))
        self.assertEqual(found.figures["rate"], 105)
        self.assertAlmostEqual(found.half_width or 0, 12.706 * 5)
        found = ranking.standing([one, bad])
        self.assertEqual(found.reason, "2.0 % of the requests failed; 1 of 2 runs do not count")

    def test_a_framework_that_broke_the_contract_is_listed(self) -> None:
        broken = {"framework": "a", "case": "root", "connections": 64, "repetition": 0, "error": "GET /: status 404"}
        found = ranking.standing([broken])
        self.assertEqual((found.reason, found.figures["rate"]), ("GET /: status 404", None))
        self.assertIn("no rank: GET /: status 404", report.text(document([broken], [])))


def write_next(path: Path, records: Iterator[dict], *_: object) -> None:
    path.write_text(json.dumps(next(records)))


class Runs(unittest.TestCase):
    def test_a_server_that_does_not_start_has_an_error_at_each_number_of_connections(self) -> None:
        def unstartable(_: Place) -> list[list[str]]:
            raise Failed("x is missing")

        with tempfile.TemporaryDirectory() as directory:
            bench = measure.Bench("brimful", Path(directory), Path(directory), 0, 1, 1)
            found = list(measure.runs(bench, Framework("x", "x", (), unstartable), CASES[0], (64, 256), 0))
        self.assertEqual([one["connections"] for one in found], [64, 256])
        self.assertEqual({one["error"] for one in found}, {"x is missing"})


    def test_a_disturbed_run_is_made_once_more(self) -> None:
        disturbed, quiet = record(cores=0.5), record(completed=2000.0)
        for made, expected, attempts in (
            ([disturbed, quiet], 2000, 2),
            ([disturbed, disturbed], 1000, 2),
            ([quiet], 2000, 1),
            ([record("generator_late", completed=5.0)], 5, 1),
        ):
            with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.object(measure, "run") as run:
                path = Path(directory) / "0.json"
                run.side_effect = functools.partial(write_next, path, iter(made))
                bench = measure.Bench("brimful", Path(directory), Path(directory), 0, 1, 1)
                self.assertEqual(measure.measured(bench, [], [], path)["rate"], expected)
                self.assertEqual(run.call_count, attempts)


class Compare(unittest.TestCase):
    def compared(self, stdout: str, stderr: str = "") -> dict:
        done = subprocess.CompletedProcess([], 0, stdout, stderr)
        with unittest.mock.patch("subprocess.run", return_value=done) as called:
            found = measure.compared("brimful", [Path("a")], [Path("b")])
        self.assertEqual(called.call_args.args[0], ["brimful", "compare", "a", "vs", "b", "--json"])
        return found

    def test_the_throughput_is_compared(self) -> None:
        figure = '{"name": "throughput", "differs": true, "difference": 0.5, "interval95": [0.4, 0.6], "p": 0.01}'
        found = self.compared(f'{{"figures": [{figure}]}}')
        self.assertEqual(found, {"differs": True, "difference": 0.5, "interval95": [0.4, 0.6], "p": 0.01})

    def test_a_refused_comparison_is_reported(self) -> None:
        self.assertEqual(self.compared("", "error: another load\n"), {"differs": None, "error": "another load"})


class Report(unittest.TestCase):
    def test_the_report_has_a_table_and_the_ties(self) -> None:
        rows = [row("node", 1000), row("express", 990), row("nginx", 9, doubt="2.0 % of the requests failed")]
        found = report.text(document(rows, [pair("node", "express", False)]))
        self.assertIn("the-benchmarker: root, 64 connections", found)
        self.assertIn("| 1    | node", found)
        self.assertIn("Cannot be distinguished: node and express.", found)
        self.assertIn("no rank: 2.0 % of the requests failed", found)
        self.assertIn("starlette was skipped", found)
        failed = report.text(document(rows, [pair("node", "express", None) | {"error": "another load"}]))
        self.assertIn("node and express could not be compared: another load", failed)

    def test_a_faster_framework_without_a_rank_is_named(self) -> None:
        late = "the client was the limit (generator_late)"
        rows = [row("node", 1000), row("nginx", 9000, doubt=late), row("java", 10, doubt=late)]
        expected = "Without a rank, but measured at a higher rate than a ranked framework: nginx."
        self.assertIn(expected, report.text(document(rows, [])))
        self.assertNotIn("Without a rank", report.text(document(rows[1:], [])))

    def test_numbers_of_connections_have_tables_of_their_own(self) -> None:
        rows = [row("node"), row("node", connections=256)]
        self.assertEqual([group for group, _ in report.groups(rows)], [("root", 64), ("root", 256)])

    def test_times_have_units(self) -> None:
        self.assertEqual([report.time(us) for us in (None, 9.21, 657.4, 1498.0, 2e6)],
                         ["–", "9.21 µs", "657 µs", "1.50 ms", "2.00 s"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
