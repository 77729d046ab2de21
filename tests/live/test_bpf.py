"""The BPF backend: right frames, every kind of target, processes that come and go, nothing left behind.

Requires: root, a kernel with BTF, the programs of tests/bpf.
"""

# verifies: C1, C2, C3, C6
# covers: record --backend --pid --tid --all-cpus --cgroup --no-kernel --no-inherit --max-depth --unwind

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from folded import is_kernel

TOOLS = os.environ.get("CPROF_BPF_TOOLS", "")
DUAL = ["nofp_gcc", "nofp_clang", "nofp_static", "nofp_static_pie", "plt_lazy", "altstack", "vdso_loop", "exceptions", "drap",
        "nest200", "debug_frame"]


def tool(name):
    path = os.path.join(TOOLS, name)
    if not os.access(path, os.X_OK):
        raise unittest.SkipTest(f"needs {name}, which is not built")
    return path


def programs_loaded():
    """Ids of the BPF programs of the kernel, by the bpf() interface of /proc: what holds a program shows it in fdinfo."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{pid}/fdinfo"):
                with open(f"/proc/{pid}/fdinfo/{fd}") as file:
                    found.update(re.findall(r"^prog_id:\s+(\d+)", file.read(), re.M))
        except OSError:
            continue
    return found


class Bpf(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_bpf()

    def record_bpf(self, command, *options, **others):
        return self.record(command, "--backend", "bpf", *options, **others)

    def start(self, *command):
        process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def stats(self, *arguments):
        done = self.run_command([tool("cprof_event_stats"), *arguments])
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)


class Frames(Bpf):
    def capture(self, *command):
        done = self.run_command([tool("cprof_dual_capture"), "-v", *command], timeout=90)
        text = done.stdout.decode()
        counts = {key: int(value) for key, value in re.findall(r"([\w-]+) (\d+)", text[text.rindex("pairs ") :].split("\n")[0])}
        self.assertEqual(counts["differ"], 0, f"a wrong frame\n{text[-4000:]}")
        return counts, text

    def dual_of(self, *command, least, longer=None):
        counts, text = self.capture(*command)
        if counts["pairs"] <= least and longer:  # the machine is busy with something else
            counts, text = self.capture(*longer)
        self.assertGreater(counts["pairs"], least, text[-2000:])
        agree = counts["equal"] + counts["bpf-longer"]
        self.assertGreaterEqual(agree, 0.999 * counts["pairs"] - 1, text[-4000:])

    def test_same_frames_as_from_perfs_own_sample(self):
        for name in DUAL:
            with self.subTest(name):
                self.dual_of(harness.program(name), "1.5", least=200, longer=(harness.program(name), "8"))

    def test_same_frames_in_an_interpreter(self):
        loop = "import json\nfor _ in range(6):\n d = {str(i): [i] * 5 for i in range(20000)}; json.loads(json.dumps(d)); sorted(d, key=len)"
        self.dual_of(harness.tool("python3"), "-c", loop, least=100)

    def test_same_frames_in_processes_that_come_and_go(self):
        load = self.start("sh", "-c", f"while :; do {harness.program('child_20ms')}; done")
        time.sleep(0.1)
        counts, text = self.capture("-a", "4")
        self.assertGreater(counts["pairs"], 500, text[-2000:])
        load.terminate()
        self.assertGreater(counts["bpf-complete"], 0)
        # Where it is shorter it says so: snapshots are bounded, and a machine full of JIT code has no tables.
        self.assertLess(counts["bpf-shorter"], 0.1 * counts["pairs"])

    def test_the_programs_for_older_kernels(self):
        """The same text with a bounded loop, and tasks read otherwise: chosen before 5.17, and right here, too."""
        for name in ("nofp_gcc", "nofp_static_pie", "plt_lazy", "altstack", "exceptions", "nest200"):
            with self.subTest(name):
                counts, text = self.capture("--for-5.10", harness.program(name), "1.5")
                self.assertGreater(counts["pairs"], 50, text[-2000:])
                agree = counts["equal"] + counts["bpf-longer"]
                self.assertGreaterEqual(agree, 0.999 * counts["pairs"] - 1, text[-4000:])

    def test_this_kernel_takes_the_newer_programs(self):
        self.assertNotIn("bpf_variant_5_10", self.stats(harness.program("nofp_gcc"), "0.3")["diagnostics"])


class Chosen(Bpf):
    """--backend auto: bpf, or one line that says why not."""
    NOTE = "recorded with perf events"

    def test_bpf_where_it_can(self):
        for options in ([], ["--off-cpu"], ["--unwind", "fp"], ["-e", "cpu-clock,page-faults"], ["-F", "max"], ["--delay", "0.1"]):
            done = self.record([harness.program("nofp_gcc"), "0.3"], *options)
            self.assertEqual(done.notes(self.NOTE), [], options)

    def test_perf_where_bpf_cannot(self):
        for options, word in ((["-e", "{cpu-clock,page-faults}"], "-e {...}"), (["--stack-size", "8K"], "--stack-size"),
                              (["-F", "20000"], "20000"), (["-e", "sched:sched_switch"], "tracepoints"),
                              (["--max-depth", "5000"], "--max-depth"), (["-e", "cpu-clock:u", "-c", "50000"], "-c 50000")):
            done = self.record([harness.program("nofp_gcc"), "0.3"], *options)
            notes = done.notes(self.NOTE)
            self.assertEqual(len(notes), 1, done.stderr)
            self.assertIn(word, " ".join(notes[0].split()))

    def test_perf_without_the_rights(self):
        os.chmod(self.folder, 0o777)
        done = self.run_as_nobody("record", "-o", self.path("out.folded"), "--", harness.program("nofp_gcc"), "0.3")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(len(done.notes("CAP_BPF is missing")), 1, done.stderr)

    def test_asked_for_by_name_it_is_not_replaced(self):
        done = self.record(["true"], "--backend", "bpf", "-e", "{cpu-clock,page-faults}", expect=1)
        self.assert_one_line(done)
        self.assertIn("not supported", done.stderr)


class Counted(Bpf):
    """Sums are counted in the kernel where no output needs times: the totals are those of single samples."""
    COUNTED, UNACCOUNTED = "counted without times", "neither came nor were counted as lost"

    def both(self, command, *options):
        """The same recording twice: its sums as counted in the kernel, and as single samples add up to."""
        counted = self.record_bpf(command, *options)
        self.assertIn(self.COUNTED, counted.stderr)
        sums = self.folded()
        single = self.record_bpf(command, *options, outputs=("single.folded", "single.txt"))
        self.assertNotIn(self.COUNTED, single.stderr)
        for done in (counted, single):
            self.assertEqual(done.summary.lost, 0, done.stderr)
            self.assertNotIn(self.UNACCOUNTED, done.stderr)
        self.assertEqual(sums.total, counted.summary.samples)
        return sums, self.folded("single.folded")

    def test_every_fault_is_counted_on_its_stack(self):
        # Some work after each fault: all of them within a millisecond would come before the program's table is made.
        command = [harness.program("faults"), "2000", "10", self.path("fault.ns"), "300000"]
        for folded in self.both(command, "-e", "page-faults", "-c", "1"):
            # Where the program keeps its times is touched there, too.
            self.assertLessEqual(abs(folded.count_with("touch_pages") - 2000), 20)
            self.assertGreaterEqual(folded.count_with("main", "descend", "touch_pages"), 0.99 * folded.count_with("touch_pages"))

    def test_shares_are_the_same(self):
        for folded in self.both([harness.program("shares"), "1.5"]):
            self.assertGreaterEqual(folded.share_of("main", "one_round"), 0.95)
            self.assert_share(folded.share_of("share_sixty"), 0.6, "share_sixty", 0.08)

    def test_stacks_of_programs_that_are_gone_when_they_are_counted(self):
        """Of a process that executes again and again; its counts are read when it is another program, or none."""
        fault = f"{harness.program('faults')} 300 5 {self.path('fault.ns')}"
        command = ["sh", "-c", f"{fault}; {fault}; sh -c '{fault}'; exec {fault}"]
        for folded in self.both(command, "-e", "page-faults", "-c", "1"):
            self.assertLessEqual(abs(folded.of_comm("faults").count_with("touch_pages") - 1200), 40)

    def test_what_needs_times_is_not_counted(self):
        for options in (["--weight", "wall"], ["--max-size", "1G"], ["--off-cpu"], ["--save-raw", self.path("raw.data")]):
            done = self.record_bpf([harness.program("shares"), "0.3"], *options)
            self.assertNotIn(self.COUNTED, done.stderr, options)


class Targets(Bpf):
    def test_process_that_runs(self):
        target = self.start(harness.program("nofp_gcc"), "20")
        time.sleep(0.5)
        done = self.cprof("record", "--backend", "bpf", "-p", str(target.pid), "-d", "2", "-o", self.path("out.folded"))
        self.assert_complete(done.summary)
        self.assertGreater(done.summary.total, 50)
        self.assertEqual({frames[0] for frames, _ in self.folded().stacks}, {"nofp_gcc"})

    def test_one_thread_of_several(self):
        target = self.start(harness.program("nofp_gcc"), "20")
        time.sleep(0.5)
        tid = sorted(int(t) for t in os.listdir(f"/proc/{target.pid}/task"))[-1]
        self.assertNotEqual(tid, target.pid)
        self.cprof("record", "--backend", "bpf", "-t", str(tid), "-d", "2", "-o", self.path("out.folded"))
        self.assertEqual(self.folded().count_with("_start"), 0, "only the main thread begins at _start")
        self.assertGreater(self.folded().total, 20)

    def test_whole_machine(self):
        self.start(harness.program("nofp_gcc"), "20")
        time.sleep(0.2)
        self.cprof("record", "--backend", "bpf", "-a", "-d", "3", "-F", "499", "-o", self.path("out.folded"))
        ours = self.folded().of_comm("nofp_gcc")
        self.assertGreater(ours.total, 50)
        rooted = ours.only(lambda frames: frames[1].startswith(("_start", "__clone", "clone", "start_thread")))
        self.assertGreaterEqual(rooted.total, 0.98 * ours.total - 2)

    def test_whole_machine_while_a_compiler_runs(self):
        """Processes of half a second with large files, whose tables nobody has made before."""
        write = harness.write_text
        write(self.path("input.cc"), "#include <regex>\nint main(int, char** v) { return std::regex_match(v[0], std::regex(\"a*\")); }\n")
        compiler = harness.tool("g++-12", "g++")
        loop = self.start("sh", "-c", f"while :; do {compiler} -O1 -c {self.path('input.cc')} -o {self.path('input.o')}; done")
        time.sleep(1)
        for least in (0.95, 0.98):  # first without any table made before
            self.cprof("record", "--backend", "bpf", "-a", "-d", "5", "-F", "999", "-o", self.path("out.folded"),
                       env={**os.environ, "XDG_CACHE_HOME": self.path("cache")})
            ours = self.folded().of_comm("cc1plus").only(lambda frames: not is_kernel(frames[1]))
            self.assertGreater(ours.total, 100)
            rooted = ours.only(lambda frames: frames[1].startswith(("_start", "_dl_", "[ld-linux", "rtld")))
            self.assertGreaterEqual(rooted.total, least * ours.total, [frames[:3] for frames, _ in ours.stacks if frames[1] != "_start"][:20])
        os.killpg(loop.pid, signal.SIGKILL)

    def test_cgroup(self):
        root = self.path("cgroup")
        os.mkdir(root)
        if subprocess.run(["mount", "-t", "cgroup2", "none", root], stderr=subprocess.DEVNULL).returncode:
            raise unittest.SkipTest("needs to mount a cgroup v2 hierarchy")
        self.addCleanup(subprocess.run, ["umount", root])
        group = os.path.join(root, "cprof-test-bpf")
        os.mkdir(group)
        self.addCleanup(os.rmdir, group)
        inside, outside = (self.start(harness.program(name), "20") for name in ("nofp_gcc", "drap"))
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write(str(inside.pid))
        self.addCleanup(inside.wait)
        self.addCleanup(inside.kill)
        self.cprof("record", "--backend", "bpf", "--cgroup", group, "-d", "2", "-o", self.path("out.folded"))
        self.assertGreater(self.folded().of_comm("nofp_gcc").total, 20)
        self.assertEqual(self.folded().of_comm("drap").total, 0)

    def test_forks_and_execs_are_followed(self):
        done = self.record_bpf([harness.program("fork_tree"), "2"])
        self.assertEqual(done.summary.lost, 0)
        self.assert_complete(done.summary, 0.98)
        done = self.record_bpf([harness.program("exec_chain"), "1"])
        self.assert_complete(done.summary, 0.98)
        self.assertGreater(self.folded().of_comm("exec_next").total, 0, "the program after the exec")

    def test_without_inherit_children_are_left_out(self):
        script = f"{harness.program('shares')} 1; exit 0"
        self.record_bpf(["sh", "-c", script], "--no-inherit", "-e", "cpu-clock")
        self.assertEqual(self.folded().of_comm("shares").total, 0)

    def test_libraries_loaded_late(self):
        done = self.record_bpf([harness.program("dlopen_late"), "2"])
        self.assert_complete(done.summary, 0.99)

    def test_depth_kernel_and_frame_pointer_options(self):
        done = self.record_bpf([harness.program("nest200"), "1"], "--max-depth", "50")
        self.assertIn("max-depth", done.summary.reasons)
        copy = [harness.tool("dd"), "if=/dev/zero", "of=/dev/null", "bs=1M", "count=4000"]
        self.record_bpf(copy, "--no-kernel")
        self.assertEqual(self.folded().only(lambda frames: any(is_kernel(f) for f in frames)).total, 0)
        self.record_bpf(copy)
        self.assertGreater(self.folded().only(lambda frames: any(is_kernel(f) for f in frames)).total, 0)
        self.record_bpf([harness.program("nest200"), "1"], "--unwind", "fp")
        self.assertGreater(self.folded().total, 0)


class Events(Bpf):
    def test_switches_and_wakeups(self):
        script = "import time\nfor _ in range(50): time.sleep(0.02)"
        stats = self.stats("--off-cpu", "/usr/bin/python3", "-c", script)
        thread = max(stats["threads"], key=lambda t: t["woken"])
        self.assertGreaterEqual(thread["outs"], 50)
        self.assertLessEqual(thread["outs"] - thread["ins"], 1, "each switch out has its switch in")
        self.assertGreaterEqual(thread["woken"], 50)
        self.assertGreater(thread["off_ns"], 0.95e9)
        self.assertEqual(thread["with_stack"], thread["outs"])
        # By snapshots as long as the interpreter's tables are being made, which takes a busy machine many of its waits.
        self.assertGreaterEqual(thread["complete"] + thread["snapshots"], 0.95 * thread["outs"])
        self.assertGreaterEqual(thread["complete"], 0.4 * thread["outs"])
        self.assertEqual(stats["disorder"], 0)
        self.assertEqual(stats["undefined"], 0)

    def test_the_waker_is_named(self):
        script = ("import os, threading, time\nr, w = os.pipe()\n"
                  "def write():\n for _ in range(50): time.sleep(0.01); os.write(w, b'x')\n"
                  "t = threading.Thread(target=write); t.start()\nfor _ in range(50): os.read(r, 1)\nt.join()")
        stats = self.stats("--off-cpu", "/usr/bin/python3", "-c", script)
        tids = {t["tid"] for t in stats["threads"]}
        reader = max(stats["threads"], key=lambda t: t["woken_by_thread"])
        self.assertGreaterEqual(reader["woken_by_thread"], 40)
        self.assertTrue(set(reader["wakers"]) & tids)

    def test_counts_in_the_kernel_are_exact(self):
        stats = self.stats("--count-only", harness.program("nofp_gcc"), "2")
        self.assertGreater(stats["counted"], 100)
        self.assertEqual(stats["undefined"], 0)
        self.assertGreaterEqual(stats["complete"], 0.999 * stats["walked"])
        self.assertEqual(stats["weight"], (stats["counted"] + stats["samples"]) * (stats["weight"] // (stats["counted"] + stats["samples"])))


class Traces(Bpf):
    def test_a_killed_recording_leaves_no_programs(self):
        before = programs_loaded()
        recorder = subprocess.Popen([harness.CPROF, "record", "--backend", "bpf", "-a", "-o", self.path("out.folded")],
                                    stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.time() + 10
        while time.time() < deadline and not programs_loaded() - before:
            time.sleep(0.05)
        self.assertTrue(programs_loaded() - before, "the recording has loaded its programs")
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        deadline = time.time() + 5
        while time.time() < deadline and programs_loaded() - before:
            time.sleep(0.1)
        self.assertFalse(programs_loaded() - before)


if __name__ == "__main__":
    harness.main()
