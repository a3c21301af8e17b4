"""Tests of `scripts/licences`, which checks the licences of the code that is linked into the program."""

import importlib.machinery
import importlib.util
import json
import sys
import unittest
from pathlib import Path
from unittest import mock

from .test_documents import SOURCE

SCRIPT = SOURCE / "scripts" / "licences"


def load_script():
    """Imports the script as a module, without writing a bytecode file beside it."""
    loader = importlib.machinery.SourceFileLoader("licences", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("licences", loader))
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


class Licences(unittest.TestCase):
    def test_only_licences_that_require_no_more_than_a_notice_are_allowed(self) -> None:
        is_allowed = load_script().is_allowed
        for expression in (
            "MIT",
            "MIT/Apache-2.0",
            "LGPL-2.1-only OR BSD-2-Clause",
            "(MIT OR GPL-3.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
            "ISC AND MIT OR GPL-3.0-only",
        ):
            self.assertTrue(is_allowed(expression), expression)
        for expression in (
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "GPL-3.0-only AND MIT OR GPL-2.0-only",
            "(MIT OR Apache-2.0) AND AGPL-3.0-only",
            "GPL-3.0-only WITH GCC-exception-3.1",
            "MIT MIT",
            "(MIT",
            "MIT OR",
        ):
            self.assertFalse(is_allowed(expression), expression)

    def test_a_crate_without_licence_text_or_from_another_source_is_refused(self) -> None:
        licences = load_script()
        # The directory of `manifest_path` contains no licence file.
        crate = {
            "name": "x",
            "version": "1.0.0",
            "license": "MIT",
            "license_file": None,
            "source": licences.REGISTRY,
            "manifest_path": str(Path(__file__)),
        }
        licences.page_packages = lambda: []
        self.assertEqual(list(licences.complaints([crate])), ["x 1.0.0 has no file with its licence"])
        fork = crate | {"license": None, "source": "git+https://example.org/x", "license_file": "servers.py"}
        of_fork = list(licences.complaints([fork]))
        self.assertIn("x 1.0.0 is under no licence, which is not in the list of deny.toml", of_fork[0])
        self.assertEqual(of_fork[1:], ["x 1.0.0 is not from crates.io but from git+https://example.org/x"])

    def test_the_bill_of_materials_names_each_linked_part_with_its_version(self) -> None:
        licences = load_script()
        licences.page_packages = lambda: []
        text = licences.bill_of_materials(licences.linked_crates())
        self.assertEqual(text, licences.bill_of_materials(licences.linked_crates()))
        components = {component["name"]: component for component in json.loads(text)["components"]}
        rustls = components["rustls"]
        self.assertEqual(rustls["purl"], f"pkg:cargo/rustls@{rustls['version']}")
        self.assertEqual(len(rustls["hashes"][0]["content"]), 64)
        for library in licences.C_VERSIONS:
            self.assertRegex(components[library]["version"], r"^\d+\.\d+")
