"""Off-CPU beside on-CPU: what each thread waited for and how long, against what the program measured itself.

test_off_cpu.py perf|bpf
Requires: root (switch stacks and wake-ups are kernel events), tracefs, a disk that can be written in the current folder.
"""

# verifies: A7, A6, A10, C3
# covers: record --off-cpu --weight
# covers: convert --weight
# covers: report --weight

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
import pftrace
import pprof
from folded import holds_in_order

BACKEND = sys.argv.pop(1) if sys.argv[1:2] and sys.argv[1] in ("perf", "bpf") else "perf"
MS, ROUNDS = 20, 20
# kind of wait -> the class of what the kernel does in it
CLASSES = {"sleep": "sleep", "futex": "futex", "mutex": "futex", "pipe": "io", "socket": "network", "poll": "poll",
           "epoll": "poll", "fsync": "io", "fault": "memory"}
LONG = [kind for kind in CLASSES if kind not in ("fsync", "fault")]  # that wait MS each time


def only_on(backend):
    """A test of what one backend does: for the other it does not exist."""
    return lambda test: test if BACKEND == backend else None


class States:
    """The lanes of a trace: thread name -> {state: nanoseconds}, and how long the lane is from end to end."""

    def __init__(self, trace):
        self.time, self.span, self.wakers = {}, {}, {}
        for track, name, begin, duration, _ in trace.slices:
            if trace.tracks[track]["name"] != "state":
                continue
            thread = trace.tracks[trace.tracks[track]["parent"]]["name"]
            states = self.time.setdefault(thread, {})
            states[name] = states.get(name, 0) + duration
            first, last = self.span.get(thread, (begin, begin))
            self.span[thread] = min(first, begin), max(last, begin + duration)

    def of(self, thread, state):
        return self.time.get(thread, {}).get(state, 0)


