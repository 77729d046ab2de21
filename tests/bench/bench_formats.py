#!/usr/bin/env python3
"""cprof's readers, writers and symbolizer against their peers, in turns on the same files: CPU time of the whole process tree and
peak memory. What a peer needs that is not installed here is left out and said.

    bench_formats.py [PROGRAM] [--tasks dwarf,...] [--rounds 3] [--scale 1.0] [--folder FOLDER] [--json FILE] [--quick] [--check]

The inputs are made first (format_inputs.py; --folder keeps them). The documents' figures: ./dev bench formats --json
docs/benchmarks/formats.json, then ./dev docs. Half an hour; --quick: a few minutes with inputs of a twentieth.

Requires: root and perf for the tasks that begin with a recording. Exit status 0 also when a goal is missed; --check makes it 1.
"""

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, os.path.join(HERE, "..", "live", "lib"), os.path.join(HERE, "..", "cli")):
    sys.path.insert(0, folder)
import format_tables
from bench_perf import json_text
from format_inputs import Inputs, block, number, varint
from measure import Cost, apart, machine, run
from perfdata import BASE, executable_segment
from pprof import Profile

FOLD = [sys.executable, os.path.join(HERE, "fold_perf_script.py")]
PERFPARSER = "/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser"
ADDRESSES = 50_000
PEER_SECONDS = 1800
# llvm-symbolizer takes a function's name from the symbol table, where compilers mark their copies of it: "f(int) (.isra.0)".
CLONE_MARK = re.compile(r" \(\.[a-z][\w.]*\)$")


def total(costs):
    """Of commands that run one after the other, or beside each other in a pipe."""
    return Cost(sum(c.cpu_s for c in costs), max(c.rss_mb for c in costs), sum(c.wall_s for c in costs))


def sum_of_lines(folded):
    with open(folded, encoding="utf-8", errors="replace") as file:
        return sum(int(line.rpartition(" ")[2]) for line in file)


def unpacked_size(path):
    with gzip.open(path) as file:
        return sum(map(len, iter(lambda: file.read(1 << 20), b"")))


def facts(cost):
    return {"cpu_s": cost.cpu_s, "rss_mb": cost.rss_mb, "wall_s": cost.wall_s}


