"""Filters, merging, comparing, callers and callees, source lines and instructions: every sum is asserted.

Requires: nothing for most; a C compiler with -g and the program perf's format for what needs code; no privileges.
"""

# verifies: D5f, D5m, D5d, D5a
# covers: convert --focus --ignore --hide --show-from --thread --process --time --label --granularity --all-metrics --label-scopes
# covers: report --focus --ignore --hide --show-from --thread --process --time --label --peek --list --source-path --granularity
# covers: diff --output --format --normalize --no-normalize --by-total --rows --granularity --weight --metric --input-format
# covers: diff --focus --ignore --hide --show-from --thread --process --time --label --demangle --no-inline --kallsyms
# covers: annotate --all --source-path --weight --metric --input-format --demangle --no-inline --kallsyms
# covers: annotate --focus --ignore --hide --show-from --thread --process --time --label
# covers: convert --python
# covers: report --python
# covers: diff --python
# covers: annotate --python

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness
import perfdata
from folded import Folded

STACKS = "app;main;parse;read_[k] 12\napp;main;work;inner loop 30\napp;main;work 8\n"
FRAME_FILTERS = (["--focus", "work"], ["--ignore", "read"], ["--hide", "inner"], ["--show-from", "main"])


class Views(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def refused(self, *arguments, status=2, saying=""):
        done = self.cprof(*arguments, expect=status)
        self.assert_one_line(done)
        self.assertEqual(done.stdout, b"")
        self.assertIn(saying, done.stderr)

    def text(self, *arguments):
        return self.cprof(*arguments).stdout.decode()

    def stacks(self, *arguments):
        return sorted(self.text("convert", *arguments, "--format", "folded", "-o", "-").splitlines())


class Filters(Views):
    def setUp(self):
        super().setUp()
        self.source = self.write("in.folded", STACKS)

    def test_frames(self):
        cases = {
            ("--focus", "^work$"): ["app;main;work 8", "app;main;work;inner loop 30"],
            ("--ignore", "work|nothing"): ["app;main;parse;read_[k] 12"],
            ("--hide", "^(app|work)$"): ["main 8", "main;inner loop 30", "main;parse;read_[k] 12"],
            ("--show-from", "parse|inner"): ["[unknown];inner loop 30", "parse;read_[k] 12"],
            ("--focus", "main", "--focus", "inner"): ["app;main;work;inner loop 30"],
        }
        for arguments, expected in cases.items():
            found = [line.replace("[unknown];main 8", "main 8") for line in self.stacks(self.source, *arguments)]
            self.assertEqual(sorted(found), expected, arguments)

    def test_python_frames(self):
        """As perf script folds a program under python -X perf, and another one beside it."""
        eval_frame = "_PyEval_EvalFrameDefault"
        source = self.write("py.folded", f"python;Py_RunMain;{eval_frame};py::main:/x.py_[j];{eval_frame};py::A.f:/x.py_[j];{eval_frame};memcpy 7\n"
                            f"python;Py_RunMain;{eval_frame};py::main:/x.py_[j];{eval_frame};read_[k] 5\napp;main;py::init::run 3\n")
        self.assertEqual(self.stacks(source), self.stacks(source, "--python", "mixed"))
        self.assertEqual(self.stacks(source, "--python", "only"), ["[unknown];py::main:/x.py_[j] 5", "py::main:/x.py_[j];py::A.f:/x.py_[j] 7"])
        self.assertEqual(self.stacks(source, "--python", "hide"), [
            "app;main;py::init::run 3", "python;py::main:/x.py_[j];py::A.f:/x.py_[j];memcpy 7", "python;py::main:/x.py_[j];read_[k] 5"])
        self.assertIn("filters leave 12 of 15 samples", self.text("report", source, "--top", "--python", "only"))
        self.assertIn("(12)", self.text("diff", source, source, "--python", "only"))
        self.assertIn("12 in all", self.text("annotate", source, "py::main", "--python", "only"))
        self.refused("report", self.source, "--python", "only", status=1, saying="names no Python functions")
        self.refused("report", source, "--python", "some", saying="--python")

    def test_every_verb_has_them(self):
        for filters in FRAME_FILTERS:
            left = sum(int(line.rsplit(" ", 1)[1]) for line in self.stacks(self.source, *filters))
            self.assertIn(f"{left} in all", self.text("report", self.source, "--top", *filters), filters)
            self.assertIn(f"filters leave {left} of 50 samples", self.text("report", self.source, "--top", *filters))
            self.assertIn(f"({left})", self.text("diff", self.source, self.source, *filters), filters)
            self.assertIn(f"{left} in all", self.text("annotate", self.source, "main", *filters), filters)

    def test_bad_expressions(self):
        verbs = (["convert", "-o", self.path("out.folded")], ["report"], ["diff", self.source], ["annotate"])
        for verb in verbs:
            tail = ["main"] if verb[0] == "annotate" else []
            for option in ("--focus", "--ignore", "--hide", "--show-from"):
                self.refused(*verb, self.source, *tail, option, "a(", saying="not a regular expression")
            self.refused(*verb, self.source, *tail, "--time", "5", saying="not a time range")
            self.refused(*verb, self.source, *tail, "--label", "k", saying="key=value")
        for option in ("--peek", "--list"):
            self.refused("report", self.source, option, "*", saying="not a regular expression")
        self.assertFalse(os.path.exists(self.path("out.folded")))

    def test_nothing_left(self):
        for verb in (["convert", "-o", self.path("out.folded")], ["report"]):
            self.refused(*verb, self.source, "--focus", "nowhere", status=1, saying="the filters leave nothing")
            self.refused(*verb, self.source, "--thread", "x", status=1, saying="no threads")
            self.refused(*verb, self.source, "--process", "x", status=1, saying="no threads or processes")
            self.refused(*verb, self.source, "--time", "0..1", status=1, saying="no times")
            self.refused(*verb, self.source, "--label", "a=b", status=1, saying="no labels")
        self.refused("diff", self.source, self.source, "--thread", "x", status=1, saying="no threads")
        self.refused("annotate", self.source, "main", "--process", "x", status=1, saying="no threads or processes")
        self.assertFalse(os.path.exists(self.path("out.folded")))

    def test_granularity(self):
        self.assertEqual(self.stacks(self.source, "--granularity", "functions"), sorted(STACKS.splitlines()))
        self.assertRegex(self.text("report", self.source, "--top", "--granularity", "files"), r"38 +76.0 % +50 +100.0 % +\[unknown\]")

    def test_deep_stacks(self):
        """UI-08."""
        deep = self.write("deep.folded", ";".join(f"f{i % 9}" for i in range(50_000)) + " 3\n")
        self.assertEqual(self.stacks(deep, "--focus", "f8", "--show-from", "f8")[0].count(";"), 49_991)
        self.assertRegex(self.text("report", deep, "--peek", "^f8$"), r"3 +100.0 % +▶ f8")
        self.assertIn("f8", self.text("diff", deep, deep, "--by-total"))
        self.cprof("diff", deep, deep, "-o", self.path("deep2.folded"))
        with open(self.path("deep2.folded")) as file:
            self.assertTrue(file.read().endswith(" 3 3\n"))


class Merging(Views):
    def test_sums(self):
        first, second = self.write("a.folded", STACKS), self.write("b.folded", "app;main;work 2\napp;other 5\n")
        expected = ["app;main;parse;read_[k] 12", "app;main;work 10", "app;main;work;inner loop 30", "app;other 5"]
        self.assertEqual(self.stacks(first, second), expected)
        self.cprof("convert", first, second, "-o", self.path("ab.pb.gz"))
        self.assertEqual(self.stacks(self.path("ab.pb.gz")), expected, "of a pprof file")
        self.assertEqual(Folded("\n".join(self.stacks(self.path("ab.pb.gz"), first)) + "\n").total, 107, "formats mix")

    def test_metrics(self):
        """PPROF-08: what only one of two inputs has is left out, and said."""
        folded = self.write("a.folded", "main;f 3\n")
        pairs = self.write("pair.folded", "main;f 10 20\nmain;g 1 2\n")
        self.cprof("convert", pairs, "-o", self.path("pair.pb.gz"))
        self.cprof("diff", folded, folded, "--normalize", "none", "-o", self.path("d.folded"))
        done = self.cprof("convert", self.path("pair.pb.gz"), pairs, "--metric", "before", "-o", self.path("sum.folded"))
        self.assertEqual(done.stderr, "")
        with open(self.path("sum.folded")) as file:
            self.assertEqual(file.read(), "main;f 20\nmain;g 2\n")
        both = self.stacks(folded, pairs, "--metric", "after")
        self.assertEqual(both, ["main;f 20", "main;g 2"], "nothing in common: all are kept")
        self.assertEqual(self.stacks(folded, pairs, "--all-metrics"), ["main;f 3"])

    def test_scopes(self):
        first, second = self.write("a.folded", "main;f 3\n"), self.write("b.folded", "main;f 5\n")
        self.cprof("convert", first, second, "--label-scopes", "-o", self.path("ab.pb.gz"))
        self.assertEqual(self.stacks(self.path("ab.pb.gz")), ["main;f 8"])
        self.assertEqual(self.stacks(self.path("ab.pb.gz"), "--label", f"scope={second}"), ["main;f 5"])
        self.assertIn("3 in all", self.text("report", self.path("ab.pb.gz"), "--top", "--label", f"scope={first}"))
        self.assertIn("(3)", self.text("diff", self.path("ab.pb.gz"), self.path("ab.pb.gz"), "--label", f"scope={first}"))


class Comparing(Views):
    def rows(self, *arguments):
        """{function: (change, before share, after share, before, after, delta, ratio)}"""
        rows = {}
        for line in self.text("diff", *arguments).splitlines():
            found = re.match(r" (\w*) +([+-]?[\d.]+) % +(-?[\d.]+) % +(-?[\d.]+) % +(\S+) +(\S+) +(\S+) +(\S+)  (.*)", line)
            if found:
                numbers = [int(found[i].replace(",", "")) for i in (5, 6, 7)]
                rows[found[9].strip()] = (found[1], float(found[3]), float(found[4]), *numbers, found[8])
        return rows

    def test_directions(self):
        """UI-02."""
        base = self.write("base.folded", "base_only 50\nboth1 25\nboth2 25\n")
        new = self.write("new.folded", "both1 25\nboth2 50\nchanged_only 125\n")
        for options in ([], ["--no-normalize"]):
            forth, back = self.rows(base, new, *options), self.rows(new, base, *options)
            self.assertEqual(forth["both2"][3:], (25, 50, 25, "×2.000"))
            self.assertEqual(back["both2"][3:], (50, 25, -25, "×0.500"))
            self.assertEqual((forth["base_only"][0], forth["changed_only"][0]), ("gone", "new"))
            self.assertEqual((back["base_only"][0], back["changed_only"][0]), ("new", "gone"))
        self.assertEqual(self.rows(base, new)["both2"][0], "", "a quarter both times")
        self.assertEqual(self.rows(base, new, "--normalize", "none")["both2"][0], "more")

    def test_rates(self):
        """WGT-11."""
        fast = self.write("fast.folded", "main;a 6000\nmain;b 3000\nmain;c 1000\n")
        slow = self.write("slow.folded", "main;a 605\nmain;b 297\nmain;c 98\n")
        rows = self.rows(fast, slow)
        self.assertEqual({name for name, row in rows.items() if row[0]}, set())
        for name, row in rows.items():
            self.assertAlmostEqual(row[1], row[2], delta=0.05 * row[1] + 0.1, msg=name)

    def test_ratio(self):
        """UI-07."""
        instructions = self.write("i.folded", "m;f 1000\nm;g 400\nm;h 300\n")
        cycles = self.write("c.folded", "m;f 500\nm;g 900\nm;h 300\n")
        rows = self.rows(instructions, cycles, "--no-normalize")
        self.assertEqual({name: row[6] for name, row in rows.items()}, {"f": "×0.500", "g": "×2.250", "h": "×1.000"})

    def test_folded_pairs(self):
        before, after = self.write("b.folded", "main;a 5\nmain;b 7\n"), self.write("a.folded", "main;a 9\nmain;new 1\n")
        pairs = self.path("pairs.folded")
        self.cprof("diff", before, after, "-o", pairs)
        with open(pairs) as file:
            self.assertEqual(file.read(), "main;a 5 9\nmain;b 7 0\nmain;new 0 1\n")
        self.assertEqual(self.stacks(pairs, "--metric", "before"), ["main;a 5", "main;b 7"])
        self.assertEqual(self.stacks(pairs, "--metric", "after"), ["main;a 9", "main;new 1"])
        names = self.write("names.folded", "main;thread 1 5\nmain;idle 2\n")
        self.assertEqual(self.stacks(names), ["main;idle 2", "main;thread 1 5"], "a name that ends in a number")
        self.cprof("diff", before, after, "--normalize", "total", "-o", self.path("scaled.out"), "--format", "folded")
        with open(self.path("scaled.out")) as file:
            self.assertEqual(file.read(), "main;a 4 9\nmain;b 5 0\nmain;new 0 1\n")

    def test_negative_values(self):
        """UI-03, PPROF-10."""
        before, after = self.write("b.folded", "p;x 5\np;y 3\n"), self.write("a.folded", "p;x 10\n")
        self.cprof("diff", before, after, "-o", self.path("d.pb.gz"))
        self.assertEqual(self.stacks(self.path("d.pb.gz")), ["p;x 5", "p;y -3"])
        text = self.text("report", self.path("d.pb.gz"))
        self.assertIn("2 in all", text)
        self.assertRegex(text, r"-3 +-150.0 %")
        self.assertRegex(self.text("report", self.path("d.pb.gz"), "--peek", "^p$"), r"2 +100.0 % +▶ p")
        self.assertIn("-3", self.text("diff", self.path("d.pb.gz"), after))

    def test_values_that_cancel_out(self):
        before, after = self.write("b.folded", "p;x 5\np;y 3\n"), self.write("a.folded", "p;x 8\n")
        self.cprof("diff", before, after, "-o", self.path("d.pb.gz"))
        text = self.text("report", self.path("d.pb.gz"))
        self.assertIn("0 in all", text)
        self.assertRegex(text, r" 3 +50.0 % +3 +50.0 % +x\n")
        self.assertRegex(text, r" -50.0 % +-50.0 % .*y\n")

    def test_options(self):
        before, after = self.write("b.folded", STACKS), self.write("a.folded", STACKS.replace("30", "90"))
        rows = self.rows(before, after, "--by-total", "--granularity", "functions", "--no-normalize")
        self.assertEqual(rows["work"][3:], (38, 98, 60, "×2.579"))
        self.assertIn("more (--rows)", self.text("diff", before, after, "--rows", "1"))
        self.assertIn("samples", self.text("diff", before, after, "--metric", "samples", "--input-format", "folded"))
        self.refused("diff", before, after, "--metric", "cycles", status=1, saying="cycles")
        self.refused("diff", before, after, "--weight", "wall", status=1, saying="wall")
        self.refused("diff", before, after, "--normalize", "time", status=1, saying="how long")
        self.refused("diff", before, after, "--normalize", "total", "--no-normalize")
        self.refused("diff", before, after, "-o", self.path("x.nothing"), saying="extension")
        self.refused("diff", before, self.path("missing"), status=1, saying="missing")
        self.refused("diff", before)


class Peeking(Views):
    def test_callers_and_callees(self):
        source = self.write("in.folded", STACKS + "app;idle;work 50\n")
        text = self.text("report", source, "--peek", "^work$")
        self.assertRegex(text, r"50 +50.0 % +idle\n +38 +38.0 % +main\n +88 +88.0 % +▶ work, 58 of it self\n +30 +30.0 % +inner loop\n")
        self.assertNotIn("call tree", text)
        self.refused("report", source, "--peek", "nowhere", status=1, saying="finds nothing")


SOURCE = """static volatile unsigned long sink;
static inline __attribute__((always_inline)) void mix(unsigned long n) {
  sink = sink * 31 + n;
}
__attribute__((noinline)) void hot(unsigned long n) {
  for (unsigned long i = 0; i < n; ++i)
    mix(i);
}
int main(void) {
  hot(10);
  return 0;
}
"""


class Code(Views):
    """A program that is compiled here, samples at its instructions."""

    def setUp(self):
        super().setUp()
        compiler = harness.tool("gcc", "cc", "clang")
        self.write("code.c", SOURCE)
        self.program = self.path("code")
        subprocess.run([compiler, "-g", "-O1", "-Wl,--build-id", "-o", self.program, self.path("code.c")], check=True)
        listing = subprocess.run([harness.tool("nm"), self.program], capture_output=True, text=True, check=True).stdout
        symbols = {row[2]: int(row[0], 16) for row in map(str.split, listing.splitlines()) if len(row) == 3}
        lines = subprocess.run([harness.tool("objdump"), "-d", "--no-show-raw-insn", self.program], capture_output=True, text=True,
                               check=True).stdout
        self.hot = [int(address, 16) for address in re.findall(r"^ +([0-9a-f]+):\t", lines.split("<hot>:")[1].split("\n\n")[0], re.M)]
        data = perfdata.PerfData(self.program)
        data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
        data.add_thread(100, "code")
        data.map_program()
        data.add_thread(101, "other")
        for index, count in ((2, 5), (3, 3)):
            for _ in range(count):
                data.add_sample("cpu-clock", 100, [self.hot[index], symbols["main"] + 9], 1_000_000)
        data.add_sample("cpu-clock", 101, [self.hot[2], symbols["main"] + 9], 1_000_000)
        self.source = self.write("in.data", data.content)

    def test_list(self):
        text = self.text("report", self.source, "--list", "^(hot|mix)$")
        self.assertIn("9 in all", text)
        total = sum(int(value) for value in re.findall(r"^ +(\d+) +\d+ +\d+  ", text, re.M))
        self.assertEqual(total, 9, text)
        self.assertIn("for (unsigned long i = 0; i < n; ++i)", text)
        self.refused("report", self.source, "--list", "nowhere", status=1, saying="finds no function")

    def test_source_path(self):
        os.makedirs(self.path("moved/src"))
        os.rename(self.path("code.c"), self.path("moved/src/code.c"))
        done = self.cprof("report", self.source, "--list", "^hot$")
        self.assertIn("code.c", done.stderr)
        self.assertIn("--source-path", done.stderr)
        self.assertIn("hot", done.stdout.decode())
        for verb in (["report", self.source, "--list", "hot"], ["annotate", self.source, "hot"]):
            done = self.cprof(*verb, "--source-path", self.path("nowhere") + ":" + self.path("moved/src"))
            self.assertIn("i < n", done.stdout.decode())
            self.assertNotIn("--source-path", done.stderr)

    def instruction(self, text, address):
        return re.search(rf"^ +(\S+(?: %)?) +(\S+(?: %)?) +{address:x}  (\S+)", text, re.M)

    def test_instructions(self):
        text = self.text("annotate", self.source, "hot")
        self.assertEqual(self.instruction(text, self.hot[2])[1], "66.7 %")
        self.assertEqual(self.instruction(text, self.hot[3])[1], "33.3 %")
        self.assertEqual(self.instruction(text, self.hot[1])[1], ".")
        self.assertIn("sink = sink * 31 + n", self.text("annotate", self.source, "hot", "--all"))
        main = self.text("annotate", self.source, "main", "--weight", "samples")
        call = re.search(r"^ +\. +100.0 % +[0-9a-f]+  call", main, re.M)
        self.assertTrue(call, f"the call that all samples came through is not marked:\n{main}")

    def test_filters(self):
        text = self.text("annotate", self.source, "hot", "--thread", "101")
        self.assertEqual(self.instruction(text, self.hot[2])[1], "100.0 %")
        self.assertIn("8 in all", self.text("report", self.source, "--list", "hot", "--process", "code", "--thread", "100"))
        self.assertIn("(8)", self.text("diff", self.source, self.source, "--thread", "code", "--time", "0.."))
        self.assertEqual(Folded("\n".join(self.stacks(self.source, "--thread", "101", "--process", "100", "--time", "..1000s")) + "\n").total, 1)
        self.assertIn("9 in all", self.text("annotate", self.source, "hot", "--time", "0..1000", "--metric", "cpu-clock")
                      .replace("9.00 ms in all", "9 in all"))

    def test_another_build_is_not_shown(self):
        self.write("code.c", SOURCE.replace("31", "33"))
        subprocess.run([harness.tool("gcc", "cc", "clang"), "-g", "-O1", "-Wl,--build-id", "-o", self.path("new"), self.path("code.c")],
                       check=True)
        self.cprof("convert", self.source, "-o", self.path("kept.pb.gz"))
        os.rename(self.path("new"), self.program)
        done = self.cprof("annotate", self.path("kept.pb.gz"), "hot")
        self.assertIn("another build", done.stderr)
        self.assertIn("hot", done.stdout.decode())
        self.assertNotIn("instructions", done.stdout.decode())
        os.unlink(self.program)
        self.assertIn("its instructions are not shown", self.cprof("annotate", self.path("kept.pb.gz"), "hot").stderr)

    def test_which_function(self):
        self.refused("annotate", self.source, "nowhere", status=1, saying="no function is called nowhere")
        self.refused("annotate", self.source, "a|o", status=1, saying="functions are found by")
        self.refused("annotate", self.source, "(", status=1, saying="not a regular expression")
        self.refused("annotate", self.source)
        self.refused("annotate", self.source, "hot", "--weight", "offcpu", status=1, saying="off-cpu")
        self.refused("annotate", self.source, "hot", "--input-format", "pprof", status=1, saying="in.data")
        for options in (["--demangle", "none"], ["--no-inline"], ["--kallsyms", self.write("symbols", "ffffffff81000000 T f\n")]):
            self.assertIn("hot", self.text("annotate", self.source, "hot", *options))
            self.assertIn("hot", self.text("diff", self.source, self.source, *options))

    def test_files(self):
        self.assertIn("code.c", self.stacks(self.source, "--granularity", "files")[0])
        self.assertRegex(self.text("report", self.source, "--top", "--granularity", "files"), r"9 +100.0 % .*code\.c")
        self.assertIn("code.c:", self.stacks(self.source, "--granularity", "lines")[0])
        self.assertIn(f"{self.hot[2]:#x}", "\n".join(self.stacks(self.source, "--granularity", "addresses")))


if __name__ == "__main__":
    harness.main()
