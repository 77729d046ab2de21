"""Hard conditions: interrupts, full disks, targets that are not there, losses.

Requires: root or CAP_PERFMON, perf_event_open; the small disk needs root and mount.
"""

# verifies: H3, CL1, A1
# covers: record --event --count --stack-size --output --format

import os
import random
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from pftrace import Trace
from pprof import Profile


class Interrupt(harness.Live):
    OUTPUTS = ("out.folded", "out.pb.gz", "out.pftrace", "out.txt")

    def setUp(self):
        super().setUp()
        harness.need_perf()

    def interrupted_after(self, seconds, signal_number=signal.SIGINT):
        outputs = [argument for name in self.OUTPUTS for argument in ("-o", self.path(name))]
        process = subprocess.Popen([harness.CPROF, "record", *outputs, "--", harness.program("nofp_gcc"), "20"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   start_new_session=True, cwd=self.folder)
        try:
            time.sleep(seconds)
            os.killpg(process.pid, signal_number)  # as a terminal does: the target too
            _, stderr = process.communicate(timeout=20)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return process.returncode, stderr.decode(errors="replace")

    def test_ctrl_c_at_any_moment_leaves_whole_files(self):
        moments = random.Random(7)
        wrote = 0
        for round_number in range(8):
            seconds = moments.choice((0.0, 0.02, 0.05, 0.1)) + moments.random() * 0.6
            status, stderr = self.interrupted_after(seconds)
            self.assertIn(status, (0, 1, 130, -signal.SIGINT), stderr)
            present = sorted(os.listdir(self.folder))
            self.assertIn(present, ([], sorted(self.OUTPUTS)), f"all or nothing, no temporary: {present}\n{stderr}")
            if present:
                wrote += 1
                self.folded()
                self.assertEqual(Profile(self.read("out.pb.gz")).broken_rules(), [])
                self.assertEqual(Trace(self.read("out.pftrace")).broken, [])
            for name in present:
                os.unlink(self.path(name))
        self.assertGreaterEqual(wrote, 4, "an interrupted run writes what it has")

    def test_term(self):
        _, stderr = self.interrupted_after(0.6, signal.SIGTERM)
        self.assertGreater(self.folded().total, 100, stderr)

    def test_hangup(self):
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            self.skipTest("runs under nohup")
        _, stderr = self.interrupted_after(0.6, signal.SIGHUP)
        self.assertGreater(self.folded().total, 0, stderr)


class Targets(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def test_no_such_command(self):
        done = self.record(["./no-such-command-anywhere"], expect=127)
        self.assert_one_line(done)
        self.assertIn("no-such-command-anywhere", done.stderr)
        self.assert_no_leftovers()

    def test_not_executable(self):
        with open(self.path("plain"), "w") as file:
            file.write("x")
        done = self.record([self.path("plain")], expect=126)
        self.assert_one_line(done)

    def test_target_that_exits_at_once(self):
        self.record([harness.tool("true")])
        self.assertTrue(os.path.exists(self.path("out.folded")))

    def test_status_is_passed_on(self):
        self.record(["/bin/sh", "-c", "exit 42"], expect=42)

    def test_death_by_signal_is_passed_on(self):
        self.record(["/bin/sh", "-c", "kill -9 $$"], expect=137)

    def test_no_such_process(self):
        done = self.cprof("record", "-p", "4194303", "-d", "1", "-o", self.path("out.folded"), expect=1)
        self.assert_one_line(done)
        self.assertIn("4194303", done.stderr)
        self.assert_no_leftovers()

    def test_no_such_event(self):
        done = self.record([harness.tool("true")], "-e", "no-such-event", expect=None)
        self.assertIn(done.status, (1, 2))
        self.assertIn("no-such-event", done.stderr)
        self.assert_no_leftovers()

    def test_target_dies_while_attached(self):
        target = subprocess.Popen([harness.program("shares"), "1"], start_new_session=True)
        self.addCleanup(target.wait)
        self.cprof("record", "-p", str(target.pid), "-d", "20", "-o", self.path("out.folded"), timeout=15)
        self.assertGreater(self.folded().total, 50)

    def test_output_of_the_command_is_its_own(self):
        done = self.record(["/bin/sh", "-c", "echo to-stdout; echo to-stderr >&2"])
        self.assertEqual(done.stdout, b"to-stdout\n")
        self.assertIn("to-stderr\n", done.stderr)

    def test_signals_of_the_command_are_as_without(self):
        """A broken pipe ends a command that does not expect one; what its starter ignored stays ignored."""
        tool = harness.tool("grep")
        for ignored in ((), (signal.SIGPIPE,)):
            def prepare(ignored=ignored):
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                for number in ignored:
                    signal.signal(number, signal.SIG_IGN)
            command = [tool, "^Sig[BI]", "/proc/self/status"]
            alone = subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=prepare, restore_signals=False, check=True)
            recorded = subprocess.run([harness.CPROF, "record", "-q", "-o", self.path("out.folded"), "--", *command],
                                      stdout=subprocess.PIPE, preexec_fn=prepare, restore_signals=False, check=True)
            self.assertEqual(recorded.stdout, alone.stdout)


class FullDisk(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def test_dev_full(self):
        done = self.cprof("record", "-o", "/dev/full", "--format", "folded", "--", harness.program("shares"), "0.3", expect=1)
        complaints = [line for line in done.lines() if "No space left" in line]
        self.assertEqual(len(complaints), 1, done.stderr)
        self.assertIn("/dev/full", complaints[0])

    def test_small_file_system(self):
        harness.need_root()
        mount, umount = harness.tool("mount"), harness.tool("umount")
        small = self.path("small")
        os.mkdir(small)
        if subprocess.run([mount, "-t", "tmpfs", "-o", "size=16k", "tmpfs", small], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs mount of a tmpfs")
        self.addCleanup(subprocess.run, [umount, "-l", small])
        done = self.record([harness.program("nofp_gcc"), "0.7"], outputs=("small/out.pftrace",), expect=1)
        self.assertTrue([line for line in done.lines() if "No space left" in line and "out.pftrace" in line], done.stderr)
        self.assertEqual(os.listdir(small), [], "no partial file")

    def test_folder_that_is_not_there(self):
        done = self.cprof("record", "-o", self.path("none/out.folded"), "--", harness.program("shares"), "10", expect=1, timeout=5)
        self.assertTrue([line for line in done.lines() if "none/out.folded" in line], "said before the command runs its time")


class NoDescriptors(harness.Live):
    """What cprof cannot write to takes nothing from the recording."""

    def run_without(self, *closed, limit=None):
        def prepare():
            for number in closed:
                os.close(number)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        path = self.path("out.folded")
        done = subprocess.run([harness.CPROF, "record", "-o", path, "--", harness.program("shares"), "0.2"], preexec_fn=prepare,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
        return done, path

    def test_closed(self):
        harness.need_perf()
        for closed in ((2,), (0, 1, 2)):
            done, path = self.run_without(*closed)
            self.assertEqual(done.returncode, 0, closed)
            with open(path, encoding="utf-8") as file:
                self.assertNotIn("samples:", file.read(), "the summary went into the output")

    def test_files_may_not_grow(self):
        harness.need_perf()
        done, path = self.run_without(limit=0)
        said = [line for line in done.stderr.decode().splitlines() if "File too large" in line]
        self.assertEqual((done.returncode, len(said)), (1, 1), done.stderr)
        self.assertIn("out.folded", said[0])


class Losses(harness.Live):
    def test_received_plus_lost_is_all(self):
        """LOST-01: far more data than the rings hold; every event is received or counted."""
        harness.need_perf()
        events = 100000
        done = self.record([harness.program("faults"), str(events)], "-e", "page-faults", "-c", "1", "--stack-size", "65528")
        summary = done.summary
        self.assertIsNotNone(summary.lost, f"the summary says how many were lost:\n{done.stderr}")
        self.assertGreaterEqual(summary.samples + summary.lost, 0.999 * events, done.stderr)
        self.assertGreater(summary.lost, 0, "this much must overflow; else the test shows nothing")


if __name__ == "__main__":
    harness.main()