class Bench:
    def __init__(self, options, folder):
        self.options, self.inputs, self.folder = options, Inputs(folder, options.scale), folder
        self.missing = {}

    def out(self, name):
        return os.path.join(self.folder, "out." + name)

    def cprof(self, *arguments, **how):
        return run([self.options.cprof, *arguments], **how)

    # --- tasks: each gives (what is measured, {name: function that runs it once and gives a Cost}, checks) ----------------

    def perf_script(self, data):
        def once():
            text = self.out("perf.txt")
            script = run(["perf", "script", "--no-inline", "-i", data], stdout=text, timeout=PEER_SECONDS)
            fold = run(FOLD, stdin=text, stdout=self.out("peer.folded"), timeout=PEER_SECONDS)
            os.unlink(text)
            return total([script, fold])

        return once

    def perfparser(self, data):
        return lambda: run([self.options.perfparser, "--input", data, "--output", os.devnull], timeout=PEER_SECONDS)

    def recording_task(self, data, inline=False):
        options = [] if inline else ["--no-inline"]
        runs = {"cprof": lambda: self.cprof("convert", *options, data, "-o", self.out("cprof.folded"))}
        if not inline:
            runs["perf script, folded"] = self.perf_script(data)
        if self.options.perfparser:
            runs["hotspot-perfparser"] = self.perfparser(data)
        return {"input_mb": os.path.getsize(data) / 1e6}, runs, lambda: self.same_totals(not inline)

    def same_totals(self, with_peer):
        ours = self.folded_total("cprof.folded")
        return {"samples": ours, **({"perf's samples": self.folded_total("peer.folded")} if with_peer else {})}

    def folded_total(self, name):
        return sum_of_lines(self.out(name))

    def dwarf(self):
        return self.recording_task(self.inputs.perf_dwarf())

    def inlined(self):
        return self.recording_task(self.inputs.perf_inlined(self.options.cprof), inline=True)

    def frame_pointers(self):
        return self.recording_task(self.inputs.perf_frame_pointers())

    def text(self):
        text = self.inputs.perf_text()
        runs = {"cprof": lambda: self.cprof("convert", text, "-o", self.out("cprof.folded")),
                "folding script": lambda: run(FOLD, stdin=text, stdout=self.out("peer.folded"), timeout=PEER_SECONDS)}
        return {"input_mb": os.path.getsize(text) / 1e6}, runs, lambda: self.same_totals(True)

    def folded(self):
        one, four = self.inputs.folded(), self.inputs.folded(round(4_000_000 * self.options.scale))
        runs = {"cprof": lambda: self.cprof("convert", one, "-o", self.out("folded.pb.gz")),
                "cprof, 4 times the lines": lambda: self.cprof("convert", four, "-o", self.out("folded4.pb.gz"))}
        return {"input_mb": os.path.getsize(one) / 1e6}, runs, lambda: self.pprof_total("folded.pb.gz", one)

    def pprof_total(self, name, folded):
        with open(self.out(name), "rb") as file:
            ours = sum(values[0] for _, values, _ in Profile(file.read()).samples)
        return {"sum": ours, "sum of the input": sum_of_lines(folded)}

    def pprof(self):
        return self.pprof_task(self.inputs.pprof(round(1_400_000 * self.options.scale)), "google pprof")

    def pprof_labels(self):
        return self.pprof_task(self.inputs.pprof(round(140_000 * self.options.scale)), "google pprof")

    def pprof_task(self, path, peer):
        runs = {"cprof": lambda: self.cprof("report", "--top", path, stdout=self.out("top.txt"))}
        if shutil.which("go"):
            runs[peer] = lambda: run(["go", "tool", "pprof", "-top", path], timeout=PEER_SECONDS)
        return {"input_mb": apart(lambda: unpacked_size(path)) / 1e6}, runs, lambda: {}

    def chrome(self):
        path = self.inputs.chrome(max(4, round(200 * self.options.scale)))
        runs = {"cprof": lambda: self.cprof("report", "--summary", path, stdout=self.out("chrome.txt"))}
        return {"input_mb": os.path.getsize(path) / 1e6}, runs, lambda: {}

    # --- symbols ------------------------------------------------------------------------------------------------------

    def unnamed_profile(self, program, addresses, name):
        """A pprof whose every location is an address of the program, without a name."""
        offset, svma, size = executable_segment(program)
        page = offset % 4096
        texts = ["", "samples", "count", program]
        pieces = [block(1, number(1, 1) + number(2, 2)),
                  block(3, number(1, 1) + number(2, BASE + svma - page) + number(3, BASE + svma + size) + number(4, offset - page) + number(5, 3))]
        for i, address in enumerate(addresses):
            pieces.append(block(4, number(1, i + 1) + number(2, 1) + number(3, BASE + address)))
            pieces.append(block(2, block(1, varint(i + 1)) + block(2, b"\x01")))
        pieces += [block(6, text.encode()) for text in texts]
        with open(self.out(name), "wb") as file:
            file.write(b"".join(pieces))
        return self.out(name)

    def symbol_task(self, count):
        program = self.inputs.big_program()
        addresses = self.inputs.text_addresses(program, count)
        profile = self.unnamed_profile(program, addresses, f"addresses{count}.pb")
        listing = self.out(f"addresses{count}.txt")
        with open(listing, "w") as file:
            file.write("".join(f"{address:#x}\n" for address in addresses))
        runs = {"cprof": lambda: self.cprof("symbolize", "-q", profile, "-o", self.out("named.pb"))}
        llvm = shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer")
        if llvm:
            runs["llvm-symbolizer"] = lambda: run([llvm, "--obj=" + program, "--inlining", "-C"], stdin=listing, stdout=self.out("llvm.txt"))
        runs["addr2line"] = lambda: run(["addr2line", "-i", "-f", "-C", "-e", program], stdin=listing, stdout=self.out("addr2line.txt"))
        return {"input_mb": os.path.getsize(program) / 1e6}, runs, lambda: self.compare_frames(addresses) if llvm and count > 1 else {}

    def compare_frames(self, addresses):
        with open(self.out("named.pb"), "rb") as file:
            profile = Profile(file.read())
        named = {}
        for message, lines in profile.locations.values():
            named[message[3] - BASE] = [(profile.text(profile.functions[line[1]].get(2, 0)), line.get(2, 0)) for line in lines]
        with open(self.out("llvm.txt"), encoding="utf-8", errors="replace") as file:
            answers = file.read().split("\n\n")
        equal = frames = 0
        for address, answer in zip(addresses, answers):
            rows = answer.splitlines()
            theirs = [(CLONE_MARK.sub("", rows[i]), int(rows[i + 1].rsplit(":", 2)[1])) for i in range(0, len(rows) - 1, 2)]
            frames += len(theirs)
            equal += named.get(address) == theirs
        return {"addresses": len(addresses), "frames": frames, "equal %": 100 * equal / max(1, len(addresses))}

    def symbols(self):
        return self.symbol_task(max(2, round(ADDRESSES * min(1, self.options.scale * 4))))

    def one_symbol(self):
        return self.symbol_task(1)

    # --- running --------------------------------------------------------------------------------------------------------

    def measure(self, name):
        settings, runs, check = getattr(self, name)()
        rounds = []
        for index in range(self.options.rounds):
            row = {}
            for who, once in runs.items():
                if who in self.missing.get(name, {}):
                    continue
                try:
                    row[who] = facts(once())
                except RuntimeError as error:
                    self.missing.setdefault(name, {})[who] = str(error).strip().splitlines()[-1][:200]
            rounds.append(row)
            print(f"{name}: round {index + 1} of {self.options.rounds} done", file=sys.stderr)
        checks = {} if "cprof" in self.missing.get(name, {}) else apart(check)
        return {"settings": settings, "checks": checks, "rounds": rounds}


