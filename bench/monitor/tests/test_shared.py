import unittest

from bench.monitor import shared
from bench.monitor.shared import SHARED, Readings, Shared, Theirs

NODE = [
    {
        "node_forks_total": {"": 100.0},
        "node_cpu_seconds_total": {'cpu="0",mode="user"': 1.0, 'cpu="0",mode="idle"': 5.0},
    },
    {
        "node_forks_total": {"": 700.0},
        "node_cpu_seconds_total": {'cpu="0",mode="user"': 16.0, 'cpu="0",mode="idle"': 50.0},
    },
]


def readings(**by_tool: object) -> Readings:
    empty = {"brimful": {}, "sar": {}, "pidstat": {}, "vmstat": {}, "node_exporter": []}
    return Readings(seconds=60, **(empty | by_tool))


def by_name(name: str) -> Shared:
    return next(figure for figure in SHARED if figure.name == name)


class Comparison(unittest.TestCase):
    def test_a_counters_growth_is_compared_with_a_rate(self) -> None:
        seen = readings(brimful={"forks_per_s": 10.2}, sar={"proc/s": {"": 10.0}}, node_exporter=NODE)
        sar, node = shared.compared(by_name("forks_per_s"), seen)
        self.assertEqual((sar.tool, node.tool, node.theirs), ("sar", "node_exporter", 10))
        self.assertAlmostEqual(sar.percent, 100 * 0.2 / 10.2)
        self.assertTrue(sar.counts)

    def test_an_event_at_the_edge_of_the_minute_does_not_count(self) -> None:
        seen = readings(brimful={"forks_per_s": 2 / 60}, sar={"proc/s": {"": 0.02}})
        (line,) = shared.compared(by_name("forks_per_s"), seen)
        self.assertFalse(line.counts)
        self.assertIn("edges", line.remark)

    def test_cpu_shares_from_seconds_and_percents(self) -> None:
        seen = readings(
            brimful={"cpu": {"user": 0.25}},
            sar={"%usr": {"all": 20.0}, "%nice": {"all": 5.0}},
            vmstat={"us": 25.0},
            node_exporter=NODE,
        )
        self.assertEqual([line.theirs for line in shared.compared(by_name("cpu.user"), seen)], [0.25, 0.25, 0.25])

    def test_figures_missing_in_brimful_are_skipped_and_columns_missing_in_a_tool_are_named(self) -> None:
        self.assertEqual(list(shared.compared(by_name("forks_per_s"), readings(sar={"proc/s": {"": 1.0}}))), [])
        (line,) = shared.compared(by_name("forks_per_s"), readings(brimful={"forks_per_s": 1}, sar={"x": {}}))
        self.assertFalse(line.counts)
        self.assertIn("proc/s", line.remark)

    def test_a_difference_of_definition_does_not_count(self) -> None:
        differs = Shared("x", lambda _: 1.0, sar=Theirs(lambda _: 2.0, differs="another thing"))
        (line,) = shared.compared(differs, readings(sar={"x": {}}))
        self.assertEqual((line.counts, line.remark, line.percent), (False, "another thing", 50))

    def test_a_programs_totals_become_rates(self) -> None:
        process = {"cpu_s": 30.0, "rss_bytes": 4096}
        document = {"process": [process], "intervals": [{"length_s": 60.0}]}
        pidstat = {"%CPU": {"1": 20.0, "2": 30.0}, "RSS": {"1": 3.0, "2": 1.0}}
        for name, value in (("process.cpu_s", 0.5), ("process.rss_bytes", 4096)):
            (line,) = shared.compared(by_name(name), readings(brimful=document, pidstat=pidstat))
            self.assertEqual((line.ours, line.theirs), (value, value))

    def test_names_are_unique(self) -> None:
        self.assertEqual(len({figure.name for figure in SHARED}), len(SHARED))
