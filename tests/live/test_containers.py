"""Programs in mount and pid namespaces, roots and file systems of their own are named, and by their own files only.

Requires: root, unshare, mount.
"""

# verifies: A5
# covers: record --backend

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness


class Containers(harness.Live):
    SECONDS = "0.5"

    def setUp(self):
        super().setUp()
        harness.need_root()
        harness.need_perf()
        self.unshare, self.box = harness.tool("unshare"), self.path("box")
        os.mkdir(self.box)

    def record_inside(self, script, *options):
        """The script runs in a mount namespace of its own; once by each backend. Gives what was recorded, by backend."""
        for backend in ("perf", "bpf"):
            with self.subTest(backend=backend):
                command = [self.unshare, "--mount", "--propagation", "private", *options, "sh", "-ec", script]
                done = self.record(command, "--backend", backend, "--no-kernel", timeout=90)
                yield done, self.folded()

    def check_shares(self, folded):
        program = folded.only(lambda frames: frames[0] == "shares")
        self.assertGreater(program.count_with("share_sixty"), 0.3 * folded.total, sorted({f[-1] for f, _ in folded.stacks})[:20])
        unnamed = program.only(lambda frames: any("shares+0x" in frame for frame in frames))
        self.assertLessEqual(unnamed.total, 0.02 * program.total + 1)

    def test_a_file_that_only_its_namespace_has(self):
        """CTR-01, where the namespace is gone before names are looked up."""
        shutil.copy(harness.program("two_busy"), self.path("box/shares"))
        script = f"mount -t tmpfs none {self.box}; cp {harness.program('shares')} {self.box}/shares; {self.box}/shares {self.SECONDS}"
        for _, folded in self.record_inside(script):
            self.check_shares(folded)

    def test_a_root_of_its_own(self):
        """As a container has it: its pid namespace, its /proc, and nothing of the host's files."""
        program = harness.program("nofp_static")
        os.makedirs(self.path("box/proc"))
        shutil.copy(program, self.path("box/app"))
        script = f"mount -t proc proc {self.box}/proc; exec {harness.tool('chroot')} {self.box} /app {self.SECONDS}"
        for done, folded in self.record_inside(script, "--pid", "--fork"):
            app = folded.only(lambda frames: frames[0] == "app")
            self.assertGreater(app.count_with("main"), 0.2 * app.total, sorted({f[-1] for f, _ in folded.stacks})[:20])
            self.assertLessEqual(app.only(lambda frames: any(frame.startswith("[app+0x") for frame in frames)).total, 0.02 * app.total + 1)

    def test_a_process_that_changes_its_root(self):
        """CTR-03: where it lies now its program is not."""
        os.mkdir(self.path("empty"))
        loop = (f"import os, time\nos.chroot('{self.path('empty')}')\nend = time.process_time() + {self.SECONDS}\n"
                "while time.process_time() < end: sum(range(10000))")
        harness.write_text(self.path("loop.py"), loop)
        for done, folded in self.record_inside(f"exec {harness.tool('python3')} {self.path('loop.py')}"):
            self.assertGreater(folded.only(lambda frames: any("_PyEval_EvalFrame" in f or "builtin_sum" in f for f in frames)).total,
                               0.5 * folded.total, sorted({f[-1] for f, _ in folded.stacks})[:20])
            self.assertLessEqual(len(done.lines()), 60, "no flood of lines")


if __name__ == "__main__":
    harness.main()
