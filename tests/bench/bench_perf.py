#!/usr/bin/env python3
"""cprof against its peers, in turns on the same machine: both backends, perf with frame pointers and with stack snapshots of
three sizes, bpftrace.

Parts, each a list of rounds; a round runs every profiler once:
  main     two busy threads with a fixed amount of work, 999 Hz: recording, then everything up to folded stacks with names
  rates    the same work for a shorter time at 99, 199, 999 and 4,000 Hz: collection alone (cprof --no-symbolize, perf record)
  faults   every page fault is an event, under 46 frames: what one event costs the program, without any timer's cost
  startup  a command that ends at once
  machine  the whole machine: peak memory of cprof
The target's own CPU time comes from the target itself, in that very run; the collector's is that of the whole process tree
less the target's. Raw results go to --json; tables.py makes the tables of them.

    bench_perf.py [PROGRAM] [--programs FOLDER] [--parts main,...] [--rounds 2] [--seconds 60] [--json FILE]
                  [--flamegraph FOLDER] [--quick] [--check]

The documents' figures: ./dev bench perf --flamegraph FOLDER --json docs/benchmarks/perf.json, then ./dev docs. Half an hour; --quick: three minutes.

Requires: root, perf. Exit status 0 also when a goal is missed (it is a measurement); --check makes it 1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "live", "lib"))
from folded import Folded
from harness import Summary
from measure import machine, run
from profilers import Cprof, Event, profilers
import perf_goals
import tables

PARTS = ("main", "rates", "faults", "startup", "machine")
RATES = (99, 199, 999, 4000)
MAIN_HZ = 999
FAULTS_DEPTH, FAULTS_WORK = 40, 300000  # 46 frames from _start; some 3,000 events a second, so that no ring overflows
INLINED_TOO = "perf dwarf,16384"
ROOTS = ("_start", "clone", "start_thread", "__libc_start")


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.profilers = profilers(options.cprof, options.flamegraph)
        self.failed = {}
        self.rounds_a_second = self.calibrate()

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, name):
        return os.path.join(self.options.programs, name)

    def number_in(self, name):
        with open(self.path(name)) as file:
            return float(file.read())

    def calibrate(self):
        """How much of two_busy's work a thread does in a second of CPU time."""
        rounds = 20000
        run([self.program("two_busy"), "1", self.path("target.cpu"), str(rounds)])
        return 2 * rounds / self.number_in("target.cpu")

    def busy(self, seconds):
        return [self.program("two_busy"), "1", self.path("target.cpu"), str(round(seconds * self.rounds_a_second))]

    def costs(self, recording):
        target_s = self.number_in("target.cpu")
        return {"target_s": target_s, "collector_s": recording.cost.cpu_s - target_s, "wall_s": recording.cost.wall_s,
                "rss_mb": recording.cost.rss_mb, "ring_bytes": recording.ring_bytes, "file_bytes": recording.file_bytes,
                "lost": recording.lost}

    def folded_facts(self):
        with open(self.path("stacks.folded"), encoding="utf-8", errors="replace") as file:
            folded = Folded(file.read())
        mine = folded.of_comm("two_busy")
        return {"samples": mine.total, "to_root": mine.only(reaches_root).total}

    def fold(self, profiler, row, **options):
        """Adds what comes after recording to a row: the end-to-end figures."""
        after = profiler.fold(self.folder, self.path("stacks.folded"), **options)
        cpu_s = row["collector_s"] + after.get("script_s", 0.0) + after.get("fold_s", 0.0)
        return {**row, **after, "cpu_s": cpu_s, "rss_mb": max(row["rss_mb"], after.get("rss_mb", 0.0)),
                "written_bytes": row["file_bytes"] + after.get("text_bytes", 0), **self.folded_facts()}

    def each(self, part, measure):
        """{name: row} of those that can do this part. One that fails is said and left out of the rest of it, not of the others."""
        rows = {}
        for profiler in [profiler for profiler in self.profilers if (part, profiler.name) not in self.failed]:
            try:
                rows[profiler.name] = measure(profiler)
            except RuntimeError as error:
                self.failed[part, profiler.name] = str(error).strip().splitlines()[-1][:200]
                print(f"{part}: {profiler.name} left out: {error}", file=sys.stderr)
            self.forget("perf.data")
        return rows

    def main_round(self):
        inlined = {}

        def measure(profiler):
            row = self.costs(profiler.record(self.busy(self.options.seconds), Event(hz=MAIN_HZ), self.folder))
            if self.options.inline and profiler.name == INLINED_TOO:
                inlined[profiler.name + ", inlined"] = self.fold(profiler, row, inline=True)
            return self.fold(profiler, row) if profiler.folds else row

        return {**self.each("main", measure), **inlined}

    def rates_round(self):
        rows = {}
        for hz in RATES:

            def measure(profiler, hz=hz):
                recording = profiler.collect(self.busy(self.options.rate_seconds), Event(hz=hz), self.folder)
                return {**self.costs(recording), "samples": recording.samples}

            rows.update({f"{name} @ {hz}": row for name, row in self.each("rates", measure).items()})
        return rows

    def faults_round(self):
        command = [self.program("faults"), str(self.options.faults), str(FAULTS_DEPTH), self.path("fault.ns"), str(FAULTS_WORK)]

        def measure(profiler):
            recording = profiler.record(command, Event(every="page-faults"), self.folder)
            return {"fault_ns": self.number_in("fault.ns"), "lost": recording.lost}

        return self.each("faults", measure)

    def startup_round(self):
        def measure(profiler):
            started = time.monotonic()
            recording = profiler.record([shutil.which("true")], Event(hz=MAIN_HZ), self.folder)
            after = profiler.fold(self.folder, self.path("stacks.folded")) if profiler.folds else {}
            return {"wall_s": time.monotonic() - started, "record_wall_s": recording.cost.wall_s,
                    "cpu_s": recording.cost.cpu_s + after.get("script_s", 0.0) + after.get("fold_s", 0.0)}

        return self.each("startup", measure)

    def machine_round(self):
        return {profiler.name: self.whole_machine(profiler) for profiler in self.profilers if isinstance(profiler, Cprof)}

    def whole_machine(self, profiler):
        """With two busy threads and short processes to see."""
        seconds = self.options.machine_seconds
        load = [subprocess.Popen([self.program(name), argument], start_new_session=True)
                for name, argument in (("two_busy", str(seconds + 5)), ("children", str(20 * seconds)))]
        try:
            cost = run([self.options.cprof, "record", "--backend", profiler.backend, "-a", "-F", str(MAIN_HZ), "-d", str(seconds),
                        "-o", self.path("machine.folded")], timeout=seconds + 120)
        finally:
            for process in load:
                os.killpg(process.pid, 9)
                process.wait()
        summary = Summary(cost.stderr)
        return {"rss_mb": cost.rss_mb, "cpu_s": cost.cpu_s, "samples": summary.samples, "lost": summary.lost or 0}

    def forget(self, name):
        if os.path.exists(self.path(name)):
            os.unlink(self.path(name))

    def part(self, name):
        """One part of the results: its settings and its rounds."""
        rounds, settings = self.options.plan[name]
        out = []
        for number in range(rounds):
            out.append(getattr(self, name + "_round")())
            print(f"{name}: round {number + 1} of {rounds} done", file=sys.stderr)
        return {"settings": settings, "rounds": out}


