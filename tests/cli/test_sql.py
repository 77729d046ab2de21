"""cprof sql over inputs made here: sums that are known, output forms, errors with their place, and every query that
docs/sql-perfetto.md says runs.

Requires: no privileges.
"""

# verifies: D3, D5
# covers: sql --query --format --limit --timeout --input-format --demangle --no-inline --kallsyms

import csv
import gzip
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDED = "app;main;parse;read_[k] 12\napp;main;work;inner loop 30\napp;main;work 8\n"
# Two threads, a millisecond between their samples, as perf script prints them.
TEXT = "".join(
    f"app 10/{tid} [000] 1.{us:06d}: 1000000 cpu-clock: \n\t  401000 {leaf}+0x10 (/bin/app)\n\t  400000 main+0x20 (/bin/app)\n\n"
    for us, tid, leaf in ((1000, 10, "parse"), (1500, 11, "work"), (2000, 10, "parse"), (2500, 11, "work"), (3000, 10, "work")))


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def pprof():
    """Two metrics; main > work (inlined: hot in work) with 7 and 2^60+1; the same stack labelled; a sample without a stack."""
    texts = ["", "cpu", "nanoseconds", "space", "bytes", "main", "work", "hot", "/bin/app", "0123abcd", "key", "one", "a.c"]
    index = {text: i for i, text in enumerate(texts)}
    value_type = lambda name, unit: message(1, number(1, index[name]) + number(2, index[unit]))
    line = lambda function, at: message(4, number(1, function) + number(2, at))
    out = value_type("cpu", "nanoseconds") + value_type("space", "bytes")
    sample = lambda locations, values, label=b"": message(
        2, message(1, b"".join(map(varint, locations))) + message(2, b"".join(map(varint, values))) + label)
    out += sample([2, 1], [7, 2**60 + 1])
    out += sample([2, 1], [5, 0], message(3, number(1, index["key"]) + number(2, index["one"])))
    out += sample([1], [3, -4]) + sample([], [1, 0])
    out += message(3, number(1, 1) + number(2, 0x1000) + number(3, 0x9000) + number(4, 0x100) + number(5, index["/bin/app"]) +
                   number(6, index["0123abcd"]))
    out += message(4, number(1, 1) + number(2, 1) + number(3, 0x1010) + line(1, 3))
    out += message(4, number(1, 2) + number(2, 1) + number(3, 0x1020) + line(3, 5) + line(2, 9))
    for i, name in ((1, "main"), (2, "work"), (3, "hot")):
        out += message(5, number(1, i) + number(2, index[name]) + number(4, index["a.c"]))
    return out + b"".join(message(6, text.encode()) for text in texts)


