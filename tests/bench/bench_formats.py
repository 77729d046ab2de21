#!/usr/bin/env python3
"""cprof's readers, writers and symbolizer against their peers, in turns on the same files: CPU time of the whole process tree and
peak memory. What a peer needs that is not installed here is left out and said; what fails is said, and the rest goes on.

    bench_formats.py [PROGRAM] [--only dwarf,...] [--rounds 3] [--scale 1.0] [--folder FOLDER] [--json FILE] [--flamegraph FOLDER]
                     [--quick] [--check]

The inputs are made first (format_inputs.py; --folder keeps them). The documents' figures: ./dev bench formats --flamegraph FOLDER
--json docs/benchmarks/formats.json, then ./dev docs. About a quarter of an hour; --quick: a minute with inputs of a twentieth.
FlameGraph's scripts are in no distribution: FOLDER is a copy of them. Without it a script of ours folds perf's text, six times as
fast; goals that are set against theirs are then only judged where even that is met.

Requires: root and perf for the tasks that begin with a recording. Exit status: 1 when a task failed, with --check also when a goal is
missed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import format_tables
from bench_perf import json_text
from format_tasks import Tasks
from measure import apart, machine

HERE = os.path.dirname(os.path.abspath(__file__))
PERFPARSER = "/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser"
SLOW_SECONDS = 20  # a peer that takes longer runs in the first round only
RECORDED = ("dwarf", "inlined", "frame_pointers", "text")  # begin with a recording by perf


def short(error):
    """What went wrong, in one line: how the command ended, and its last words."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return (lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}")[-300:]


def facts(cost):
    return {"cpu_s": cost.cpu_s, "rss_mb": cost.rss_mb, "wall_s": cost.wall_s}


class Bench:
    """Runs tasks one after the other; results hold what is done so far, whatever fails."""

    def __init__(self, tasks, rounds):
        self.tasks, self.rounds = tasks, rounds
        self.results = {"tasks": {}, "left_out": {}, "failed": {}}

    def run_task(self, name):
        started = time.monotonic()
        try:
            self.measure(name, getattr(self.tasks, name)())
        except Exception as error:  # whatever it is: the other tasks are measured all the same
            self.results["failed"][name] = short(error)
            print(f"{name}: FAILED: {short(error)}", file=sys.stderr)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)

    def measure(self, name, task):
        part = self.results["tasks"][name] = {"settings": {"input_mb": task.input_mb}, "checks": {}, "rounds": []}
        waiting = dict(task.runs)
        for _ in range(self.rounds):
            row = {}
            part["rounds"].append(row)
            for who, once in list(waiting.items()):
                cost = self.run_once(name, who, once)
                if cost:
                    row[who] = facts(cost)
                if not cost or (cost.wall_s > SLOW_SECONDS and who != "cprof"):
                    del waiting[who]
        if "cprof" not in waiting:
            raise RuntimeError(self.results["left_out"].pop(f"cprof, {name}"))
        part["checks"] = apart(task.check)

    def run_once(self, name, who, once):
        try:
            return once()
        except (RuntimeError, OSError) as error:
            self.results["left_out"][f"{who}, {name}"] = short(error)
            print(f"{name}: left out: {who}: {short(error)}", file=sys.stderr)
            return None


def parse_arguments():
    parser = argparse.ArgumentParser(description="cprof's formats and names against their peers, in turns")
    parser.add_argument("cprof", nargs="?", default=os.environ.get("CPROF", "build/release/cprof"))
    parser.add_argument("--only", default=",".join(format_tables.TASKS), help=f"some of {','.join(format_tables.TASKS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the inputs' sizes")
    parser.add_argument("--folder", help="where inputs are made and kept")
    parser.add_argument("--flamegraph", default=os.environ.get("FLAMEGRAPH"), help="a folder with stackcollapse-perf.pl and flamegraph.pl")
    parser.add_argument("--perfparser", default=PERFPARSER, help="hotspot's reader of perf.data")
    parser.add_argument("--json", help="where raw results go, anew after every task")
    parser.add_argument("--quick", action="store_true", help="small inputs, one round: to try the bench itself")
    parser.add_argument("--check", action="store_true", help="status 1 when a goal is missed")
    options = parser.parse_args()
    options.cprof = os.path.abspath(options.cprof)
    options.only = options.only.split(",")
    if options.quick:
        options.rounds, options.scale = 1, 0.05
    if not os.access(options.perfparser, os.X_OK):
        print(f"left out: {options.perfparser} is not there (package hotspot)", file=sys.stderr)
        options.perfparser = None
    if not options.flamegraph:
        print("left out: FlameGraph's scripts (--flamegraph FOLDER)", file=sys.stderr)
    if unknown := set(options.only) - set(format_tables.TASKS):
        parser.error(f"no such task: {', '.join(sorted(unknown))}")
    return options


def first_line(*command):
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return next((line.strip() for line in done.stdout.splitlines() if re.search(r"\d", line)), None)


def versions():
    return {"perf": first_line("perf", "--version"), "llvm-symbolizer": first_line("llvm-symbolizer-19", "--version"),
            "addr2line": first_line("addr2line", "--version"), "go": first_line("go", "version"),
            "commit": first_line("git", "-C", HERE, "rev-parse", "--short=12", "HEAD")}


def save(results, path):
    if not path:
        return
    with open(path + ".part", "w") as file:
        file.write(json_text(results))
    os.replace(path + ".part", path)


def main():
    options = parse_arguments()
    if set(options.only) & set(RECORDED) and (not shutil.which("perf") or os.geteuid() != 0):
        print("skipped: needs root and perf; --only names tasks that do not")
        return 77
    folder, started = options.folder or tempfile.mkdtemp(prefix="cprof-bench-"), time.monotonic()
    os.makedirs(folder, exist_ok=True)
    bench = Bench(Tasks(options, folder), options.rounds)
    results = bench.results = {"machine": machine(), "versions": versions(), **bench.results}
    try:
        for name in options.only:
            bench.run_task(name)
            results["minutes"] = round((time.monotonic() - started) / 60, 1)
            save(results, options.json)
    finally:
        if not options.folder:
            shutil.rmtree(folder, True)
    print(format_tables.page(results))
    judged = list(format_tables.verdicts(results))
    for met, words in judged:
        print(f"{format_tables.WORDS[met]}: {words}")
    is_missed = any(met is False for met, _ in judged)
    return 1 if results["failed"] or (options.check and is_missed) else 0


if __name__ == "__main__":
    sys.exit(main())