def reaches_root(frames):
    return any(frame.startswith(ROOTS) or "clone" in frame for frame in frames[1:4])


def parse_arguments():
    parser = argparse.ArgumentParser(description="cprof against its peers, in turns")
    parser.add_argument("cprof", nargs="?", default=os.environ.get("CPROF", "build/release/cprof"))
    parser.add_argument("--programs", default=os.environ.get("CPROF_PROGRAMS"), help="default: tests/programs beside PROGRAM")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=2, help="of the main part")
    parser.add_argument("--seconds", type=float, default=60, help="of each recording of the main part")
    parser.add_argument("--rate-rounds", type=int, default=3)
    parser.add_argument("--rate-seconds", type=float, default=5)
    parser.add_argument("--fault-rounds", type=int, default=9)
    parser.add_argument("--faults", type=int, default=3000)
    parser.add_argument("--startup-rounds", type=int, default=9)
    parser.add_argument("--machine-seconds", type=int, default=60)
    parser.add_argument("--no-inline", dest="inline", action="store_false", help="leave out perf script with inlined functions")
    parser.add_argument("--flamegraph", default=os.environ.get("FLAMEGRAPH"), help="a folder with stackcollapse-perf.pl")
    parser.add_argument("--json", help="where raw results go")
    parser.add_argument("--quick", action="store_true", help="short rounds: to try the bench itself")
    parser.add_argument("--check", action="store_true", help="status 1 when a goal is missed")
    options = parser.parse_args()
    options.cprof = os.path.abspath(options.cprof)
    options.programs = options.programs or os.path.join(os.path.dirname(options.cprof), "tests", "programs")
    if options.quick:
        options.rounds, options.seconds, options.rate_rounds, options.rate_seconds = 1, 4, 1, 1.5
        options.fault_rounds, options.faults, options.startup_rounds, options.machine_seconds = 3, 1500, 3, 5
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    options.plan = plan_of(options)
    return options


def plan_of(options):
    """{part: (rounds, what the page says of it)}"""
    return {
        "main": (options.rounds, {"seconds": options.seconds, "hz": MAIN_HZ}),
        "rates": (options.rate_rounds, {"seconds": options.rate_seconds, "hz": list(RATES)}),
        "faults": (options.fault_rounds, {"events": options.faults, "frames": FAULTS_DEPTH + 6}),
        "startup": (options.startup_rounds, {}),
        "machine": (1, {"seconds": options.machine_seconds, "hz": MAIN_HZ}),
    }


def versions():
    def first_line(*command):
        if not shutil.which(command[0]):
            return None
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return (done.stdout.splitlines() or [None])[0]

    return {"perf": first_line("perf", "--version"), "bpftrace": first_line("bpftrace", "--version"),
            "commit": first_line("git", "-C", HERE, "rev-parse", "--short=12", "HEAD")}


def json_text(results):
    """One line a profiler and round, numbers no longer than they are sure: a file whose changes can be read."""
    short = json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.6g}"))
    text = json.dumps(short, indent=1)
    return re.sub(r"\{\n\s+([^{}\[\]]*?)\n\s*\}", lambda match: "{" + re.sub(r"\n\s*", " ", match[1]) + "}", text) + "\n"


def main():
    options = parse_arguments()
    if not shutil.which("perf") or os.geteuid() != 0:
        print("skipped: needs root and perf")
        return 77
    folder, started = tempfile.mkdtemp(prefix="cprof-bench-"), time.monotonic()
    results = {"machine": machine(), "versions": versions(), "parts": {}}
    try:
        bench = Bench(options, folder)
        for name in options.parts.split(","):
            results["parts"][name] = bench.part(name)
    finally:
        shutil.rmtree(folder, True)
    results["left_out"] = {f"{name}, {part}": why for (part, name), why in bench.failed.items()}
    results["minutes"] = round((time.monotonic() - started) / 60, 1)
    print(tables.page(results))
    if options.json:
        with open(options.json, "w") as file:
            file.write(json_text(results))
    missed = [words for verdict, words in perf_goals.verdicts(results["parts"]) if verdict == perf_goals.MISSED]
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
