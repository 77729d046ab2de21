"""Names of code that a compiler makes while the program runs: perf maps and jitdumps, that grow, and out of reach at the end."""
# verifies: A9j, A9p
# covers: record --python
# covers: top --python

import glob
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import harness

SCRIPT = """
function hot_inner(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum + i * 7) % 1000003; return sum; }
function late_inner(n) { let sum = 1; for (let i = 1; i < n; i++) sum = (sum * 3 + i) % 999983; return sum; }
function cpu() { const used = process.cpuUsage(); return (used.user + used.system) / 1000; }
let total = 0;
for (const start = cpu(); cpu() - start < 700;) total += hot_inner(200000);
for (const start = cpu(); cpu() - start < 700;) total += late_inner(200000);
console.log(total);
"""


PYTHON = """
import json, time
def inner(): return json.loads("[" + "1," * 20000 + "1]")
class Outer:
    def method(self): return inner()
end = time.process_time() + 0.8
while time.process_time() < end: Outer().method()
"""


class Moved(harness.Live):
    """JIT-09: what lies at a place depends on the time."""

    def test_code_that_moves_and_is_replaced(self):
        harness.need_perf()
        for backend in ("perf", "bpf") if os.geteuid() == 0 else ("perf",):
            with self.subTest(backend=backend):
                self.record([harness.program("jit_move"), "1.2", self.folder], "--backend", backend, "--no-kernel", "--save-raw", self.path("run.raw"))
                self.check(self.folded())
                self.cprof("convert", self.path("run.raw"), "-o", self.path("again.folded"))
                self.assertEqual(self.read("again.folded"), self.read("out.folded"))

    def check(self, folded):
        for phase, leaf in (("while_loaded", "f_[j]"), ("while_moved", "f_[j]"), ("while_stale", None), ("while_replaced", "g_[j]")):
            of_phase = folded.only(lambda frames: phase in frames[:-1])
            self.assertGreater(of_phase.total, 0.03 * folded.total, phase)
            right = of_phase.only(lambda frames: frames[-1] == leaf if leaf else frames[-1].startswith("[") and frames[-1].endswith("]_[j]"))
            self.assertGreaterEqual(right.total, 0.97 * of_phase.total - 2, f"{phase}: {sorted({f[-1] for f, _ in of_phase.stacks})}")


