"""The recording (.cprof) of a live run: complete enough for every other output, and there when the recorder is killed.

Requires: root or CAP_PERFMON, perf_event_open.
"""

# verifies: R1, R2

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness


class Recording(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def rows(self, name, sql):
        database = sqlite3.connect(f"file:{self.path(name)}?mode=ro", uri=True)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()


class Complete(Recording):
    # One run, written to all formats at once: what is made of its recording later is the same.
    def test_outputs_of_the_recording_are_the_direct_ones(self):
        names = ("out.folded", "out.pb", "out.pftrace", "out.txt")
        self.record([harness.program("lock_wait")], "--off-cpu", outputs=("run.cprof", *names))
        for name in names:
            self.cprof("convert", self.path("run.cprof"), "-o", self.path("again-" + name))
            self.assertEqual(self.read("again-" + name), self.read(name), name)
        self.cprof("convert", self.path("run.cprof"), "-o", self.path("again.cprof"))
        self.assertEqual(self.read("again.cprof"), self.read("run.cprof"))
        ((waits, samples),) = self.rows("run.cprof", "SELECT (SELECT count(*) FROM off_cpu), (SELECT count(*) FROM perf_sample)")
        self.assertGreater(waits, 0)
        self.assertGreater(samples, 10)

    def test_it_is_what_record_writes_by_itself(self):
        done = self.cprof("record", "-F", "499", "--", harness.program("shares"), "0.3")
        self.assertIn("profile.cprof", done.stderr)
        self.assert_no_leftovers("profile.cprof")
        self.assertIn(b"share_sixty", self.cprof("report", self.path("profile.cprof")).stdout)


class Killed(Recording):
    def start(self, *options):
        process = subprocess.Popen([harness.CPROF, "record", "-q", *options, "-o", self.path("run.cprof"), "--",
                                    harness.program("shares"), "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(self.kill_all, process)
        return process

    @staticmethod
    def kill_all(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def wait_for_commits(self, count, seconds=60):
        end, seen = time.monotonic() + seconds, set()
        while len(seen) < count:
            self.assertLess(time.monotonic(), end, "no commits")
            time.sleep(0.2)
            try:
                seen.add(os.stat(self.path("run.cprof.part")).st_mtime_ns)
            except FileNotFoundError:
                pass

    def test_the_part_opens(self):
        process = self.start("-F", "999")
        self.wait_for_commits(3)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.assertFalse(os.path.exists(self.path("run.cprof")))
        done = self.cprof("convert", self.path("run.cprof.part"), "-o", self.path("out.folded"))
        self.assertIn("cut off", done.stderr)
        folded = self.folded()
        self.assertGreater(folded.total, 100)
        text = self.read("out.folded").decode()
        self.assertRegex(text, r"(^|\n)shares;.*main;")
        self.assertIn(b"main", self.cprof("report", "--tree", self.path("run.cprof.part")).stdout)
        # Finished once, it is a recording like any other.
        self.cprof("convert", self.path("run.cprof.part"), "-o", self.path("run.cprof"))
        done = self.cprof("convert", self.path("run.cprof"), "-o", self.path("again.folded"))
        self.assertEqual(self.read("again.folded"), self.read("out.folded"))
        self.assertEqual(self.rows("run.cprof", "SELECT value FROM stats WHERE name = 'recording_cut_off'"), [(1,)])

    # While the recording goes on anyone may look; the end takes the part away.
    def test_it_can_be_read_meanwhile(self):
        process = self.start("-F", "499")
        self.wait_for_commits(1)
        for _ in range(3):
            self.cprof("report", self.path("run.cprof.part"))
        ((samples,),) = self.rows("run.cprof.part", "SELECT count(*) FROM perf_sample")
        self.assertGreater(samples, 0)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        self.assert_no_leftovers("run.cprof")
        self.assertFalse(re.search("cut off", self.cprof("report", self.path("run.cprof")).stdout.decode()))

    # Rows get new numbers as the window moves on: the part follows.
    def test_of_a_window(self):
        process = self.start("-F", "499", "--overwrite-window", "2")
        self.wait_for_commits(3)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.cprof("convert", self.path("run.cprof.part"), "-o", self.path("out.folded"))
        self.assertGreater(self.folded().total, 100)
        ((first, last),) = self.rows("run.cprof.part", "SELECT min(ts), max(ts) FROM perf_sample")
        self.assertLess(last - first, 4e9)


if __name__ == "__main__":
    harness.main()
