"""Stock Debian kernels, booted by software emulation: the static program records test programs inside, and nearly all
stacks are complete, with every backend that the program has.

test_vm.py 6.1     the newest 6.1 of this machine's own release
test_vm.py others  the newest of every other line that the archive has
Environment: CPROF_STATIC, CPROF_PROGRAMS, CPROF_VM (a folder for kernels and logs), CPROF_BACKENDS (default: perf, and bpf
when the program has it), CPROF_VM_LINES (say 5.10,7.3: only these of the others).
Requires: x86-64, qemu-system-x86_64, busybox, a Debian kernel package.
"""

# verifies: A11k, AR5

import json
import os
import platform
import re
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "live", "lib"))
import guest
import harness
import kernels
from backends import built_backends
from folded import Folded

STATIC = os.environ.get("CPROF_STATIC", "")
FOLDER = os.environ.get("CPROF_VM", "")
LEAST = 0.995
FIRST_LINE = (6, 1)
FIRST_BPF_LINE = (5, 10)
# What the first line runs with every build; the others run all of it.
QUICK = ("nofp_gcc", "nofp_static_pie", "plt_lazy", "altstack", "vdso_loop", "drap")
MORE = ("nofp_clang", "nofp_static", "nofp_lld", "nest200", "debug_frame", "exceptions", "threads8")
SECONDS, LEAST_SAMPLES = 2, 100
HZ = 499  # emulated, a snapshot is dear: at 999 Hz the rings fill while cprof starts
# On a busy machine the guest gives few samples, and most of them of its program's first moments, where the stack's own page
# may not be there yet: so many are judged as if they were this many.
FEW_SAMPLES = 1000
SOME_SAMPLES = 5
RECORD_SECONDS = 60  # of the guest's time, should it hang
# What a stack begins with; Debian's libc and ld.so have no names for their own start code.
ROOTS = ("_start", "start_thread", "clone", "__clone", "main", "_dl_", "[libc.so.6+", "[ld-linux-x86-64.so.2+")


# One of the two CPUs goes away and comes back while the whole machine is recorded; then each sample's CPU and time.
# Done here and not on the machine that runs the tests: whoever else works there would lose half of it.
# The CPU that comes back must have worked for 4 s before the recording ends: under emulation that can take much longer than 4 s.
BUSY_TICKS = 400
HOTPLUG = f"TICKS={BUSY_TICKS}" + """
switch=/sys/devices/system/cpu/cpu1/online
/programs/two_busy 80 &
/cprof record --backend $1 -a -F 199 -o /tmp/out.txt &
recorder=$!
for try in $(seq 100); do
  ls -l /proc/$recorder/fd | grep -q perf_event && break
  sleep 0.2
done
sleep 2
echo 0 >$switch
echo "away $(cut -d' ' -f1 /proc/uptime)"
sleep 1.5
busy() { awk '/^cpu1 / { print $2 + $3 + $4 }' /proc/stat; }
echo "back $(cut -d' ' -f1 /proc/uptime)"
echo 1 >$switch
for try in $(seq 100); do
  before=$(busy) && [ -n "$before" ] && break
  sleep 0.2
done
for try in $(seq 150); do
  [ $(($(busy) - before)) -ge $TICKS ] && break
  sleep 0.2
done
echo "busy $(($(busy) - before)) of cpu$(cat /sys/devices/system/cpu/online)"
kill -INT $recorder
wait $recorder
echo "status $?"
killall two_busy
grep -o '^two_busy.*: *[0-9]* cpu-clock' /tmp/out.txt | grep -o '\\[[0-9]*\\] [0-9.]*'
rm -f /tmp/out.txt
"""
NOT_THERE = guest.Part("", None)


def is_inside_exec(frames):
    """The new program is not there yet, the old one's registers still are: such a sample has no stack to unwind."""
    return frames[1].startswith("[0x") and any("execve" in frame for frame in frames[2:])


def is_cut_below_a_handler(frames):
    """altstack's handler has a stack of its own. A snapshot, which stands in for bpf too while tables are being made, holds that
    stack only, and whether the one below can do without depends on where the signal came (docs/unwind.md, "What stays
    incomplete"). Under emulation it comes in few places, again and again."""
    return "main" not in frames and any(frame == "on_alarm" or "sigreturn" in frame for frame in frames)


def backends():
    named = os.environ.get("CPROF_BACKENDS")
    return named.split(",") if named else built_backends(STATIC)


