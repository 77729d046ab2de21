"""Inputs that are wrong in places: what is right in them is read, and what was wrong is said in one line each.

Requires nothing: no privileges, no perf events.
"""

# verifies: H1

import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness
from perfdata import COMM, SAMPLE

IP, TID, TIME, READ, ID, CALLCHAIN, BRANCH_STACK = 1, 2, 4, 16, 64, 32, 2048
GROUP, WITH_ID, CALL_STACK = 8, 4, 1 << 11
USER = 2**64 - 512
HOSTNAME = 3


def record(kind, body, misc=2):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def attribute(config, kinds, read_format=0, branches=0):
    return struct.pack("<IIQQQQQ", 0, 112, config, 1000, kinds, read_format, 0) + bytes(24) + struct.pack("<Q", branches) + bytes(32)


def file_form(attributes, data, features=None):
    """attributes: (attr, id); features: {bit: bytes, or (offset, size)}."""
    features, entry, start = features or {}, 128, 104
    ids_at = start + entry * len(attributes)
    table = b"".join(attr + struct.pack("<QQ", ids_at + 8 * i, 8) for i, (attr, _) in enumerate(attributes))
    ids = b"".join(struct.pack("<Q", ident) for _, ident in attributes)
    data_at = ids_at + len(ids)
    bits = [sum(1 << bit % 64 for bit in features if bit // 64 == word) for word in range(4)]
    header = b"PERFILE2" + struct.pack("<10Q", 104, entry, start, len(table), data_at, len(data), 0, 0, *bits[:2]) + struct.pack("<2Q", *bits[2:])
    at, sections, content = data_at + len(data) + 16 * len(features), b"", b""
    for bit in sorted(features):
        section = features[bit]
        sections += struct.pack("<QQ", *section) if isinstance(section, tuple) else struct.pack("<QQ", at + len(content), len(section))
        content += b"" if isinstance(section, tuple) else section
    return header + table + ids + data + sections + content


def comm(name):
    return record(COMM, struct.pack("<II", 10, 10) + name.encode().ljust(8, b"\0"))


def sample(time):
    return record(SAMPLE, struct.pack("<QIIQ", 0x400100, 10, 10, time))


class Faults(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def convert(self, name, content, expect=0, options=()):
        """(folded lines, lines on stderr)."""
        done = self.cprof("convert", self.write(name, content), "-o", "-", "--format", "folded", *options, expect=expect)
        return done.stdout.decode().splitlines(), done.stderr.splitlines()

    def assert_said(self, lines, *wanted):
        """One line for each, in any order; lines about files that are not there apart."""
        rest = [line for line in lines if "could not be opened" not in line]
        self.assertEqual(len(rest), len(wanted), lines)
        for words in wanted:
            self.assertEqual(sum(words in line for line in rest), 1, (words, rest))


class PerfData(Faults):
    samples = comm("app") + b"".join(sample(1000 + i) for i in range(5))

    def stacks(self, content):
        lines, said = self.convert("perf.data", content)
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines), said

    def test_sections_far_outside_the_file(self):
        features = {HOSTNAME: struct.pack("<I", 8) + b"host\0\0\0\0", 7: (15762598695796815, 3 << 30)}
        count, said = self.stacks(file_form([(attribute(0, IP | TID | TIME), 1)], self.samples, features))
        self.assertEqual(count, 5)
        self.assert_said(said, "section 7 lies outside the file")

    def test_newer_records_and_features(self):
        newer = b"".join(record(kind, b"12345678" * 3) for kind in range(84, 91))
        features = {bit: b"xyz" for bit in (*range(40, 64), *range(64, 80))}
        count, said = self.stacks(file_form([(attribute(0, IP | TID | TIME), 1)], newer + self.samples + newer, features))
        self.assertEqual(count, 5)
        self.assert_said(said, "skipped (14, as types 84, 85, 86, 87, 88, 89, 90)")

    def test_no_samples_at_all(self):
        path = self.write("none.data", file_form([(attribute(0, IP | TID | TIME), 1)], comm("app")))
        for name in ("x.folded", "x.txt", "x.svg"):
            done = self.cprof("convert", path, "-o", self.path(name), expect=1)
            self.assert_one_line(done)
            self.assertIn("none.data: no samples", done.stderr)
            self.assertFalse(os.path.exists(self.path(name)))
        done = self.cprof("convert", path, "-o", self.path("x.pb.gz"))
        self.assertIn("none.data: no samples", done.stderr)
        cut = self.write("cut.data", file_form([(attribute(0, IP | TID | TIME), 1)], comm("app") + sample(1000))[:-12])
        done = self.cprof("convert", cut, "-o", self.path("x.folded"), expect=1)
        self.assert_one_line(done)
        self.assertIn("no samples: the file ends in the middle of a record", done.stderr)

    def test_cut_off(self):
        whole = file_form([(attribute(0, IP | TID | TIME), 1)], self.samples)
        count, said = self.stacks(whole[:48] + bytes(8) + whole[56:])
        self.assertEqual(count, 5)
        self.assert_said(said, "did not finish")
        count, said = self.stacks(whole[:-12])
        self.assertEqual(count, 4)
        self.assert_said(said, "ends in the middle of a record")

    def test_groups_with_ids_of_no_event(self):
        kinds = IP | TID | TIME | READ | ID
        attributes = [(attribute(config, kinds, GROUP | WITH_ID), config + 1) for config in (0, 1)]
        value = lambda time, ident, pairs: record(SAMPLE, struct.pack("<QIIQQQ", 0x400100, 10, 10, time, ident, len(pairs)) +
                                                  b"".join(struct.pack("<QQ", count, one) for count, one in pairs))
        data = comm("app") + value(1000, 1, [(100, 1), (50, 2)]) + value(2000, 1, [(300, 1), (150, 2)])
        path = self.write("group.data", file_form(attributes, data + value(3000, 1, [(600, 1), (7, 99)]) + value(4000, 77, [(1, 1)])))
        out = self.cprof("sql", path, "--format", "csv", "-q", "SELECT sample_type_type, sum(value_int) FROM aggregate_sample JOIN aggregate_profile p "
                         "ON p.id = aggregate_profile_id GROUP BY 1").stdout.decode().splitlines()
        self.assertEqual(out[1:], ["cycles,600", "instructions,150"])
        with open(path, "rb") as file:
            _, said = self.convert("group.data", file.read())
        self.assert_said(said, "values read with a group", "samples whose event", "samples of other events")

    def test_call_stacks_of_the_processor(self):
        kinds = IP | TID | TIME | CALLCHAIN | BRANCH_STACK
        body = struct.pack("<QIIQ", 0x400100, 10, 10, 1000) + struct.pack("<QQQ", 2, USER, 0x400100)
        body += struct.pack("<Q", 2) + struct.pack("<QQQQQQ", 0x400200, 0x400100, 0, 0x400300, 0x400200, 0)
        lines, said = self.convert("lbr.data", file_form([(attribute(0, kinds, 0, CALL_STACK), 1)], comm("app") + record(SAMPLE, body)))
        self.assertEqual(lines, ["app;[0x400300];[0x400200];[0x400100] 1"])


class Traces(Faults):
    def events(self, *events):
        return json.dumps([{"pid": 1, "tid": 1, **event} for event in events])

    def slices(self, content):
        path = self.write("t.json", content)
        done = self.cprof("sql", path, "--format", "csv", "-q", "SELECT name, ts, dur FROM slice ORDER BY ts, name")
        return done.stdout.decode().splitlines()[1:], self.convert("t.json", content)[1]

    def test_more_ends_than_begins(self):
        rows, said = self.slices(self.events({"ph": "B", "name": "a", "ts": 0}, {"ph": "E", "name": "a", "ts": 10}, {"ph": "E", "name": "a", "ts": 11}))
        self.assertEqual(rows, ["a,0,10000"])
        self.assert_said(said, "close no open slice")

    def test_pairs_that_overlap(self):
        begins = ({"ph": "B", "name": "Event2", "ts": 200}, {"ph": "B", "name": "Event3", "ts": 280})
        rows, said = self.slices(self.events(*begins, {"ph": "E", "name": "Event2", "ts": 300}, {"ph": "E", "name": "Event3", "ts": 350}))
        self.assertEqual(rows, ["Event2,200000,100000", "Event3,280000,70000"])
        self.assert_said(said, "1 pair not nested")
        rows, said = self.slices(self.events(*begins, {"ph": "E", "ts": 300}, {"ph": "E", "ts": 350}))
        self.assertEqual(rows, ["Event2,200000,150000", "Event3,280000,20000"])
        self.assert_said(said, "1 pair not nested")

    def test_negative_durations(self):
        rows, said = self.slices(self.events({"ph": "X", "name": "a", "ts": 0, "dur": -877330}, {"ph": "X", "name": "b", "ts": 5, "dur": 100}))
        self.assertEqual(rows, ["a,0,0", "b,5000,100000"])
        self.assert_said(said, "negative duration")

    def test_a_profile_of_the_browser(self):
        nodes = [{"id": 1, "callFrame": {"functionName": "(root)"}}, {"id": 2, "parent": 1, "callFrame": {"functionName": "f", "url": "a.js", "lineNumber": 2}}]
        lines, said = self.convert("t.json", self.events(
            {"ph": "P", "name": "Profile", "id": "0x1", "ts": 100, "args": {"data": {"startTime": 5}}},
            {"ph": "X", "name": "task", "ts": 90, "dur": 400},
            {"ph": "P", "name": "ProfileChunk", "id": "0x1", "tid": 2, "ts": 400,
             "args": {"data": {"cpuProfile": {"nodes": nodes, "samples": [2, 2, 1]}, "timeDeltas": [10, 100, 100]}}}))
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines if ";f_[j] " in line), 2)
        self.assertEqual(said, [])


