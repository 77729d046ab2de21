"""A replay of a run's raw capture gives the same profile, byte for byte.

Requires: root or CAP_PERFMON, perf_event_open.
"""

# verifies: H5, H1
# covers: record --save-raw
# covers: convert --output

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness


class Replay(harness.Live):
    OUTPUTS = ("live.folded", "live.pb.gz", "live.txt", "live.pftrace")

    def setUp(self):
        super().setUp()
        harness.need_perf()

    def assert_same(self, command, *options):
        self.record(command, *options, "--save-raw", self.path("run.raw"), outputs=self.OUTPUTS)
        for name in self.OUTPUTS:
            again = name.replace("live", "again")
            self.cprof("convert", self.path("run.raw"), "-o", self.path(again))
            live, replayed = self.read(name), self.read(again)
            if live != replayed:
                only = set(live.splitlines()) ^ set(replayed.splitlines())
                self.fail("\n".join([f"{again} differs from {name}"] + [line.decode(errors="replace")[:500] for line in list(only)[:6]]))

    def test_threads_and_functions(self):
        self.assert_same([harness.program("nofp_gcc"), "1"])

    def test_processes_that_come_and_go(self):
        self.assert_same([harness.program("children"), "40"])

    def test_dlopen_and_exec(self):
        self.assert_same(["/bin/sh", "-c", f"{harness.program('dlopen_late')} 0.6; exec {harness.program('exec_chain')} 0.6"])

    def test_off_cpu(self):
        self.assert_same([harness.program("waits"), "5", "5", self.folder], "--off-cpu")

    def test_signal_handler_on_another_stack(self):
        self.assert_same([harness.program("altstack"), "1"])

    def test_beside_a_bpf_program_that_comes_and_goes(self):
        """Its name is in the capture: when that is replayed, no kernel knows it any more."""
        harness.need_root()
        bpftrace, copy = harness.tool("bpftrace"), [harness.tool("dd"), "if=/dev/zero", "of=/dev/null", "bs=1"]
        program = "tracepoint:raw_syscalls:sys_enter { @[comm] = hist(args->id); @b[args->id] = count(); @c = count(); }"
        for backend in ("perf", "bpf"):
            with self.subTest(backend=backend):
                tracer = subprocess.Popen(["timeout", "2.5", bpftrace, "-q", "-e", program], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL, start_new_session=True)
                self.addCleanup(tracer.wait)
                self.record(copy, "--backend", backend, "-d", "3.5", "--save-raw", self.path("run.raw"), outputs=self.OUTPUTS, expect=None)
                tracer.wait()
                for name in self.OUTPUTS:
                    self.cprof("convert", self.path("run.raw"), "-o", self.path(name.replace("live", "again")))
                    self.assertEqual(self.read(name), self.read(name.replace("live", "again")), name)
                if backend == "bpf":
                    continue  # the kernel runs no sampler inside of another BPF program
                named = self.folded("live.folded").only(lambda frames: any(frame.startswith("bpf_prog_") and frame.endswith("_[k]") for frame in frames))
                self.assertGreater(named.total, 5, sorted({f for frames, _ in self.folded("live.folded").stacks for f in frames if "bpf" in f}))

    def test_cut_raw_file(self):
        """Any cut of the raw file gives one line or a profile, never a crash or half a file."""
        self.record([harness.program("shares"), "0.3"], "--save-raw", self.path("run.raw"), outputs=("live.folded",))
        whole = self.read("run.raw")
        for share in (0, 0.001, 0.01, 0.3, 0.7, 0.999):
            with open(self.path("cut.raw"), "wb") as file:
                file.write(whole[: int(len(whole) * share)])
            done = self.cprof("convert", self.path("cut.raw"), "-o", self.path("cut.folded"), expect=None)
            self.assertIn(done.status, (0, 1), done.stderr)
            self.assertEqual(done.status == 0, os.path.exists(self.path("cut.folded")))
            if done.status == 0:
                self.folded("cut.folded")
                os.unlink(self.path("cut.folded"))
            else:
                self.assert_one_line(done)
                self.assertIn("cut.raw", done.stderr)


if __name__ == "__main__":
    harness.main()