class Sql(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def rows(self, query, *files, options=()):
        done = self.cprof("sql", *files, "--format", "json", "-q", query, *options)
        return [tuple(row.values()) for row in json.loads(done.stdout)]

    def assert_refused(self, *arguments, status=1, saying="", stdin=None):
        done = self.cprof("sql", *arguments, expect=status)
        self.assert_one_line(done)
        self.assertIn(saying, done.stderr)


class Values(Sql):
    def test_pprof_as_the_trace_processor_has_it(self):
        file = self.write("x.pb.gz", gzip.compress(pprof()))
        self.assertEqual(self.rows("SELECT id, name, sample_type_type, sample_type_unit FROM __intrinsic_aggregate_profile", file),
                         [(0, "pprof cpu", "cpu", "nanoseconds"), (1, "pprof space", "space", "bytes")])
        self.assertEqual(self.rows("SELECT scope FROM aggregate_profile", file)[0], (file,))
        self.assertEqual(self.rows("SELECT callsite_id, value_int FROM __intrinsic_aggregate_sample WHERE aggregate_profile_id = 1 "
                                   "ORDER BY id", file), [(1, 2**60 + 1), (1, 0), (0, -4), (2, 0)])
        self.assertEqual(self.rows("SELECT sum(value_int), typeof(sum(value)) FROM aggregate_sample GROUP BY aggregate_profile_id", file),
                         [(16, "real"), (2**60 - 3, "real")])
        self.assertEqual(self.rows("SELECT name, rel_pc FROM stack_profile_frame ORDER BY id", file),
                         [("main", 0x110), ("hot", 0x120), ("[unknown]", 0)])
        self.assertEqual(self.rows("SELECT name, source_file, line_number, inlined FROM stack_profile_symbol ORDER BY id", file),
                         [("main", "a.c", 3, 0), ("hot", "a.c", 5, 1), ("work", "a.c", 9, 0)])
        self.assertEqual(self.rows("SELECT build_id, exact_offset FROM stack_profile_mapping WHERE id = 0", file), [("0123abcd", 0x100)])
        self.assertEqual(self.rows("SELECT name, self, total FROM top_functions WHERE metric = 'cpu'", file),
                         [("hot", 12, 12), ("main", 3, 15), ("[unknown]", 1, 1), ("work", 0, 12)])

    def test_several_files(self):
        folded, profile = self.write("a.folded", FOLDED), self.write("b.pb", pprof())
        self.assertEqual(self.rows("SELECT p.scope, p.sample_type_type, sum(s.value_int) FROM aggregate_sample s JOIN "
                                   "aggregate_profile p ON p.id = s.aggregate_profile_id GROUP BY p.id", folded, folded, profile),
                         [(folded, "samples", 50), (folded + " (2)", "samples", 50), (profile, "cpu", 16), (profile, "space", 2**60 - 3)])
        self.assertEqual(self.rows("SELECT sum(value_int) FROM aggregate_sample WHERE contains(callsite_id, 'work')", folded, profile),
                         [(38 + 12 + 2**60 + 1,)])

    def test_timed_samples(self):
        file = self.write("t.txt", TEXT)
        self.assertEqual(self.rows("SELECT t.tid, count(*) FROM perf_sample s JOIN thread t ON t.id = s.utid GROUP BY 1", file), [(10, 3), (11, 2)])
        self.assertEqual(self.rows("SELECT DISTINCT name, depth FROM slice ORDER BY 2, 1", file), [("main", 0), ("parse", 1), ("work", 1)])
        self.assertEqual(self.rows("SELECT sum(dur) FROM slice JOIN thread_track k ON k.id = track_id JOIN thread t ON t.id = k.utid "
                                   "WHERE t.tid = 10 AND slice.name = 'parse'", file), [(2000000,)])
        self.assertEqual(self.rows("SELECT samples FROM thread_time ORDER BY tid", file), [(3,), (2,)])
        self.assertEqual(self.rows("SELECT name, self FROM top_functions WHERE metric = 'cpu-clock'", file)[0], ("work", 3000000))

    def test_the_options_of_every_reader(self):
        file = self.write("a.folded", FOLDED)
        self.assertEqual(self.rows("SELECT count(*) FROM stack_profile_callsite", file,
                                   options=("--input-format", "folded", "--demangle", "none", "--no-inline"))[0], (6,))
        self.assert_refused(file, "--input-format", "pprof", "-q", "SELECT 1")
        self.assert_refused(self.path("none.pb"), "-q", "SELECT 1", saying="none.pb")
        self.assert_refused(self.write("cut.pb.gz", gzip.compress(pprof())[:60]), "-q", "SELECT 1", saying="cut.pb.gz")


class Output(Sql):
    def test_csv_reads_back(self):
        file = self.write("a.folded", FOLDED)
        done = self.cprof("sql", file, "--format", "csv", "-q", "SELECT 'a,\"b\"\n' AS x, NULL AS n, 9223372036854775807 AS i, 0.5 AS r")
        self.assertEqual(list(csv.reader(io.StringIO(done.stdout.decode(), newline=""))),
                         [["x", "n", "i", "r"], ['a,"b"\n', "", "9223372036854775807", "0.5"]])

    def test_json_is_exact(self):
        file = self.write("a.folded", FOLDED)
        self.assertEqual(self.rows("SELECT 9223372036854775807, -9223372036854775808, NULL, x'00ff', 9e999", file),
                         [(2**63 - 1, -2**63, None, "00ff", None)])
        self.assertEqual(self.rows("SELECT 1 WHERE 0", file), [])

    def test_tables_and_several_statements(self):
        file = self.write("a.folded", FOLDED)
        done = self.cprof("sql", file, "-q", "SELECT 1 AS one; SELECT 'x' AS two", "-q", "SELECT NULL AS three")
        self.assertEqual(done.stdout.decode(), "one\n---\n  1\ntwo\n---\nx\nthree\n-----\nNULL\n")

    def test_limits_are_said(self):
        file = self.write("a.folded", FOLDED)
        done = self.cprof("sql", file, "--limit", "2", "-q", "SELECT id FROM stack_profile_callsite")
        self.assertEqual(done.stdout.decode(), "id\n--\n 0\n 1\n")
        self.assertIn("only the first 2 rows", done.stderr)
        self.assertEqual(self.cprof("sql", file, "--limit", "6", "-q", "SELECT id FROM stack_profile_callsite").stderr, "")
        self.assert_refused(file, "--timeout", "0.1", "-q", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                            "SELECT sum(i) FROM n", saying="stopped after 0.1 s")

    def test_statements_from_stdin(self):
        file = self.write("a.folded", FOLDED)
        done = subprocess.run([harness.CPROF, "sql", file, "--format", "csv"], input=b"-- sums\nSELECT sum(value_int) AS s\nFROM aggregate_sample;\n",
                              capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, b"s\r\n50\r\n"))
        done = subprocess.run([harness.CPROF, "sql", "-", "-q", "SELECT sum(value_int) FROM aggregate_sample", "--format", "csv"],
                              input=FOLDED.encode(), capture_output=True, timeout=60)
        self.assertEqual(done.stdout.split()[1], b"50")


