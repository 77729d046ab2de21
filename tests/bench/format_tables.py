"""The raw results of bench_formats.py as text: its part of docs/benchmarks.md, and which goals they meet. Measures nothing."""

import statistics

from rounds import ratios
from tables import machine_words, show

TASKS = {
    "dwarf": "perf.data with stack snapshots to folded stacks, no inlined functions",
    "inlined": "perf.data with stack snapshots to folded stacks, inlined functions expanded",
    "frame_pointers": "perf.data with frame pointers to folded stacks",
    "text": "perf script's text to folded stacks",
    "folded": "folded stacks to pprof.gz",
    "pprof": "pprof.gz to a first answer by SQL",
    "pprof_labels": "a small pprof.gz with labels, top functions",
    "chrome": "Chrome trace JSON to slices and their sum by SQL",
    "symbols": "names, lines and inlined functions of many addresses",
    "one_symbol": "the same of one address, cold, ten times",
}
# (task, peer, measure, what is at most allowed of the peer's, what we aim for)
GOALS = (
    ("dwarf", "perf script, stackcollapse-perf.pl", "cpu_s", 1 / 15, 1 / 30),
    ("dwarf", "hotspot-perfparser", "cpu_s", 1 / 4, 1 / 8),
    ("dwarf", "hotspot-perfparser", "rss_mb", 1, 1),
    ("inlined", "perf script, stackcollapse-perf.pl", "cpu_s", 1 / 20, 1 / 50),
    ("inlined", "hotspot-perfparser", "cpu_s", 1 / 4, 1 / 8),
    ("frame_pointers", "perf script, stackcollapse-perf.pl", "cpu_s", 1 / 15, 1 / 30),
    ("text", "stackcollapse-perf.pl", "cpu_s", 1 / 10, 1 / 20),
    ("folded", "flamegraph.pl", "cpu_s", 1 / 15, 1 / 30),
    ("pprof", "unpack, walk, insert", "cpu_s", 4, 2),
    ("pprof_labels", "google pprof", "cpu_s", 1 / 100, 1 / 300),
    ("symbols", "llvm-symbolizer", "cpu_s", 1 / 2, 1 / 4),
    ("symbols", "llvm-symbolizer", "rss_mb", 0.6, 0.35),
    ("one_symbol", "llvm-symbolizer", "cpu_s", 1 / 2, 1 / 2),
)
# Who runs where a peer is not at hand, and is quicker than it: a goal met against it is met, one missed says nothing.
STAND_INS = {"stackcollapse-perf.pl": "folding script"}
MOST_RSS_OF_FOLDED_MB, MOST_GROWTH_OF_FOLDED = 200, 1.2
MOST_RSS_OF_INPUT = {"pprof": (2.0, 1.3), "chrome": (1.2, 0.7)}
LEAST_MB_PER_SECOND = {"chrome": (100, 200)}
LEAST_EQUAL_PERCENT = 99.5
BY_CONSTRUCTION = " by construction"
MUST_BE_NONE = "functions whose sum is wrong"
WORDS = {True: "met", False: "MISSED", None: "not judged"}


def column(rounds, name, key):
    return [row[name][key] for row in rounds if name in row]


def page(results):
    rows = ["|  |  | input MB | CPU s | MB/s | peak MB | times cprof's CPU |", "|---|---|---|---|---|---|---|"]
    for task, part in results["tasks"].items():
        for name in list({name: None for row in part["rounds"] for name in row}):
            rows.append(row_of(task, name, part))
    blocks = [machine_words(results), "\n".join(rows)]
    blocks += list_of("What came out:", (f"{TASKS[task]}: {checks_in_words(part['checks'])}" for task, part in results["tasks"].items()
                                        if part["checks"]))
    blocks += list_of("Goals:", (f"{WORDS[met] if met else f'**{WORDS[met]}**'}: {words}" for met, words in verdicts(results)))
    blocks += list_of("Failed:", (f"{TASKS[task]}: {why}" for task, why in results.get("failed", {}).items()))
    blocks += list_of("Left out, since it failed:", (f"{name}: {why}" for name, why in results.get("left_out", {}).items()))
    return "\n\n".join(blocks) + "\n"


def list_of(title, lines):
    lines = [f"- {line}" for line in lines]
    return ["\n".join([title, "", *lines])] if lines else []


