"""What each option of convert and report does, and how the options that are promised for later are refused.

Requires: nm and the test program nofp_gcc for what needs symbols; no privileges.
"""

# verifies: CL3, CL4
# covers: convert --input-format --metric --by --folded-style --demangle --no-inline --weight --output
# covers: report --input-format --summary --top --tree --granularity --weight --metric --rows --depth --min-percent
# covers: convert --kallsyms
# covers: report --kallsyms --peek --list --demangle --no-inline
# covers: top --container
# covers: cpustat --container
# covers: uprobe --container
# covers: record --rotate --max-size --overwrite-window --backend --freq --count

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness
import perfdata
from folded import Folded

FOLDED = "app;main;parse;read_[k] 12\napp;main;work;inner loop 30\napp;main;work 8\n"


class Options(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def assert_refused(self, *arguments, status=2, saying=""):
        done = self.cprof(*arguments, expect=status)
        self.assert_one_line(done)
        self.assertEqual(done.stdout, b"")
        self.assertIn(saying, done.stderr)

    def report(self, *arguments):
        return self.cprof("report", *arguments).stdout.decode()

    def convert(self, *arguments):
        return Folded(self.cprof("convert", *arguments, "--format", "folded", "-o", "-").stdout.decode())


class NotYet(Options):
    def test_options_of_record_for_later(self):
        self.assert_refused("record", "--python", "only", "--no-symbolize", "--", "true", saying="--no-symbolize")
        self.assert_refused("record", "--view", "-o", "x.svg", "--", "true", saying="--view: needs an output")
        self.assert_no_leftovers()

    def test_containers_and_cgroups_that_are_not_there(self):
        for verb in (["record", "-o", "x.folded"], ["top"], ["cpustat"], ["uprobe", "-f", harness.CPROF + ":main"]):
            self.assert_refused(*verb, "--container", "no-such-one", status=1, saying="no container of this id or name")
            self.assert_refused(*verb, "--cgroup", "/no/such/group", status=1, saying="cgroup /no/such/group: no")
            self.assert_refused(*verb, "--container", "x", "--", "true", saying="--container ID")
        self.assert_no_leftovers()

    def test_limits_that_do_not_fit(self):
        for options, saying in ((["--rotate", "2"], "--max-size"), (["--rotate", "0", "--max-size", "1M"], "--rotate"),
                                (["--rotate", "two", "--max-size", "1M"], "--rotate"), (["--max-size", "10 apples"], "not a size"),
                                (["--max-size", "1K"], "64K"), (["--overwrite-window", "-1"], "--overwrite-window"),
                                (["--overwrite-window", "5s"], "--overwrite-window"),
                                (["--overwrite-window", "5", "--max-size", "1M"], "exclude"),
                                (["--overwrite-window", "5", "--save-raw", "x.data"], "--save-raw"),
                                (["--rotate", "2", "--max-size", "1M", "--save-raw", "x.data"], "--save-raw"),
                                (["--overwrite-window", "5", "-o", "-", "--format", "folded"], "-o -")):
            self.assert_refused("record", *options, "--", "true", saying=saying)
        self.assert_no_leftovers()

    def test_groups_that_are_none(self):
        for group in ("{cpu-clock", "{}", "{cpu-clock,page-faults}:u", "{cpu-clock,cpu-clock}"):
            self.assert_refused("record", "-e", group, "--", "true", status=1)
        self.assert_refused("record", "-e", "{cpu-clock,page-faults}", "--metric", "cycles", "--", "true", saying="cycles")
        self.assert_no_leftovers()

    def test_backends(self):
        self.assert_refused("record", "--backend", "ebpf", "--", "true", saying="--backend")
        self.assert_refused("perf", "--backend", "bpf", "--", "true", saying="--backend")
        self.assert_no_leftovers()

    def test_off_cpu_values_need_off_cpu(self):
        for option in (["--weight", "offcpu"], ["--metric", "offcpu"]):
            self.assert_refused("record", *option, "--", "true", saying="only with --off-cpu")
        for option in (["--delay", "1"], ["-C", "0"]):
            self.assert_refused("record", "--with-offcpu", *option, "--", "true", saying="not supported")

    def test_metric_that_is_not_recorded(self):
        self.assert_refused("record", "-e", "page-faults", "--metric", "cycles", "--", "true", saying="cycles")

    def test_times_that_are_none(self):
        for verb in ("record", "top", "cpustat", "uprobe"):
            for value in ("0", "-1", "nan", "inf", "1e30", "x"):
                done = self.cprof(verb, f"--duration={value}", "-p", "1", expect=2)
                self.assertIn("seconds", done.stderr, (verb, value))
        for option in ("--delay=nan", "--delay=1e300", "--overwrite-window=inf"):
            self.assertIn("seconds", self.cprof("record", option, "-p", "1", expect=2).stderr)

    def test_rates_that_are_none(self):
        for option in (["-F", "0"], ["-F", "-5"], ["-F", "10x"], ["-F", " 7"], ["-c", "0"], ["-c", "-1"], ["-F", "10", "-c", "10"]):
            self.assert_refused("record", *option, "--", "true")
        self.assert_no_leftovers()


class ReportViews(Options):
    def setUp(self):
        super().setUp()
        self.source = self.write("in.folded", FOLDED)

    def test_one_view_at_a_time(self):
        titles = {"--summary": "hottest functions", "--top": "functions by self", "--tree": "call tree"}
        whole = self.report(self.source)
        for option, own in titles.items():
            text = self.report(self.source, option)
            for title in titles.values():
                self.assertEqual(title in text, title == own, f"{title!r} with {option}")
                self.assertIn(title, whole)

    def test_rows(self):
        text = self.report(self.source, "--top", "--rows", "2")
        self.assertIn("read", text)
        self.assertNotIn("parse", text)
        self.assertIn("and 4 rows more, 16.0 %", text)

    def test_depth(self):
        text = self.report(self.source, "--tree", "--depth", "3")
        self.assertIn("work", text)
        self.assertNotIn("inner loop", text)
        self.assertIn("more than 3 deep", text)

    def test_min_percent(self):
        text = self.report(self.source, "--tree", "--min-percent", "30")
        self.assertNotIn("parse", text)
        self.assertIn("not shown: 1 branch of less than 30.0 %", text)
        self.assertIn("parse", self.report(self.source, "--tree", "--min-percent", "20"))

    def test_input_format(self):
        self.assertIn("main", self.report("--input-format", "folded", "--tree", self.source))
        self.assertEqual(self.convert("--input-format", "folded", self.source).total, 50)
        for verb in (["report"], ["convert", "-o", self.path("out.folded")]):
            self.assert_refused(*verb, "--input-format", "pprof", self.source, status=1, saying="in.folded")
            self.assert_refused(*verb, "--input-format", "no-such", self.source, status=1, saying="no-such")
        self.assertFalse(os.path.exists(self.path("out.folded")))

    def test_metric_that_is_not_there(self):
        self.assert_refused("report", self.source, "--metric", "cycles", status=1, saying="cycles")
        self.assert_refused("convert", self.source, "--metric", "cycles", "-o", self.path("o.folded"), status=1, saying="cycles")

    def test_weight_that_is_not_there(self):
        self.assert_refused("report", self.source, "--weight", "wall", status=1, saying="wall")
        self.assert_refused("report", self.source, "--weight", "offcpu", status=1, saying="off-cpu")
        self.assert_refused("report", self.source, "--weight", "offcpu", "--metric", "x", status=1, saying="exclude")
        self.assert_refused("convert", self.source, "--weight", "wall", "-o", self.path("o.folded"), status=1, saying="wall")


class Recorded(Options):
    """On samples of a real program: two threads, two metrics."""

    def setUp(self):
        super().setUp()
        self.program = harness.program("nofp_gcc")
        listing = subprocess.run([harness.tool("nm"), "-S", self.program], capture_output=True, text=True, check=True).stdout
        self.symbols = {row[3]: (int(row[0], 16), int(row[1], 16)) for row in map(str.split, listing.splitlines()) if len(row) == 4}
        self.source = self.write("in.data", self.capture().content)

    def inside(self, part):
        """The symbol of this part of a name, and an address in it."""
        name = min((name for name in self.symbols if part in name), key=len)
        return name, self.symbols[name][0] + 5

    def capture(self):
        data = perfdata.PerfData(self.program)
        data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
        data.add_metric("page-faults", perfdata.PAGE_FAULTS, 7)
        data.add_thread(100, "app")
        data.map_program()
        data.add_thread(101, "worker")
        self.sort_symbol, sort = self.inside("compare_ints")
        _, recurse = self.inside("7recurse")
        main = self.symbols["main"][0] + 5
        for _ in range(3):
            data.add_sample("cpu-clock", 100, [recurse, main], 1_000_000)
        data.add_sample("cpu-clock", 101, [sort, main], 1_000_000)
        for _ in range(2):
            data.add_sample("page-faults", 101, [sort, main], 7)
        return data

    def test_default(self):
        folded = self.convert(self.source)
        self.assertEqual(folded.total, 4, "samples of the first metric")
        self.assertEqual(folded.count_with("main", "recurse"), 3)
        self.assertEqual(folded.of_comm("app").total, 4, "by process")

    def test_metric(self):
        self.assertEqual(self.convert(self.source, "--metric", "page-faults").total, 14)
        self.assertEqual(self.convert(self.source, "--metric", "page-faults").share_of("compare_ints"), 1)
        text = self.report(self.source, "--top", "--metric", "page-faults")
        self.assertRegex(text, r"page-faults, 14 in all")
        self.assertNotIn("recurse", text, "which has none")

    def test_weight(self):
        wall = self.convert(self.source, "--weight", "wall")
        self.assertGreater(wall.total, 1000, "microseconds")
        self.assertIn("samples of cpu-clock, 4 in all", self.report(self.source, "--top", "--weight", "samples"))
        self.assertIn("wall time", self.report(self.source, "--top", "--weight", "wall"))

    def test_weight_wall_of_a_pprof(self):
        """Its samples have no times any more, but it has a column of wall time."""
        self.cprof("convert", self.source, "-o", self.path("out.pb.gz"))
        whole = self.convert(self.path("out.pb.gz"), "--weight", "wall")
        text = self.report(self.path("out.pb.gz"), "--top", "--weight", "wall")
        self.assertRegex(text, r"by self: wall, [\d.]+ ms in all")
        self.assertEqual(whole.total, self.convert(self.source, "--weight", "wall").total)

    def test_by_thread(self):
        folded = self.convert(self.source, "--by", "thread")
        threads = {frames[1]: count for frames, count in folded.stacks}
        self.assertEqual(threads, {"app": 3, "worker": 1})
        self.assertEqual({frames[1] for frames, _ in self.convert(self.source, "--by", "process").stacks}, {"main"})

    def test_folded_style(self):
        self.assertEqual(self.convert(self.source, "--folded-style", "extended").of_comm("app-100").total, 4)
        self.assertEqual(self.convert(self.source, "--folded-style", "plain").of_comm("app").total, 4)

    def test_demangle(self):
        styles = {"full": ("(anonymous namespace)::recurse(unsigned int)", "(anonymous namespace)::compare_ints(void const*, void const*)"),
                  "short": ("(anonymous namespace)::recurse", "(anonymous namespace)::compare_ints"),
                  "none": ("_ZN12_GLOBAL__N_17recurseEj", self.sort_symbol)}
        for style, names in styles.items():
            leaves = {frames[-1] for frames, _ in self.convert(self.source, "--demangle", style).stacks}
            self.assertEqual(leaves, set(names), style)
            self.assertRegex(self.report(self.source, "--top", "--demangle", style), re.escape(names[0]) + r"\s", style)

    def test_demangle_of_a_pprof(self):
        """A profile of a tool that does not demangle: its names are still the linker's."""
        self.cprof("convert", self.source, "--demangle", "none", "-o", self.path("raw.pb.gz"))
        names = {"full": "(anonymous namespace)::recurse(unsigned int)", "short": "(anonymous namespace)::recurse",
                 "none": "_ZN12_GLOBAL__N_17recurseEj"}
        for style, name in names.items():
            leaves = {frames[-1] for frames, _ in self.convert(self.path("raw.pb.gz"), "--demangle", style).stacks}
            self.assertIn(name, leaves)
        self.cprof("convert", self.source, "--demangle", "short", "-o", self.path("short.pb.gz"))
        leaves = {frames[-1] for frames, _ in self.convert(self.path("short.pb.gz")).stacks}
        self.assertIn(names["short"], leaves, "names that were made readable stay")

    def test_kallsyms(self):
        """KRN-05, KRN-02: three kernel functions of a recording from elsewhere, named by its own symbols."""
        data = perfdata.PerfData(self.program)
        data.add_feature(perfdata.HOSTNAME, "elsewhere")
        data.add_feature(perfdata.OS_RELEASE, "3.8.11")
        data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
        data.add_thread(100, "app")
        start = 0xFFFF_FFFF_8100_0000
        for offset, count in ((0x10, 3), (0x150, 2), (0x1FF, 1)):
            for _ in range(count):
                data.add_kernel_sample("cpu-clock", 100, [start + offset], 1)
        source = self.write("kernel.data", data.content)
        symbols = self.write("kallsyms", b"ffffffff81000000 T first\nffffffff81000100 T second\nffffffff81000180 t third\n"
                                         b"ffffffff81000200 T end\n")
        named = self.convert(source, "--kallsyms", symbols)
        self.assertEqual(sorted(named.stacks), [(["app", "first_[k]"], 3), (["app", "second_[k]"], 2), (["app", "third_[k]"], 1)])
        self.assertRegex(self.report(source, "--top", "--kallsyms", symbols), r"3\s+50.0 %\s+first\s")
        plain = self.convert(source)
        self.assertEqual(sorted((frames[-1].split("+")[0], count) for frames, count in plain.stacks),
                         [("[kernel", 1), ("[kernel", 2), ("[kernel", 3)], "never named by another kernel's symbols")
        self.assertIn("--kallsyms", self.report(source, "--summary"))
        zeros = self.write("zeros", b"0000000000000000 T first\n0000000000000000 T second\n")
        self.assertIn("kptr_restrict", self.report(source, "--summary", "--kallsyms", zeros))

    def test_build_id_table(self):
        """Of another machine's recording the files are known by the build-ids that perf notes, and by nothing else."""
        notes = subprocess.run([harness.tool("readelf"), "-n", self.program], capture_output=True, text=True, check=True).stdout
        if "Build ID:" not in notes:
            self.skipTest("needs a linker that makes build-ids")
        build_id = bytes.fromhex(notes.split("Build ID:")[1].split()[0])

        def leaves(*ids):
            data = perfdata.PerfData(self.program)
            data.add_feature(perfdata.HOSTNAME, "elsewhere")
            for entry in ids:
                data.add_build_id(self.program, entry)
            data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
            data.add_thread(100, "app")
            data.map_program()
            data.add_sample("cpu-clock", 100, [self.symbols["main"][0] + 5], 1)
            return [frames[-1].split("+")[0] for frames, _ in self.convert(self.write("ids.data", data.content)).stacks]

        self.assertEqual(leaves(build_id), ["main"])
        self.assertEqual(leaves(), ["[nofp_gcc"], "inodes of another machine say nothing")
        self.assertEqual(leaves(bytes(reversed(build_id))), ["[nofp_gcc"], "another build")
        self.assertEqual(leaves(build_id, bytes(reversed(build_id))), ["[nofp_gcc"], "two builds of one path")

    def test_no_inline(self):
        caller, _ = self.inside("call_function")
        start, size = self.symbols[caller]
        data = perfdata.PerfData(self.program)
        data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
        data.add_thread(100, "app")
        data.map_program()
        for address in range(start, start + size):
            data.add_sample("cpu-clock", 100, [address], 1)
        source = self.write("inline.data", data.content)
        expanded, plain = self.convert(source), self.convert(source, "--no-inline")
        self.assertEqual((expanded.total, plain.total), (size, size))
        self.assertEqual({len(frames) for frames, _ in plain.stacks}, {2}, "comm and the function itself")
        inlined = expanded.only(lambda frames: len(frames) > 2 and "operator()" in frames[-1])
        self.assertGreater(inlined.total, 0)
        self.assertEqual(inlined.count_with("call_function"), inlined.total)
        self.assertIn("operator()", self.report(source, "--tree"))
        self.assertNotIn("operator()", self.report(source, "--tree", "--no-inline"))

    def test_granularity(self):
        self.assertNotIn("nofp.cc:", self.report(self.source, "--top"))
        self.assertRegex(self.report(self.source, "--top", "--granularity", "lines"), r"recurse\(unsigned int\) nofp\.cc:\d+")
        address = self.symbols["main"][0] + 5
        self.assertRegex(self.report(self.source, "--top", "--granularity", "addresses"), rf"{address:#x} main ")


if __name__ == "__main__":
    harness.main()
