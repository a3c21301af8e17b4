"""The order of the servers, the surveys that are kept, and the list of servers."""

import contextlib
import json
import tempfile
import unittest
import unittest.mock
from collections.abc import Iterator
from pathlib import Path

from bench.accuracy import __main__ as program
from bench.accuracy import measure
from bench.accuracy.programs import PROGRAMS, Program
from bench.accuracy.subjects import SOURCES, SUBJECTS, Place, Subject, built
from bench.side_by_side.tools import Failed

from .made_up import level, record, repetition, survey


def unreachable(_: Place) -> list[list[str]]:
    raise AssertionError("the server was started, although its survey was kept or a program is missing")


KEPT = Subject("kept", "a server with stored surveys", (), unreachable)


class Order(unittest.TestCase):
    def test_every_round_has_every_server_once_in_an_order_drawn_from_the_seed(self) -> None:
        found = program.visits(SUBJECTS, 3, seed=7)
        for i in range(3):
            names = [subject.name for repetition, subject in found if repetition == i]
            self.assertEqual(sorted(names), sorted(subject.name for subject in SUBJECTS))
        self.assertEqual([i for i, _ in found], sorted(i for i, _ in found))
        self.assertEqual(found, program.visits(SUBJECTS, 3, seed=7))
        self.assertNotEqual(found, program.visits(SUBJECTS, 3, seed=8))


class Thorough(unittest.TestCase):
    def bench(self, every: int) -> measure.Bench:
        return measure.Bench("", Path(), Path(), 0, 1, None, 1, every)

    def test_one_survey_in_three_of_each_server_is_thorough_spread_over_the_rounds(self) -> None:
        bench = self.bench(3)
        chosen = [[bench.is_thorough(subject, i) for i in range(3)] for subject in SUBJECTS]
        self.assertEqual({sum(of_server) for of_server in chosen}, {1})
        self.assertEqual([sum(of_server[i] for of_server in chosen) for i in range(3)], [5, 4, 5])

    def test_all_or_none_are_thorough(self) -> None:
        self.assertTrue(all(self.bench(1).is_thorough(subject, 0) for subject in SUBJECTS))
        self.assertFalse(any(self.bench(0).is_thorough(subject, 0) for subject in SUBJECTS))


class Rounds(unittest.TestCase):
    def test_levels_are_repeated_after_the_survey_of_the_next_server(self) -> None:
        done = []

        class Visit:
            def __init__(self, _: object, subject: str, repetition: int) -> None:
                self.name = f"{subject}{repetition}"

            def survey(self) -> None:
                done.append(f"survey {self.name}")

            def finish(self) -> None:
                done.append(f"repeat {self.name}")

            def row(self) -> dict:
                return {"server": self.name}

            def close(self) -> None:
                done.append(f"close {self.name}")

        with unittest.mock.patch.object(program, "Visit", Visit):
            rows = list(program.rows(None, [(0, "a"), (0, "b"), (1, "b")]))
        self.assertEqual([row["server"] for row in rows], ["a0", "b0", "b1"])
        surveys = ["survey a0", "survey b0", "repeat a0", "survey b1", "repeat b0", "repeat b1"]
        self.assertEqual(done[: len(surveys)], surveys)
        self.assertEqual(sorted(done[len(surveys) :]), ["close a0", "close b0", "close b1"])


