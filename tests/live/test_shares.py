"""Ground truth: programs that do known shares of work, seen through every output and both weights.

Requires: root or CAP_PERFMON, perf_event_open.
"""

# verifies: A10, CL2, CL4, CL7
# covers: record --by
# covers: convert --weight

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from pftrace import Trace
from pprof import Profile

RATE = ("-F", "3999")  # enough samples that 3 points are no chance, also on a machine that is busy with other things

SHARES = {"share_sixty": 0.6, "share_thirty": 0.3, "share_ten": 0.1}


class Shares(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def record_shares(self, *outputs):
        return self.record([harness.program("shares"), "3"], *RATE, outputs=outputs)

    def test_every_output_says_60_30_10(self):
        done = self.record_shares("out.folded", "out.pb.gz", "out.pftrace", "out.txt")
        self.assertGreater(self.folded().total, 300)
        profile = Profile(self.read("out.pb.gz"))
        trace = Trace(self.read("out.pftrace"))
        for name, share in SHARES.items():
            self.assert_share(self.folded().share_of(name), share, f"{name} in folded")
            for value_type in ("samples", "cpu"):
                self.assert_share(profile.share_of(value_type, name), share, f"{name} in pprof's {value_type}")
            self.assert_share(trace.time_share_of(name), share, f"{name} in the trace's slices", 0.1)
            self.assertIn(name, done.stderr, "the summary names the hottest functions")
        self.assertEqual(profile.broken_rules(), [])
        self.assertEqual(trace.broken, [])
        self.assertEqual(profile.types()[:3], [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds")])
        self.assertEqual(len(trace.samples), self.folded().total)
        self.assertIn(b"share_sixty", self.read("out.txt"))

    def test_report_says_60_30_10(self):
        self.record_shares("out.pb.gz")
        text = self.cprof("report", self.path("out.pb.gz")).stdout.decode()
        for name, share in SHARES.items():
            line = next((line for line in text.splitlines() if name in line), "")
            figures = [float(word) for word in line.replace("%", " ").split() if word.replace(".", "", 1).isdigit()]
            self.assertTrue(any(abs(figure / 100 - share) <= 0.03 for figure in figures), f"{name}: {line!r} in\n{text}")

    def test_wall_and_samples_agree(self):
        """A waiting for a CPU is one long piece of wall time: a machine that is busy needs a longer run to even that out."""
        for seconds in (3, 8, 20):
            self.record([harness.program("shares"), str(seconds)], *RATE, outputs=("out.pb.gz", "samples.folded"))
            self.cprof("convert", self.path("out.pb.gz"), "--weight", "wall", "-o", self.path("wall.folded"))
            wall, samples = self.folded("wall.folded"), self.folded("samples.folded")
            self.assert_share(wall.total / 1e6, seconds, "wall is in microseconds, the whole run", 0.2 * seconds)
            differences = {name: wall.share_of(name) - samples.share_of(name) for name in SHARES}
            if all(abs(difference) <= 0.03 for difference in differences.values()):
                return
        self.fail(f"wall less samples: {differences}")


class Threads(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def test_eight_named_threads(self):
        self.record([harness.program("threads8"), "3"], "--by", "thread", *RATE, outputs=("out.folded", "out.pb.gz"))
        folded = self.folded()
        workers = folded.only(lambda frames: any(frame.startswith("worker_") for frame in frames))
        self.assertGreater(workers.total, 300)
        profile = Profile(self.read("out.pb.gz"))
        by_function = {f"worker_{k}": profile.share_of("samples", f"worker_{k}") for k in range(8)}
        whole = sum(by_function.values())
        for k in range(8):
            expected = (k + 1) / 36
            self.assert_share(workers.share_of(f"worker_{k}"), expected, f"worker_{k} in folded")
            self.assert_share(by_function[f"worker_{k}"] / whole, expected, f"worker_{k} in pprof")
            named = workers.with_frame(f"worker_{k}")
            in_thread = named.only(lambda frames: any(f"worker-{k}" in frame for frame in frames[:3]))
            self.assertGreaterEqual(in_thread.total, 0.99 * named.total, f"worker_{k} runs in thread worker-{k}")

    def test_wall_counts_waiting_for_a_cpu(self):
        """All eight live as long: an eighth of the elapsed time each, whoever got the CPUs."""
        for seconds in (3, 12):  # on a busy machine a thread's first turn may come late
            self.record([harness.program("threads8"), str(seconds), "equal"], *RATE, outputs=("out.pb.gz",))
            profile = Profile(self.read("out.pb.gz"))
            walls = [profile.share_of("wall", f"worker_{k}") for k in range(8)]
            shares = [wall / sum(walls) for wall in walls]
            if all(abs(share - 1 / 8) <= 0.03 for share in shares):
                return
        self.fail(f"not an eighth each: {shares}")

    def test_thread_label_in_pprof(self):
        self.record([harness.program("threads8"), "1"], outputs=("out.pb.gz",))
        names = {str(value) for labels in Profile(self.read("out.pb.gz")).label_sets() for value in labels.values()}
        self.assertTrue({f"worker-{k}" for k in range(1, 8)} <= names, f"thread names as labels: {sorted(names)[:40]}")


if __name__ == "__main__":
    harness.main()
