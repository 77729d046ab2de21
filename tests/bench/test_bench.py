"""The bench's own parts, on data made here: a bench that counts wrongly measures nothing."""

import io
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_formats
import fold_bpftrace
import fold_perf_script
import format_tables
import format_tasks
import inproc_tables
import tables
from measure import Cost, run, statistics_of
from perf_data import facts_of
from rounds import ratios
import perf_goals


def record(kind, body):
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


class PerfData(unittest.TestCase):
    def facts(self, records, size=None):
        body = b"".join(records)
        head = b"PERFILE2" + bytes(32) + struct.pack("<QQ", 104, len(body) if size is None else size)
        with tempfile.NamedTemporaryFile() as file:
            file.write(head.ljust(104, b"\0") + body)
            file.flush()
            return facts_of(file.name)

    def test_samples_losses_and_bytes(self):
        facts = self.facts([record(9, bytes(16)), record(2, struct.pack("<QQ", 1, 7)), record(9, bytes(32)), record(1, bytes(8))])
        self.assertEqual((facts.samples, facts.lost, facts.data_bytes), (2, 7, 24 + 24 + 40 + 16))

    def test_a_loss_that_is_told_twice_counts_once(self):
        lost = [record(2, struct.pack("<QQ", 1, 3)), record(2, struct.pack("<QQ", 1, 4)), record(13, struct.pack("<Q", 9))]
        self.assertEqual(self.facts(lost).lost, 9)

    def test_a_record_without_size_is_refused(self):
        with self.assertRaises(ValueError):
            self.facts([struct.pack("<IHH", 9, 0, 0)])


class Folding(unittest.TestCase):
    def folded(self, module, text):
        out = io.StringIO()
        total = module.fold(io.StringIO(text), out)
        return total, out.getvalue().splitlines()

    def test_bpftrace(self):
        text = "Attaching 1 probe...\n@[\n    leaf+12\n    main+3\n, app]: 4\n@[\n    0x12\n, app]: 1\n@[\n, b]: 1\n"
        self.assertEqual(self.folded(fold_bpftrace, text), (6, ["app;main;leaf 4", "app;0x12 1", "b;[unknown] 1"]))

    def test_perf_script(self):
        text = "app 1 2.0: 1 cpu-clock: \n\t  12 leaf+0x1 (/x)\n\t  13 main+0x2 (/x)\n\napp 1 2.1: 1 cpu-clock: \n\t  12 leaf+0x9 (/x)\n\t 13 main+0x2 (/x)\n\n"
        self.assertEqual(self.folded(fold_perf_script, text), (2, ["app;main;leaf 2"]))


