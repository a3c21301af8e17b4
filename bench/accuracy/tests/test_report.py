"""Summaries of surveys, and verdicts on the requirements."""

import unittest

from bench.accuracy import reading, report

from .made_up import comparison, level, survey


def row(server: str, repetition: int, made: dict) -> dict:
    return {"server": server, "repetition": repetition, "seconds": 120.0} | reading.figures(made)


def off_by(share: float, **more: object) -> dict:
    """A survey whose predictions exceed the measurements by this share, with intervals that contain the
    measurements."""
    wide = (1000 * (1 - 2 * abs(share)), 1000 * (1 + 2 * abs(share)))
    at_80 = level(0.8, response_time_s=comparison(1 + share, 1, given_host=1 + share))
    return survey(at_80, saturation_rate=comparison(1000, 1000 / (1 + share), wide), **more)


def document(*surveys: dict, absent: dict[str, str] | None = None) -> dict:
    servers = [found["server"] for found in surveys] + list(absent or {})
    return {
        "date": "today",
        "commit": "abc",
        "host": {"cpu": "fast", "cores": 2, "kernel": "6"},
        "versions": {"nginx": "1.0", "go": None},
        "settings": {"repetitions": 3},
        "surveys_with": {"brimful": "brimful 0", "binary": "aa", "level": None, "cpus": [0, 1], "seed": 1},
        "servers": dict.fromkeys(servers, "a server"),
        "absent": absent or {},
        "surveys": list(surveys),
    }


def cells(text: str, start: str, after: str = "##") -> list[str]:
    """The cells of the first table row that starts with `start`, after the heading `after`."""
    text = text[text.index(after) :]
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("| ").split("|")]


class Report(unittest.TestCase):
    def test_medians_stand_beside_the_extremes(self) -> None:
        found = document(*(row("nginx", i, off_by(share)) for i, share in enumerate((-0.02, 0.05, 0.01))))
        text = report.text(found)
        self.assertEqual(cells(text, "nginx")[1], "+1.0 (−2.0 … +5.0)")
        self.assertEqual(cells(text, "**median")[1], "2.0")
        self.assertEqual(cells(text, "**worst")[1], "5.0")

    def test_every_row_has_all_cells(self) -> None:
        for line in report.text(document(row("nginx", 0, off_by(0.01)))).splitlines():
            if line.startswith("| server"):
                width = line.count("|")
            elif line.startswith(("| nginx", "| **")):
                self.assertEqual(line.count("|"), width)

    def test_requirements_are_met_by_median_and_worst(self) -> None:
        def saturation(*shares: float) -> list[str]:
            found = document(*(row("nginx", i, off_by(share)) for i, share in enumerate(shares)))
            return cells(report.text(found), "saturation, absolute", "## requirements")

        self.assertEqual(saturation(0.01, -0.04, 0.11)[2:], ["median 4.0 %, worst 11.0 %", "met"])
        self.assertEqual(saturation(0.01, -0.04, 0.13)[3], "**missed**")
        self.assertEqual(saturation(0.06, -0.07, 0.08)[3], "**missed**")

    def test_requirements_ignore_surveys_that_were_not_measured_well(self) -> None:
        disturbed = row("node", 0, off_by(0.5, reasons=("other_work",)))
        text = report.text(document(row("nginx", 0, off_by(0.01)), disturbed))
        self.assertEqual(cells(text, "node")[1], "+50.0")
        self.assertEqual(cells(text, "**worst")[1], "1.0")
        self.assertIn("1 of them; they leave out 1 that were not measured well", text)

    def test_a_refuted_model_counts(self) -> None:
        text = report.text(document(row("nginx", 0, off_by(0.2, reasons=("model_refuted",)))))
        self.assertEqual(cells(text, "saturation, absolute", "## requirements")[3], "**missed**")

    def test_a_failed_survey_has_a_row_and_its_length_counts_if_it_reached_the_limit(self) -> None:
        late = {"server": "java", "repetition": 0, "seconds": 301.0, "error": "not done after 300 s"}
        dead = {"server": "node", "repetition": 0, "seconds": 1.0, "error": "exit 2: no"}
        found = document(late, dead, row("nginx", 0, off_by(0.01)))
        text = report.text(found)
        self.assertEqual(cells(text, "java")[1], "-")
        self.assertIn("failed", cells(text, "java", "## What")[4])
        self.assertIn("- java, repetition 1: not done after 300 s", text)
        self.assertEqual(cells(text, "length")[2:], ["median 210.5 s, worst 301.0 s", "**missed**"])
        self.assertEqual(cells(text, "surveys that wrote")[2], "1 of 3")
        self.assertIn("not done after 300 s", report.line(late))

    def test_client_limited_servers_and_missing_servers_are_named(self) -> None:
        limited = survey(reasons=("beyond_client_max",), saturation_rate=comparison(60000, None))
        text = report.text(document(row("nginx", 0, limited), absent={"caddy": "caddy is missing: install it"}))
        self.assertEqual(cells(text, "nginx", "## What")[4], "beyond_client_max")
        self.assertIn("- nginx: the client, not the server, was the limit in 1 of 1 (beyond_client_max)", text)
        self.assertIn("- caddy was skipped: caddy is missing: install it", text)
        self.assertEqual(cells(text, "saturation, absolute", "## requirements")[3], "not measured")

    def test_intervals_are_counted_over_all_figures(self) -> None:
        outside = survey(level(0.5), level(0.7), saturation_rate=comparison(1000, 1060, (950, 1050)))
        both = [row("nginx", 0, survey(level(0.5))), row("node", 0, outside)]
        text = report.text(document(*both))
        self.assertEqual(cells(text, "90 %")[2:], ["80 % of 5", "met"])
        self.assertIn("saturation 1 of 2; response 3 of 3", text)
        self.assertEqual(report.shares(both), "80 % of 5 (67 … 100)")
        self.assertEqual(report.shares(both[:1]), "100 % of 2")
        self.assertEqual(report.shares([row("nginx", 0, survey(saturation_rate=comparison(1, 1)))]), "-")

    def test_a_valid_survey_beyond_twice_its_interval_misses_the_requirement(self) -> None:
        slow = level(0.5, response_time_s=comparison(0.010, 0.013, (0.009, 0.011)))
        text = report.text(document(row("nginx", 0, survey(slow)), row("node", 0, survey(level(0.5)))))
        self.assertEqual(cells(text, "nginx", "## What")[5], "response mix at 50 %")
        self.assertEqual(cells(text, "node", "## What")[5], "none")
        self.assertEqual(cells(text, "valid, saturation")[2:], ["0 of 2", "met"])
        self.assertEqual(cells(text, "valid, any")[2:], ["1 of 2", "**missed**"])

    def test_surveys_without_intervals_leave_their_requirements_unmeasured(self) -> None:
        bare = survey(saturation_rate=comparison(1000, 1300))
        text = report.text(document(row("nginx", 0, bare)))
        self.assertEqual(cells(text, "90 %")[2:], ["-", "not measured"])
        self.assertEqual(cells(text, "valid, any")[3], "not measured")

    def test_verdicts_are_counted(self) -> None:
        made = [survey(), survey(reasons=("model_refuted",)), survey(), survey(reasons=("other_work", "other_work"))]
        rows = [row("nginx", i, one) for i, one in enumerate(made)]
        self.assertEqual(report.verdicts(rows), "valid 2, model_refuted 1, other_work 1")


if __name__ == "__main__":
    unittest.main()
