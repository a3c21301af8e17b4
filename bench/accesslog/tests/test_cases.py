import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

from bench.accesslog import cases, programs
from bench.accesslog.cases import CASES, Bed
from bench.accesslog.programs import GOACCESS, OURS, Log, Run
from bench.monitor import report
from bench.side_by_side.tools import Failed


class FakeWriter:
    """Writes one line and claims to have written the log that was requested."""

    def __init__(self, directory: str) -> None:
        self.directory, self.asked = Path(directory), []

    def write(self, shape: dict) -> Log:
        self.asked.append(shape)
        path = self.directory / "log"
        path.write_text("line\n")
        lines = shape.get("lines") or shape["bytes"] // 200
        return Log(path, lines * 200, lines, shape["format"].upper())


class FakeReader:
    def __init__(self, name: str, seconds: list, turns: list | None = None) -> None:
        self.name, self.seconds, self.reads, self.turns = name, seconds, 0, turns if turns is not None else []

    def read(self, log: Log, sessions: bool, cpus: set[int]) -> Run:
        self.turns.append(self.name)
        seconds = self.seconds[min(self.reads, len(self.seconds) - 1)]
        self.reads += 1
        if isinstance(seconds, Failed):
            raise seconds
        return Run(seconds, 2 * seconds, 40.0)


class WithDirectory(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def bed(self, *readers: FakeReader, rounds: int = 3, quick: bool = True) -> Bed:
        return Bed(FakeWriter(self.directory), list(readers), rounds, quick)


class Rounds(WithDirectory):
    def test_programs_take_turns_and_the_order_is_reversed_every_round(self) -> None:
        turns: list[str] = []
        bed = self.bed(FakeReader(OURS, [1.0], turns), FakeReader(GOACCESS, [4.0], turns), rounds=2)
        CASES[0].measure(bed)
        self.assertEqual(turns, [OURS, GOACCESS, GOACCESS, OURS])

    def test_ratios_are_paired_by_round(self) -> None:
        bed = self.bed(FakeReader(OURS, [1.0, 2.0, 4.0]), FakeReader(GOACCESS, [4.0, 8.0, 16.0]))
        ratio = CASES[0].measure(bed).measured["ratio"]
        self.assertEqual((ratio.value, ratio.low, ratio.high), (4, 4, 4))

    def test_a_program_that_fails_once_has_no_figures_and_is_not_run_again(self) -> None:
        other = FakeReader(GOACCESS, [1.0, Failed("GoAccess read 5 lines of 6")])
        found = CASES[0].measure(self.bed(FakeReader(OURS, [1.0]), other))
        self.assertEqual(other.reads, 2)
        self.assertNotIn("ratio", found.measured)
        self.assertIn("GoAccess read 5 lines of 6", found.tables[0]["rows"][1])

    def test_a_failure_of_brimful_fails_the_case(self) -> None:
        with self.assertRaises(Failed):
            CASES[0].measure(self.bed(FakeReader(OURS, [Failed("exit 2")])))

    def test_the_log_is_deleted(self) -> None:
        CASES[0].measure(self.bed(FakeReader(OURS, [1.0])))
        self.assertEqual(list(Path(self.directory).iterdir()), [])


class Shapes(WithDirectory):
    def test_a_month_is_a_month(self) -> None:
        bed = self.bed(FakeReader(OURS, [1.0]), quick=False)
        shape = cases.month(bed)
        self.assertEqual((shape["lines"], round(shape["rate"], 2)), (13_200_000, 4.93))
        self.assertEqual(cases.gibibyte(bed)["bytes"], 1 << 30)


class Tables(WithDirectory):
    def document(self, *readers: FakeReader) -> dict:
        bed = self.bed(*readers)
        return {
            "date": "2026-01-01",
            "commit": "abc",
            "host": {"cpu": "Z80", "cores": 1, "kernel": "6"},
            "versions": {OURS: "0.1"},
            "settings": {"quick": False},
            "cases": [{"name": case.name} | case.measure(bed).document() for case in CASES],
        }

    def test_every_requirement_has_its_line(self) -> None:
        document = self.document(FakeReader(OURS, [0.02]), FakeReader(GOACCESS, [0.1]))
        text = report.text(CASES, json.loads(json.dumps(document)))
        for words in ("≥ 2", "≤ 64", "5.00", "40.0 MiB", "aim met"):
            self.assertIn(words, text)
        self.assertNotIn("not measured", text)
        self.assertEqual(len({case.name for case in CASES}), len(CASES))

    def test_without_the_other_program_only_the_ratio_is_missing(self) -> None:
        text = report.requirements_text(CASES, self.document(FakeReader(OURS, [100.0])))
        self.assertEqual(text.count("not measured"), len(CASES))
        self.assertIn("NOT MET", text)


class Programs(WithDirectory):
    def log(self) -> Log:
        return Log(Path(self.directory, "access.log"), 1000, 5, "COMBINED")

    def reader(self, printed: str, exit_code: int = 0) -> programs.Reader:
        program = f"import sys; print({printed!r}); sys.exit({exit_code})"
        return programs.Reader("it", "1", lambda *_: [sys.executable, "-c", program], lambda report: report["lines"])

    def test_a_program_must_report_that_it_read_every_line(self) -> None:
        run = self.reader('{"lines": 5}').read(self.log(), sessions=False, cpus=os.sched_getaffinity(0))
        self.assertGreater(run.wall_s, 0)
        for output, code, error in (
            ('{"lines": 4}', 0, "read 4 lines of 5"),
            ("{}", 0, "cannot be read"),
            ("x", 3, "exit 3"),
        ):
            with self.assertRaisesRegex(Failed, error):
                self.reader(output, code).read(self.log(), sessions=False, cpus=os.sched_getaffinity(0))

    def test_commands(self) -> None:
        report_path = Path("report.json")
        ours = programs.our_command("/bin/brimful")
        self.assertEqual(ours(self.log(), False, report_path)[-3:], ["--json", "--quiet", "--no-sessions"])
        self.assertNotIn("--no-sessions", ours(self.log(), True, report_path))
        theirs = programs.their_command("/bin/goaccess")(self.log(), True, report_path)
        self.assertIn("--log-format=COMBINED", theirs)
        self.assertEqual(theirs[-1], "report.json")


if __name__ == "__main__":
    unittest.main()