class Tables(unittest.TestCase):
    def part(self, **nanoseconds):
        rows = {"none": {"fault_ns": 100, "lost": 0}}
        rows.update({name.replace("_", " "): {"fault_ns": 100 + value, "lost": 0} for name, value in nanoseconds.items()})
        return {"settings": {"events": 10, "frames": 46}, "rounds": [rows, rows]}

    def test_statistics(self):
        facts = statistics_of([4, 1, 2, 3])
        self.assertEqual((facts["mean"], facts["median"], facts["p95"], facts["least"]), (2.5, 2.5, 4, 1))
        self.assertAlmostEqual(facts["sd"], 1.29099, 4)
        self.assertEqual(statistics_of(range(1, 101))["p95"], 95)
        self.assertEqual(statistics_of([7])["sd"], 0)

    def test_what_is_lost_is_said(self):
        text = tables.losses_section({"faults": self.part(cprof_perf=30, perf_fp=20, bpftrace=40)})
        self.assertIn("- cprof perf, cost of one event: 30.00 ns; less: perf fp 20.00", text)
        self.assertNotIn("bpftrace", text)
        self.assertIn("in none", tables.losses_section({"faults": self.part(cprof_perf=10, perf_fp=20)}))

    def goals(self, **peer):
        ours = {"collector_s": 1.0, "ring_bytes": 10, "file_bytes": 1, "cpu_s": 1.0, "fold_s": 0.0, "lost": 0}
        theirs = {"collector_s": 9.0, "ring_bytes": 2900, "file_bytes": 900, "cpu_s": 20.0, "fold_s": 1.0, **peer}
        return list(perf_goals.verdicts({"main": {"rounds": [{"cprof bpf": ours, "perf dwarf,65528": theirs}]}}))

    def test_goals_are_judged(self):
        verdicts = dict((words.split(": ")[0], verdict) for verdict, words in self.goals(collapse_s=12.0))
        self.assertEqual(verdicts["cprof bpf, CPU time of the recording process"], perf_goals.MET)
        self.assertEqual(verdicts["cprof bpf, bytes from kernel to user"], perf_goals.MISSED)
        self.assertEqual(verdicts["cprof bpf, CPU time to folded stacks"], perf_goals.MET)

    def test_a_goal_that_only_a_quicker_script_missed_is_not_judged(self):
        words = [words for verdict, words in self.goals() if verdict == perf_goals.NOT_JUDGED]
        self.assertEqual(len(words), 1)
        self.assertIn("1/20.0", words[0])

    def test_ratios_are_taken_in_one_round(self):
        rounds = [{"a": {"x": 10}, "b": {"x": 1}}, {"a": {"x": 40}, "b": {"x": 2}}]
        self.assertEqual(ratios(rounds, "a", "b", "x"), [10, 20])

    def test_the_sentence(self):
        row = {"cpu_s": 0.5, "rss_mb": 20, "written_bytes": 3e6}
        results = {"parts": {"main": {"settings": {"seconds": 60, "hz": 999}, "rounds": [{"cprof perf": row, "perf dwarf,16384": row}]}}}
        self.assertIn("cprof's perf backend 0.50 s of CPU time and 20 MB", tables.summary(results))
        self.assertIn("and 3 MB of files", tables.summary(results))

    def test_the_faults_table(self):
        self.assertIn("| cprof perf | 30 (30 to 30) | 0 |", tables.faults_section(self.part(cprof_perf=30)))


class InprocTables(unittest.TestCase):
    def round_of(self, scope_ns, samples, ours_s):
        scopes = {"floor_ns": 20, "scope_ns": scope_ns, "call_ns": 24, "cold_ns": 30, "cold_faults": 0, "disabled_ns": 0.9, "empty_ns": 0.6}
        return {"scopes": {"1": scopes},
                "samples": {"1 @ 1000": {"cpu_s": 2, "samples": samples, "lost": 0, "weighed_s": 2.01, "evenness": 1.0},
                            "gperftools @ 1000": {"cpu_s": 2, "samples": 500}},
                "overhead": {"none": {"target_s": 10, "all_s": 10}, "libcprof @ 1000": {"target_s": ours_s, "all_s": 11},
                             "perf -g @ 1000": {"target_s": 10.5, "all_s": 11}}}

    def results(self, **values):
        one = self.round_of(**values)
        settings = {"scopes": {"instructions": 4}, "samples": {"seconds": 2}, "overhead": {"seconds": 5}}
        parts = {name: {"settings": settings[name], "rounds": [one[name], one[name]]} for name in one}
        return {"parts": parts, "machine": {"cpu": "c", "cpus": 2, "memory": "m", "kernel": "k", "load": 0.1}, "versions": {}}

    def test_goals(self):
        self.assertTrue(all(met for met, _ in inproc_tables.verdicts(self.results(scope_ns=21, samples=1960, ours_s=10.5))))
        missed = [words for met, words in inproc_tables.verdicts(self.results(scope_ns=25, samples=1800, ours_s=10.7)) if not met]
        self.assertEqual(len(missed), 3)
        self.assertIn("a scope, times the floor, 1 thread: 1.25", missed[0])
        self.assertIn("90.0 %", missed[1])
        self.assertIn("at 1000 Hz, times perf record -g's: 1.40", missed[2])

    def test_page(self):
        text = inproc_tables.page(self.results(scope_ns=21, samples=1960, ours_s=10.5))
        self.assertIn("| 2, gperftools | 1000 | 25.0 (25.0 to 25.0) | n/a |", text)
        self.assertIn("| libcprof @ 1000 | 5.00 (5.00 to 5.00) | 10.00 (10.00 to 10.00) |", text)
        self.assertIn("4.00 instructions", text)


