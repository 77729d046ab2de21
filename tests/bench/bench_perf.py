#!/usr/bin/env python3
"""cprof against perf, end to end and in turns: two busy threads, recorded to folded stacks.

Each round runs, one after the other on the same machine:
  cprof      cprof record -F 999 --stack-size 16384 -o out.folded
  perf       perf record -F 999 --call-graph dwarf,16384; perf script --no-inline; folding
  perf -i    the same with inlined functions (perf script's default)
Collection and everything after it count: the CPU time of the whole process tree, less what the target says it took in that
very run. Then a 60 s recording of the whole machine for the collector's memory.

    bench_perf.py [PROGRAM] [--programs FOLDER] [--rounds 3] [--seconds 30] [--json FILE] [--quick]

Prints a markdown table; raw figures go to the JSON file. Requires: root, perf. Exit status 0 also when a goal is missed
(it is a measurement); --check makes it 1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "live", "lib"))
from folded import Folded
from harness import Summary
from measure import machine, run, show_spread, spread

CPU_GOAL, MEMORY_GOAL_MB = 10, 200


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.target = [os.path.join(options.programs, "two_busy"), str(options.seconds), self.path("target.cpu")]

    def path(self, name):
        return os.path.join(self.folder, name)

    def less_target(self, cost):
        with open(self.path("target.cpu")) as file:
            return cost.cpu_s - float(file.read())

    def folded_facts(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            folded = Folded(file.read())
        mine = folded.of_comm("two_busy")
        return {"samples": mine.total, "to_root": mine.only(lambda frames: reaches_root(frames[1:4])).total}

    def cprof(self):
        cost = run([self.options.cprof, "record", "-F", "999", "--stack-size", "16384", "-o", self.path("cprof.folded"), "--",
                    *self.target])
        facts = self.folded_facts("cprof.folded")
        return {**facts, "cpu_s": self.less_target(cost), "rss_mb": cost.rss_mb, "lost": Summary(cost.stderr).lost or 0,
                "bytes": os.path.getsize(self.path("cprof.folded"))}

    def perf(self, inline):
        data, text = self.path("perf.data"), self.path("perf.txt")
        recorded = run(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-o", data, "--",
                        *self.target])
        record_s = self.less_target(recorded)
        script = run(["perf", "script", "-i", data, *([] if inline else ["--no-inline"])], stdout=text, timeout=900)
        folded = run([sys.executable, os.path.join(HERE, "fold_perf_script.py")], stdin=text, stdout=self.path("perf.folded"))
        lost = re.search(r"LOST (\d+)", recorded.stderr)
        facts = self.folded_facts("perf.folded")
        parts = {"record_s": record_s, "script_s": script.cpu_s, "fold_s": folded.cpu_s}
        out = {**facts, **parts, "cpu_s": sum(parts.values()), "rss_mb": max(recorded.rss_mb, script.rss_mb, folded.rss_mb),
               "bytes": os.path.getsize(data) + os.path.getsize(text), "lost": int(lost[1]) if lost else 0}
        os.unlink(data)
        os.unlink(text)
        return out

    def rounds(self):
        rows = {"cprof": [], "perf": [], "perf -i": []}
        for number in range(self.options.rounds):
            rows["cprof"].append(self.cprof())
            rows["perf"].append(self.perf(inline=False))
            if self.options.inline:
                rows["perf -i"].append(self.perf(inline=True))
            print(f"round {number + 1} of {self.options.rounds} done", file=sys.stderr)
        return {name: runs for name, runs in rows.items() if runs}

    def whole_machine(self):
        """Peak memory of the collector, with two busy threads and short processes to see."""
        seconds = self.options.machine_seconds
        load = [subprocess.Popen([os.path.join(self.options.programs, name), argument], start_new_session=True)
                for name, argument in (("two_busy", str(seconds + 5)), ("children", str(20 * seconds)))]
        try:
            cost = run([self.options.cprof, "record", "-a", "-F", "999", "-d", str(seconds), "-o", self.path("machine.folded")],
                       timeout=seconds + 120)
        finally:
            for process in load:
                os.killpg(process.pid, 9)
                process.wait()
        summary = Summary(cost.stderr)
        return {"seconds": seconds, "rss_mb": cost.rss_mb, "cpu_s": cost.cpu_s, "samples": summary.samples, "lost": summary.lost}


def reaches_root(first_frames):
    return any("_start" in frame or "clone" in frame or "start_thread" in frame for frame in first_frames)


def ratio(rows, name, key):
    return [theirs[key] / max(ours[key], 1e-9) for theirs, ours in zip(rows[name], rows["cprof"])]


def table(rows):
    out = ["| | CPU s, all in | CPU us a sample | samples | reach the root | lost | MB written | peak MB | CPU, times cprof's |",
           "|---|---|---|---|---|---|---|---|---|"]
    for name, runs in rows.items():
        column = lambda key: [row[key] for row in runs]
        per_sample = [1e6 * row["cpu_s"] / max(1, row["samples"]) for row in runs]
        rooted = [100 * row["to_root"] / max(1, row["samples"]) for row in runs]
        megabytes = [row["bytes"] / 1e6 for row in runs]
        out.append(f"| {name} | {show_spread(column('cpu_s'))} | {show_spread(per_sample, 1)} | {show_spread(column('samples'), 0)} "
                   f"| {show_spread(rooted)} % | {show_spread(column('lost'), 0)} | {show_spread(megabytes)} "
                   f"| {show_spread(column('rss_mb'), 0)} | {show_spread(ratio(rows, name, 'cpu_s'), 1)} |")
    return "\n".join(out)


def parse_arguments():
    parser = argparse.ArgumentParser(description="cprof against perf, end to end and in turns")
    parser.add_argument("cprof", nargs="?", default=os.environ.get("CPROF", "build/release/cprof"))
    parser.add_argument("--programs", default=os.environ.get("CPROF_PROGRAMS"), help="default: tests/programs beside PROGRAM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--machine-seconds", type=int, default=60)
    parser.add_argument("--no-inline", dest="inline", action="store_false", help="leave out perf script with inlined functions")
    parser.add_argument("--json", help="where raw results go")
    parser.add_argument("--quick", action="store_true", help="one short round: to try the bench itself")
    parser.add_argument("--check", action="store_true", help="status 1 when a goal is missed")
    options = parser.parse_args()
    options.cprof = os.path.abspath(options.cprof)
    options.programs = options.programs or os.path.join(os.path.dirname(options.cprof), "tests", "programs")
    if options.quick:
        options.rounds, options.seconds, options.machine_seconds = 1, 3, 5
    return options


def check(goal, text):
    print(f"{'met' if goal else 'MISSED'}: {text}")
    return goal


def main():
    options = parse_arguments()
    if not shutil.which("perf") or os.geteuid() != 0:
        print("skipped: needs root and perf")
        return 77
    folder = tempfile.mkdtemp(prefix="cprof-bench-")
    try:
        bench = Bench(options, folder)
        rows = bench.rounds()
        memory = bench.whole_machine()
    finally:
        shutil.rmtree(folder, True)
    facts = machine()
    print(f"{facts['cpu']}, {facts['cpus']} CPUs, Linux {facts['kernel']}; two busy threads, {options.seconds} s, 999 Hz, "
          f"{options.rounds} rounds in turn; median (least-most)\n")
    print(table(rows))
    print(f"\nWhole machine, {memory['seconds']} s at 999 Hz: peak {memory['rss_mb']:.0f} MB, {memory['cpu_s']:.2f} s of CPU, "
          f"{memory['samples']} samples, {memory['lost']} lost\n")
    least = spread(ratio(rows, "perf", "cpu_s"))[0]
    good = check(least >= CPU_GOAL, f"perf's CPU is {least:.1f} times cprof's (goal {CPU_GOAL})")
    good &= check(memory["rss_mb"] < MEMORY_GOAL_MB, f"peak memory {memory['rss_mb']:.0f} MB (goal under {MEMORY_GOAL_MB})")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": facts, "options": vars(options), "rounds": rows, "whole_machine": memory}, file, indent=1)
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