class Errors(Sql):
    def test_an_error_says_where(self):
        file = self.write("a.folded", FOLDED)
        self.assert_refused(file, "-q", "SELECT 1;\n SELECT nosuch FROM thread", saying="-q: line 2, column 9: no such column: nosuch")
        self.assert_refused(file, "-q", "SELECT m!(1)", saying="-q: line 1, column 8: no macro 'm'")
        self.assert_refused(file, "-q", "SELEC 1", saying='line 1, column 1: near "SELEC": syntax error')
        self.assert_refused(file, "-q", "INCLUDE PERFETTO MODULE android.startup", saying="not supported: module android.startup; there are")

    def test_profiles_are_read_only(self):
        file = self.write("a.folded", FOLDED)
        for query in ("DELETE FROM thread", "ATTACH 'x.db' AS x", "PRAGMA writable_schema = 1", "BEGIN", "CREATE TABLE main.t(a)",
                      "SELECT load_extension('x')", "VACUUM INTO 'x.db'", "CREATE VIRTUAL TABLE s USING SPAN_JOIN(a, b)"):
            self.assert_refused(file, "-q", query)
        self.assert_no_leftovers("a.folded")

    def test_wrong_use(self):
        file = self.write("a.folded", FOLDED)
        self.assert_refused(status=2)
        self.assert_refused(file, "--format", "xml", "-q", "SELECT 1", status=2)
        self.assert_refused(file, "--timeout", "-1", "-q", "SELECT 1", status=2)
        self.assert_refused("-", status=2, saying="-q")


