"""What stacks must hold in code that unwinders get wrong.

Requires: root or CAP_PERFMON, perf_event_open.
"""

# verifies: A2
# covers: record --no-inline --max-depth --stack-size --freq

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness


class UnwindCases(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def stacks_of(self, name, *options, seconds="2"):
        self.done = self.record([harness.program(name), seconds], *options)
        return self.folded()

    def assert_mostly(self, folded, names, least=0.95):
        share = folded.share_of(*names)
        self.assertGreaterEqual(share, least, f"{';'.join(names)} in {100 * share:.2f} % of the samples")

    def test_debug_frame_only(self):
        """UNW-01"""
        folded = self.stacks_of("debug_frame")
        self.assert_mostly(folded, ["main", "df_a", "df_b", "df_c", "df_spin"])
        run = ["main", "df_a", "df_b", "df_c", "df_spin"]
        for frames, count in folded.with_frame("df_spin").stacks:
            at = frames.index("main")
            self.assertEqual(frames[at : at + 5], run, "nothing between, nothing missing")

    def test_vfork(self):
        """UNW-03: every sample inside vfork holds its callers."""
        harness.need_root()  # a task's own timer hardly ever fires in a loop of forks: sample the CPUs
        target = subprocess.Popen([harness.program("vfork_loop"), "4"], start_new_session=True)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        self.cprof("record", "-a", "-F", "4999", "-d", "2", "-o", self.path("out.folded"))
        folded = self.folded().of_comm("vfork_loop")
        inside = folded.only(lambda frames: any("vfork" in frame for frame in frames[1:] if not frame.startswith("run_")))
        self.assertGreater(inside.total, 20)
        self.assertEqual(inside.count_with("main", "run_vforks"), inside.total)

    def test_no_unwind_tables_but_frame_pointers(self):
        """UNW-05"""
        self.assert_mostly(self.stacks_of("nocfi"), ["main", "nocfi_mid"])

    def test_lazy_plt(self):
        """UNW-06: samples in the stub have the loop and main above."""
        folded = self.stacks_of("plt_lazy")
        self.assert_mostly(folded, ["main", "call_through_plt"], 0.98)
        in_stub = folded.only(lambda frames: "plt" in frames[-1] and frames[-1] != "call_through_plt")
        self.assertGreater(in_stub.total, 0, "PLT stubs are named name@plt")
        self.assertEqual(in_stub.count_with("main", "call_through_plt"), in_stub.total)

    def test_depth_200(self):
        """UNW-11"""
        folded = self.stacks_of("nest200")
        self.assert_mostly(folded, ["main"] + [f"nested_{i}" for i in range(200)], 0.99)

    def test_max_depth_keeps_the_leaf_side(self):
        """UNW-11"""
        folded = self.stacks_of("nest200", "--max-depth", "64", "--no-inline")
        deep = folded.only(lambda frames: "nested_198" in frames)
        self.assertGreaterEqual(deep.total, 0.95 * folded.total)
        expected = [f"nested_{i}" for i in range(200)][-60:]
        for frames, count in deep.stacks:
            self.assertIn("[truncated]", frames[1:3], "the mark is at the root side")
            user = [frame for frame in frames[1:] if frame != "[truncated]" and not frame.endswith("_[k]")]
            self.assertEqual(len(user), 64)
            self.assertTrue("".join(expected) in "".join(user), "the leaf side is intact")
        self.assertGreater(self.done.summary.reasons.get("max-depth", 0), 0, self.done.stderr)

    def test_small_window_is_said(self):
        """UNW-10: the summary has number and share, and names the option; with a large window nothing is cut."""
        self.stacks_of("nest200", "--stack-size", "1024")
        summary = self.done.summary
        self.assertLess(summary.complete_share, 0.5, summary.text)
        self.assertGreater(summary.reasons.get("truncated-snapshot", 0), 0, summary.text)
        self.assertIn("--stack-size", summary.text)
        self.stacks_of("nest200", "--stack-size", "65528")
        self.assertEqual(self.done.summary.reasons.get("truncated-snapshot", 0), 0, self.done.stderr)

    def test_alternate_stack_joins_both(self):
        folded = self.stacks_of("altstack")
        handler = folded.with_frame("work_in_handler")
        self.assertGreater(handler.total, 100)
        # The rest: the interrupted stack had changed before it was read (docs/unwind.md, "What stays incomplete").
        self.assert_mostly(handler, ["main", "work_in_handler"], 0.96)

    def test_other_linkers(self):
        """SYM-03"""
        for linker in ("lld", "mold"):
            folded = self.stacks_of(f"nofp_{linker}", seconds="1")
            for name in ("recurse", "sort_something", "with_alloca", "one_round"):
                self.assertGreater(folded.count_with(name), 0, f"{name}, linked by {linker}")
            unnamed = {frame for frames, _ in folded.stacks for frame in frames if frame.startswith(f"[nofp_{linker}+0x")}
            self.assertEqual(unnamed, set(), "all code of the program has names, its PLT too")
            main_or_thread = folded.count_with("run_until", "one_round")
            self.assertGreaterEqual(main_or_thread, 0.95 * folded.total, linker)


if __name__ == "__main__":
    harness.main()
