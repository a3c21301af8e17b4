import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

from bench.figures import plots, svg, syncost, table


class Tables(unittest.TestCase):
    def test_written_rows_are_read_back(self):
        rows = [{"server": "apache", "clients": 4, "syn": 130.25, "valid": "yes"}, {"server": "target", "clients": 8}]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "t.tsv"
            table.write(path, ["a note"], rows)
            self.assertEqual(path.read_text().splitlines()[0], "# a note")
            self.assertIn("clients [1]\t", path.read_text())
            self.assertEqual(table.read(path), rows)

    def test_a_column_without_a_unit_is_refused(self):
        with tempfile.TemporaryDirectory() as directory, self.assertRaises(ValueError):
            table.write(Path(directory) / "t.tsv", [], [{"furlongs": 1}])


class Scales(unittest.TestCase):
    def test_tick_distances_are_round_and_give_few_ticks(self):
        for most in (0.9, 1, 7, 130, 999, 2065, 40_000):
            step = svg.nice_step(most)
            self.assertIn(f"{step:e}"[0], "125")
            self.assertTrue(4 <= most / step <= 10, (most, step))

    def test_the_axis_reaches_its_largest_value(self):
        for values in ([3, 137], [200], [0.3]):
            scale = svg.Scale(svg.Axis("x"), values, 0, 100)
            self.assertGreaterEqual(scale.ticks[-1], max(values))
            self.assertEqual(scale(0), 0)

    def test_a_logarithmic_axis_has_a_tick_per_decade(self):
        scale = svg.Scale(svg.Axis("x", log=True), [2, 900], 0, 300)
        self.assertEqual(scale.ticks, [1, 10, 100, 1000])
        self.assertAlmostEqual(scale(10), 100)
        self.assertFalse(scale.shows(0), "a logarithmic axis has no zero")


class Pictures(unittest.TestCase):
    def test_a_picture_is_xml_and_has_every_point(self):
        line = svg.Series("a < b & c", [(0, 0), (10, 5), (20, 20)])
        chart = svg.Chart("title", svg.Axis("x"), svg.Axis("y"), [line])
        root = ElementTree.fromstring(svg.picture([chart, chart]))
        circles = root.findall(".//{*}circle")
        self.assertEqual(len(circles), 2 * (3 + 1), "three points and one in the legend, twice")

    def test_an_interval_is_an_area_within_the_axes(self):
        line = svg.Series("predicted", [(1, 5)], band=[(1, 4, 8), (2, 4, 80)])
        root = ElementTree.fromstring(svg.picture([svg.Chart("", svg.Axis("x"), svg.Axis("y", log=True), [line])]))
        (area,) = root.findall(".//{*}polygon")
        self.assertEqual(len(area.get("points").split()), 4)
        heights = [float(point.split(",")[1]) for point in area.get("points").split()]
        self.assertTrue(all(svg.TOP <= height <= svg.HEIGHT - svg.BOTTOM for height in heights), heights)

    def test_a_survey_is_drawn_from_its_document(self):
        root = Path(__file__).parents[3]
        command = [sys.executable, root / "scripts/survey-picture", root / "web/example.survey.json"]
        drawn = ElementTree.fromstring(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        names = [text.text for text in drawn.findall(".//{*}text")]
        self.assertIn("capacity, measured: 372/s", names)
        self.assertEqual(len(drawn.findall(".//{*}circle")), len(drawn.findall(".//{*}rect")) + 6)

    def test_a_picture_has_colours_for_dark_screens(self):
        picture = svg.picture([svg.Chart("title", svg.Axis("x"), svg.Axis("y"), [])])
        self.assertIn('@media (prefers-color-scheme: dark) { [fill="#fff"] { fill: #15191e }', picture)

    def test_percentiles_are_drawn_from_a_histogram(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "open.hgrm"
            rows = "1.0 0.0 1 1.00\n2.5 0.9 9 10.00\n5.0 1.0 10\n#[Max = 5.0, Total count = 10]\n"
            file.write_text("Value Percentile TotalCount 1/(1-Percentile)\n\n" + rows)
            drawn = ElementTree.fromstring(script("percentiles-picture", "title", f"open loop={file}"))
        (curve, _) = drawn.findall(".//{*}polyline")
        self.assertEqual(len(curve.get("points").split()), 2, "the slowest call of all is no share of the calls")
        self.assertIn("open loop", [text.text for text in drawn.findall(".//{*}text")])

    def test_a_terminal_is_drawn_screen_by_screen(self):
        events = [
            [0.0, "o", "$ brimful survey\r\n"],
            [3.0, "o", "calibration [=>  ]"],
            [9.0, "o", "\r\x1b[2Kcapacity < 400/s\r\n"],
            [9.1, "o", "wrong\x1b[1A\r\x1b[2Kverdict valid"],
        ]
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "survey.cast"
            file.write_text("\n".join(json.dumps(line) for line in [{"version": 2}, *events]))
            drawn = ElementTree.fromstring(script("session-picture", str(file)))
        lines = {line.get("id"): line.text for line in drawn.findall(".//{*}defs/{*}text")}
        screens = [[lines[use.get("href")[1:]] for use in group] for group in drawn.findall(".//{*}g")]
        self.assertEqual(screens[0], ["$ brimful survey"])
        self.assertIn(["$ brimful survey", "capacity < 400/s"], screens)
        self.assertEqual(screens[-1], ["$ brimful survey", "verdict valid", "wrong"])
        style = drawn.find(".//{*}style").text
        self.assertIn("animation: hide 1.10s", style)
        self.assertIn("prefers-color-scheme: dark", style)

    def test_every_figure_draws(self):
        common = {"server": "apache", "syn": 500.0, "replies": 130.0}
        rows = {
            "fig5": [common | {"series": "doubling", "clients": n} for n in (1.0, 2.0)],
            "fig6-7": [common | {"descriptors": n, "syn": 500 * n} for n in (1.0, 2.0)],
            "fig8": [common | {"burst": "(6, 5)", "offered": n, "expected": n} for n in (40.0, 80.0)],
            "httperf-fig2": [common | {"offered": n, "errors": 0.0, "response": 1.0, "total": 1.0} for n in (1.0, 2.0)],
            "wide": [common | {"series": "RTT 100 ms", "open": 50 * n, "syn": 500 * n} for n in (1.0, 2.0)],
            "client-hosts": [
                common | {"series": series, "offered": n} for series in ("one host", "two hosts") for n in (1.0, 2.0)
            ],
            "syn-cost": [{"series": "tcp_syncookies=1", "syn": n, "work": 0.9} for n in (1.0, 2.0)],
        }
        drawn = dict(plots.pictures(rows))
        self.assertEqual(set(drawn), set(plots.PICTURES))
        for picture in drawn.values():
            ElementTree.fromstring(picture)

    def test_the_slope_uses_only_points_well_past_saturation(self):
        self.assertEqual(plots.overloaded([(130, 130), (250, 130), (300, 120)]), [(300, 120)])

    def test_the_papers_end_points_do_not_give_its_cost_of_a_syn(self):
        self.assertAlmostEqual(syncost.slope_of_ends(plots.THROUGHPUT_1997), 218.6, places=1)
        points = [(4000, 100), (130, 130), (60, 60), (2065, 75)]
        self.assertEqual(plots.from_saturation(points), [(130, 130), (2065, 75), (4000, 100)])


def script(name, *arguments):
    """What a script of the repository prints."""
    command = [sys.executable, Path(__file__).parents[3] / "scripts" / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    unittest.main()
