#!/usr/bin/env python3
"""What a traced call costs the target: cprof uprobe, counting and with latency, beside bpftrace's uprobe and uretprobe.

One thread calls a small function again and again and measures how long that took; a round runs every tracer once, in turn.
Prints nanoseconds a call over those of the program alone: median and spread of the rounds, and the ratios to the goals.

    bench_uprobe.py [PROGRAM] [--programs FOLDER] [--rounds 7] [--calls 300000] [--json FILE] [--check]

Requires: root, bpftrace. Exit status 0 also when a goal is missed; --check makes it 1.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "..", "build", "release")
GOALS = (("cprof count", "bpftrace uprobe", 1.0), ("cprof latency", "bpftrace uretprobe", 2.2))


def tracers(cprof, target):
    """By name, what stands before the target's command, or how that is handed over."""
    function = f"uprobe:{target}:_Z7countedm"
    count = function + " { @ = count(); }"
    latency = (function + " { @start[tid] = nsecs; } " + function.replace("uprobe", "uretprobe", 1) +
               " /@start[tid]/ { @ns = hist(nsecs - @start[tid]); delete(@start[tid]); }")
    ours = [cprof, "uprobe", "-q", "--json", "-o", os.devnull, "-f", "counted"]
    return {
        "alone": lambda command: command,
        "bpftrace uprobe": lambda command: ["bpftrace", "-q", "-e", count, "-c", " ".join(command)],
        "bpftrace uretprobe": lambda command: ["bpftrace", "-q", "-e", latency, "-c", " ".join(command)],
        "cprof count": lambda command: [*ours, "--no-latency", "--", *command],
        "cprof latency": lambda command: [*ours, "--", *command],
    }


def ns_per_call(command, calls):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    took = re.search(r"^elapsed (\d+)$", done.stdout, re.M)
    if not took:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-500:]}")
    return int(took[1]) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cprof", nargs="?", default=os.path.join(BUILD, "cprof"))
    parser.add_argument("--programs", default=os.path.join(BUILD, "tests", "programs"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=300000)
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not shutil.which("bpftrace"):
        sys.exit("bpftrace is not installed: the goals are ratios to it")
    target = os.path.abspath(os.path.join(options.programs, "calls"))
    ways = tracers(os.path.abspath(options.cprof), target)
    rounds = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            rounds[name].append(ns_per_call(way([target, "count", str(options.calls), "1"]), options.calls))
    alone = statistics.median(rounds["alone"])
    costs = {name: statistics.median(values) - alone for name, values in rounds.items()}
    for name, values in rounds.items():
        print(f"{name:20} {costs[name]:8.0f} ns a call  ({min(values) - alone:.0f} to {max(values) - alone:.0f})")
    missed = False
    for ours, theirs, most in GOALS:
        ratio = costs[ours] / costs[theirs]
        missed |= ratio > most
        print(f"{ours} / {theirs}: {ratio:.2f}, at most {most}: {'met' if ratio <= most else 'MISSED'}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"calls": options.calls, "rounds": rounds}, file, indent=1)
    sys.exit(1 if missed and options.check else 0)


if __name__ == "__main__":
    main()