class Measuring(unittest.TestCase):
    BUSY = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"

    def test_what_a_command_leaves_running_counts(self):
        alone, with_orphan = run(["sh", "-c", "true"]), run(["sh", "-c", f"({self.BUSY}) & exit 0"])
        self.assertGreater(with_orphan.cpu_s, 5 * alone.cpu_s)
        self.assertGreater(with_orphan.cpu_s, 0.02)

    def test_how_a_command_failed(self):
        for command, words in (("echo broken >&2; exit 3", "status 3"), ("kill -9 $$", "killed by signal 9")):
            with self.assertRaises(RuntimeError) as caught:
                run(["sh", "-c", command])
            self.assertIn(words, bench_formats.short(caught.exception))
        with self.assertRaises(RuntimeError) as caught:
            run(["sleep", "60"], timeout=0.1)
        self.assertIn("took too long", bench_formats.short(caught.exception))
        with self.assertRaises(RuntimeError) as caught:
            run(["sh", "-c", "sleep 60 & exit 1"], timeout=0.1)

    def test_leaf_sums(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("a;b 1\nb 2\na;c d 3\n")
            file.flush()
            self.assertEqual(format_tasks.leaf_sums(file.name), {"b": 3, "c d": 3})
            self.assertEqual(format_tasks.sum_of_lines(file.name), 6)


class FakeTasks:
    """Three tasks: one whose input cannot be made, one whose peer fails, one with a slow peer."""

    def __init__(self):
        self.slow = 0

    def broken(self):
        raise OSError("no space left")

    def peer_fails(self):
        def fail():
            raise RuntimeError("peer: status 1\nits last words")

        return format_tasks.Task(2e6, {"cprof": lambda: Cost(1, 10, 1), "peer": fail}, lambda: {"sum": 3})

    def slow_peer(self):
        def once():
            self.slow += 1
            return Cost(50, 10, bench_formats.SLOW_SECONDS + 1)

        return format_tasks.Task(2e6, {"cprof": lambda: Cost(1, 10, 1), "peer": once}, dict)

    def cprof_fails(self):
        def fail():
            raise RuntimeError("cprof: killed by signal 11")

        return format_tasks.Task(2e6, {"cprof": fail, "peer": lambda: Cost(1, 10, 1)}, dict)


class Formats(unittest.TestCase):
    def run_tasks(self, *names):
        tasks = FakeTasks()
        bench = bench_formats.Bench(tasks, 2)
        errors, sys.stderr = sys.stderr, io.StringIO()
        try:
            for name in names:
                bench.run_task(name)
        finally:
            sys.stderr = errors
        return bench.results, tasks

    def test_what_fails_is_said_and_the_rest_goes_on(self):
        results, _ = self.run_tasks("broken", "cprof_fails", "peer_fails")
        self.assertEqual(results["failed"], {"broken": "no space left", "cprof_fails": "cprof: killed by signal 11"})
        self.assertEqual(results["left_out"], {"peer, peer_fails": "peer: status 1: its last words"})
        self.assertEqual([list(row) for row in results["tasks"]["peer_fails"]["rounds"]], [["cprof"], ["cprof"]])
        self.assertEqual(results["tasks"]["peer_fails"]["checks"], {"sum": 3})

    def test_a_slow_peer_runs_once(self):
        results, tasks = self.run_tasks("slow_peer")
        self.assertEqual(tasks.slow, 1)
        self.assertEqual([list(row) for row in results["tasks"]["slow_peer"]["rounds"]], [["cprof", "peer"], ["cprof"]])

    def results(self, task, checks=None, megabytes=100, failed=(), **cpu):
        row = {name: {"cpu_s": seconds, "rss_mb": 10, "wall_s": seconds} for name, seconds in cpu.items()}
        return {"machine": {"cpu": "x", "cpus": 2, "memory": "1 kB", "kernel": "6.1", "load": 0}, "versions": {}, "failed": dict(failed),
                "tasks": {task: {"settings": {"input_mb": megabytes}, "checks": checks or {}, "rounds": [row, row]}}}

    def verdicts(self, *arguments, **cpu):
        return list(format_tables.verdicts(self.results(*arguments, **cpu)))

    def test_goals(self):
        perl = "stackcollapse-perf.pl"
        self.assertEqual([met for met, _ in self.verdicts("text", **{"cprof": 1, perl: 10})], [True])
        self.assertEqual([met for met, _ in self.verdicts("text", **{"cprof": 1, perl: 9})], [False])
        self.assertEqual(self.verdicts("text", cprof=1), [])
        [(met, words)] = self.verdicts("text", **{"cprof": 1, perl: 10})
        self.assertIn("0.100 of stackcollapse-perf.pl's CPU time (goal 0.100, aim 0.050)", words)

    def test_a_quicker_stand_in_can_only_prove_that_a_goal_is_met(self):
        self.assertEqual([met for met, _ in self.verdicts("text", **{"cprof": 1, "folding script": 11})], [True])
        self.assertEqual([met for met, _ in self.verdicts("text", **{"cprof": 1, "folding script": 9})], [None])
        both = self.verdicts("text", **{"cprof": 1, "folding script": 9, "stackcollapse-perf.pl": 20})
        self.assertEqual([met for met, _ in both], [True])

    def test_every_goal_names_a_peer_that_its_task_runs(self):
        """Else a goal would never be judged, and nobody would see it."""
        class Options:
            flamegraph, perfparser, cprof, scale = "/f", "/p", "/c", 1

        tasks = format_tasks.Tasks(Options, "/nowhere")
        tasks.flamegraph = lambda script: ["perl", script]
        known = {f"perf script, {name}" for name in tasks.folding()} | set(tasks.folding()) | {
            "hotspot-perfparser", "flamegraph.pl", "unpack, walk, insert", "google pprof", "llvm-symbolizer"}
        for task, peer, key, most, aim in format_tables.GOALS:
            self.assertIn(peer, known)
            self.assertIn(task, format_tables.TASKS)
            self.assertTrue(hasattr(tasks, task))
            self.assertLessEqual(aim, most)
            self.assertIn(key, ("cpu_s", "rss_mb"))

    def test_rates_memory_and_sums(self):
        good = {"slices": 5, "slices by construction": 5}
        self.assertEqual([met for met, _ in self.verdicts("chrome", good, cprof=1)], [True, True, True])
        self.assertEqual([met for met, _ in self.verdicts("chrome", {**good, "slices": 6}, cprof=1.1)], [True, False, False])
        self.assertEqual([met for met, _ in self.verdicts("chrome", good, 5, cprof=1)], [False, False, True])
        self.assertEqual([met for met, _ in self.verdicts("folded", {"functions": 9, format_tables.MUST_BE_NONE: 1}, cprof=1)], [True, False])

    def test_what_failed_is_not_judged_but_shown(self):
        results = self.results("chrome", failed=[("chrome", "killed by signal 11")], cprof=1)
        self.assertEqual(list(format_tables.verdicts(results)), [])
        self.assertIn("killed by signal 11", format_tables.page(results))

    def test_the_page(self):
        text = format_tables.page(self.results("text", {"samples": 1234567}, **{"cprof": 2, "folding script": 6}))
        self.assertIn("| perf script's text to folded stacks | cprof | 100 | 2.00 | 50 | 10 | 1.0 |", text)
        self.assertIn("|  | folding script | 100 | 6.00 | 17 | 10 | 3.0 |", text)
        self.assertIn("samples 1,234,567", text)
        self.assertIn("- **not judged**: ", text)


if __name__ == "__main__":
    unittest.main()
