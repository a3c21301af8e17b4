import unittest
from pathlib import Path

from ...monitor import report
from ...monitor.case import Outcome
from ...monitor.stats import Estimate
from ..__main__ import CASES
from ..demands import CLASSES, PREDICTED, WATCHED, Run, demands_us
from ..memory import PHASES, Class, Counted
from ..overhead import class_rules, judge
from ..overhead import files as files_of_classes
from ..toggle import CONTROL, MODULE, PATTERNS, Slice
from ..vts import configure_arguments, http_configuration
from ..webstone import FILES, files, inverse


def quartets(number: int, cost: float) -> list[list[Slice]]:
    """Quartets in which the module costs this percentage of throughput."""
    slower = {True: 1 - cost / 100, False: 1.0}
    return [
        [
            Slice(on, 0.2, round(1e9 * slower[on] * (1 + 1e-5 * i)), round(1e5 * slower[on]), 0.2, 0.2)
            for on in PATTERNS[i % 2]
        ]
        for i in range(number)
    ]


class ReportTest(unittest.TestCase):
    def test_a_loss_is_judged_by_the_end_of_its_interval(self) -> None:
        for cost, words in ((0.2, "aim met"), (0.8, "met"), (3, "NOT MET")):
            outcome = Outcome()
            judge(outcome, "nginx", [{MODULE: quartets(20, cost), CONTROL: quartets(20, 0)}] * 3)
            self.assertAlmostEqual(outcome.measured["throughput"].value, cost, places=3)
            measured = {"throughput": vars(outcome.measured["throughput"])}
            document = {"cases": [{"name": "overhead-nginx", "measured": measured}]}
            line = next(line for line in report.requirements_text(CASES, document).splitlines() if "throughput" in line)
            self.assertIn(words, line)

    def test_a_loss_of_throughput_becomes_a_longer_response_time(self) -> None:
        found = inverse(Estimate(50, 0, 75, 9, interval=True))
        self.assertEqual((found.value, found.low, found.high), (100, 0, 300))

    def test_demands_include_a_share_of_the_time_outside_phases(self) -> None:
        nothing = (0,) * len(PHASES)
        classes = {name: Class(10, 0, 1, 1000 * (i + 1), 0, nothing, nothing) for i, name in enumerate(CLASSES)}
        # Each run has 40 requests, which use 10 × (1 + 2 + 3 + 4) = 100 µs of CPU time within the phases. The mean CPU
        # time of a run is 200 µs, so 100 µs are used outside of the phases: 2.5 µs for each request.
        found = demands_us([Run(Counted(classes, 0, 0), 1.0, cpu_s) for cpu_s in (150e-6, 250e-6)])
        for us, expected in zip(found.values(), (3.5, 4.5, 5.5, 6.5), strict=True):
            self.assertAlmostEqual(us, expected)

    def test_both_modules_count_the_same_classes(self) -> None:
        rules, vts = class_rules(), http_configuration()
        self.assertEqual((len(rules) + 1, len(set(map(len, files_of_classes())))), (16, 1))
        for rule in rules:
            name = rule.partition("=")[0]
            self.assertIn(f"~^/{name}/ {name};", vts)

    def test_the_other_module_is_built_like_nginx(self) -> None:
        version = (
            "nginx version: nginx/1.22.1\nconfigure arguments: --with-cc-opt='-g -O2 -fPIE' --with-compat "
            "--with-http_xslt_module=dynamic --add-dynamic-module=/build/ndk --prefix=/usr/share/nginx\n"
        )
        self.assertEqual(
            configure_arguments(version, Path("/vts")),
            [
                "--with-compat",
                "--prefix=/usr/share/nginx",
                "--with-cc-opt=-g -O2 -fPIE -Wno-error",
                "--add-dynamic-module=/vts",
            ],
        )

    def test_shares_add_up_to_one(self) -> None:
        for mix in (WATCHED, *PREDICTED):
            self.assertAlmostEqual(sum(mix), 1)
        self.assertAlmostEqual(sum(share for *_, share in FILES), 1)
        self.assertEqual((len(files(1)), files(1)["video/0"], files(4)["video/0"]), (77, 2359296, 589824))


if __name__ == "__main__":
    unittest.main()