class Keeping(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.kept = Path(directory.name)
        brimful = self.kept / "brimful"
        brimful.write_text("#!/bin/sh\necho brimful 0\n")
        brimful.chmod(0o755)
        self.bench = measure.Bench(str(brimful), self.kept, self.kept, 0, 1, None, 1)

    def keep(self, document: object, error: str | None = None, **more: object) -> dict:
        files = measure.Kept.at(self.kept, KEPT.name, 0)
        files.document.write_text(json.dumps(document))
        files.run.write_text(json.dumps({"seconds": 130.0, "error": error} | more))
        visit = measure.Visit(self.bench, KEPT, 0)
        visit.survey()
        visit.finish()
        return visit.row()

    def test_a_stored_survey_is_not_repeated(self) -> None:
        row = self.keep(survey(level(0.8)))
        self.assertEqual((row["server"], row["repetition"], row["seconds"]), ("kept", 0, 130.0))
        self.assertAlmostEqual(row["errors"]["saturation"], 0)

    def test_stored_repetitions_are_read(self) -> None:
        row = self.keep(survey(level(0.8), elapsed_s=110.0), thorough=True, repeats=[repetition(0.8, 0.011)])
        self.assertEqual([found["repeated"] for found in row["levels"]], [0.011])
        self.assertEqual((row["thorough"], row["seconds"], row["wall_s"]), (True, 110.0, 130.0))

    def test_a_server_that_does_not_start_is_a_failed_survey_and_is_not_repeated(self) -> None:
        def failing(_: Place) -> list[list[str]]:
            raise Failed("no such program")

        visit = measure.Visit(self.bench, Subject("broken", "a server that does not start", (), failing), 0)
        visit.survey()
        visit.finish()
        self.assertEqual(visit.row()["error"], "no such program")
        self.assertFalse((self.kept / "broken-0").exists())

    def test_a_stored_failure_is_not_repeated(self) -> None:
        self.assertEqual(self.keep({}, "not done after 300 s")["error"], "not done after 300 s")

    def test_an_unreadable_document_is_a_failed_survey(self) -> None:
        for document in ({}, [], {"schema": "brimful.survey/1"}, survey({"role": "held_out"})):
            self.assertIn("cannot be read", self.keep(document)["error"])

    def test_surveys_of_another_binary_are_refused(self) -> None:
        self.assertIsNone(program.differs(self.bench))
        self.assertIsNone(program.differs(self.bench))
        Path(self.bench.brimful).write_text("#!/bin/sh\necho brimful 1\n")
        self.assertIn("--keep another directory", program.differs(self.bench))

    def test_the_error_is_shown_without_the_hint(self) -> None:
        self.assertEqual(measure.last_line("working\nerror: no server\nhint: start it\n"), "no server")
        self.assertEqual(measure.last_line(""), "")


class Visiting(unittest.TestCase):
    """A visit of a server that is never started, by a program that stands in for brimful."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        brimful = self.place / "brimful"
        brimful.write_text(
            f'#!/bin/sh\ncd "{self.place}"\necho "$*" >> log\n'
            'command=$1\nwhile [ $# -gt 1 ]; do [ "$1" = --out ] && cp $command.json "$2"; shift; done\n'
        )
        brimful.chmod(0o755)
        (self.place / "survey.json").write_text(json.dumps(survey(level(0.8, window_s=2.0))))
        (self.place / "load.json").write_text(json.dumps(record(20_000)))
        self.bench = measure.Bench(str(brimful), self.place, self.place, 0, 1, None, 1)
        self.ended = []

    def visit(self, repetition: int) -> measure.Visit:
        @contextlib.contextmanager
        def running(_: Subject, directory: Path, __: int) -> Iterator[tuple[str, list[int]]]:
            directory.mkdir()
            yield "http://127.0.0.1:1/", [123]
            self.ended.append(directory.name)

        for patch in (
            unittest.mock.patch.object(Subject, "running", running),
            unittest.mock.patch.object(measure, "MIN_GAP_S", 0),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        return measure.Visit(self.bench, SUBJECTS[0], repetition)

    def test_the_server_runs_until_its_levels_are_repeated(self) -> None:
        visit = self.visit(0)
        visit.survey()
        self.assertEqual(self.ended, [])
        visit.finish()
        self.assertEqual(self.ended, ["nginx-gzip-0"])
        row = visit.row()
        self.assertEqual([(found["measured"], found["repeated"]) for found in row["levels"]], [(0.010, 0.020)])
        self.assertTrue(row["thorough"])

    def test_the_loads_are_of_the_same_server_and_request(self) -> None:
        visit = self.visit(1)
        visit.survey()
        visit.finish()
        warm_up, surveyed, busy, repeated = (self.place / "log").read_text().splitlines()
        for line in (warm_up, surveyed, busy, repeated):
            self.assertIn("http://127.0.0.1:1/ --header Accept-Encoding: gzip", line)
        self.assertNotIn("--process", warm_up)
        for line in (surveyed, busy, repeated):
            self.assertIn("--process 123", line)
        # Only one survey in three is thorough. This is the second one of its server, so it is not.
        self.assertNotIn("--thorough", surveyed)
        self.assertNotIn("--level", surveyed)
        self.assertIn("--rate 800.000 --arrivals poisson --duration 2s --seed 1000101 ", repeated)

    def test_an_unreadable_document_is_not_repeated(self) -> None:
        (self.place / "survey.json").write_text("{")
        visit = self.visit(0)
        visit.survey()
        visit.finish()
        self.assertIn("cannot be read", visit.row()["error"])
        self.assertEqual(self.ended, ["nginx-gzip-0"])


class Subjects(unittest.TestCase):
    def test_there_are_at_least_twelve_with_unique_names(self) -> None:
        names = {subject.name for subject in SUBJECTS}
        self.assertEqual(len(names), len(SUBJECTS))
        self.assertGreaterEqual(len(names), 12)
        for subject in SUBJECTS:
            self.assertLessEqual(set(subject.programs), set(PROGRAMS))

    def test_a_missing_program_is_named_with_its_package(self) -> None:
        PROGRAMS["none"] = Program(("no-such-program",), "Debian package none")
        self.addCleanup(PROGRAMS.pop, "none")
        self.assertEqual(Subject("x", "x", ("none",), unreachable).missing(), "none is missing: Debian package none")
        module = Program(("no_such_module",), "pip install it", module=True)
        self.assertIsNone(module.path())
        self.assertIsNone(module.version())

    def test_a_program_without_its_module_is_missing(self) -> None:
        self.assertIsNone(Program(("echo",), "", lists=("sqlite", "sqlite3")).path())
        self.assertIsNotNone(Program(("echo",), "", lists=("sqlite3", "sqlite3")).path())

    def test_a_source_is_compiled_once(self) -> None:
        made = []

        def build(directory: Path) -> list[str]:
            made.append(directory)
            return ["true"]

        with tempfile.TemporaryDirectory() as cache, unittest.mock.patch("bench.accuracy.subjects.CACHE", Path(cache)):
            first = built(SOURCES / "rows.go", "compiler 1", build)
            self.assertEqual(built(SOURCES / "rows.go", "compiler 1", build), first)
            self.assertNotEqual(built(SOURCES / "rows.go", "compiler 2", build), first)
        self.assertEqual(len(made), 2)
        self.assertTrue((SOURCES / "rows.go").exists())


if __name__ == "__main__":
    unittest.main()
