"""What each option of record does, on programs whose work is known.

Requires: root or CAP_PERFMON, perf_event_open; --cgroup needs root and a cgroup v2 hierarchy with perf_event.
"""

# verifies: CL3, CL4
# verifies: A5g
# covers: record --pid --tid --name --all-cpus --cgroup --container --cpu --freq --count --event --duration --delay -g --unwind
# covers: record --max-depth --no-kernel --no-inherit --no-symbolize --output --format --weight --metric --by
# covers: record --folded-style --demangle --no-inline --save-raw --quiet

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from folded import Folded, is_kernel, is_named
from pprof import Profile


class Options(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def start(self, *command):
        """A program that runs beside the recorder, ended with the test."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_of(self, name, *options, seconds="0.6"):
        self.done = self.record([harness.program(name), seconds], *options)
        return self.folded()

    def attach(self, *options, seconds="0.5"):
        self.done = self.cprof("record", *options, "-d", seconds, "-o", self.path("out.folded"))
        return self.folded()


class Rates(Options):
    def test_freq_is_samples_per_second_of_cpu(self):
        slow, fast = self.run_of("shares", "-F", "50").total, self.run_of("shares", "-F", "2000").total
        self.assertLess(slow, 50)
        self.assertGreater(fast, 8 * slow)

    def test_freq_max(self):
        self.assertGreater(self.run_of("shares", "-F", "max").total, 600)

    def test_count_is_the_clock_s_nanoseconds(self):
        self.assertLess(self.run_of("shares", "-e", "cpu-clock", "-c", "20000000").total, 50)
        self.assertGreater(self.run_of("shares", "-e", "cpu-clock", "-c", "500000").total, 300)

    def test_count_of_events(self):
        folded = self.run_of("faults", "-e", "page-faults", "-c", "10", seconds="3000")
        self.assertTrue(200 <= folded.total <= 450, f"{folded.total} samples of 3,000 faults and the start's own")

    def test_duration_ends_the_command(self):
        begin = time.monotonic()
        self.record([harness.program("shares"), "30"], "-d", "0.5", expect=None)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertTrue(50 <= self.folded().total <= 700, self.folded().total)

    def test_delay(self):
        whole = self.run_of("rename", seconds="1")
        self.assertGreater(whole.count_with("as_zygote"), 100)
        late = self.run_of("rename", "--delay", "0.7", seconds="1")
        self.assertEqual(late.count_with("as_zygote"), 0, "its first half second")
        self.assertGreater(late.count_with("as_app"), 50)


class Events(Options):
    def types_of(self, *options):
        self.done = self.record([harness.program("faults"), "2000"], *options, outputs=("out.pb.gz", "out.folded"))
        return [name for name, _ in Profile(self.read("out.pb.gz")).types()]

    def test_one_event_each(self):
        for event in ("cpu-clock", "task-clock", "page-faults"):
            self.types_of("-e", event)
            self.assertIn(f" of {event}", self.done.stderr)
            self.assertGreater(self.folded().total, 0 if event == "page-faults" else 10)

    def test_several_by_comma_or_by_option(self):
        for option in (["-e", "cpu-clock,page-faults"], ["-e", "cpu-clock", "-e", "page-faults"]):
            self.assertIn("page-faults", self.types_of(*option), option)
            self.assertRegex(self.done.stderr, r"by metric:\s+cpu-clock [\d,]+, page-faults [\d,]+")

    def test_metric_chooses_one(self):
        self.types_of("-e", "cpu-clock,page-faults", "--metric", "page-faults")
        self.assertTrue(1900 <= self.folded().total <= 3000, f"{self.folded().total} page faults of 2,000 and the start's own")

    def test_group(self):
        """One sample reads both: the faults' weights are what they counted, on the stacks of the clock's samples."""
        types = self.types_of("-e", "{cpu-clock,page-faults}", "-F", "2000")
        self.assertIn("page-faults", types)
        counts = dict(re.findall(r"(cpu-clock|page-faults) ([\d,]+)", self.done.stderr))
        self.assertLessEqual(harness.number(counts["page-faults"]), harness.number(counts["cpu-clock"]))
        self.record([harness.program("faults"), "3000"], "-e", "{cpu-clock,page-faults}", "--metric", "page-faults", "-F", "2000")
        total = self.folded().total
        self.assertTrue(2000 <= total <= 4000, f"{total} of 3,000 faults and the start's own; those after the last sample are not seen")

    def test_group_of_the_whole_machine(self):
        self.start(harness.program("faults"), "100000000")
        self.attach("-a", "-e", "{cpu-clock,page-faults}", "--metric", "page-faults")
        self.assertGreater(self.folded().of_comm("faults").total, 1000)

    def test_group_replayed(self):
        self.record([harness.program("faults"), "2000"], "-e", "{cpu-clock,page-faults}", "--metric", "page-faults", "--save-raw", self.path("raw.data"))
        again = self.cprof("convert", self.path("raw.data"), "--metric", "page-faults", "--format", "folded", "-o", "-").stdout
        self.assertEqual(again, self.read("out.folded"))

    def test_unknown_event(self):
        done = self.record(["true"], "-e", "no-such-event", expect=1)
        self.assert_one_line(done)
        self.assertIn("no-such-event", done.stderr)
        self.assert_no_leftovers()


class Stacks(Options):
    def test_g_changes_nothing(self):
        folded = self.run_of("shares", "-g")
        self.assertGreaterEqual(folded.share_of("main", "one_round"), 0.95)

    def test_unwind_fp_needs_frame_pointers(self):
        """Built without them: the tables find main, frame pointers do not."""
        self.assertGreaterEqual(self.run_of("shares", "--unwind", "dwarf").share_of("main", "share_sixty"), 0.5)
        folded = self.run_of("shares", "--unwind", "fp")
        self.assertGreater(folded.share_of("share_sixty"), 0.5)
        self.assertLess(folded.share_of("main", "share_sixty"), 0.05)

    def test_max_depth(self):
        for frames, _ in self.run_of("nest200", "--max-depth", "5", "--no-inline").with_frame("nested_199").stacks:
            user = [frame for frame in frames[1:] if not is_kernel(frame) and frame != "[truncated]"]
            below = user[user.index("nested_199") + 1:]  # the clock, now and then
            self.assertEqual(user, [f"nested_{i}" for i in range(195 + len(below), 200)] + below)

    def test_no_kernel(self):
        self.assertEqual(self.run_of("shares", "--no-kernel").only(lambda frames: any(map(is_kernel, frames))).total, 0)
        self.assertGreater(self.folded().total, 100)

    def test_no_inherit(self):
        both = self.run_of("fork_tree")
        alone = self.run_of("fork_tree", "--no-inherit")
        for folded, expected in ((both, True), (alone, False)):
            self.assertEqual(folded.count_with("tree_level_0", "tree_level_1") > 0, expected)
        self.assertGreater(alone.count_with("tree_level_0", "level_work"), 20)

    def test_no_inherit_of_threads(self):
        self.assertEqual(self.run_of("two_busy", "--no-inherit").count_with("start_thread"), 0)
        self.assertGreater(self.run_of("two_busy").count_with("start_thread"), 50)


class Names(Options):
    def test_no_symbolize(self):
        folded = self.run_of("shares", "--no-symbolize")
        self.assertGreater(folded.total, 100)
        named = {frame for frames, _ in folded.stacks for frame in frames[1:] if is_named(frame)}
        self.assertEqual(named, set())

    def test_addresses_of_an_unsymbolized_pprof(self):
        """SYM-10: what another tool needs to name them later: addresses inside their mappings, build-ids, the file's offset."""
        program = harness.program("shares")
        self.record([program, "1"], "--no-symbolize", outputs=("out.pb.gz",))
        profile = Profile(self.read("out.pb.gz"))
        self.assertEqual(profile.broken_rules(), [])
        self.assertEqual(profile.functions, {})
        samples_at = {}  # of the leaf, by its offset in the program's file
        for locations, values, _ in profile.samples:
            leaf, _ = profile.locations[locations[0]]
            mapping = profile.mappings[leaf[2]]
            self.assertTrue(mapping[2] <= leaf[3] < mapping[3], "inside its mapping")
            if profile.text(mapping[5]) == program:
                self.assertTrue(profile.text(mapping[6]), "its build-id")
                offset = leaf[3] - mapping[2] + mapping.get(4, 0)
                samples_at[offset] = samples_at.get(offset, 0) + values[0]
        symbols = self.listing("nm", "-S", program)
        start, size = next((int(row[0], 16), int(row[1], 16)) for row in symbols if row[-1] == "share_sixty")
        segments = self.listing("readelf", "-lW", program)
        skew = next(int(row[2], 16) - int(row[1], 16) for row in segments if row[0] == "LOAD" and "E" in row[6:8])
        inside = sum(count for offset, count in samples_at.items() if start <= offset + skew < start + size)
        self.assert_share(inside / sum(samples_at.values()), 0.6, "share_sixty by its addresses", 0.05)

    @staticmethod
    def listing(command, *arguments):
        text = subprocess.run([harness.tool(command), *arguments], capture_output=True, text=True, check=True).stdout
        return [line.split() for line in text.splitlines() if line.strip()]

    def test_demangle(self):
        expected = {"full": "(anonymous namespace)::recurse(unsigned int)", "short": "(anonymous namespace)::recurse",
                    "none": "_ZN12_GLOBAL__N_17recurseEj"}
        for style, name in expected.items():
            frames = {frame for frames, _ in self.run_of("nofp_gcc", "--demangle", style).stacks for frame in frames}
            self.assertEqual({frame for frame in frames if "recurse" in frame}, {name})

    def test_no_inline(self):
        """std::function's operator() is inlined into its caller."""
        def inlined_in(folded):
            return folded.only(lambda frames: any("operator()" in frame and "std::function" in frame for frame in frames)).total

        self.assertGreater(inlined_in(self.run_of("nofp_gcc", "-F", "3999")), 10)
        self.assertEqual(inlined_in(self.run_of("nofp_gcc", "-F", "3999", "--no-inline")), 0)
        self.assertGreater(self.folded().count_with("call_function", "recurse"), 10)


class Outputs(Options):
    def test_root_of_the_stacks(self):
        plain = self.run_of("threads8", "--by", "thread", seconds="0.8")
        self.assertGreater(plain.only(lambda frames: frames[:2] == ["threads8", "worker-7"]).total, 50)
        extended = self.run_of("threads8", "--folded-style", "extended")
        self.assertEqual(extended.only(lambda frames: frames[0].startswith("threads8-")).total, extended.total)

    def test_weight_wall(self):
        folded = self.run_of("shares", "--weight", "wall")
        self.assertTrue(0.55e6 <= folded.total <= 2e6, f"{folded.total} microseconds of 600,000")

    def test_format_over_the_extension(self):
        self.record([harness.program("shares"), "0.4"], "--format", "folded", outputs=("a.dat", "b.pb.gz"))
        self.assertEqual(self.read("a.dat"), self.read("b.pb.gz"))
        self.assertGreater(self.folded("a.dat").share_of("share_sixty"), 0.4)

    def test_stdout(self):
        done = self.cprof("record", "--format", "folded", "-o", "-", "--", harness.program("shares"), "0.4")
        self.assertGreater(Folded(done.stdout.decode()).share_of("share_sixty"), 0.4)

    def test_quiet(self):
        self.run_of("shares", "-q")
        self.assertEqual(self.done.stderr, "")
        self.assertGreater(self.folded().total, 100)

    def test_view(self):
        """The page comes up with what was recorded, and Ctrl-C ends it with the command's status."""
        # covers: record --view
        process = subprocess.Popen([harness.CPROF, "record", "--view", "-o", self.path("out.cprof"), "--", "sh", "-c",
                                    f"{harness.program('shares')} 0.4; exit 3"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "DISPLAY": "", "BROWSER": ""})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        address = process.stdout.readline().decode().strip()
        with urllib.request.urlopen(f"{address}api/files", timeout=60) as answer:
            self.assertEqual(json.load(answer), [{"name": self.path("out.cprof")}])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 3)

    def test_save_raw(self):
        live = self.run_of("shares", "--save-raw", self.path("raw.data"))
        self.assertEqual(self.read("raw.data")[:8], b"PERFILE2")
        self.cprof("convert", self.path("raw.data"), "-o", self.path("again.folded"))
        self.assertEqual(self.folded("again.folded").stacks, live.stacks)