def script_for(programs, modes):
    lines = ["run release 5 uname -r", "run doctor 60 /cprof doctor"]
    for mode in modes:
        for name in programs:
            record = f"/cprof record --backend {mode} -F {HZ} -o /tmp/out.folded -- /programs/{name} {SECONDS}"
            lines.append(f"run {mode}.{name} {RECORD_SECONDS} {record}")
            lines.append(f"run {mode}.{name}.folded 20 cat /tmp/out.folded; rm -f /tmp/out.folded")
        lines.append(f"run {mode}.hotplug {2 * RECORD_SECONDS} sh /hotplug {mode}")
        if mode == "bpf":
            lines.append(f"run bpf.cpustat {RECORD_SECONDS} /cprof cpustat -q --json --backend bpf -i 0.5 -- /programs/time_shares 3")
    return "\n".join(lines) + "\n"


class Kernel(unittest.TestCase):
    def setUp(self):
        if platform.machine() != "x86_64":
            self.skipTest("needs x86-64 for this emulated machine")
        for need in (guest.QEMU, "busybox"):
            harness.tool(need)

    def check_kernel(self, kernel, programs, modes):
        """Boots once and checks every recording; the failures name kernel, backend and program."""
        programs = [name for name in programs if os.access(os.path.join(harness.PROGRAMS, name), os.X_OK)]
        self.assertGreater(len(programs), 4, "the test programs are built")
        archive = guest.initramfs(STATIC, [os.path.join(harness.PROGRAMS, name) for name in [*programs, "two_busy", "time_shares"]], script_for(programs, modes),
                                  {"/hotplug": HOTPLUG})
        name, started = os.path.basename(kernel), time.monotonic()
        console = guest.boot(kernel, archive, os.path.join(FOLDER, name + ".log"), 60 + 20 * len(programs) * len(modes))
        parts = guest.parts_of(console)
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
        if parts.get("end", NOT_THERE).status != 0:
            self.fail(f"{name} did not come to the end of its script:\n{console[-3000:]}")
        with self.subTest(kernel=name, what="kernel log"):
            self.assertEqual(parts["kernel-log"].text, "")
        for mode in modes:
            with self.subTest(kernel=name, backend=mode, what="hotplug"):
                self.check_hotplug(parts[f"{mode}.hotplug"], mode)
            if mode == "bpf":
                with self.subTest(kernel=name, backend=mode, what="cpustat"):
                    self.check_cpustat(parts["bpf.cpustat"])
            for program in programs:
                with self.subTest(kernel=name, backend=mode, program=program):
                    self.check_recording(parts[f"{mode}.{program}"], parts[f"{mode}.{program}.folded"], mode, program)

    def check_recording(self, recorded, folded_part, mode, program):
        self.assertEqual(recorded.status, 0, recorded.text[-2000:])
        summary, folded = harness.Summary(recorded.text), Folded(folded_part.text)
        self.assertTrue(summary.has_stacks, recorded.text[-2000:])
        self.assertEqual(folded.total, summary.samples)
        in_exec = folded.only(is_inside_exec).total
        below_handler = folded.only(is_cut_below_a_handler).total
        print(f"  {mode} {program}: {summary.complete} of {summary.total} complete, {in_exec} inside exec, {below_handler} cut below a "
              f"handler, {summary.lost} lost", flush=True)
        self.assertGreater(summary.total, LEAST_SAMPLES, recorded.text)
        broken, judged = summary.total - summary.complete - in_exec - below_handler, max(summary.total - in_exec, FEW_SAMPLES)
        self.assertLessEqual(broken, (1 - LEAST) * judged, recorded.text)
        rooted = folded.only(lambda frames: frames[1].startswith(ROOTS))
        self.assertGreaterEqual(rooted.total, summary.complete - 0.01 * folded.total,
                                "what is called complete begins where a program begins")

    def check_hotplug(self, part, mode):
        self.assertIn("status 0\n", part.text, part.text[:3000])
        away, back = (float(re.search(rf"^{word} ([\d.]+)$", part.text, re.MULTILINE)[1]) for word in ("away", "back"))
        samples = [(int(cpu), float(at)) for cpu, at in re.findall(r"^\[(\d+)\] ([\d.]+)", part.text, re.MULTILINE)]
        counts = {(cpu, phase): sum(1 for on, at in samples if on == cpu and first < at < last)
                  for cpu in (0, 1) for phase, first, last in (("before", 0, away - 0.2), ("away", away, back), ("after", back, back + 60))}
        busy = int(re.search(r"^busy (\d+) ", part.text, re.MULTILINE)[1])
        print(f"  {mode} hotplug: {counts}, {busy} ticks", flush=True)
        for phase in ("before", "away", "after"):
            self.assertGreater(counts[0, phase], SOME_SAMPLES, f"{phase}: the other CPU's samples go on")
        self.assertGreater(counts[1, "before"], SOME_SAMPLES)
        self.assertEqual(counts[1, "away"], 0, "what is offline has no samples")
        self.assertGreaterEqual(busy, BUSY_TICKS, "the CPU came back and had work")
        self.assertGreater(counts[1, "after"], SOME_SAMPLES, "a CPU that comes back is sampled again")

    def check_cpustat(self, part):
        """CPU time, waits and switches of threads are those that the program measured."""
        self.assertEqual(part.status, 0, part.text[-2000:])
        rows = [json.loads(line) for line in part.text.splitlines() if line.startswith("{")]
        truth = [line.split() for line in part.text.splitlines() if line.startswith("do-")]
        self.assertEqual(len(truth), 7, part.text[-2000:])
        for name, tid, _, cpu, _, _, wait, voluntary, _ in truth:
            own = [row for row in rows if row["tid"] == int(tid)]
            cpu_ns = sum(row["user_ns"] + row["kernel_ns"] for row in own)
            # After its last look at the clock it has still to print and to end, which an emulator on a busy machine may stretch.
            self.assertGreaterEqual(cpu_ns, 0.97 * int(cpu) - 20e6, f"{name}: {own}")
            self.assertLessEqual(cpu_ns, 1.03 * int(cpu) + 1e9, f"{name}: {own}")
            self.assertLessEqual(abs(sum(row["switches_voluntary"] for row in own) - int(voluntary)), 5 + 0.03 * int(voluntary), name)
            if name == "do-sleep":
                slept = sum(row["waits_ns"]["sleep"] for row in own)
                self.assertGreater(slept, 0.2 * int(wait), f"{name}: {own}")
                self.assertGreater(slept, 0.9 * sum(sum(row["waits_ns"].values()) for row in own), f"{name}: {own}")
        print(f"  bpf cpustat: {len(rows)} rows", flush=True)

    def test_first_line(self):
        """The kernel that most machines of this release run."""
        try:
            kernel = kernels.newest_image(FIRST_LINE, FOLDER)
        except kernels.NoKernel as error:
            self.skipTest(f"needs a Debian kernel package: {error}")
        self.check_kernel(kernel, QUICK, backends())

    def test_other_lines(self):
        booted, only = 0, os.environ.get("CPROF_VM_LINES")
        try:
            for line, kernel, words in kernels.all_images(FOLDER):
                print(words, flush=True)
                if kernel is None or line == FIRST_LINE or (only and f"{line[0]}.{line[1]}" not in only.split(",")):
                    continue
                modes = [mode for mode in backends() if mode != "bpf" or line >= FIRST_BPF_LINE]
                with self.subTest(kernel=os.path.basename(kernel)):
                    self.check_kernel(kernel, QUICK + MORE, modes)
                booted += 1
        except kernels.NoKernel as error:
            self.skipTest(f"needs a Debian kernel package: {error}")
        if not booted:
            self.skipTest("needs a Debian kernel package of another line")


