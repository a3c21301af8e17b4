"""Tests how scripts/test reports failures, with fake programs in place of cargo, make, python3 and npm."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "test"

FAILING = {
    "make": "echo \"make: *** [Makefile:59: rules] Error 1\" >&2; exit 2",
    "cargo": "cat <<END\ntest arrivals::good ... ok\n---- arrivals::bad stdout ----\nno\n\nerror: 1 target failed:\n"
    "    \\`-p brimful-model --test it\\`\nEND\nexit 101",
    "python3": "echo 'FAIL: test_sums (bench.tests.test_stats.Sums.test_sums)' >&2; exit 1",
    "npm": "printf 'ok 1 - fine\\n    not ok 2 - a page\\n'; exit 1",
}


class Failures(unittest.TestCase):
    def run_with(self, failing: set[str]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as place:
            for name, body in FAILING.items():
                program = pathlib.Path(place, name)
                program.write_text(f"#!/bin/sh\necho {name} ran\n{body if name in failing else 'exit 0'}\n")
                program.chmod(0o755)
            environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
            done = subprocess.run([SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)
        for name in FAILING:
            self.assertIn(f"{name} ran", done.stdout)
        return done.returncode, done.stdout.partition("test: failed:")[2]

    def test_all_steps_run_after_a_failure_and_every_failure_is_named(self) -> None:
        status, summary = self.run_with(set(FAILING))
        self.assertEqual(status, 1)
        for name in ["rules", "arrivals::bad", "-p brimful-model --test it", "test_sums", "a page"]:
            self.assertIn(name, summary)
        for name in ["arrivals::good", "fine"]:
            self.assertNotIn(name, summary)

    def test_a_single_failing_step_fails_the_run(self) -> None:
        for name in FAILING:
            status, summary = self.run_with({name})
            self.assertEqual((status, name in summary), (1, True), summary)

    def test_the_run_succeeds_if_no_step_fails(self) -> None:
        self.assertEqual(self.run_with(set()), (0, ""))