class Targets(Options):
    def test_pid(self):
        self.start(harness.program("two_busy"), "10")
        target = self.start(harness.program("shares"), "10")
        folded = self.attach("-p", str(target.pid))
        self.assertEqual(folded.of_comm("shares").total, folded.total)
        self.assertGreater(folded.share_of("main", "one_round"), 0.9)

    def test_name(self):
        self.start(harness.program("two_busy"), "10")
        targets = [self.start(harness.program("shares"), "10") for _ in range(2)]
        self.cprof("record", "-n", "shares", "-d", "0.8", "--folded-style", "extended", "-o", self.path("out.folded"))
        comms = {frames[0] for frames, _ in self.folded().stacks}
        self.assertEqual(comms, {f"shares-{target.pid}" for target in targets})

    def test_name_that_none_has(self):
        done = self.cprof("record", "-n", "no-such-name-here", "-o", self.path("out.folded"), expect=1)
        self.assert_one_line(done)
        self.assertIn("no-such-name-here", done.stderr)

    def test_tid(self):
        target = self.start(harness.program("threads8"), "10", "equal")
        time.sleep(0.2)
        names = {}
        for thread in os.listdir(f"/proc/{target.pid}/task"):
            with open(f"/proc/{target.pid}/task/{thread}/comm") as file:
                names[file.read().strip()] = thread
        folded = self.attach("-t", names["worker-3"] + "," + names["worker-5"], seconds="1")
        self.assertGreater(folded.total, 10)
        self.assertEqual({k for k in range(8) if folded.count_with(f"worker_{k}")}, {3, 5})

    def test_all_cpus(self):
        harness.need_root()
        self.start(harness.program("shares"), "10")
        self.start(harness.program("two_busy"), "10")
        folded = self.attach("-a", seconds="0.8")
        self.assertGreater(folded.of_comm("shares").total, 10)
        self.assertGreater(folded.of_comm("two_busy").total, 10)

    def test_cpu(self):
        harness.need_root()
        available = sorted(os.sched_getaffinity(0))
        if len(available) < 2:
            self.skipTest("needs two CPUs")
        first, last = available[0], available[-1]
        target = self.start(harness.program("shares"), "10")
        os.sched_setaffinity(target.pid, {last})
        time.sleep(0.1)
        self.assertGreater(self.attach("-a", "-C", str(last)).of_comm("shares").total, 10)
        self.assertEqual(self.attach("-C", str(first)).of_comm("shares").total, 0, "-C alone is -a on these CPUs")
        self.assertGreater(self.attach("-p", str(target.pid), "-C", f"{last}").total, 10)

    def test_cgroup(self):
        harness.need_root()
        group = self.make_cgroup()
        inside, outside = self.start(harness.program("shares"), "10"), self.start(harness.program("two_busy"), "10")
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(inside.pid))
        self.addCleanup(self.move_out, group, inside.pid)
        folded = self.attach("--cgroup", group, seconds="0.8")
        self.assertGreater(folded.of_comm("shares").total, 10)
        self.assertEqual(folded.of_comm("shares").total, folded.total)
        self.assertIsNone(outside.poll(), "the other one ran all the time")

    def test_container(self):
        """By its id, cut short; and of a whole machine its share, by labels, SQL and folded roots, in a replay too."""
        harness.need_root()
        container = "4f1ed8b6a3c2" + f"{os.getpid():052x}"
        group = self.make_cgroup(f"docker-{container}.scope")
        inside, _ = self.start(harness.program("shares"), "10"), self.start(harness.program("two_busy"), "10")
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(inside.pid))
        self.addCleanup(self.move_out, group, inside.pid)
        folded = self.attach("--container", container, seconds="0.8")
        self.assertGreater(folded.total, 0)
        self.assertEqual(folded.of_comm("shares").total, folded.total)
        self.cprof("record", "-a", "-d", "0.8", "--save-raw", self.path("all.raw"), "-o", self.path("all.cprof"), "-o", self.path("all.pb.gz"))
        for name in ("all.cprof", "all.pb.gz", "all.raw"):
            self.cprof("convert", self.path(name), "--by", "container", "-o", self.path("by.folded"))
            ours = self.folded("by.folded").of_comm("4f1ed8b6a3c2")
            self.assertEqual({frames[1] for frames, _ in ours.stacks}, {"shares"}, name)
            self.cprof("convert", self.path(name), "--label", "container=" + container, "-o", self.path("one.folded"))
            self.assertEqual(self.folded("one.folded").total, ours.total, name)
            self.assertEqual(self.folded("one.folded").of_comm("shares").total, ours.total, name)
        query = "SELECT name, cgroup LIKE '%/docker-%.scope' FROM process WHERE container = '4f1ed8b6a3c2'"
        self.assertIn("shares,1", self.cprof("sql", self.path("all.cprof"), "--format", "csv", "--query", query).stdout.decode())
        done = self.cprof("record", "--container", "no-such-one", "-d", "1", expect=1)
        self.assert_one_line(done)
        self.assertIn("4f1ed8b6a3c2", done.stderr)
        self.assert_one_line(self.cprof("record", "--cgroup", "/no/such/group", "-d", "1", expect=1))

    def make_cgroup(self, name=""):
        """A cgroup of its own, in the version 2 hierarchy if it has perf events."""
        with open("/proc/mounts") as file:
            mounts = [line.split()[1] for line in file if line.split()[2] == "cgroup2"]
        if not mounts:
            self.skipTest("needs a mounted cgroup v2 hierarchy")
        group = os.path.join(mounts[0], name or f"cprof-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"needs to make a cgroup in {mounts[0]}: {error.strerror}")
        self.addCleanup(os.rmdir, group)
        return group

    def move_out(self, group, pid):
        """A cgroup can be removed once it is empty."""
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        for _ in range(100):
            with open(os.path.join(group, "cgroup.procs")) as file:
                if not file.read():
                    return
            time.sleep(0.02)


if __name__ == "__main__":
    harness.main()