def checks_in_words(checks):
    return ", ".join(f"{key} {value:,}" if isinstance(value, int) else f"{key} {value:,.2f}" for key, value in checks.items())


def row_of(task, name, part):
    rounds, megabytes = part["rounds"], part["settings"]["input_mb"]
    cpu = statistics.median(column(rounds, name, "cpu_s"))
    of_ours = ratios(rounds, name, "cprof", "cpu_s")
    times = statistics.median(of_ours) if of_ours else None
    title = TASKS[task] if name == "cprof" else ""
    return (f"| {title} | {name} | {show(megabytes, 0)} | {show(cpu)} | {show(megabytes / max(cpu, 1e-3), 0)} | "
            f"{show(statistics.median(column(rounds, name, 'rss_mb')), 0)} | {show(times, 1)} |")


def verdicts(results):
    """(met, in words) of each goal that these results can judge; met is None where only a quicker stand-in ran."""
    tasks = {name: part for name, part in results["tasks"].items() if name not in results.get("failed", {})}
    for goal in GOALS:
        yield from against_peer(tasks.get(goal[0], {}).get("rounds", []), *goal)
    for task, (most, aim) in MOST_RSS_OF_INPUT.items():
        if task in tasks:
            value = statistics.median(column(tasks[task]["rounds"], "cprof", "rss_mb")) / tasks[task]["settings"]["input_mb"]
            yield value <= most, f"{TASKS[task]}: peak memory {value:.2f} of the unpacked input (goal {most}, aim {aim})"
    for task, (least, aim) in LEAST_MB_PER_SECOND.items():
        if task in tasks:
            value = tasks[task]["settings"]["input_mb"] / statistics.median(column(tasks[task]["rounds"], "cprof", "cpu_s"))
            yield value >= least, f"{TASKS[task]}: {value:.0f} MB a second of CPU time (goal {least}, aim {aim})"
    if "folded" in tasks:
        yield from folded_verdicts(tasks["folded"]["rounds"])
    for task, part in tasks.items():
        yield from exactness(task, part["checks"])


def against_peer(rounds, task, peer, key, most, aim):
    words = lambda who, value: (f"{TASKS[task]}: {value:.3f} of {who}'s {'CPU time' if key == 'cpu_s' else 'peak memory'} "
                                f"(goal {most:.3f}, aim {aim:.3f})")
    if values := ratios(rounds, "cprof", peer, key):
        value = statistics.median(values)
        yield value <= most, words(peer, value)
        return
    for real, other in STAND_INS.items():
        stand_in = peer.replace(real, other)
        if stand_in != peer and (values := ratios(rounds, "cprof", stand_in, key)):
            value = statistics.median(values)
            yield (True if value <= most else None), words(stand_in, value) + f"; {real} was not at hand"


def exactness(task, checks):
    """Sums are exact or wrong."""
    for key, expected in checks.items():
        if key.endswith(BY_CONSTRUCTION):
            what = key.removesuffix(BY_CONSTRUCTION)
            yield checks[what] == expected, f"{TASKS[task]}: {what} {checks[what]:,} of {expected:,}"
    if MUST_BE_NONE in checks:
        yield checks[MUST_BE_NONE] == 0, f"{TASKS[task]}: {MUST_BE_NONE}: {checks[MUST_BE_NONE]:,} of {checks['functions']:,}"
    if "equal %" in checks:
        yield checks["equal %"] >= LEAST_EQUAL_PERCENT, f"{TASKS[task]}: {checks['equal %']:.2f} % equal to llvm-symbolizer's (goal {LEAST_EQUAL_PERCENT})"


def folded_verdicts(rounds):
    peak = column(rounds, "cprof", "rss_mb")
    if not peak:
        return
    value = statistics.median(peak)
    yield value <= MOST_RSS_OF_FOLDED_MB, f"folded stacks: peak memory {value:.0f} MB (goal {MOST_RSS_OF_FOLDED_MB})"
    growth = ratios(rounds, "cprof, 4 times the lines", "cprof", "rss_mb")
    if growth:
        value = statistics.median(growth)
        yield value <= MOST_GROWTH_OF_FOLDED, f"folded stacks: {value:.2f} times the memory for 4 times the lines (goal {MOST_GROWTH_OF_FOLDED})"
