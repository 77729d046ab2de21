"""The formats of other profilers, through the command line: in by content, out by extension, and what their own tools say.

Requires nothing: no privileges, no perf events. callgrind_annotate is asked where it is installed.
"""

# verifies: D7, H1

import gzip
import json
import os
import re
import struct
import sys
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness

SPEEDSCOPE = {
    "profiles": [{"type": "sampled", "name": "x", "unit": "milliseconds", "startValue": 0, "endValue": 4,
                  "samples": [[0, 1], [0], [0, 1]], "weights": [1, 2, 1]}],
    "shared": {"frames": [{"name": "main"}, {"name": "work", "file": "w.c", "line": 7}]},
    "$schema": "https://www.speedscope.app/file-format-schema.json"}
CPUPROFILE = {
    "nodes": [{"id": 1, "callFrame": {"functionName": "(root)"}, "children": [2]},
              {"id": 2, "callFrame": {"functionName": "main", "url": "a.js", "lineNumber": 3}, "hitCount": 2}],
    "startTime": 0, "endTime": 300, "samples": [2, 2], "timeDeltas": [100, 100]}
FIREFOX = {
    "threads": [{"name": "main", "processName": "app", "pid": "7", "tid": 7, "isMainThread": True,
                 "samples": {"stack": [1, 0], "time": [1, 2]}, "stackTable": {"frame": [0, 1], "prefix": [None, 0]},
                 "frameTable": {"func": [0, 1], "address": [-1, -1]}, "funcTable": {"name": [0, 1]},
                 "stringArray": ["main", "work"]}],
    "meta": {"interval": 1, "preprocessedProfileVersion": 48}}
CALLGRIND = """# callgrind format
pid: 7
cmd: ./app
positions: line
events: Ir Dr
summary: 830 60

ob=(1) /bin/app
fl=(1) a.c
fn=(1) main
16 20 3
fi=(2) in.h
7 10 1
fe=(1)
cfn=(2) f
calls=1 50
17 400 30
cfi=(3) b.c
cfn=(3) g
calls=3 20
18 400 26

fn=(2)
51 100 10
cfi=(3)
cfn=(3)
calls=2 20
52 300 20
cfn=(2)
calls=1 50
53 90 5

fl=(3)
fn=(3)
20 500 40
+1 200 6
"""


def words(*values, form="<Q"):
    return b"".join(struct.pack(form, value) for value in values)


class Formats(harness.Live):
    def write(self, name, content):
        if isinstance(content, dict):
            content = json.dumps(content)
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def lines_of(self, content):
        """Folded lines of an input whose name says nothing."""
        self.cprof("convert", self.write("input", content), "-o", self.path("out.folded"))
        return self.read("out.folded").decode().splitlines()


class Inputs(Formats):
    def test_each_is_known_by_its_bytes(self):
        cpu = words(0, 3, 0, 10000, 0, 2, 2, 0x400100, 0x400200, 1, 2, 0x400100, 0x400300, 0, 1, 0)
        self.assertEqual(self.lines_of(SPEEDSCOPE), ["[unknown];main 2000000", "main;work 2000000"])
        self.assertEqual(self.lines_of(CPUPROFILE), ["javascript;main_[j] 2"])
        self.assertEqual(self.lines_of(FIREFOX), ["app;main 1", "app;main;work 1"])
        self.assertEqual(self.lines_of(CALLGRIND), ["app;main 30", "app;main;f 100", "app;main;f;g 300", "app;main;g 400"])
        self.assertEqual(self.lines_of(cpu + b"00400000-00500000 r-xp 00000000 08:01 7 /bin/app\n"),
                         ["[app+0x1ff];[app+0x100] 2", "[app+0x2ff];[app+0x100] 1"])
        self.assertEqual(self.lines_of("heap profile: 2: 64 [ 9: 640] @ heapprofile\n2: 64 [ 9: 640] @ 0x10 0x20\n"),
                         ["[0x1f];[0xf] 64"])

    def test_packed_as_well(self):
        self.assertEqual(self.lines_of(gzip.compress(json.dumps(FIREFOX).encode())), ["app;main 1", "app;main;work 1"])

    def test_cut_files_are_refused_in_one_line(self):
        for content in (SPEEDSCOPE, CPUPROFILE, FIREFOX):
            text = json.dumps(content)
            for size in (len(text) // 2, len(text) - 1):
                done = self.cprof("convert", self.write("cut.json", text[:size]), "-o", self.path("x.folded"), expect=1)
                self.assert_one_line(done)
                self.assertIn("ends early, at byte", done.stderr)
                self.assertFalse(os.path.exists(self.path("x.folded")))


class Outputs(Formats):
    def test_each_comes_back(self):
        source = self.write("in.folded", "main;f 3\nmain;f;g 5\n")
        for name in ("a.speedscope.json", "a.callgrind", "a.json.gz", "a.json"):
            self.cprof("convert", source, "-o", self.path(name))
            self.cprof("convert", self.path(name), "-o", self.path("back.folded"))
            self.assertEqual(self.read("back.folded").decode(), "main;f 3\nmain;f;g 5\n", name)

    def test_json_is_json(self):
        source = self.write("in.folded", 'main;operator"" _kg(long double) 3\n')
        for name in ("a.speedscope.json", "a.json"):
            self.cprof("convert", source, "-o", self.path(name))
            self.assertIn('operator"" _kg(long double)', json.dumps(json.loads(self.read(name))).replace('\\"', '"'))


class CallgrindAnnotate(Formats):
    """valgrind's own reader of the format gives the same costs for what went through us."""

    def costs(self, name):
        done = self.run_command([harness.tool("callgrind_annotate"), "--threshold=100", "--auto=no", self.path(name)])
        rows = Counter()
        for line in done.stdout.decode().splitlines():
            row = re.match(r"^ *([\d,]+) \([ .\d]+%\) +([\d,]+|\.|0)(?: \([ .\d]+%\))? +(\S+:\S+)", line)
            if row:
                values = [int(value.replace(",", "")) for value in row.group(1, 2)]
                rows.update({(row.group(3), event): value for event, value in enumerate(values)})
        return rows

    def test_the_same_costs_of_functions(self):
        self.write("in.callgrind", CALLGRIND)
        self.cprof("convert", self.path("in.callgrind"), "-o", self.path("out.callgrind"))
        before, after = self.costs("in.callgrind"), self.costs("out.callgrind")
        self.assertEqual(before[("b.c:g", 0)], 700)
        self.assertEqual(before[("in.h:main", 1)], 1)
        self.assertEqual(before, after)


if __name__ == "__main__":
    harness.main()
