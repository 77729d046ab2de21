"""What bench_formats.py measures: one method a task, which makes its inputs and gives what is run in turn and what must come
out. Peers that are not installed here are left out; bench_formats.py says so.
"""

import gzip
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, os.path.join(HERE, "..", "live", "lib"), os.path.join(HERE, "..", "cli")):
    sys.path.insert(0, folder)
from format_inputs import Inputs, block, number, varint
from measure import Cost, apart, run
from perfdata import BASE, executable_segment
from pprof import Profile

FOLD = [sys.executable, os.path.join(HERE, "fold_perf_script.py")]
ADDRESSES = 50_000
COLD_STARTS = 10  # of a program that names one address: one run is too short to be measured
PEER_SECONDS = 600
# llvm-symbolizer takes a function's name from the symbol table, where compilers mark their copies of it: "f(int) (.isra.0)".
CLONE_MARK = re.compile(r" \(\.[a-z][\w.]*\)$")
VALUE_SQL = ("select sum(case sample_type_type when 'samples' then value end), sum(case sample_type_type when 'cpu' then value end) "
             "from __intrinsic_aggregate_sample join __intrinsic_aggregate_profile p on aggregate_profile_id = p.id")
ROWS_SQL = "select (select count(*) from stack_profile_callsite), (select count(*) from __intrinsic_aggregate_sample)"
SLICE_SQL = "select count(*), sum(dur) from slice"


class Task:
    """runs: name -> function that runs it once and gives a Cost. check gives {what: number}, once, after the runs."""

    def __init__(self, input_bytes, runs, check):
        self.input_mb, self.runs, self.check = input_bytes / 1e6, runs, check


def total(costs):
    """Of commands that run one after the other, or beside each other in a pipe."""
    return Cost(sum(c.cpu_s for c in costs), max(c.rss_mb for c in costs), sum(c.wall_s for c in costs))


def sum_of_lines(folded):
    with open(folded, encoding="utf-8", errors="replace") as file:
        return sum(int(line.rpartition(" ")[2]) for line in file)


def leaf_sums(folded):
    sums = {}
    with open(folded, encoding="utf-8") as file:
        for line in file:
            stack, _, count = line.rpartition(" ")
            leaf = stack.rpartition(";")[2]
            sums[leaf] = sums.get(leaf, 0) + int(count)
    return sums


def profile_at(path):
    with open(path, "rb") as file:
        return Profile(file.read())


def unpacked_size(path):
    with gzip.open(path) as file:
        return sum(map(len, iter(lambda: file.read(1 << 20), b"")))