class Stacks(Faults):
    def test_nothing_to_draw(self):
        for content, words in (("a;b 0\nc;d 0\n", "total weight is 0"), ("", "no stacks"), ("\n\n", "no stacks")):
            path = self.write("x.folded", content)
            for name in ("out.svg", "out.folded"):
                done = self.cprof("convert", path, "-o", self.path(name), expect=1)
                self.assert_one_line(done)
                self.assertIn(words, done.stderr)
                self.assertFalse(os.path.exists(self.path(name)))

    def test_script_output_without_columns(self):
        frames = "\t  1000 f (/b)\n\t  2000 main (/b)\n\n"
        self.assertEqual(self.convert("x.txt", "1.5: cycles: \n" + frames)[0], ["main;f 1"])
        self.assertEqual(self.convert("x.txt", "7/8 1.5: cycles: \n" + frames)[0], ["[unknown];main;f 1"])
        self.assertEqual(self.convert("x.txt", "app 7 1.5: cycles: \n f (/b)\n main (/b)\n\n")[0], ["app;main;f 1"])
        lines, said = self.convert("x.txt", frames, expect=1)
        self.assertEqual(lines, [])
        self.assertIn("is not a header like", said[0])

    def test_what_a_format_of_one_event_leaves_out_is_said(self):
        frames = "\t  1000 f (/b)\n\t  2000 main (/b)\n\n"
        text = "app 7 1.5: 10 cycles: \n" + frames + "app 7 1.6: 10 faults: \n" + frames + "app 7 1.7: 10 faults: \n" + frames
        lines, said = self.convert("x.txt", text)
        self.assertEqual(lines, ["app;main;f 1"])
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"samples of other events .* --metric NAME chooses it \(2, as faults\)")
        self.assertEqual(self.convert("x.txt", text, options=("--metric", "faults"))[1], [])

    def test_numbers_at_the_end_of_names(self):
        self.assertEqual(self.convert("x.folded", "app;thread 1 5\napp;thread 2 7\n")[0], ["app;thread 1 5", "app;thread 2 7"])
        self.assertEqual(self.convert("x.folded", "app;f 1 5\napp;g 2 7\n", options=("--metric", "before"))[0], ["app;f 1", "app;g 2"])


if __name__ == "__main__":
    harness.main()
