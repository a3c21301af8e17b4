"""Reads histograms that brimful has written with another implementation, the package `hdrhistogram`."""

import tempfile
import unittest
from pathlib import Path

import brimful

from .servers import target

try:
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader
except ImportError:
    HdrHistogram = None

#: The upper bound of the histograms: one hour in nanoseconds.
LONGEST_NS = 3_600_000_000_000


@unittest.skipIf(HdrHistogram is None, "hdrhistogram is not installed: pip install hdrhistogram")
class Histograms(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def load(self, name: str) -> tuple[brimful.Record, Path]:
        """Runs a load of 200 calls. Returns its Record, and the path of the file that `--hdr` wrote."""
        path = Path(self.directory.name, name)
        with target("--service", "page=1ms", "--distribution", "exponential") as url:
            record = brimful.load(url, rate=200, requests=200, seed=3, hdr=str(path))
        self.assertEqual(record.counts.completed, 200)
        return record, path

    def assert_percentiles(self, record: brimful.Record, percentile_us, within: float) -> None:
        for percent, expected in ((50, record.response_time_us.p50), (99, record.response_time_us.p99)):
            self.assertAlmostEqual(percentile_us(percent) / expected, 1, delta=within)

    def test_another_library_reads_every_histogram_of_a_record(self) -> None:
        record, path = self.load("run.hgrm")
        histograms = {name: HdrHistogram.decode(text) for name, text in record.source["hdr"].items()}
        for name, histogram in histograms.items():
            self.assertEqual(histogram.get_total_count(), record.source[name]["count"], name)
        times = histograms["response_time_us"]
        self.assert_percentiles(record, lambda percent: times.get_value_at_percentile(percent) / 1e3, 0.001)
        self.assertAlmostEqual(times.get_mean_value() / 1e3 / record.response_time_us.mean, 1, delta=0.001)
        # Each row contains a value in milliseconds, and the number of recorded values up to this one.
        rows = {}
        for line in path.read_text().splitlines()[2:]:
            if not line.startswith("#"):
                value_ms, share, total = line.split()[:3]
                rows[float(share)] = (float(value_ms), int(total))
        self.assertEqual(max(total for _, total in rows.values()), 200)
        for share, (value_ms, total) in rows.items():
            self.assertGreaterEqual(total, 200 * share - 1e-6)
            self.assertEqual(round(1e6 * value_ms), times.get_value_at_percentile(100 * total / 200), f"at {share}")

    def test_another_library_reads_an_interval_log(self) -> None:
        record, path = self.load("run.hlog")
        reader = HistogramLogReader(str(path), HdrHistogram(1, LONGEST_NS, 3))
        self.addCleanup(reader.close)
        whole = HdrHistogram(1, LONGEST_NS, 3)
        counts = []
        while (interval := reader.get_next_interval_histogram()) is not None:
            counts.append(interval.get_total_count())
            whole.add(interval)
        intervals = [row["completed"] for row in record.source["intervals"]]
        self.assertEqual(counts, intervals[: len(counts)])
        self.assertEqual((sum(counts), whole.get_total_count()), (200, 200))
        # The histograms of intervals have a precision of two significant digits.
        self.assert_percentiles(record, lambda percent: whole.get_value_at_percentile(percent) / 1e3, 0.02)
        self.assertGreater(reader.get_start_time_sec(), 1_700_000_000)