class OffCpu(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_root()
        if BACKEND == "bpf":
            harness.need_bpf()

    def record(self, command, *options, **others):
        return super().record(command, "--backend", BACKEND, *options, **others)

    def near(self, actual, expected, what, share=0.05, slack_ns=2e6):
        self.assertLessEqual(abs(actual - expected), share * expected + slack_ns,
                             f"{what}: {actual / 1e6:.1f} ms instead of {expected / 1e6:.1f}")

    def trace(self, name="out.pftrace"):
        trace = pftrace.Trace(self.read(name))
        self.assertEqual(trace.broken, [])
        return trace

    def convert_folded(self, *options):
        self.cprof("convert", self.path("run.raw"), *options, "-o", self.path("again.folded"))
        return self.folded("again.folded")


def stolen_ns():
    """Time in which the hypervisor ran somebody else, over all CPUs: a thread is on its CPU then, but its CPU clock stands."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Waits(OffCpu):
    @classmethod
    def measure(cls, case):
        """One recording for all tests of this class."""
        if not hasattr(cls, "done"):
            stolen = stolen_ns()
            cls.done = case.record([harness.program("waits"), str(MS), str(ROUNDS), case.folder], "--off-cpu", "--by",
                                   "thread", "--save-raw", case.path("run.raw"),
                                   outputs=("out.pftrace", "out.pb.gz", "out.txt"), cwd=os.getcwd())
            cls.stolen = stolen_ns() - stolen
            cls.raw = case.read("run.raw")
            cls.files = {name: case.read(name) for name in ("out.pftrace", "out.pb.gz", "out.txt")}
            cls.measured = {}
            for line in cls.done.stdout.decode().splitlines():
                name, count, total, cpu = line.split()
                cls.measured[name] = int(count), int(total), int(cpu)
        else:
            for name, data in [("run.raw", cls.raw), *cls.files.items()]:
                with open(case.path(name), "wb") as file:
                    file.write(data)

    def setUp(self):
        super().setUp()
        self.measure(self)

    def test_durations_of_each_wait_by_its_function(self):
        off = self.convert_folded("--weight", "offcpu", "--by", "thread")
        wall = self.convert_folded("--weight", "wall", "--by", "thread")
        for kind in CLASSES:
            _, total, cpu = self.measured[kind]
            in_function = lambda frames: frames[1] == f"wait-{kind}" and holds_in_order(frames, [f"wait_{kind}"])
            # The short ones last a few milliseconds in all, a few intervals between samples.
            slack_ns = 2e6 if kind in LONG else 8e6
            self.near(1000 * wall.only(in_function).total, total, f"wall time of wait_{kind}", slack_ns=slack_ns)
            if kind in LONG:  # the others run much between their waits, and a machine may be taken away while they do
                self.near(1000 * off.only(in_function).total, total - cpu, f"off the CPU in wait_{kind}")

    def test_classes(self):
        states = States(self.trace())
        off = self.convert_folded("--weight", "offcpu", "--by", "thread")
        for kind, wanted in CLASSES.items():
            _, total, cpu = self.measured[kind]
            thread, least = f"wait-{kind}", MS * 1e6 * ROUNDS
            in_class = states.of(thread, wanted)
            others = sum(states.of(thread, c) for c in set(CLASSES.values()) | {"lock", "other"} if c not in (wanted, "futex"))
            stacks = off.only(lambda frames: frames[1] == thread)
            # A thousand short waits: where rings ran full their stacks are lost, and said to be.
            unknown = 1000 * stacks.only(lambda frames: frames[2:] == ["[unknown]"]).total if kind not in LONG else 0
            if others - unknown > 0.05 * in_class + 1e6:
                self.fail("\n".join([f"{thread}: {states.time[thread]}"] +
                                    [f"{us} us {';'.join(frames)}" for frames, us in stacks.stacks]))
            if kind in LONG:
                self.assertGreaterEqual(in_class, 0.95 * least, f"{thread} waits for {wanted}")
                if wanted != "futex":  # the barrier before each round is one too
                    self.assertLessEqual(in_class, 1.05 * total, f"{thread} waits for {wanted}")
            else:
                here = off.only(lambda frames: frames[1] == thread and holds_in_order(frames, [f"wait_{kind}"]))
                self.assertLessEqual(in_class, 1.05 * 1000 * here.total + 1e6, f"{thread} waits for {wanted}")
                self.assertGreaterEqual(in_class + states.of(thread, "sched"), 0.95 * 1000 * here.total,
                                        f"{thread} waits for {wanted}, and is runnable else")
                self.assertGreater(in_class, 0, f"{thread} waits for {wanted}")

    def test_a_pair_that_shares_a_cpu_is_runnable_not_waiting(self):
        states = States(self.trace())
        for thread in ("spin-a", "spin-b"):
            _, wall, cpu = self.measured[thread]
            self.near(states.of(thread, "sched"), wall - cpu, f"{thread} runnable", slack_ns=10e6 + self.stolen)
            self.near(states.of(thread, "on CPU"), cpu, f"{thread} on a CPU", slack_ns=5e6 + self.stolen)
            self.assertGreater(states.of(thread, "sched"), 0.3 * wall, f"{thread} shares its CPU")

    def test_on_and_off_add_up_to_each_life(self):
        states = States(self.trace())
        for thread, times in states.time.items():
            first, last = states.span[thread]
            self.near(sum(times.values()), last - first, thread, share=0.01, slack_ns=1e5)

    def test_samples_are_those_of_cpu_time_only(self):
        samples = self.convert_folded("--weight", "samples")
        self.assertEqual(samples.total, self.done.summary.samples)
        for kind in ("sleep", "poll", "epoll", "pipe"):
            self.assertLess(samples.count_with(f"wait_{kind}"), 30, f"wait_{kind} took nearly no CPU time")

    def test_pprof_has_the_same_sums(self):
        profile = pprof.Profile(self.read("out.pb.gz"))
        self.assertEqual(profile.broken_rules(), [])
        self.assertIn(("offcpu", "nanoseconds"), profile.types())
        off = self.convert_folded("--weight", "offcpu")
        total = sum(value for _, value in profile.stacks("offcpu"))
        self.near(1000 * off.total, total, "off-CPU time", share=0.001)
        again = self.path("from_pprof.folded")
        self.cprof("convert", self.path("out.pb.gz"), "--weight", "offcpu", "-o", again)
        self.near(1000 * self.folded("from_pprof.folded").total, total, "read back", share=0.001)

    def test_text_reads_back(self):
        self.cprof("convert", self.path("out.txt"), "--weight", "offcpu", "-o", self.path("from_text.folded"))
        off = self.convert_folded("--weight", "offcpu")
        self.near(self.folded("from_text.folded").total, off.total, "off-CPU time", share=0.001)

    def test_wall_is_every_threads_time(self):
        wall = self.convert_folded("--weight", "wall", "--by", "thread")
        states = States(self.trace())
        for kind in LONG:
            thread = f"wait-{kind}"
            mine = 1000 * wall.only(lambda frames: frames[1] == thread).total
            self.near(mine, sum(states.time[thread].values()), f"{thread} wall", slack_ns=5e6)

    def test_summary_and_report(self):
        self.assertRegex(self.done.stderr, r"off the CPU:\s+[\d.]+ m?s in [\d,]+ waits: ")
        self.assertIn("longest waits", self.done.stderr)
        report = self.cprof("report", self.path("run.raw"), "--weight", "offcpu", "--tree").stdout.decode()
        self.assertIn("wait_poll", report)
        self.assertIn("offcpu", report)

    def test_replay_is_the_same(self):
        for name in self.files:
            self.cprof("convert", self.path("run.raw"), "-o", self.path("again." + name))
            self.assertTrue(self.read("again." + name) == self.files[name], f"{name} differs in a replay")


class Example(OffCpu):
    def test_fifty_two_hundred_fifty(self):
        """50 ms on a CPU, 200 ms waiting for a lock, 50 ms on: about 100 samples, and the lock's time in wall time."""
        done = self.record([harness.program("lock_wait")], "--off-cpu", "--weight", "wall", "--save-raw",
                           self.path("run.raw"), outputs=("out.folded", "out.pftrace"))
        first, lock, second = (int(line) for line in done.stdout.split())
        samples = self.convert_folded("--weight", "samples")
        self.assertLessEqual(abs(samples.count_with("work_wait_work") - 100), 12, "samples of 100 ms of CPU at 999 Hz")
        self.assertLessEqual(samples.count_with("take_the_lock"), 3)
        wall = self.folded()
        self.near(1000 * wall.count_with("work_wait_work"), first + lock + second, "wall time", slack_ns=5e6)
        self.near(1000 * wall.count_with("work_wait_work", "take_the_lock"), lock, "wall time of the lock", slack_ns=5e6)
        trace = self.trace()
        whole = [s for s in trace.slices if s[1] == "work_wait_work"]
        self.assertEqual(len(whole), 1, "one slice over all three parts")
        inside = [s for s in trace.slices if s[1] == "take_the_lock"]
        self.near(sum(s[3] for s in inside), lock, "slice of the lock", slack_ns=5e6)


class Limits(OffCpu):
    @only_on("bpf")  # perf's stacks are thinned
    def test_a_storm_of_switches_is_recorded_whole(self):
        """Not one switch is lost, not one stack thinned: as many waits as the kernel counted switches."""
        cpu = str(sorted(os.sched_getaffinity(0))[-1])
        done = self.record([harness.program("switch_storm"), "2", cpu], "--off-cpu", "--by", "thread", outputs=("out.pb.gz",))
        switches = sum(int(line.split()[1]) for line in done.stdout.decode().splitlines())
        waits = harness.number(re.search(r"in ([\d,]+) waits", " ".join(done.stderr.split()))[1])
        print(f"{switches / 2:,.0f} switches a second, {waits:,} waits of {switches:,}", flush=True)
        for word in ("lost", "thinned", "unpaired"):
            self.assertEqual([note for note in done.notes(word) if not re.match(r"lost:\s+0$", note.splitlines()[0])], [], done.stderr)
        # Shorter than 1 us is dropped and counted; the command's own life before and after its threads is more than they tell.
        short = sum(harness.number(count) for count in re.findall(r"([\d,]+) .*shorter than", done.stderr))
        self.assertGreaterEqual(waits + short, switches - 2)
        self.assertLessEqual(waits, 1.01 * switches + 100)

    @only_on("perf")  # bpf takes them all
    def test_a_storm_of_switches_is_thinned_and_keeps_its_total(self):
        done = self.record([harness.program("switch_storm"), "1"], "--off-cpu", "--save-raw", self.path("run.raw"),
                           outputs=("out.pb.gz", "out.pftrace"))
        said = " ".join(done.stderr.split())
        waits = harness.number(re.search(r"in ([\d,]+) waits", said)[1])
        if waits > 10_000:  # a second; a slow machine may stay below the limit of 5,000
            self.assertIn("more than 5,000 switches a second", said)
        off = self.convert_folded("--weight", "offcpu", "--by", "thread")
        states = States(self.trace())
        for thread in ("ping", "pong"):
            exact = sum(time for state, time in states.time[thread].items() if state != "on CPU")
            mine = 1000 * off.only(lambda frames: frames[1] == thread).total
            if done.summary.lost:  # which the lane shows as the state before, and no wait has
                self.assertLessEqual(mine, 1.05 * exact, thread)
            else:
                self.near(mine, exact, f"{thread}: thinned stacks")

    def test_no_kernel_stacks(self):
        """Times and user stacks stay; the class of what blocked is not known then."""
        self.record([harness.program("lock_wait")], "--off-cpu", "--no-kernel", "--weight", "offcpu")
        off = self.folded()
        self.assertGreater(off.count_with("take_the_lock"), 190_000)
        self.assertFalse([frames for frames, _ in off.stacks if any(f.endswith("_[k]") for f in frames)])

    def test_a_running_process(self):
        """Threads that wait already when the recording begins."""
        import subprocess
        import time
        target = subprocess.Popen([harness.program("waits"), "50", "40", self.folder], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.3)
            self.cprof("record", "--backend", BACKEND, "--off-cpu", "-p", str(target.pid), "-d", "1", "-o", self.path("out.pftrace"))
        finally:
            target.kill()
            target.wait()
        states = States(self.trace())
        self.assertGreater(states.of("wait-sleep", "sleep"), 0.7e9, states.time)
        for thread, times in states.time.items():
            first, last = states.span[thread]
            self.near(sum(times.values()), last - first, thread, share=0.01, slack_ns=1e5)

    @only_on("perf")  # bpf needs rights
    def test_unprivileged_says_what_is_missing(self):
        os.chmod(self.folder, 0o777)
        done = self.run_as_nobody("record", "--backend", BACKEND, "--off-cpu", "-o", self.path("out.pftrace"), "--", harness.program("lock_wait"))
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(len(done.notes("waits have no stacks")), 1, done.stderr)
        self.assertEqual(len(done.notes("wake-ups are not seen")), 1, done.stderr)
        self.assertGreater(States(self.trace()).of("holder", "other"), 190e6, "times stay exact")

    def test_offcpu_weight_needs_the_recording(self):
        for arguments in (["--weight", "offcpu"], ["--metric", "offcpu"]):
            done = self.record(["/bin/true"], *arguments, expect=2)
            self.assert_one_line(done)
            self.assertIn("--off-cpu", done.stderr)
        self.record(["/bin/true"], outputs=("out.folded",))
        done = self.cprof("report", self.path("out.folded"), "--weight", "offcpu", expect=1)
        self.assert_one_line(done)


if __name__ == "__main__":
    harness.main()
