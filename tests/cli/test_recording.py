"""Recordings (.cprof) from and to other formats, and as the SQLite databases that they are.

Requires nothing: no privileges, no perf events.
"""

# verifies: R1, H1

import gzip
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness

FOLDED = "app;main;parse;read_[k] 12\napp;main;work;inner loop 30\napp;main;work 8\n"
# What perf script prints: timed samples of two threads.
TEXT = "".join(
    f"app {10 + i % 2} [{i % 4:03}] {100 + i / 1000:.6f}:    1000000 cpu-clock:\n"
    f"\t    401{i % 7:03x} leaf+0x{i % 7:x} (/usr/bin/app)\n\t    402000 main+0x10 (/usr/bin/app)\n\n"
    for i in range(700))


class Recording(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def convert(self, source, name):
        self.cprof("convert", source, "-o", self.path(name))
        return self.path(name)

    def refused(self, source, *words):
        done = self.cprof("convert", source, "-o", self.path("out.folded"), expect=1)
        self.assert_one_line(done)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.path("out.folded")))


class RoundTrips(Recording):
    def test_every_output_is_the_direct_one(self):
        for name, content in (("in.folded", FOLDED), ("in.txt", TEXT)):
            source = self.write(name, content)
            recording = self.convert(source, "mid.cprof")
            for output in ("out.folded", "out.pb", "out.txt", "out.pftrace", "out.cprof"):
                if output == "out.pftrace" and name == "in.folded":
                    continue  # a timeline of what has no times is refused
                direct, through = self.convert(source, "direct-" + output), self.convert(recording, "through-" + output)
                if output == "out.cprof":
                    direct = recording
                with open(direct, "rb") as first, open(through, "rb") as second:
                    self.assertEqual(first.read(), second.read(), f"{name} to {output}")

    def test_pipes(self):
        source = self.write("in.txt", TEXT)
        recording = self.convert(source, "x.cprof")
        done = self.cprof("convert", source, "--format", "cprof", "-o", "-")
        self.assertEqual(done.stdout, self.read("x.cprof"))
        report = self.cprof("report", recording).stdout
        for content in (self.read("x.cprof"), gzip.compress(self.read("x.cprof"))):
            with open(self.write("piped", content), "rb") as file:
                self.assertEqual(self.cprof("report", "-", stdin=file).stdout.replace(b"stdin", recording.encode()), report)

    def test_report_says_the_same(self):
        source = self.write("in.txt", TEXT)
        self.convert(source, "in.cprof")
        self.assertEqual(self.cprof("report", "--tree", self.path("in.cprof")).stdout, self.cprof("report", "--tree", source).stdout)


class Database(Recording):
    def rows(self, path, sql):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def test_any_client_sees_the_samples(self):
        path = self.convert(self.write("in.txt", TEXT), "x.cprof")
        self.assertEqual(self.rows(path, "SELECT count(*), sum(weight) FROM perf_sample"), [(700, 700_000_000)])
        self.assertEqual(self.rows(path, "SELECT tid, count(*) FROM perf_sample JOIN thread USING (utid) GROUP BY 1 ORDER BY 1"),
                         [(10, 350), (11, 350)])
        ((first, last),) = self.rows(path, "SELECT min(ts), max(ts) FROM perf_sample")
        self.assertEqual(last - first, 699_000_000)
        self.assertEqual(self.rows(path, "SELECT DISTINCT f.name FROM perf_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id "
                                         "JOIN stack_profile_frame f ON f.id = c.frame_id"), [("leaf",)])

    def test_untimed_values(self):
        path = self.convert(self.write("in.folded", FOLDED), "x.cprof")
        self.assertEqual(self.rows(path, "SELECT sum(value), sum(value_int), count(*) FROM __intrinsic_aggregate_sample"), [(50.0, 50, 3)])
        self.assertEqual(self.rows(path, "SELECT count(*) FROM perf_sample"), [(0,)])
        self.assertEqual(self.rows(path, "PRAGMA integrity_check"), [("ok",)])


class NotARecording(Recording):
    def change(self, path, sql):
        database = sqlite3.connect(path)
        database.executescript(sql)
        database.close()

    def test_other_databases(self):
        other = self.path("other.cprof")
        self.change(other, "CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        self.refused(other, "other.cprof")
        newer = self.convert(self.write("in.folded", FOLDED), "newer.cprof")
        self.change(newer, "PRAGMA user_version = 99;")
        self.refused(newer, "newer.cprof", "version 99", "use a newer one")

    def test_wrong_rows(self):
        for sql, words in (("UPDATE stack_profile_callsite SET frame_id = 77 WHERE id = 1", "location 77"),
                           ("DELETE FROM cprof_function WHERE id = 0", "cprof_function[0]"),
                           ("DROP TABLE thread", "thread is missing")):
            path = self.convert(self.write("in.folded", FOLDED), "wrong.cprof")
            self.change(path, sql + ";")
            self.refused(path, "wrong.cprof", words)

    def test_cut_and_empty(self):
        whole = self.convert(self.write("in.txt", TEXT), "x.cprof")
        content = self.read("x.cprof")
        self.assertTrue(os.path.exists(whole))
        for size in (0, 1, 50, 99, 4096, len(content) // 2, len(content) - 1024):
            self.refused(self.write("cut.cprof", content[:size]), "cut.cprof")

    # A table that computes without end, or a view in its place, is never evaluated.
    def test_definitions_are_not_run(self):
        path = self.convert(self.write("in.folded", FOLDED), "evil.cprof")
        self.change(path, "DROP TABLE cprof_string; CREATE VIEW cprof_string (id, text) AS WITH RECURSIVE n(i) AS "
                          "(SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i, 'x' || i FROM n;")
        self.refused(path, "evil.cprof", "cprof_string")


if __name__ == "__main__":
    harness.main()
