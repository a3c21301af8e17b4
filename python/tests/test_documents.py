"""Tests of documents as dataclasses."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from brimful import Survey, UsageError
from brimful._documents import Document
from brimful.documents.record import Verdict

SOURCE = Path(os.environ.get("BRIMFUL_SOURCE", Path(__file__).resolve().parents[2]))
EXAMPLE = SOURCE / "web" / "example.survey.json"


class Documents(unittest.TestCase):
    def test_a_document_is_read_completely_and_saved_unchanged(self) -> None:
        source = json.loads(EXAMPLE.read_text())
        survey = Survey.load(EXAMPLE)
        self.assertEqual(survey.saturation_rate.measured, source["saturation_rate"]["measured"])
        self.assertEqual(survey.levels[0].role, source["levels"][0]["role"])
        self.assertEqual(survey.levels[-1].verdict.valid, source["levels"][-1]["verdict"]["valid"])
        with tempfile.TemporaryDirectory() as directory:
            survey.save(Path(directory, "again.json"))
            self.assertEqual(json.loads(Path(directory, "again.json").read_text()), source)

    def test_unknown_fields_are_ignored_and_missing_ones_are_none(self) -> None:
        verdict = Verdict.from_json({"valid": False, "reasons": [{"code": "new", "message": "m"}], "later": 1})
        self.assertEqual((verdict.reasons[0].code, verdict.error_share), ("new", None))
        with self.assertRaisesRegex(TypeError, "Verdict is an object"):
            Verdict.from_json([])  # type: ignore[arg-type]

    def test_notebooks_show_the_page_in_a_frame_or_the_text(self) -> None:
        survey = Survey.load(EXAMPLE)
        survey.text = "50 < 60"
        self.assertEqual(survey._repr_html_(), "<pre>50 &lt; 60</pre>")
        survey.page = '<html><script>"x"</script>'
        frame = survey._repr_html_()
        self.assertIn('sandbox="allow-scripts"', frame)
        self.assertIn('srcdoc="&lt;html&gt;&lt;script&gt;&quot;x&quot;&lt;/script&gt;"', frame)

    def test_intervals_are_rows_with_all_columns(self) -> None:
        record = Document()
        record.source = {"intervals": [{"t_s": 0.0, "p99_us": None, "cpu": {"user": 0.5, "by": [1]}}, {"t_s": 1.0}]}
        self.assertEqual(record.rows()[0], {"t_s": 0.0, "p99_us": None, "cpu_user": 0.5})
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            self.skipTest("pyarrow is not installed")
        table = record.to_arrow()
        self.assertEqual(table.column_names, ["t_s", "p99_us", "cpu_user"])
        self.assertEqual(table["cpu_user"].to_pylist(), [0.5, None])

    def test_a_usage_error_is_a_value_error(self) -> None:
        self.assertTrue(issubclass(UsageError, ValueError))
