"""Hard conditions that every backend must bear: killed itself, a killed target, thousands of short processes, hundreds of
processes with one big file, a process with tens of thousands of mappings. Afterwards nothing is left in the kernel and its log
has no complaint.

test_conditions.py PART; PART is killed, short, shared or mappings. Each runs with every backend that the program has.
Requires: root, perf_event_open; bpftool for the BPF backend; the shared part makes a program of 150 MB (CPROF_BIG is its place).
"""

# verifies: H3, H6
# covers: record --backend

import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
import harness
from backends import WORKS, bpf_state, built_backends
from leftovers import BpfObjects, bpf_objects_of, kernel_complaints, special_descriptors

SHORT_PROCESSES, SHORT_MS = 5000, 2
LEAST_WITH_MAIN = 0.95
LEAST_OF_SHORT = {"perf": 0.97, "bpf": 0.99}
SHARERS, SHARED_MB, SHARED_LIMIT_MB = 200, 150, 300
MAPPING_SECONDS = 20


class Conditions(harness.Live):
    backend = "perf"

    def setUp(self):
        super().setUp()
        harness.need_root()
        harness.need_perf()
        if self.backend == "bpf":
            self.need_bpf()
        self.complaints = kernel_complaints()
        self.addCleanup(self.check_kernel_log)

    def need_bpf(self):
        state, words = bpf_state(harness.CPROF)
        if state != WORKS and not os.path.exists("/sys/kernel/btf/vmlinux"):
            self.skipTest("needs BTF")
        self.assertEqual(state, WORKS, f"this machine has what the eBPF backend needs: {words}")

    def check_kernel_log(self):
        if self.complaints is not None:
            self.assertEqual(kernel_complaints()[len(self.complaints):], [], "the kernel's log")

    def start(self, command):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   start_new_session=True, cwd=self.folder)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(self.end_session, process.pid)
        return process

    @staticmethod
    def end_session(pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def start_target(self, *command):
        return self.start([harness.program(command[0]), *command[1:]])

    def start_recording(self, *arguments):
        return self.start([harness.CPROF, "record", "--backend", self.backend, *arguments])

    def wait_until(self, holds, what, seconds=20):
        end = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), end, f"not within {seconds} s: {what}")
            time.sleep(0.05)

    def wait_until_sampling(self, recorder):
        self.wait_until(lambda: recorder.poll() is not None or special_descriptors(recorder.pid), "cprof has opened its events")
        time.sleep(0.7)
        self.assertIsNone(recorder.poll(), "cprof records")


class Killed(Conditions):
    def test_target_is_killed(self):
        """kill -9 of what is recorded: the run ends by itself and what was recorded is whole."""
        target = self.start_target("two_busy", "30")
        recorder = self.start_recording("-p", str(target.pid), "-d", "25", "-o", self.path("out.folded"))
        self.wait_until_sampling(recorder)
        os.kill(target.pid, signal.SIGKILL)
        target.wait()
        _, stderr = recorder.communicate(timeout=15)
        self.assertEqual(recorder.returncode, 0, stderr.decode())
        self.assertGreater(self.folded().of_comm("two_busy").share_of("start", "climb"), 0.9)

    def test_recorded_command_is_killed(self):
        done = self.record(["/bin/sh", "-c", f"{harness.program('two_busy')} 1; kill -9 $$"], "--backend", self.backend, expect=137)
        self.assertGreater(self.folded().of_comm("two_busy").total, 100, done.stderr)

    def test_cprof_is_killed(self):
        """kill -9 of cprof: what it watched goes on, its events, programs and maps are gone, no half a file has the output's name."""
        objects = BpfObjects()
        target = self.start_target("two_busy", "30")
        recorder = self.start_recording("-p", str(target.pid), "-d", "25", "-o", self.path("out.folded"))
        self.wait_until_sampling(recorder)
        held = bpf_objects_of(recorder.pid)
        if self.backend == "bpf":
            self.assertTrue(any(kind == "prog" for kind, _ in held & objects.now()), "the BPF backend has a program in the kernel")
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        self.assertEqual(objects.left_of(held), set(), "BPF objects that outlive their process")
        self.assertIsNone(target.poll(), "the target lives")
        self.assertFalse(os.path.exists(self.path("out.folded")))
        done = self.cprof("record", "--backend", self.backend, "-p", str(target.pid), "-d", "1", "-o", self.path("out.folded"))
        self.assertGreater(self.folded().total, 50, f"and can be recorded again\n{done.stderr}")

    def test_the_recorded_command_inherits_nothing(self):
        recorder = self.start_recording("-o", self.path("out.folded"), "--", harness.program("two_busy"), "20")
        self.wait_until_sampling(recorder)
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children") as file:
            children = [int(pid) for pid in file.read().split()]
        mine = [pid for pid in children if "two_busy" in os.readlink(f"/proc/{pid}/exe")]
        self.assertEqual(len(mine), 1, "the command is cprof's child")
        self.assertEqual(special_descriptors(mine[0]), [])

    def test_killed_again_and_again(self):
        """At any moment of its start, too."""
        objects, target = BpfObjects(), self.start_target("two_busy", "30")
        held = set()
        for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5):
            recorder = self.start_recording("-p", str(target.pid), "-d", "25", "-o", self.path("out.folded"))
            time.sleep(delay)
            held |= bpf_objects_of(recorder.pid)
            os.kill(recorder.pid, signal.SIGKILL)
            recorder.wait()
        self.assertEqual(objects.left_of(held), set())
        self.assertIsNone(target.poll(), "the target lives")


