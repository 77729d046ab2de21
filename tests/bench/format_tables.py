"""The raw results of bench_formats.py as text: its part of docs/benchmarks.md, and which goals they meet. Measures nothing."""

import statistics

from tables import machine_words, ratios, show

TASKS = {
    "dwarf": "perf.data with stack snapshots to folded stacks, no inlined functions",
    "inlined": "perf.data with stack snapshots to folded stacks, inlined functions expanded",
    "frame_pointers": "perf.data with frame pointers to folded stacks",
    "text": "perf script's text to folded stacks",
    "folded": "folded stacks to pprof.gz",
    "pprof": "pprof.gz, top functions",
    "pprof_labels": "a small pprof.gz with labels, top functions",
    "chrome": "Chrome trace JSON, summary",
    "symbols": "names, lines and inlined functions of many addresses",
    "one_symbol": "the same of one address, cold",
}
# (task, peer, measure, what is at most allowed of the peer's)
GOALS = (
    ("dwarf", "perf script, folded", "cpu_s", 1 / 15),
    ("dwarf", "hotspot-perfparser", "cpu_s", 1 / 4),
    ("dwarf", "hotspot-perfparser", "rss_mb", 1),
    ("inlined", "hotspot-perfparser", "cpu_s", 1 / 4),
    ("frame_pointers", "perf script, folded", "cpu_s", 1 / 15),
    ("text", "folding script", "cpu_s", 1 / 10),
    ("pprof_labels", "google pprof", "cpu_s", 1 / 100),
    ("symbols", "llvm-symbolizer", "cpu_s", 1 / 2),
    ("symbols", "llvm-symbolizer", "rss_mb", 0.6),
    ("one_symbol", "llvm-symbolizer", "cpu_s", 1 / 2),
)
MOST_RSS_OF_FOLDED_MB, MOST_GROWTH_OF_FOLDED = 200, 1.2
MOST_RSS_OF_INPUT = {"pprof": 2.0, "chrome": 1.2}
LEAST_EQUAL_PERCENT = 99.5


def column(rounds, name, key):
    return [row[name][key] for row in rounds if name in row]


def page(results):
    rows = ["|  |  | input MB | CPU s | MB/s | peak MB | times cprof's CPU |", "|---|---|---|---|---|---|---|"]
    for task, part in results["tasks"].items():
        for name in list({name: None for row in part["rounds"] for name in row}):
            rows.append(row_of(task, name, part))
    checks = [f"- {TASKS[task]}: " + ", ".join(f"{key} {value:,.2f}".rstrip("0").rstrip(".") for key, value in part["checks"].items())
              for task, part in results["tasks"].items() if part["checks"]]
    blocks = [machine_words(results), "\n".join(rows), "\n".join(["What came out:", "", *checks])]
    goals = [f"- {'met' if met else '**missed**'}: {words}" for met, words in verdicts(results)]
    blocks.append("\n".join(["Goals:", "", *goals]))
    left_out = [f"- {name}: {why}" for name, why in results.get("left_out", {}).items()]
    if left_out:
        blocks.append("\n".join(["Left out, since it failed:", "", *left_out]))
    return "\n\n".join(blocks) + "\n"


def row_of(task, name, part):
    rounds, megabytes = part["rounds"], part["settings"]["input_mb"]
    cpu = statistics.median(column(rounds, name, "cpu_s"))
    times = statistics.median(ratios(rounds, name, "cprof", "cpu_s")) if name != "cprof" else 1
    title = TASKS[task] if name == "cprof" else ""
    return (f"| {title} | {name} | {show(megabytes, 0)} | {show(cpu)} | {show(megabytes / max(cpu, 1e-3), 0)} | "
            f"{show(statistics.median(column(rounds, name, 'rss_mb')), 0)} | {show(times, 1)} |")


def verdicts(results):
    """(met, in words) of each goal that these results can judge."""
    tasks = results["tasks"]
    for task, peer, key, most in GOALS:
        values = ratios(tasks.get(task, {}).get("rounds", []), "cprof", peer, key)
        if values:
            value, what = statistics.median(values), "CPU time" if key == "cpu_s" else "peak memory"
            yield value <= most, f"{TASKS[task]}: {value:.3f} of {peer}'s {what} (goal {most:.3f})"
    for task, most in MOST_RSS_OF_INPUT.items():
        peak = column(tasks.get(task, {}).get("rounds", []), "cprof", "rss_mb")
        if peak:
            value = statistics.median(peak) / tasks[task]["settings"]["input_mb"]
            yield value <= most, f"{TASKS[task]}: peak memory {value:.2f} of the unpacked input (goal {most})"
    if "folded" in tasks:
        yield from folded_verdicts(tasks["folded"]["rounds"])
    equal = tasks.get("symbols", {}).get("checks", {}).get("equal %")
    if equal is not None:
        yield equal >= LEAST_EQUAL_PERCENT, f"{TASKS['symbols']}: {equal:.2f} % equal to llvm-symbolizer's (goal {LEAST_EQUAL_PERCENT})"


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