class ConsoleText(unittest.TestCase):
    """What this test believes of a console's text, on texts made here."""

    def test_parts(self):
        parts = guest.parts_of("boot\n<<<< a\none\ntwo\n>>>> a 0\n<<<< b\ncut")
        self.assertEqual((parts["a"].text, parts["a"].status), ("one\ntwo\n", 0))
        self.assertEqual((parts["b"].text, parts["b"].status), ("cut", None))

    def test_newest_package(self):
        names = ["linux-image-6.1.0-9-cloud-amd64", "linux-image-6.1.0-57-cloud-amd64", "linux-image-6.12-cloud-amd64",
                 "linux-image-6.12.9+deb12-cloud-amd64", "linux-image-6.1.0-57-rt-amd64"]
        self.assertEqual(kernels.newest_by_line(names), {(6, 1): names[1], (6, 12): names[3]})

    def check(self, complete, folded):
        text = f"samples: 1,000\nstacks complete:  x % ({complete} of 1,000)\n  cut: {1000 - complete}\nlost: 0\n"
        text = text.replace("x %", f"{complete / 10} %")
        Kernel().check_recording(guest.Part(text, 0), guest.Part(folded, 0), "perf", "x")

    def test_what_passes_and_what_does_not(self):
        self.check(995, "a;_start;main 995\na;f 5\n")
        self.check(990, "a;_start;main 990\na;[0x6b];x_execve_[k] 10\n")
        self.check(900, "a;_start;main 900\na;work_in_loop;[libc.so.6+0x3c050];on_alarm;work_in_handler 100\n")
        for complete, folded in ((994, "a;_start;main 994\na;f 6\n"), (994, "a;_start;main;on_alarm 994\na;work_in_loop 6\n"),
                                 (999, "a;_start;main 900\na;f 100\n"), (999, "a;_start 99\n")):
            with self.assertRaises(AssertionError):
                self.check(complete, folded)


SELECTIONS = {"6.1": "Kernel.test_first_line", "others": "Kernel.test_other_lines", "self": "ConsoleText"}

if __name__ == "__main__":
    sys.argv[1:2] = [SELECTIONS[sys.argv[1]]]
    harness.main()
