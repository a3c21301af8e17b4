import unittest

from bench.ab import report


def pair(differs: list[str], low: float, high: float, expected: float = 0.0) -> dict:
    cpu = {"difference": (low + high) / 2, "interval95": [low, high]}
    return {"name": "nginx-gzip", "expected": expected, "differs": differs, "cpu": cpu}


class Report(unittest.TestCase):
    def test_false_alarms_and_intervals_that_hold_are_counted(self) -> None:
        text = report.pairs([pair([], -0.01, 0.02), pair(["p99"], -0.02, 0.01), pair(["cpu"], 0.01, 0.03)])
        self.assertTrue(text.endswith("| nginx-gzip | +0.0 % | 3 | 2 | 1 | 2 of 3 |"), text)

    def test_a_pair_without_an_interval_is_not_counted_as_one_that_holds(self) -> None:
        unknown = pair([], 0.0, 0.0) | {"cpu": None}
        self.assertTrue(report.pairs([unknown]).endswith("| 1 | 0 | 0 | 0 of 0 |"))

    def test_a_difference_has_its_interval_and_the_reason_for_the_end(self) -> None:
        entry = pair([], 0.04, 0.05) | {"name": "gzip", "expected": None, "control": {"outcome": "passed"}}
        text = report.differences([entry | {"stopping": {"elapsed_s": 299.6, "reason": "budget"}}])
        self.assertTrue(text.endswith("| gzip | unknown | +4.5 % | +4.0 % … +5.0 % | 300 s | budget | passed |"), text)


if __name__ == "__main__":
    unittest.main()