class Documented(Sql):
    """docs/sql-perfetto.md is what it says: a tested list."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(ROOT, "docs", "sql-perfetto.md")) as page:
            self.page = page.read()
        self.file = self.write("t.txt", TEXT)

    def test_every_query_runs(self):
        queries = re.findall(r"```sql\n(.*?)```", self.page, re.S)
        self.assertGreater(len(queries), 10)
        needs_switches = self.page.index("With switch records")
        for query in queries:
            done = self.cprof("sql", self.file, "--format", "csv", "-q", query)
            self.assertEqual(done.stderr, "", query)
            if self.page.index(query) < needs_switches:
                self.assertGreaterEqual(len(done.stdout.splitlines()), 2, query)

    def test_the_modules_are_those_of_the_program(self):
        listed = re.findall(r"^\| `([a-z_]+\.[a-z_.]+)` \|", self.page, re.M)
        refused = self.cprof("sql", self.file, "-q", "INCLUDE PERFETTO MODULE none", expect=1).stderr
        self.assertEqual(sorted(listed), refused.split("there are ")[1].strip().split(", "))
        for row in re.findall(r"^\| `[a-z_]+\.[a-z_.]+` \| (.*) \|$", self.page, re.M):
            for name in re.findall(r"`([a-z_]+)`", row):
                kind = "pragma_function_list" if name.startswith(("time_", "sched_state_")) else "pragma_table_list"
                found = self.rows_after_all_modules(f"SELECT count(*) FROM {kind} WHERE name = '{name}'")
                self.assertTrue(found > 0 or name.startswith("_slice_"), name)

    def rows_after_all_modules(self, query):
        done = self.cprof("sql", self.file, "--format", "json", "-q", "INCLUDE PERFETTO MODULE *; " + query)
        return list(json.loads(done.stdout)[0].values())[0]

    def test_the_views_and_functions_of_sql_md(self):
        with open(os.path.join(ROOT, "docs", "sql.md")) as file:
            page = file.read()
        views = re.findall(r"^\| `([a-z_]+)` \| .* \| (.*) \|$", page.split("## Views")[1].split("## Functions")[0], re.M)
        self.assertGreater(len(views), 5)
        for name, columns in views:
            done = self.cprof("sql", self.file, "--format", "csv", "-q", f"SELECT * FROM {name} LIMIT 1")
            self.assertEqual(done.stdout.decode().splitlines()[0], columns.replace(" ", ""), name)
        for query in re.findall(r"```sql\n(.*?)```", page, re.S):
            self.cprof("sql", self.file, "-q", query)


class Shell(Sql):
    """At a terminal: statements over lines, commands, Ctrl-C that ends a statement and not the program."""

    def start(self, *arguments):
        file = self.write("a.folded", FOLDED)
        leader, follower = pty.openpty()
        environment = dict(os.environ, TERM="dumb", XDG_STATE_HOME=self.path("state"))
        process = subprocess.Popen([harness.CPROF, "sql", file, *arguments], stdin=follower, stdout=follower, stderr=follower,
                                   env=environment, start_new_session=True, preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))
        os.close(follower)
        self.addCleanup(os.close, leader)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.seen = b""
        return process, leader

    def until(self, leader, text, seconds=60):
        """Reads up to and with the text; what comes behind it is for the next call."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([leader], [], [], left)[0]:
                self.fail(f"waited for {text!r}, saw {self.seen!r}")
            try:
                self.seen += os.read(leader, 65536)
            except OSError:
                self.fail(f"it ended; waited for {text!r}, saw {self.seen!r}")
        self.seen = self.seen.split(text, 1)[1]

    def test_a_session(self):
        process, leader = self.start()
        self.until(leader, b"cprof> ")
        os.write(leader, b"SELECT sum(value_int) + 1000\n")
        self.until(leader, b"...> ")
        os.write(leader, b"FROM aggregate_sample;\n")
        self.until(leader, b"1050")
        os.write(leader, b".mode json\n")
        self.until(leader, b"cprof> ")
        os.write(leader, b"SELECT 6 * 7 AS answer;\n")
        self.until(leader, b'{"answer":42}')
        os.write(leader, b".schema waits\n")
        self.until(leader, b"total_ns")
        os.write(leader, b"SELECT nosuch;\n")
        self.until(leader, b"no such column: nosuch")
        os.write(leader, b".quit\n")
        self.assertEqual(process.wait(30), 0)
        with open(self.path("state/cprof/sql_history")) as history:
            self.assertIn("answer", history.read())

    def test_ctrl_c_keeps_the_shell(self):
        process, leader = self.start()
        self.until(leader, b"cprof> ")
        os.write(leader, b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n;\n")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        self.until(leader, b"interrupted")
        os.write(leader, b"SELECT 'still ' || 'here';\n")
        self.until(leader, b"still here")
        self.until(leader, b"cprof> ")
        os.write(leader, b"SELECT nothing more")
        self.until(leader, b"more")
        process.send_signal(signal.SIGINT)
        self.until(leader, b"cprof> ")
        os.write(leader, b"SELECT 'another ' || 'line';\n")
        self.until(leader, b"another line")
        self.until(leader, b"cprof> ")
        os.write(leader, b"\x04")
        self.assertEqual(process.wait(30), 0)

    def test_what_is_typed_while_a_statement_runs_comes_after_it(self):
        process, leader = self.start()
        self.until(leader, b"cprof> ")
        counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT 'up to ' || max(i) FROM n;\n"
        os.write(leader, counted.encode())
        time.sleep(0.2)
        os.write(leader, b"SELECT 'behind ' || 'it';\n\x04")
        self.until(leader, b"up to 3000000")
        self.until(leader, b"behind it")
        self.assertEqual(process.wait(30), 0)


if __name__ == "__main__":
    harness.main()
