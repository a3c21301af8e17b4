import json
import unittest

from bench.monitor import lookup, overhead, report, states, toggle
from bench.monitor.__main__ import CASES
from bench.monitor.case import Figure, Outcome
from bench.monitor.stats import Estimate
from bench.monitor.toggle import Slice

COST = Figure("cost", "cost", "µs", required=10, aim=5)
RATIO = Figure("ratio", "ratio", "×", required=4, at_least=True)


def interval(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 9, interval=True)


class Verdicts(unittest.TestCase):
    def test_an_estimate_without_interval_is_judged_by_its_value(self) -> None:
        for value, verdict in ((5, "aim met"), (7, "met"), (11, "NOT MET")):
            self.assertEqual(report.verdict(COST, Estimate(value, 1, 100, 5)), verdict)
        self.assertEqual(report.verdict(RATIO, Estimate(3.9, 1, 9, 5)), "NOT MET")
        self.assertEqual(report.verdict(RATIO, Estimate(4, 1, 9, 5)), "met")
        self.assertEqual(
            report.verdict(Figure("x", "x", "x", aim=1000, at_least=True), Estimate.exact(10)), "aim missed"
        )
        self.assertEqual(report.verdict(Figure("x", "x", "x"), Estimate.exact(10)), "-")

    def test_an_interval_is_judged_by_both_ends(self) -> None:
        for low, high, verdict in (
            (-1, 4, "aim met"),
            (3, 9, "met"),
            (8, 12, "open: measure longer"),
            (11, 12, "NOT MET"),
        ):
            self.assertEqual(report.verdict(COST, interval(low, high)), verdict)


class Tables(unittest.TestCase):
    def test_every_figure_has_a_line_even_if_not_measured(self) -> None:
        outcome = Outcome(measured={"lookup": Estimate(4.4, 4.3, 4.9, 5)}, notes=["ss is absent"])
        outcome.table("times", ["", "µs"], [["each", "4.4"]])
        results = [{"name": "overflow", "error": "no root"}, {"name": "lookup"} | outcome.document()]
        document = json.loads(
            json.dumps(
                {
                    "date": "2026-01-01",
                    "commit": "abc",
                    "host": {"cpu": "Z80", "cores": 1, "kernel": "6"},
                    "versions": {"sar": "12.6.1", "ss": None},
                    "settings": {"quick": True},
                    "cases": results,
                }
            )
        )
        text = report.text(CASES, document)
        for words in (
            "4.40 (4.30–4.90) µs",
            "aim met",
            "not measured: no root",
            "ss is absent",
            "too short",
            "| each | 4.4 |",
        ):
            self.assertIn(words, text)

    def test_cases_and_figures_have_unique_names(self) -> None:
        self.assertEqual(len({case.name for case in CASES}), len(CASES))
        for case in CASES:
            self.assertEqual(len({figure.key for figure in case.figures}), len(case.figures))


class Toggling(unittest.TestCase):
    def quartet(self, *requests: int) -> list[Slice]:
        return [Slice(on, 1.0, done, 1, 1.0, 0.5) for on, done in zip(toggle.PATTERN, requests, strict=True)]

    def test_a_loss_is_measured_despite_a_drift(self) -> None:
        quartets = [self.quartet(1000, 990, 990, 1000), self.quartet(2000, 1980, 1980, 2000)]
        found = toggle.change(quartets, "requests_per_s").negated()
        self.assertAlmostEqual(found.value, 1)
        self.assertAlmostEqual(toggle.change(quartets, "cpu_us_per_request").value, 100 * (1 / 0.99 - 1))
        self.assertEqual(toggle.mean(quartets, "requests_per_s"), 1500)
        outcome = Outcome()
        overhead.judge(outcome, {overhead.CONTROL: quartets, overhead.WATCH: quartets}, {overhead.WATCH: 0.001})
        self.assertAlmostEqual(outcome.measured["throughput"].value, 1)
        self.assertEqual([row[-1] for row in outcome.tables[0]["rows"]], ["-", "0.100"])

    def test_an_unsaturated_server_is_reported(self) -> None:
        idle = [[Slice(on, 1.0, 10, 1, 0.5, 0.5) for on in toggle.PATTERN] for _ in range(2)]
        outcome = Outcome()
        overhead.judge(outcome, {overhead.WATCH: idle}, {overhead.WATCH: 0.0})
        self.assertIn("NOT saturated", outcome.notes[-1])


class Inside(unittest.TestCase):
    def test_the_cost_of_each_further_port(self) -> None:
        found = lookup.per_port({"one_port_us": [20.0] * 10, "all_ports_us": [60.0] * 9 + [1000.0]})
        self.assertEqual((found.value, found.low), (5, 5))
        self.assertIsNone(lookup.per_port({"one_port_us": [20.0], "all_ports_us": []}))

    def test_a_way_that_counts_wrong_has_no_result(self) -> None:
        def way(established: int, us: float, source: str) -> dict:
            return {"connections": {"established": established}, "us": [us, us], "source": source}

        def judged(ebpf: dict) -> Outcome:
            outcome = Outcome()
            table, plain = way(10000, 28000, ""), way(10000, 7000, "sock_diag")
            states.judge(outcome, "all", {"proc_net_tcp": table, "plain": plain, "ebpf": ebpf}, {"ss": [14000.0]})
            self.assertEqual(outcome.measured["sock_diag-all"].value, 4)
            self.assertEqual(outcome.tables[0]["rows"][-1][-1], "2.00")
            return outcome

        wrong = judged(way(9999, 10, "eBPF: gauges"))
        self.assertIn("counted 9999", wrong.notes[0])
        self.assertNotIn("gauges-all", wrong.measured)
        self.assertEqual(judged(way(10000, 10, "eBPF: gauges")).measured["gauges-all"].value, 2800)
        self.assertIn("not in use", judged(way(10000, 10, "sock_diag; no eBPF: not built")).notes[0])
