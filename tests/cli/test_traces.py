"""Chrome and Perfetto traces through the command line: what is read, how it is refused, what comes back.

Requires nothing: no privileges, no perf events.
"""

# verifies: CL3, H1

import gzip
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "app"}},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "worker"}},
    {"ph": "X", "name": "main", "ts": 0, "dur": 10, "pid": 7, "tid": 8},
    {"ph": "B", "name": "f\x01\n\"\\", "ts": 2.5, "pid": 7, "tid": 8},
    {"ph": "E", "ts": 5.001, "pid": 7, "tid": 8},
    {"ph": "i", "name": "mark", "ts": 6, "pid": 7, "tid": 8, "s": "t"},
    {"ph": "C", "name": "heap", "ts": 1, "pid": 7, "args": {"value": 4096}},
    {"ph": "b", "name": "job", "cat": "net", "id": "1", "ts": 0, "pid": 7, "tid": 8},
    {"ph": "b", "name": "job", "cat": "net", "id": "2", "ts": 5, "pid": 7, "tid": 8},
    {"ph": "e", "name": "job", "cat": "net", "id": "1", "ts": 10, "pid": 7, "tid": 8},
    {"ph": "e", "name": "job", "cat": "net", "id": "2", "ts": 15, "pid": 7, "tid": 8},
]
STACKS = {"app;main": 7499, "app;main;f  \"\\": 2501, "app;job": 20000}


class Traces(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def stacks(self, path):
        text = self.cprof("convert", path, "-o", "-", "--format", "folded").stdout.decode()
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}

    def test_slices_become_stacks_in_every_form(self):
        for name, content in (("x", json.dumps(EVENTS)), ("open", json.dumps(EVENTS)[:-1]),
                              ("object", json.dumps({"displayTimeUnit": "ns", "traceEvents": EVENTS})),
                              ("packed", gzip.compress(json.dumps(EVENTS).encode())),
                              ("backwards", json.dumps(EVENTS[:2] + EVENTS[:1:-1]))):
            self.assertEqual(self.stacks(self.write(name, content)), STACKS, name)

    def test_both_formats_give_the_same_back(self):
        source = self.write("a", json.dumps(EVENTS))
        for ending in (".trace.json", ".pftrace"):
            first, second = self.path("one" + ending), self.path("two" + ending)
            self.cprof("convert", source, "-o", first)
            self.assertEqual(self.stacks(first), STACKS, ending)
            self.cprof("convert", first, "-o", second)
            with open(first, "rb") as one, open(second, "rb") as two:
                self.assertEqual(one.read(), two.read(), ending)

    def test_written_json_is_valid(self):
        source, out = self.write("a", json.dumps(EVENTS)), self.path("out.trace.json")
        self.cprof("convert", source, "-o", out)
        with open(out) as file:
            events = json.load(file)["traceEvents"]
        by_phase = {}
        for event in events:
            by_phase.setdefault(event["ph"], []).append(event)
        self.assertEqual(sorted(e["name"] for e in by_phase["X"]), ["f\x01\n\"\\", "main"])
        self.assertEqual({e["dur"] for e in by_phase["X"]}, {10, 2.501})
        self.assertTrue(all((e["pid"], e["tid"]) == (7, 8) for e in by_phase["X"]))
        self.assertEqual([e["args"] for e in by_phase["C"]], [{"value": 4096}])
        self.assertEqual(len(by_phase["b"]), 2)
        self.assertEqual(len({e["id"] for e in by_phase["b"]}), 2)
        self.assertEqual(by_phase["i"][0]["s"], "t")

    def test_slices_of_no_length_are_said(self):
        source = self.write("zero", json.dumps([{"ph": "X", "name": n, "ts": 1, "dur": 0, "pid": 1, "tid": 1} for n in "ab"]))
        done = self.cprof("convert", source, "-o", self.path("zero.pftrace"))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("no time to show", done.stderr)

    def test_refusals_are_one_line(self):
        pftrace = self.path("good.pftrace")
        self.cprof("convert", self.write("a", json.dumps(EVENTS)), "-o", pftrace)
        with open(pftrace, "rb") as file:
            good = file.read()
        whole = json.dumps(EVENTS)
        for content in (whole[:-20], json.dumps({"traceEvents": EVENTS})[:-1], whole + "x", '{"traceEvents":[]}',
                        whole.replace('"ts": 0', '"ts" 0', 1), good[:-3], good + b"rubbish", b"\x0a\xff\xff\xff\xff\x7f"):
            bad, out = self.write("bad.trace.json", content), self.path("out.folded")
            done = self.cprof("convert", bad, "-o", out, expect=1)
            self.assert_one_line(done)
            self.assertIn("bad.trace.json", done.stderr)
            self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    harness.main()