class Python(harness.Live):
    def test_frames_alone_and_without(self):
        harness.need_perf()
        for backend in ("perf", "bpf") if os.geteuid() == 0 else ("perf",):
            with self.subTest(backend=backend):
                command = [harness.program("python_frames"), "0.8"]
                self.record(command, "--backend", backend, "--no-kernel", outputs=("out.cprof",))
                mixed, only, hidden = (self.convert("--python", mode) for mode in ("mixed", "only", "hide"))
                outer, inner = "py::outer:/srv/app.py_[j]", "py::A.inner:/srv/app.py_[j]"
                self.assertGreater(mixed.count_with("Py_RunMain", outer, "_PyEval_Vector", inner, "_PyEval_EvalFrameDefault", "library_work"), 0.4 * mixed.total)
                self.assertEqual({tuple(frames[1:]) for frames, _ in only.stacks} - {(outer,), (outer, inner)}, set())
                self.assert_share(only.only(lambda frames: frames[-1] == inner).total / only.total, 2 / 3, "inner", 0.08)
                self.assert_share(only.total / mixed.total, 3 / 4, "inside of Python", 0.08)
                self.assertEqual(hidden.total, mixed.total)
                with_python = hidden.only(lambda frames: any("py::" in frame for frame in frames))
                self.assertEqual(with_python.total, only.total)
                self.assertGreater(with_python.count_with("main", outer, inner, "library_work"), 0.4 * hidden.total)
                self.assertFalse([frames for frames, _ in with_python.stacks if any(f.startswith(("Py_", "_Py")) for f in frames)])
                self.assertGreater(hidden.count_with("Py_RunMain", "startup_work"), 0.1 * hidden.total)
                self.record(command, "--backend", backend, "--no-kernel", "--python", "only", outputs=("out.folded",))
                self.assertEqual({frames[0] for frames, _ in self.folded().stacks}, {"python_frames"})
                self.assertEqual({frames[1] for frames, _ in self.folded().stacks}, {outer})

    def test_top(self):
        harness.need_perf()
        picture = self.cprof("top", "--batch", "-i", "1", "--count", "1", "--no-kernel", "--python", "only", "--",
                             harness.program("python_frames"), "3", expect=None).stdout.decode()  # it is asked to end
        self.assertIn("py::A.inner", picture)
        self.assertNotIn("library_work", picture)

    def test_where_nothing_is_python_all_is_written(self):
        harness.need_perf()
        done = self.record([harness.program("shares"), "0.3"], "--python", "only")
        self.assertEqual(len(done.notes("everything was written")), 1, done.stderr)
        self.assertGreater(self.folded().count_with("share_sixty"), 0)

    def test_the_interpreter_itself(self):
        harness.need_perf()
        python = self.python_with_trampolines()
        harness.write_text(self.path("app.py"), PYTHON)
        self.record([python, "-X", "perf", self.path("app.py")], "--no-kernel", outputs=("out.cprof",), timeout=120)
        hidden = self.convert("--python", "hide")
        frames = [f"py::{name}:{self.path('app.py')}_[j]" for name in ("Outer.method", "inner")]
        self.assertGreater(hidden.count_with(*frames), 0.5 * hidden.total)
        with_python = [frames for frames, _ in hidden.stacks if any("py::" in frame for frame in frames)]
        self.assertFalse([frames for frames in with_python if any(f.startswith(("_PyEval_", "Py_Run", "PyObject_Vectorcall")) for f in frames)])
        self.cprof("convert", self.path("out.cprof"), "--python", "only", "-o", self.path("out.folded"))
        method = self.folded().only(lambda frames: any(frame.startswith("py::Outer.method:") for frame in frames))
        self.assertGreater(method.total, 0.7 * self.folded().total)
        self.assertGreater(method.only(lambda frames: any(frame.startswith("py::inner:") for frame in frames)).total, 0.8 * method.total)
        self.assertFalse([frames for frames, _ in self.folded().stacks if any(not frame.startswith("py::") for frame in frames[1:])])

    def python_with_trampolines(self):
        """A command of that name may be a shim for none."""
        names = [shutil.which(f"python3.{minor}") for minor in range(20, 11, -1)]
        for path in filter(None, names + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python3")))):
            if self.run_command([path, "-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())"]).status == 0:
                return path
        self.skipTest("needs python3.12 or python3.13")

    def convert(self, *options):
        self.cprof("convert", self.path("out.cprof"), *options, "-o", self.path("view.folded"))
        return self.folded("view.folded")


class Jit(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_root()
        harness.need_perf()
        self.node = harness.tool("node")
        harness.write_text(self.path("work.js"), SCRIPT)

    def check(self, *options, command):
        for backend in ("perf", "bpf"):
            with self.subTest(backend=backend, command=command):
                self.record(command, "--backend", backend, "--no-kernel", *options, timeout=180)
                folded = self.folded()
                for name in ("hot_inner", "late_inner"):
                    share = folded.only(lambda frames: any(re.search(rf"\b{name}\b.*_\[j\]$", frame) for frame in frames)).total / folded.total
                    self.assertGreater(share, 0.15, f"{name}: {sorted({frames[-1] for frames, _ in folded.stacks})[:40]}")

    def test_a_perf_map(self):
        self.check(command=[self.node, "--perf-basic-prof", self.path("work.js")])

    def test_a_jitdump(self):
        self.check(command=[self.node, "--perf-prof", self.path("work.js")])

    def test_a_perf_map_in_namespaces_that_are_gone(self):
        inside = f"mount -t tmpfs none /tmp && mkdir -p {self.folder} && cat > {self.path('in.js')} && exec {self.node} --perf-basic-prof {self.path('in.js')}"
        command = [harness.tool("sh"), "-c", f"exec {harness.tool('unshare')} --mount --pid --fork sh -c '{inside}' < {self.path('work.js')}"]
        self.check(command=command)


if __name__ == "__main__":
    harness.main()
