"""Recordings that are bounded: by a size, in several files, or to their last seconds.

Requires: root or CAP_PERFMON, perf_event_open; a C compiler for the program with ever new stacks.
"""

# verifies: CL9
# covers: record --max-size --rotate --overwrite-window

import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from pftrace import Trace


FAULTS = 60_000


class Limits(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()
        self.new_stacks = harness.program("new_stacks")

    def files(self, pattern):
        return sorted((name for name in os.listdir(self.folder) if re.fullmatch(pattern, name)),
                      key=lambda name: int(re.search(r"\.(\d+)\.", name)[1]))

    def start(self, *options, outputs=("w.folded",), seconds="5"):
        to = [argument for name in outputs for argument in ("-o", self.path(name))]
        process = subprocess.Popen(
            [harness.CPROF, "record", *options, *to, "--", self.new_stacks, seconds], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, cwd=self.folder)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end_of(self, process, status=0):
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, stderr.decode())
        return stderr.decode()

    def wait_for(self, name, seconds=20):
        end = time.monotonic() + seconds
        while not os.path.exists(self.path(name)):
            self.assertLess(time.monotonic(), end, f"{name} was not written")
            time.sleep(0.05)


class Size(Limits):
    def test_max_size_stops(self):
        begin = time.monotonic()
        done = self.record([self.new_stacks, "40"], "-F", "2000", "--max-size", "128K", expect=128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 35)
        self.assertIn("stopped at its --max-size", done.stderr)
        self.assertGreater(self.folded().total, 50)
        self.assert_no_leftovers("out.folded")

    def test_max_size_counts_the_raw_capture(self):
        self.record([self.new_stacks, "40"], "--max-size", "4M", "--save-raw", self.path("raw.data"), expect=128 + signal.SIGTERM)
        size = os.path.getsize(self.path("raw.data"))
        self.assertGreater(size, 3 << 20)
        self.assertLess(size, 40 << 20)
        again = self.cprof("convert", self.path("raw.data"), "--format", "folded", "-o", "-").stdout.decode()
        self.assertEqual(again, self.read("out.folded").decode())

    def test_rotate_goes_on_in_the_next_file(self):
        """All parts together are the recording: of a program whose events are known, nothing is twice and nothing left out."""
        done = self.record([harness.program("faults"), str(FAULTS)], "-e", "page-faults", "-c", "1", "--max-size", "128K", "--rotate", "1000",
                           outputs=("r.folded",))
        parts = self.files(r"r\.\d+\.folded")
        self.assertGreaterEqual(len(parts), 3, done.stderr)
        self.assertEqual(parts, [f"r.{i}.folded" for i in range(len(parts))])
        self.assert_no_leftovers(*parts)
        for part in parts[:-1]:
            self.assertIn(f"wrote {self.path(part)}", done.stderr)
        counted = sum(self.folded(part).count_with("main", "touch_pages") for part in parts)
        self.assertLessEqual(abs(counted + done.summary.lost - FAULTS), 0.001 * FAULTS, done.stderr)

    def test_rotate_keeps_the_newest(self):
        self.record([self.new_stacks, "3"], "-F", "2000", "--max-size", "64K", "--rotate", "2", outputs=("r.folded", "r.pb.gz"))
        parts = self.files(r"r\.\d+\.folded")
        self.assertEqual(len(parts), 2, parts)
        self.assertEqual(self.files(r"r\.\d+\.pb\.gz"), [part.replace("folded", "pb.gz") for part in parts])
        self.assertGreater(int(parts[0].split(".")[1]), 0)

    def test_parts_follow_each_other_in_time(self):
        self.record([self.new_stacks, "3"], "-F", "2000", "--max-size", "128K", "--rotate", "1000", outputs=("t.pftrace",))
        last = 0
        for part in self.files(r"t\.\d+\.pftrace"):
            times = [sample[0] for sample in Trace(self.read(part)).samples]
            self.assertGreater(min(times), last, part)
            last = max(times)


class Window(Limits):
    def test_the_last_seconds_are_kept(self):
        process = self.start("--overwrite-window", "1", outputs=("w.folded", "w.pftrace"), seconds="4")
        stderr = self.end_of(process)
        times = [sample[0] for sample in Trace(self.read("w.pftrace")).samples]
        self.assertLessEqual((max(times) - min(times)) / 1e9, 1.3)
        self.assertGreater(self.folded("w.folded").total, 100, stderr)
        self.assert_no_leftovers("w.folded", "w.pftrace")

    def test_sigusr2_writes_and_recording_goes_on(self):
        process = self.start("--overwrite-window", "30", seconds="6")
        time.sleep(1.5)
        process.send_signal(signal.SIGUSR2)
        self.wait_for("w.0.folded")
        time.sleep(1)
        process.send_signal(signal.SIGUSR2)
        self.wait_for("w.1.folded")
        stderr = self.end_of(process)
        first, second, last = (self.folded(name).total for name in ("w.0.folded", "w.1.folded", "w.folded"))
        self.assertLess(first, second)
        self.assertLess(second, last)
        self.assertIn("wrote " + self.path("w.0.folded"), stderr)
        self.assert_no_leftovers("w.0.folded", "w.1.folded", "w.folded")

    def test_rotate_keeps_the_newest_dumps(self):
        process = self.start("--overwrite-window", "2", "--rotate", "1", seconds="6")
        for number in range(2):
            time.sleep(1)
            process.send_signal(signal.SIGUSR2)
            self.wait_for(f"w.{number}.folded")
        self.end_of(process)
        self.assert_no_leftovers("w.1.folded", "w.folded")

    def test_interrupt_writes_the_window(self):
        process = self.start("--overwrite-window", "1", seconds="30")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        self.end_of(process, status=128 + signal.SIGTERM)
        self.assert_no_leftovers("w.folded")
        self.assertGreater(self.folded("w.folded").total, 50)

    def test_memory_stays_flat(self):
        """Ever new stacks: without a window memory grows with each, with one it does not."""
        processes = [self.start("-F", "4000", *options, outputs=(name,), seconds="22")
                     for name, options in (("w.folded", ("--overwrite-window", "1")), ("all.folded", ()))]
        sizes = []  # what is held for a moment anyway is there after some seconds
        for _ in range(20):
            time.sleep(1)
            sizes.append([self.memory_of(process) for process in processes])
        for process in processes:
            self.end_of(process)
        windowed, whole = (last - early for last, early in zip(sizes[-1], sizes[7]))
        self.assertLess(windowed, whole / 2, f"{windowed} kB with a window, {whole} kB without, from the 8th to the 20th second")

    @staticmethod
    def memory_of(process):
        with open(f"/proc/{process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


if __name__ == "__main__":
    harness.main()
