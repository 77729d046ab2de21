#!/usr/bin/env python3
"""libcprof, the library inside a program, against the floor of what it does and against its peers, in turns on the same machine.

Parts, each a list of rounds:
  scopes     a scope's cost against two clock readings and a record, alone and in two threads: warm, first burst, by call, disabled
  handler    the sampling handler's capture against glibc's backtrace() from the same depth
  samples    samples delivered against CPU seconds times rate, with 1, 2 and 8 threads; gperftools too where it is installed
  overhead   a program's own CPU time with the library preloaded and under `perf record -g`, at the same rates

    bench_inproc.py [PROGRAM] [--parts scopes,...] [--rounds 9] [--json FILE] [--quick] [--check]

The documents' figures: ./dev bench inproc --json docs/benchmarks/inproc.json, then ./dev docs. A quarter of an hour; --quick: two
minutes. Exit status 0 also when a goal is missed (it is a measurement); --check makes it 1.
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
import inproc_tables
from bench_perf import json_text, versions
from measure import machine, run
from profilers import Event, Perf

PARTS = ("scopes", "handler", "samples", "overhead")
THREADS, RATES, OVERHEAD_RATES = (1, 2, 8), (1000, 4000, 10000), (1000, 4000)
COUNTED = 200_000


def find_library(name):
    listed = subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(rf"^\s*{re.escape(name)}\S* .*=> (\S+)$", listed, re.MULTILINE)
    return found[1] if found else None


def output_of(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr.strip()}")
    return done


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.build = os.path.dirname(options.cprof)
        self.scope_program, self.handler_program = self.made("cprof_bench_inproc"), self.made("cprof_bench_handler")
        self.cases = os.path.join(self.build, "tests", "inproc", "cprof_inproc_cases")
        self.busy_program = os.path.join(self.build, "tests", "programs", "two_busy")
        self.library = os.path.join(self.build, "lib", "libcprof.so")
        self.gperftools = find_library("libprofiler.so")

    def made(self, target):
        output_of(["cmake", "--build", self.build, "--target", target])
        return os.path.join(self.build, "tests", "bench", target)

    def path(self, name):
        return os.path.join(self.folder, name)

    def part(self, name):
        rounds = []
        for number in range(self.options.rounds):
            rounds.append(getattr(self, name + "_round")())
            print(f"{name}: round {number + 1} of {self.options.rounds} done", file=sys.stderr)
        return {"settings": self.settings()[name], "rounds": rounds}

    def settings(self):
        return {"scopes": {"instructions": self.count_instructions()}, "handler": {}, "samples": {"seconds": self.options.seconds},
                "overhead": {"seconds": self.options.busy_seconds}}

    def count_instructions(self):
        """Of a scope while no session runs, above those of the loop around it; None without valgrind."""
        if not shutil.which("valgrind"):
            return None
        counts = []
        for kind in ("disabled", "empty"):
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.path('callgrind')}", self.scope_program, "loop", kind, COUNTED]
            counts.append(int(re.search(r"Collected : (\d+)", output_of(command).stderr)[1]))
        return round((counts[0] - counts[1]) / COUNTED, 2)

    def scopes_round(self):
        rows = {}
        for threads in (1, 2):
            rows[str(threads)] = json.loads(output_of([self.scope_program, "scopes", threads, self.options.inner_rounds]).stdout)
        return rows

    def handler_round(self):
        return {"handler": json.loads(output_of([self.handler_program]).stdout)}

    def delivered(self, threads, hz):
        trace = self.path("samples.pftrace")
        words = output_of([self.cases, "rate", threads, hz, self.options.seconds / threads, f"out={trace}"]).stdout.split()
        query = "select count(*) as n from perf_sample group by utid order by n desc"
        counts = [row["n"] for row in json.loads(output_of([self.options.cprof, "sql", trace, "--format", "json", "-q", query]).stdout)]
        of_threads = counts[:threads]
        os.unlink(trace)
        return {"cpu_s": float(words[2]), "samples": int(words[3]), "lost": int(words[4]), "weighed_s": float(words[5]),
                "evenness": min(of_threads) / max(of_threads) if len(of_threads) == threads else 0.0}

    def busy(self, seconds, before=(), **environment):
        """(the program's own CPU seconds, the measured cost of all) of two busy threads with a fixed amount of work."""
        work = str(round(seconds * self.rounds_a_second()))
        cost = run([*before, "env", *(f"{key}={value}" for key, value in environment.items()), self.busy_program, "1", self.path("cpu"), work])
        with open(self.path("cpu")) as file:
            return float(file.read()), cost

    def rounds_a_second(self):
        """How much of two_busy's work a thread does in a second of CPU time; measured once."""
        if not hasattr(self, "speed"):
            work = 20000
            run([self.busy_program, "1", self.path("cpu"), str(work)])
            with open(self.path("cpu")) as file:
                self.speed = 2 * work / float(file.read())
        return self.speed

    def gperftools_at(self, hz):
        profile, folded = self.path("gperftools.prof"), self.path("gperftools.folded")
        cpu_s, _ = self.busy(self.options.seconds / 2, LD_PRELOAD=self.gperftools, CPUPROFILE=profile, CPUPROFILE_FREQUENCY=hz)
        output_of([self.options.cprof, "convert", profile, "-o", folded])
        with open(folded) as file:
            samples = sum(int(line.rsplit(" ", 1)[1]) for line in file)
        return {"cpu_s": cpu_s, "samples": samples}

    def samples_round(self):
        rows = {f"{threads} @ {hz}": self.delivered(threads, hz) for threads in THREADS for hz in RATES}
        if self.gperftools:
            rows.update({f"gperftools @ {hz}": self.gperftools_at(hz) for hz in RATES})
        return rows

    def overhead_round(self):
        seconds, rows = self.options.busy_seconds, {}
        own, cost = self.busy(seconds)
        rows["none"] = {"target_s": own, "all_s": cost.cpu_s}
        for hz in OVERHEAD_RATES:
            folded = self.path("overhead.folded")
            own, cost = self.busy(seconds, LD_PRELOAD=self.library, CPROF=f"out={folded},freq={hz},quiet=yes")
            rows[f"libcprof @ {hz}"] = {"target_s": own, "all_s": cost.cpu_s}
            if shutil.which("perf"):
                work = str(round(seconds * self.rounds_a_second()))
                recording = Perf("fp").record([self.busy_program, "1", self.path("cpu"), work], Event(hz=hz), self.folder)
                with open(self.path("cpu")) as file:
                    rows[f"perf -g @ {hz}"] = {"target_s": float(file.read()), "all_s": recording.cost.cpu_s}
        return rows


def parse_arguments():
    parser = argparse.ArgumentParser(description="libcprof against its floor and its peers, in turns")
    parser.add_argument("cprof", nargs="?", default=os.environ.get("CPROF_PROGRAM", "build/release/cprof"))
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=9, help="of each part")
    parser.add_argument("--inner-rounds", type=int, default=11, help="of the loops within one scopes round")
    parser.add_argument("--seconds", type=float, default=4, help="of CPU time that is sampled, in all threads")
    parser.add_argument("--busy-seconds", type=float, default=4, help="of work per thread in the overhead part")
    parser.add_argument("--json", help="where raw results go")
    parser.add_argument("--quick", action="store_true", help="short rounds: to try the bench itself")
    parser.add_argument("--check", action="store_true", help="status 1 when a goal is missed")
    options = parser.parse_args()
    options.cprof = os.path.abspath(options.cprof)
    if options.quick:
        options.rounds, options.inner_rounds, options.seconds, options.busy_seconds = 2, 3, 1, 1
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return options


def main():
    options = parse_arguments()
    folder, started = tempfile.mkdtemp(prefix="cprof-bench-"), time.monotonic()
    results = {"machine": machine(), "versions": versions(), "parts": {}}
    try:
        bench = Bench(options, folder)
        for name in options.parts.split(","):
            results["parts"][name] = bench.part(name)
    finally:
        shutil.rmtree(folder, True)
    results["minutes"] = round((time.monotonic() - started) / 60, 1)
    print(inproc_tables.page(results))
    if options.json:
        with open(options.json, "w") as file:
            file.write(json_text(results))
    return 0 if all(met for met, _ in inproc_tables.verdicts(results)) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
