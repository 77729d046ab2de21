"""The bench's own parts, on data made here: a bench that counts wrongly measures nothing."""

import io
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fold_bpftrace
import fold_perf_script
import tables
from measure import statistics_of
from perf_data import facts_of


def record(kind, body):
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


class PerfData(unittest.TestCase):
    def facts(self, records, size=None):
        body = b"".join(records)
        head = b"PERFILE2" + bytes(32) + struct.pack("<QQ", 104, len(body) if size is None else size)
        with tempfile.NamedTemporaryFile() as file:
            file.write(head.ljust(104, b"\0") + body)
            file.flush()
            return facts_of(file.name)

    def test_samples_losses_and_bytes(self):
        facts = self.facts([record(9, bytes(16)), record(2, struct.pack("<QQ", 1, 7)), record(9, bytes(32)), record(1, bytes(8))])
        self.assertEqual((facts.samples, facts.lost, facts.data_bytes), (2, 7, 24 + 24 + 40 + 16))

    def test_a_loss_that_is_told_twice_counts_once(self):
        lost = [record(2, struct.pack("<QQ", 1, 3)), record(2, struct.pack("<QQ", 1, 4)), record(13, struct.pack("<Q", 9))]
        self.assertEqual(self.facts(lost).lost, 9)

    def test_a_record_without_size_is_refused(self):
        with self.assertRaises(ValueError):
            self.facts([struct.pack("<IHH", 9, 0, 0)])


class Folding(unittest.TestCase):
    def folded(self, module, text):
        out = io.StringIO()
        total = module.fold(io.StringIO(text), out)
        return total, out.getvalue().splitlines()

    def test_bpftrace(self):
        text = "Attaching 1 probe...\n@[\n    leaf+12\n    main+3\n, app]: 4\n@[\n    0x12\n, app]: 1\n@[\n, b]: 1\n"
        self.assertEqual(self.folded(fold_bpftrace, text), (6, ["app;main;leaf 4", "app;0x12 1", "b;[unknown] 1"]))

    def test_perf_script(self):
        text = "app 1 2.0: 1 cpu-clock: \n\t  12 leaf+0x1 (/x)\n\t  13 main+0x2 (/x)\n\napp 1 2.1: 1 cpu-clock: \n\t  12 leaf+0x9 (/x)\n\t 13 main+0x2 (/x)\n\n"
        self.assertEqual(self.folded(fold_perf_script, text), (2, ["app;main;leaf 2"]))


class Tables(unittest.TestCase):
    def part(self, **nanoseconds):
        rows = {"none": {"fault_ns": 100, "lost": 0}}
        rows.update({name.replace("_", " "): {"fault_ns": 100 + value, "lost": 0} for name, value in nanoseconds.items()})
        return {"settings": {"events": 10, "frames": 46}, "rounds": [rows, rows]}

    def test_statistics(self):
        facts = statistics_of([4, 1, 2, 3])
        self.assertEqual((facts["mean"], facts["median"], facts["p95"], facts["least"]), (2.5, 2.5, 4, 1))
        self.assertAlmostEqual(facts["sd"], 1.29099, 4)
        self.assertEqual(statistics_of(range(1, 101))["p95"], 95)
        self.assertEqual(statistics_of([7])["sd"], 0)

    def test_what_is_lost_is_said(self):
        text = tables.losses_section({"faults": self.part(cprof_perf=30, perf_fp=20, bpftrace=40)})
        self.assertIn("- cprof perf, cost of one event: 30.00 ns; less: perf fp 20.00", text)
        self.assertNotIn("bpftrace", text)
        self.assertIn("in none", tables.losses_section({"faults": self.part(cprof_perf=10, perf_fp=20)}))

    def test_ratios_are_taken_in_one_round(self):
        rounds = [{"a": {"x": 10}, "b": {"x": 1}}, {"a": {"x": 40}, "b": {"x": 2}}]
        self.assertEqual(tables.ratios(rounds, "a", "b", "x"), [10, 20])

    def test_the_sentence(self):
        row = {"cpu_s": 0.5, "rss_mb": 20, "written_bytes": 3e6}
        results = {"parts": {"main": {"settings": {"seconds": 60, "hz": 999}, "rounds": [{"cprof perf": row, "perf dwarf,16384": row}]}}}
        self.assertIn("cprof's perf backend 0.50 s of CPU time and 20 MB", tables.summary(results))
        self.assertIn("and 3 MB of files", tables.summary(results))

    def test_the_faults_table(self):
        self.assertIn("| cprof perf | 30 (30 to 30) | 0 |", tables.faults_section(self.part(cprof_perf=30)))


if __name__ == "__main__":
    unittest.main()
