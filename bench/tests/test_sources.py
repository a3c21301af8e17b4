"""Building generators from their sources, with a shell command in place of a compiler."""

import argparse
import subprocess
import tempfile
import unittest
from pathlib import Path

from bench.side_by_side import sources
from bench.side_by_side.cases import CASES
from bench.side_by_side.tools import KNOWN, Failed, Programs


class Sources(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.sources, self.target = Path(directory.name, "sources"), Path(directory.name, "target")
        self.sources.mkdir()
        (self.sources / "program.sh").write_text("#!/bin/sh\necho 1.4.2\n")
        self.target.mkdir()

    def build(self, script: str) -> sources.Built:
        recipe = sources.Recipe(lambda: ["sh", "-c", script], "out/program")
        return sources.build("zrk", self.sources, self.target, recipe)

    def test_a_build_leaves_its_sources_as_they_are(self) -> None:
        (self.sources / "build").mkdir()
        (self.sources / "build" / "old.o").touch()
        built = self.build("test ! -e build && mkdir out && cp program.sh out/program && chmod +x out/program")
        self.assertEqual(built, sources.Built(self.target / "zrk" / "out" / "program", None))
        self.assertEqual({path.name for path in self.sources.iterdir()}, {"program.sh", "build"})

    def test_a_failed_build_names_the_compilers_output(self) -> None:
        with self.assertRaisesRegex(Failed, "cannot build zrk from .*zrk.log"):
            self.build("echo liburing.h is missing >&2; exit 1")
        self.assertIn("liburing.h", (self.target / "zrk.log").read_text())
        with self.assertRaisesRegex(Failed, "did not write out/program"):
            self.build("true")
        recipe = sources.Recipe(lambda: ["/no/such/compiler"], "out/program")
        with self.assertRaisesRegex(Failed, "No such file"):
            sources.build("zrk", self.sources, self.target, recipe)

    def test_the_commit_of_the_sources(self) -> None:
        self.assertIsNone(sources.commit(self.sources))
        identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        for words in (["init"], ["add", "."], [*identity, "commit", "-m", "bench: test"]):
            subprocess.run(["git", "-C", self.sources, *words], check=True, capture_output=True)
        self.assertRegex(sources.commit(self.sources), r"^[0-9a-f]{9}$")
        (self.sources / "program.sh").write_text("edited")
        self.assertRegex(sources.commit(self.sources), r"^[0-9a-f]{9}-dirty$")

    def test_the_version_of_a_built_generator(self) -> None:
        program = self.sources / "program.sh"
        program.chmod(0o755)
        programs = Programs({})
        programs.add("zrk", program, "87455f2bb")
        programs.add("gcannon", program, "43b30bc24-dirty")
        versions = {"zrk": "1.4.2 (commit 87455f2bb)", "gcannon": "commit 43b30bc24-dirty"}
        self.assertEqual(programs.versions(), versions)

    def test_the_argument(self) -> None:
        self.assertEqual(sources.argument(f"zrk={self.sources}"), ("zrk", self.sources.resolve()))
        for text in ("zrk", "zrk=", f"wrk={self.sources}", f"zrk={self.sources}/none"):
            self.assertRaises(argparse.ArgumentTypeError, sources.argument, text)

    def test_every_recipe_belongs_to_a_generator_of_a_case(self) -> None:
        tools = {entry.tool for case in CASES for entry in case.entries}
        for name in sources.RECIPES:
            self.assertIn(name, tools)
            self.assertIn(f"--sources {name}=DIR", KNOWN[name][1])
