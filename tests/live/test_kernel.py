"""Kernel stacks: there, hidden, not allowed.

Requires: root; the unprivileged part needs setpriv and a perf_event_paranoid of 2 or less.
"""

# verifies: A3
# covers: record --no-kernel

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness


class Kernel(harness.Live):
    DD = ("if=/dev/zero", "of=/dev/null", "bs=1", "count=2000000")

    def setUp(self):
        super().setUp()
        harness.need_perf()

    def dd(self):
        return [harness.tool("dd"), *self.DD]

    def test_user_root_to_kernel_leaf(self):
        with open("/proc/kallsyms") as file:
            if int(file.readline().split()[0], 16) == 0:
                self.skipTest("needs kallsyms with addresses")
        self.record(self.dd())
        folded = self.folded()
        in_kernel = folded.only(lambda frames: frames[-1].endswith("_[k]"))
        self.assertGreater(in_kernel.total, 0.3 * folded.total)
        reads = in_kernel.only(lambda frames: any("read" in f or "write" in f for f in frames if f.endswith("_[k]")))
        self.assertGreater(reads.total, 0.5 * in_kernel.total, "kernel functions are named")
        for frames, _ in folded.stacks:
            kinds = [frame.endswith("_[k]") for frame in frames[1:]]
            self.assertEqual(kinds, sorted(kinds), f"user frames first, kernel after: {frames}")
        with_root = in_kernel.only(lambda frames: any("_start" in f or "libc_start" in f for f in frames[1:4]))
        self.assertGreaterEqual(with_root.total, 0.98 * in_kernel.total, "from the user's root")

    def test_no_kernel_option(self):
        self.record(self.dd(), "--no-kernel")
        self.assertFalse([frames for frames, _ in self.folded().stacks if any(f.endswith("_[k]") for f in frames)])


class KallsymsHidden(harness.Live):
    def test_user_stacks_go_on_with_one_line(self):
        """kptr_restrict is 2 for the time of this test: root sees zeros too."""
        harness.need_root()
        path = "/proc/sys/kernel/kptr_restrict"
        with open(path) as file:
            before = file.read()
        try:
            with open(path, "w") as file:
                file.write("2")
        except OSError:
            self.skipTest("needs root that may write kptr_restrict")
        try:
            done = self.record([harness.tool("dd"), *Kernel.DD])
        finally:
            with open(path, "w") as file:
                file.write(before)
        folded = self.folded()
        self.assertGreaterEqual(folded.only(lambda frames: not frames[1].endswith("_[k]")).total, 0.95 * folded.total)
        self.assertEqual(len(done.notes("kptr_restrict")), 1, done.stderr)


class Unprivileged(harness.Live):
    def test_user_stacks_without_privileges(self):
        os.chmod(self.folder, 0o777)
        done = self.run_as_nobody("record", "-F", "3999", "-o", self.path("out.folded"), "--", harness.program("shares"), "2")
        self.assertEqual(done.status, 0, done.stderr)
        folded = self.folded()
        self.assertGreater(folded.total, 100, done.stderr)
        self.assert_share(folded.share_of("main", "share_sixty"), 0.6, "share_sixty")
        self.assertFalse([f for f, _ in folded.stacks if f[-1].endswith("_[k]")])
        self.assertEqual(len(done.notes("perf_event_paranoid")), 1, f"why there are no kernel stacks:\n{done.stderr}")

    def test_not_allowed_at_all(self):
        """Whole machine without rights: status 1 and one line that names what to change."""
        done = self.run_as_nobody("record", "-a", "-d", "1", "--format", "folded", "-o", "/dev/null")
        self.assertEqual(done.status, 1, done.stderr)
        self.assert_one_line(done)
        self.assertIn("perf_event_paranoid", done.stderr)
        self.assert_no_leftovers()


if __name__ == "__main__":
    harness.main()
