import unittest

from bench.side_by_side import report
from bench.side_by_side.cases import CASES


def result(**runs: list[float | None]) -> dict:
    """Results of the case new-connection with each tool's CPU times per request; None means a failed run."""
    return {
        "name": "new-connection",
        "seconds": 1,
        "absent": ["oha"],
        "auto": "uring",
        "runs": [
            {"tool": tool.replace("_", "-"), "repetition": i}
            | ({"error": "exit 1: no"} if value is None else {"values": {"cpu_us_per_request": value}})
            for tool, values in runs.items()
            for i, value in enumerate(values)
        ],
    }


class Report(unittest.TestCase):
    def rows(self, found: dict) -> list[str]:
        lines = report.requirements_text({"cases": [found]}).splitlines()
        return [line for line in lines if line.startswith("| new-connection")]

    def test_ratios_are_paired_by_repetition(self) -> None:
        found = result(brimful_uring=[10, 40, 10], brimful_epoll=[9, 9, 9], wrk=[20, 80, None], httperf=[10, 10, 10])
        self.assertEqual(report.ratios(found, "brimful-uring", "wrk", "cpu_us_per_request"), [0.5, 0.5])

    def test_requirements_are_judged_by_the_median_with_the_engine_brimful_chooses(self) -> None:
        found = result(brimful_uring=[8, 7, 30], brimful_epoll=[1, 1, 1], wrk=[10, 10, 10], httperf=[10, 10, 10])
        wrk, httperf = self.rows(found)
        self.assertRegex(wrk, r"0\.80 \(0\.70–3\.00\) +\| met ")
        self.assertRegex(httperf, r"0\.80 \(0\.70–3\.00\) +\| NOT MET ")
        found["auto"] = "epoll"
        self.assertIn("aim met", self.rows(found)[0])

    def test_an_unmeasured_requirement_says_why(self) -> None:
        wrk, httperf = self.rows(result(brimful_uring=[8], wrk=[None]) | {"absent": ["httperf"]})
        self.assertIn("not measured: every run of wrk failed", wrk)
        self.assertIn("not measured: httperf is absent", httperf)
        self.assertIn("brimful did not run", self.rows(result(wrk=[1]) | {"auto": None})[0])

    def test_absent_and_failed_tools_are_named(self) -> None:
        text = report.case_text({}, result(brimful_uring=[8, None], wrk=[9, 9]))
        self.assertIn("oha is absent (cargo install oha)", text)
        self.assertIn("brimful-uring failed in 1 of 2 runs: exit 1: no", text)

    def test_failed_calls_are_named(self) -> None:
        found = result(gcannon=[8, 9, 9], zrk=[9])
        for run, failed in zip(found["runs"], [1200, 0, 7, 0], strict=True):
            run["own"] = {"failed_calls": failed}
        text = report.case_text({}, found)
        self.assertIn("gcannon reports failed calls in 2 of 3 runs, at most 1,200", text)
        self.assertNotIn("zrk reports", text)

    def test_every_metric_has_a_title(self) -> None:
        for case in CASES:
            for metric in (*case.columns, *case.compared):
                self.assertIn(metric, report.TITLES)