def parse_arguments():
    parser = argparse.ArgumentParser(description="cprof's formats and names against their peers, in turns")
    parser.add_argument("cprof", nargs="?", default=os.environ.get("CPROF", "build/release/cprof"))
    parser.add_argument("--tasks", default=",".join(format_tables.TASKS), help=f"some of {','.join(format_tables.TASKS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the inputs' sizes")
    parser.add_argument("--folder", help="where inputs are made and kept")
    parser.add_argument("--perfparser", default=PERFPARSER, help="hotspot's reader of perf.data")
    parser.add_argument("--json", help="where raw results go")
    parser.add_argument("--quick", action="store_true", help="small inputs, one round: to try the bench itself")
    parser.add_argument("--check", action="store_true", help="status 1 when a goal is missed")
    options = parser.parse_args()
    options.cprof = os.path.abspath(options.cprof)
    if options.quick:
        options.rounds, options.scale = 1, 0.05
    if not os.access(options.perfparser, os.X_OK):
        print(f"left out: {options.perfparser} is not there (package hotspot)", file=sys.stderr)
        options.perfparser = None
    unknown = set(options.tasks.split(",")) - set(format_tables.TASKS)
    if unknown:
        parser.error(f"no such task: {', '.join(sorted(unknown))}")
    return options


def first_line(*command):
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return next((line.strip() for line in done.stdout.splitlines() if re.search(r"\d", line)), None)


def main():
    options = parse_arguments()
    if not shutil.which("perf") or os.geteuid() != 0:
        print("skipped: needs root and perf")
        return 77
    folder, started = options.folder or tempfile.mkdtemp(prefix="cprof-bench-"), time.monotonic()
    os.makedirs(folder, exist_ok=True)
    versions = {"perf": first_line("perf", "--version"), "llvm-symbolizer": first_line("llvm-symbolizer-19", "--version"),
                "addr2line": first_line("addr2line", "--version"), "commit": first_line("git", "-C", HERE, "rev-parse", "--short=12", "HEAD")}
    results = {"machine": machine(), "versions": versions, "tasks": {}}
    bench = Bench(options, folder)
    try:
        for name in options.tasks.split(","):
            results["tasks"][name] = bench.measure(name)
    finally:
        if not options.folder:
            shutil.rmtree(folder, True)
    results["left_out"] = {f"{who}, {name}": why for name, rows in bench.missing.items() for who, why in rows.items()}
    results["minutes"] = round((time.monotonic() - started) / 60, 1)
    print(format_tables.page(results))
    judged = list(format_tables.verdicts(results))
    for met, words in judged:
        print(f"{'met' if met else 'MISSED'}: {words}")
    if options.json:
        with open(options.json, "w") as file:
            file.write(json_text(results))
    return 0 if all(met for met, _ in judged) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