class ShortProcesses(Conditions):
    def test_thousands(self):
        done = self.record([harness.program("children"), str(SHORT_PROCESSES), str(SHORT_MS)], "--backend", self.backend, "-F", "999",
                           timeout=200)
        summary, folded = done.summary, self.folded()
        children = folded.of_comm("child_20ms")
        self.assertGreater(children.total, SHORT_PROCESSES * SHORT_MS // 5, done.stderr)
        self.assertLessEqual(summary.lost, 0.01 * summary.samples, done.stderr)
        # The dynamic linker's start is part of so short a life.
        self.assertGreaterEqual(children.count_with("main", "child_work"), 0.5 * children.total, done.stderr)
        self.assertLessEqual(children.unnamed_leaves(), 0.1 * children.total, done.stderr)
        self.assertGreaterEqual(summary.complete_share, LEAST_OF_SHORT[self.backend], done.stderr)


class SharedBinary(Conditions):
    def big_program(self):
        """Hundreds of thousands of functions, each with its unwind information, and one that is busy."""
        path = os.environ.get("CPROF_BIG", "")
        self.assertTrue(path, "CPROF_BIG says where the big program goes")
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            source = os.path.join(HERE, "..", "programs")
            made = self.run_command([harness.tool("gcc-12", "gcc"), "-O2", "-g", f"-I{source}", os.path.join(source, "big_main.c"),
                                     os.path.join(source, "big_text.S"), "-o", path + ".part"], timeout=300)
            self.assertEqual(made.status, 0, made.stderr)
            os.rename(path + ".part", path)
        self.assertGreater(os.path.getsize(path), SHARED_MB * 1e6)
        return path

    def test_hundreds_of_processes_with_one_big_file(self):
        """BIG-05: one table for the file, not one for each process."""
        big = self.big_program()
        for _ in range(SHARERS):
            self.start([big, "60"])
        time.sleep(3)
        recorder = self.start_recording("-a", "-d", "8", "-F", "499", "-o", self.path("out.folded"))
        time.sleep(6)
        maps = sum(kind == "map" for kind, _ in bpf_objects_of(recorder.pid))
        stderr = recorder.stderr.read().decode()
        _, status, usage = os.wait4(recorder.pid, 0)
        recorder.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(recorder.returncode, 0, stderr)
        mine = self.folded().of_comm(os.path.basename(big)[:15])
        print(f"{self.backend}: {mine.total} samples, peak {usage.ru_maxrss / 1024:.0f} MB", flush=True)
        self.assertGreater(mine.total, 500, stderr)
        self.assertGreaterEqual(mine.share_of("main", "big_work"), LEAST_WITH_MAIN, stderr)
        self.assertLess(usage.ru_maxrss / 1024, SHARED_LIMIT_MB, stderr)
        # Tables lie in maps of 4 MB: a few for this file and all others, not one and more for each process.
        self.assertLess(maps, SHARERS // 2, "BPF maps that hold the tables")
        if self.backend == "bpf":
            self.assertGreater(maps, 10)


class ManyMappings(Conditions):
    def test_a_process_that_maps_all_the_time(self):
        """BIG-04: its mappings are not read, sorted and told again for each that is new."""
        done = self.record([harness.program("many_mappings"), str(MAPPING_SECONDS)], "--backend", self.backend, "-F", "199")
        self.assertEqual(done.summary.lost, 0)
        work = self.folded().only(lambda frames: "work_between" in frames)
        self.assertGreaterEqual(work.share_of("main", "work_between"), 0.99, done.stderr)
        cpu, unit = re.search(r"cost:\s+([\d.]+) (ms|s) of CPU", done.stderr).groups()
        cpu_s = float(cpu) * (0.001 if unit == "ms" else 1)
        print(f"{self.backend}: {cpu_s:.2f} s of CPU time in {MAPPING_SECONDS} s", flush=True)
        self.assertLess(cpu_s, 0.05 * MAPPING_SECONDS, done.stderr)


PARTS = {"killed": Killed, "short": ShortProcesses, "shared": SharedBinary, "mappings": ManyMappings}


def tests_of(part):
    """One class for each backend, the only ones that unittest finds: the bases themselves do not run."""
    classes = {f"{part.__name__}_{backend}": backend for backend in built_backends(harness.CPROF)}
    made = {name: type(name, (part,), {"backend": backend, "__module__": __name__}) for name, backend in classes.items()}
    for base in (Conditions, *PARTS.values()):
        del globals()[base.__name__]
    return made


if __name__ == "__main__":
    globals().update(tests_of(PARTS[sys.argv.pop(1)]))
    harness.main()