class Tasks:
    def __init__(self, options, folder):
        self.options, self.inputs, self.folder = options, Inputs(folder, options.scale), folder

    def out(self, name):
        return os.path.join(self.folder, "out." + name)

    def cprof(self, *arguments, **how):
        return run([self.options.cprof, *arguments], **how)

    def sql(self, query, path, name):
        return self.cprof("sql", "--format", "csv", "-q", query, path, stdout=self.out(name))

    def answer(self, name):
        """The numbers of the one row that a query gave."""
        with open(self.out(name)) as file:
            return [round(float(word)) for word in file.read().splitlines()[1].split(",")]

    def flamegraph(self, script):
        """FlameGraph's own script, where its folder was named."""
        path = os.path.join(self.options.flamegraph or "", script)
        return ["perl", path] if self.options.flamegraph and os.path.exists(path) else None

    # --- recordings ---------------------------------------------------------------------------------------------------

    def folding(self):
        """{name: command} of what folds perf script's text; all read stdin."""
        perl = self.flamegraph("stackcollapse-perf.pl")
        return {"stackcollapse-perf.pl": perl} if perl else {"folding script": FOLD}

    def perf_script(self, data, fold, *options):
        def once():
            text = self.out("perf.txt")
            script = run(["perf", "script", *options, "-i", data], stdout=text, timeout=PEER_SECONDS)
            folded = run(fold, stdin=text, stdout=self.out("peer.folded"), timeout=PEER_SECONDS)
            os.unlink(text)
            return total([script, folded])

        return once

    def perfparser(self, data):
        return lambda: run([self.options.perfparser, "--input", data, "--output", os.devnull], timeout=PEER_SECONDS)

    def recording_task(self, data, inline=False):
        options = [] if inline else ["--no-inline"]
        runs = {"cprof": lambda: self.cprof("convert", *options, data, "-o", self.out("cprof.folded"))}
        for name, fold in self.folding().items():
            runs[f"perf script, {name}"] = self.perf_script(data, fold, *options)
        if self.options.perfparser:
            runs["hotspot-perfparser"] = self.perfparser(data)
        return Task(os.path.getsize(data), runs, self.same_totals)

    def same_totals(self):
        ours, theirs = sum_of_lines(self.out("cprof.folded")), self.out("peer.folded")
        return {"samples": ours, **({"the peer's samples": sum_of_lines(theirs)} if os.path.exists(theirs) else {})}

    def dwarf(self):
        return self.recording_task(self.inputs.perf_dwarf())

    def inlined(self):
        return self.recording_task(self.inputs.perf_inlined(self.options.cprof), inline=True)

    def frame_pointers(self):
        return self.recording_task(self.inputs.perf_frame_pointers())

    def text(self):
        text = self.inputs.perf_text()
        runs = {"cprof": lambda: self.cprof("convert", text, "-o", self.out("cprof.folded"))}
        for name, fold in self.folding().items():
            runs[name] = lambda fold=fold: run(fold, stdin=text, stdout=self.out("peer.folded"), timeout=PEER_SECONDS)
        return Task(os.path.getsize(text), runs, self.same_totals)

    # --- generated files ----------------------------------------------------------------------------------------------

    def folded(self):
        one, four = self.inputs.folded(), self.inputs.folded(round(4_000_000 * self.options.scale))
        runs = {"cprof": lambda: self.cprof("convert", one, "-o", self.out("folded.pb.gz")),
                "cprof, 4 times the lines": lambda: self.cprof("convert", four, "-o", self.out("folded4.pb.gz"))}
        if perl := self.flamegraph("flamegraph.pl"):
            runs["flamegraph.pl"] = lambda: run([*perl, one], stdout=self.out("folded.svg"), timeout=PEER_SECONDS)
        return Task(os.path.getsize(one), runs, lambda: self.functions_of(self.out("folded.pb.gz"), one))

    def functions_of(self, packed, folded):
        profile, ours = profile_at(packed), {}
        names = {id_: profile.text(profile.functions[lines[0][1]].get(2, 0)) for id_, (_, lines) in profile.locations.items()}
        for locations, values, _ in profile.samples:
            ours[names[locations[0]]] = ours.get(names[locations[0]], 0) + values[0]
        truth = leaf_sums(folded)
        return {"sum": sum(ours.values()), "functions": len(truth),
                "functions whose sum is wrong": sum(ours.get(name) != value for name, value in truth.items()) + len(ours.keys() - truth.keys())}

    def pprof(self):
        samples = round(1_400_000 * self.options.scale)
        path = self.inputs.pprof(samples)
        self.sql(ROWS_SQL, path, "rows.csv")
        rows = [str(count) for count in self.answer("rows.csv")]
        floor = os.path.join(os.path.dirname(self.options.cprof), "tests", "bench", "cprof_pprof_floor")
        runs = {"cprof": lambda: self.sql(VALUE_SQL, path, "values.csv")}
        if os.access(floor, os.X_OK):
            runs["unpack, walk, insert"] = lambda: run([floor, path, *rows], stdout=self.out("floor.txt"))
        return Task(apart(lambda: unpacked_size(path)), runs, lambda: self.value_sums(samples))

    def value_sums(self, samples):
        names = ("samples", "nanoseconds")
        return {**dict(zip(names, self.answer("values.csv"))), "samples by construction": 3 * samples, "nanoseconds by construction": 30 * samples}

    def pprof_labels(self):
        path = self.inputs.pprof(round(140_000 * self.options.scale))
        runs = {"cprof": lambda: self.cprof("report", "--top", path, stdout=self.out("top.txt"))}
        if shutil.which("go"):
            runs["google pprof"] = lambda: run(["go", "tool", "pprof", "-top", path], stdout=self.out("pprof.txt"), timeout=PEER_SECONDS)
        return Task(apart(lambda: unpacked_size(path)), runs, dict)

    def chrome(self):
        path = self.inputs.chrome(max(4, round(200 * self.options.scale)))
        return Task(os.path.getsize(path), {"cprof": lambda: self.sql(SLICE_SQL, path, "slices.csv")}, lambda: self.slice_sums(path))

    def slice_sums(self, path):
        with open(path, "rb") as file:
            events = sum(line.startswith(b'{"name"') and b'"ph":"X"' in line for line in file)
        slices, nanoseconds = self.answer("slices.csv")
        return {"slices": slices, "nanoseconds": nanoseconds, "slices by construction": events, "nanoseconds by construction": 3000 * events}

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

    def symbol_runs(self, program, addresses):
        name = f"addresses{len(addresses)}"
        profile, listing = self.unnamed_profile(program, addresses, name + ".pb"), self.out(name + ".txt")
        with open(listing, "w") as file:
            file.write("".join(f"{address:#x}\n" for address in addresses))
        runs = {"cprof": lambda: self.cprof("symbolize", "-q", profile, "-o", self.out("named.pb"))}
        if llvm := shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer"):
            runs["llvm-symbolizer"] = lambda: run([llvm, "--obj=" + program, "--inlining", "-C"], stdin=listing, stdout=self.out("llvm.txt"))
        runs["addr2line"] = lambda: run(["addr2line", "-i", "-f", "-C", "-e", program], stdin=listing, stdout=self.out("addr2line.txt"))
        return runs

    def compare_frames(self, addresses):
        profile, named = profile_at(self.out("named.pb")), {}
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
        program = self.inputs.big_program()
        addresses = self.inputs.text_addresses(program, max(2, round(ADDRESSES * min(1, self.options.scale * 4))))
        runs = self.symbol_runs(program, addresses)
        return Task(os.path.getsize(program), runs, lambda: self.compare_frames(addresses) if "llvm-symbolizer" in runs else {})

    def one_symbol(self):
        program = self.inputs.big_program()
        runs = self.symbol_runs(program, self.inputs.text_addresses(program, 1)[:1])
        return Task(os.path.getsize(program), {who: lambda once=once: total([once() for _ in range(COLD_STARTS)]) for who, once in runs.items()}, dict)
