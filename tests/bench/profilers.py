"""The profilers that bench_perf.py compares, each behind one face: record a command, then make folded stacks of it.

A profiler's record() gives a Recording: what it cost and what came of it. fold() turns that recording into folded stacks with
names and gives what this cost; a profiler that writes folded stacks itself has nothing left to do there.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "live", "lib"))
from backends import WORKS, bpf_state
from harness import Summary
from measure import Cost, apart, run
from perf_data import Facts, facts_of

UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
SCRIPT_SECONDS = 1800


@dataclass
class Event:
    """What is sampled: so often a second of CPU time, or every occurrence of a software event."""

    hz: int = 999
    every: str = ""


@dataclass
class Recording:
    cost: Cost
    file_bytes: int
    ring_bytes: int | None  # from the kernel to the profiler; None where it does not say
    lost: int | None
    samples: int | None


class Nothing:
    """The command alone: what all others are compared with."""

    name, folds = "none", False

    def record(self, command, event, folder):
        return Recording(run(command), 0, 0, 0, 0)

    collect = record


class Cprof:
    folds = True

    def __init__(self, program, backend):
        self.program, self.backend, self.name = program, backend, f"cprof {backend}"

    def command(self, command, event, outputs, names=True):
        rate = ["-e", event.every, "-c", "1"] if event.every else ["-e", "cpu-clock", "-F", str(event.hz)]
        snapshots = ["--stack-size", "16384"] if self.backend == "perf" else []
        return [self.program, "record", "--backend", self.backend, *rate, *snapshots, *([] if names else ["--no-symbolize"]),
                *outputs, "--", *command]

    def record(self, command, event, folder, names=True):
        out = os.path.join(folder, "out.folded")
        cost = run(self.command(command, event, ["-o", out], names))
        summary = Summary(cost.stderr)
        read = re.search(r"([\d.]+) (B|kB|MB|GB) read", cost.stderr)
        ring_bytes = round(float(read[1]) * UNITS[read[2]]) if read else None
        return Recording(cost, os.path.getsize(out), ring_bytes, summary.lost or 0, summary.samples)

    def collect(self, command, event, folder):
        """Stacks as addresses: no file's names are looked up."""
        return self.record(command, event, folder, names=False)

    def fold(self, folder, folded):
        os.replace(os.path.join(folder, "out.folded"), folded)
        return {}


class Perf:
    folds = True

    def __init__(self, call_graph, flamegraph=None):
        self.call_graph, self.name = call_graph, f"perf {call_graph}"
        self.collapse = os.path.join(flamegraph, "stackcollapse-perf.pl") if flamegraph else None

    def record(self, command, event, folder):
        data = os.path.join(folder, "perf.data")
        rate = ["-e", event.every, "-c", "1"] if event.every else ["-e", "cpu-clock", "-F", str(event.hz)]
        cost = run(["perf", "record", "-q", *rate, "--call-graph", self.call_graph, "-o", data, "--", *command])
        facts = Facts(**apart(lambda: vars(facts_of(data))))  # it maps the file, which would count as memory of all that follows
        return Recording(cost, os.path.getsize(data), facts.data_bytes, facts.lost, facts.samples)

    collect = record

    def fold(self, folder, folded, inline=False):
        data, text = os.path.join(folder, "perf.data"), os.path.join(folder, "perf.txt")
        script = run(["perf", "script", "-i", data, *([] if inline else ["--no-inline"])], stdout=text, timeout=SCRIPT_SECONDS)
        fold = run([sys.executable, os.path.join(HERE, "fold_perf_script.py")], stdin=text, stdout=folded, timeout=SCRIPT_SECONDS)
        theirs = {}
        if self.collapse:
            theirs["collapse_s"] = run(["perl", self.collapse], stdin=text, timeout=SCRIPT_SECONDS).cpu_s
        written = os.path.getsize(text)
        os.unlink(text)
        return {"script_s": script.cpu_s, "fold_s": fold.cpu_s, **theirs, "rss_mb": max(script.rss_mb, fold.rss_mb), "text_bytes": written}


class Bpftrace:
    """Frame pointers only, stacks counted in the kernel; names only while the process is there, or cached at its start."""

    name, folds = "bpftrace", True

    def record(self, command, event, folder):
        text = os.path.join(folder, "bpftrace.txt")
        probe = f"software:{event.every}:1" if event.every else f"profile:hz:{event.hz}"
        comm = os.path.basename(command[0])[:15]
        program = f'{probe} /comm == "{comm}"/ {{ @[ustack, comm] = count(); }}'
        # With the default of 4,096 keys most stacks of a long run would be dropped unsaid.
        settings = ["env", "BPFTRACE_CACHE_USER_SYMBOLS=1", "BPFTRACE_MAP_KEYS_MAX=131072"]
        cost = run([*settings, "bpftrace", "-o", text, "-e", program, "-c", " ".join(command)])
        lost = sum(int(number) for number in re.findall(r"Lost (\d+) events", cost.stderr))
        return Recording(cost, os.path.getsize(text), None, lost, None)

    collect = record

    def fold(self, folder, folded):
        text = os.path.join(folder, "bpftrace.txt")
        fold = run([sys.executable, os.path.join(HERE, "fold_bpftrace.py")], stdin=text, stdout=folded)
        return {"script_s": 0.0, "fold_s": fold.cpu_s, "rss_mb": fold.rss_mb}


def runs_bpftrace():
    probe = ["bpftrace", "-e", "profile:hz:99 { @ = count(); }", "-c", shutil.which("true")]
    return shutil.which("bpftrace") is not None and subprocess.run(probe, capture_output=True, timeout=60).returncode == 0


def profilers(cprof, flamegraph=None):
    """Those that this machine can run; each of the others is told on stderr with its reason."""
    out = [Nothing(), Cprof(cprof, "perf")]
    state, words = bpf_state(cprof)
    if state == WORKS:
        out.append(Cprof(cprof, "bpf"))
    else:
        print(f"left out: cprof bpf: {words}", file=sys.stderr)
    out += [Perf(graph, flamegraph) for graph in ("fp", "dwarf,8192", "dwarf,16384", "dwarf,65528")]
    if runs_bpftrace():
        out.append(Bpftrace())
    else:
        print("left out: bpftrace: not installed, or it cannot run here", file=sys.stderr)
    return out
