"""The raw results of bench_perf.py as text: the tables of docs/benchmarks.md, and where cprof loses. Used by bench_perf.py and
by tools/gen_benchmarks.py; it measures nothing."""

import statistics

import perf_goals
from measure import statistics_of
from rounds import added, added_percent, column, median_of, names_in, ratios

OURS = ("cprof perf", "cprof bpf")
MEGABYTE = 1e6


def page(results):
    parts, blocks = results["parts"], [machine_words(results)]
    for name, section in (("main", main_section), ("rates", rates_section), ("faults", faults_section),
                          ("startup", startup_section), ("machine", machine_section)):
        if name in parts:
            blocks.append(section(parts[name]))
    blocks += [goals_section(parts), losses_section(parts)]
    left_out = [f"- {name}: {why}" for name, why in results.get("left_out", {}).items()]
    if left_out:
        blocks.append("\n".join(["Left out, since it failed:", "", *left_out]))
    return "\n\n".join(blocks) + "\n"


def machine_words(results):
    facts, versions = results["machine"], results["versions"]
    programs = ", ".join(words for name, words in versions.items() if name != "commit" and words)
    return (f"Machine: {facts['cpu']}, {facts['cpus']} CPUs, {facts['memory']}, Linux {facts['kernel']}, load {facts['load']:.1f} at the "
            f"start. {programs}. cprof of commit {versions.get('commit')}. The whole run took {results.get('minutes', 0)} minutes.")


def summary(results):
    """The one sentence for who reads no tables."""
    part = results["parts"]["main"]
    rounds, settings = part["rounds"], part["settings"]
    took = lambda name: f"{show(median_of(rounds, name, 'cpu_s'))} s of CPU time and {show(median_of(rounds, name, 'rss_mb'), 0)} MB of memory"
    ours = ", ".join(f"{name.replace(' ', chr(39) + 's ')} backend {took(name)}" for name in OURS if name in names_in(rounds))
    theirs = "perf dwarf,16384"
    return (f"Two busy threads with {settings['seconds']:g} s of work at {settings['hz']} Hz, from recording to folded stacks with names: {ours}; "
            f"`perf record --call-graph dwarf,16384` with `perf script --no-inline` and folding {took(theirs)}, and "
            f"{show(median_of(rounds, theirs, 'written_bytes'), 0, MEGABYTE)} MB of files.\n")


# --- text -------------------------------------------------------------------------------------------------------------

def times(rounds):
    return f"{len(rounds)} round{'' if len(rounds) == 1 else 's'}"


def show(value, digits=2, scale=1.0):
    return "n/a" if value is None else f"{value / scale:,.{digits}f}"


def spread(values, digits=1):
    if not values:
        return "n/a"
    facts = statistics_of(values)
    return f"{facts['median']:,.{digits}f} ({facts['least']:,.{digits}f} to {facts['most']:,.{digits}f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


# --- sections ---------------------------------------------------------------------------------------------------------

def main_section(part):
    rounds, settings = part["rounds"], part["settings"]
    profilers = [name for name in names_in(rounds) if name != "none"]
    head = ["", "target CPU, added", "collector CPU s", "script and fold CPU s", "all in, CPU s", "µs a sample", "kernel to user MB",
            "written MB", "peak MB", "samples", "lost", "reach the root"]
    return "\n\n".join([
        f"## End to end: {settings['hz']} Hz, {times(rounds)} of {settings['seconds']:g} s",
        "Two busy threads with a fixed amount of work, recorded, then turned into folded stacks with names. Medians over the rounds. "
        "*Target CPU* is what the profiler takes of the program's own time; *collector CPU* is the profiler's process while it "
        "records (cprof unwinds and names in it); *all in* is everything but the target's own.",
        table(head, [main_row(rounds, name) for name in profilers]),
        "The spread of it (p95 by nearest rank: with few rounds the most):",
        spread_table(rounds, profilers)])


def main_row(rounds, name):
    value = lambda key: median_of(rounds, name, key)
    later = (value("script_s") or 0.0) + (value("fold_s") or 0.0)
    samples, rooted = value("samples"), value("to_root")
    share = None if not samples else 100 * rooted / samples
    return [name, f"{statistics.median(added_percent(rounds, name)):+.1f} %", show(value("collector_s")), show(later),
            show(value("cpu_s")), show(1e6 * value("cpu_s") / samples if samples else None, 1), show(value("ring_bytes"), 1, MEGABYTE),
            show(value("written_bytes"), 2, MEGABYTE), show(value("rss_mb"), 0), show(samples, 0), show(value("lost"), 0),
            f"{show(share)} %"]


def spread_table(rounds, profilers):
    rows = []
    for name in profilers:
        for words, values in (("all in, CPU s", column(rounds, name, "cpu_s")), ("target CPU, added %", added_percent(rounds, name))):
            facts = statistics_of(values)
            against = [spread(ratios(rounds, name, ours, "cpu_s")) if words.startswith("all") and ours in rounds[0] else "" for ours in OURS]
            rows.append([name, words, *(f"{facts[key]:.2f}" for key in ("mean", "sd", "median", "p95")), *against])
    return table(["", "", "mean", "standard deviation", "median", "p95", *(f"times {ours}'s" for ours in OURS)], rows)


def rates_section(part):
    rounds, settings = part["rounds"], part["settings"]
    blocks = [f"## Collection alone: {times(rounds)} of {settings['seconds']:g} s",
              "The same work; cprof keeps addresses (`--no-symbolize`) but unwinds, perf only writes its file. Medians; the spread of the "
              "target's added CPU in brackets."]
    for hz in settings["hz"]:
        suffix = f" @ {hz}"
        names = [name.removesuffix(suffix) for name in names_in(rounds) if name.endswith(suffix) and not name.startswith("none")]
        blocks.append(table([f"{hz:,} Hz", "target CPU, added %", "collector CPU s", "kernel to user MB", "file MB", "samples", "lost"],
                            [rates_row(rounds, name, suffix) for name in names]))
    return "\n\n".join(blocks)


def rates_row(rounds, name, suffix):
    value = lambda key: median_of(rounds, name + suffix, key)
    return [name, spread(added_percent(rounds, name + suffix, baseline="none" + suffix)), show(value("collector_s")),
            show(value("ring_bytes"), 1, MEGABYTE), show(value("file_bytes"), 2, MEGABYTE), show(value("samples"), 0), show(value("lost"), 0)]


def faults_section(part):
    rounds, settings = part["rounds"], part["settings"]
    base = spread(column(rounds, "none", "fault_ns"), 0)
    rows = [[name, spread(added(rounds, name, "fault_ns"), 0), show(median_of(rounds, name, "lost"), 0)]
            for name in names_in(rounds) if name != "none"]
    return "\n\n".join([
        f"## One event: {times(rounds)} of {settings['events']:,} page faults under {settings['frames']} frames",
        f"Every fault is an event, so no timer is in it. The program times each fault; here is what the profiler adds to the median "
        f"fault, which takes {base} ns without one.",
        table(["", "ns added per event: median (least to most)", "lost"], rows)])


def startup_section(part):
    rounds = part["rounds"]
    rows = [[name, *(spread([1000 * value for value in column(rounds, name, key)], 0) for key in ("record_wall_s", "wall_s", "cpu_s"))]
            for name in names_in(rounds)]
    return "\n\n".join([f"## Start and end: {times(rounds)} of a command that ends at once",
                        table(["", "recording, ms", "to folded stacks, ms", "CPU, ms"], rows)])


def machine_section(part):
    rows = [[name, show(row["rss_mb"], 0), show(row["cpu_s"]), show(row["samples"], 0), show(row["lost"], 0)]
            for name, row in part["rounds"][0].items()]
    return "\n\n".join([f"## The whole machine: {part['settings']['seconds']:g} s at {part['settings']['hz']} Hz",
                        table(["", "peak MB", "CPU s", "samples", "lost"], rows)])


def goals_section(parts):
    return "\n".join(["## Goals", "", *(f"- {verdict if verdict == perf_goals.MET else f'**{verdict}**'}: {words}"
                                       for verdict, words in perf_goals.verdicts(parts))])


# --- where cprof loses ------------------------------------------------------------------------------------------------

def comparisons(parts):
    """Yields (what, unit, {profiler: value}) of every figure of which less is better."""
    if "main" in parts:
        rounds = parts["main"]["rounds"]
        names = [name for name in names_in(rounds) if name != "none"]
        yield "target CPU, added", "%", {name: statistics.median(added_percent(rounds, name)) for name in names}
        for key, words, unit, scale in (("collector_s", "CPU of the recording process", "s", 1), ("cpu_s", "CPU to folded stacks", "s", 1),
                                        ("ring_bytes", "kernel to user", "MB", MEGABYTE), ("written_bytes", "bytes written", "MB", MEGABYTE),
                                        ("rss_mb", "peak memory", "MB", 1), ("lost", "lost", "samples", 1)):
            values = {name: median_of(rounds, name, key) for name in names}
            yield words, unit, {name: value / scale for name, value in values.items() if value is not None}
    for part, words, unit, values in (("faults", "cost of one event", "ns", faults_values), ("startup", "recording a command that ends at once", "ms",
                                                                                           startup_values)):
        if part in parts:
            yield words, unit, values(parts[part]["rounds"])


def faults_values(rounds):
    return {name: statistics.median(added(rounds, name, "fault_ns")) for name in names_in(rounds) if name != "none"}


def startup_values(rounds):
    return {name: 1000 * median_of(rounds, name, "record_wall_s") for name in names_in(rounds) if name != "none"}


def losses_section(parts):
    lines = []
    for words, unit, values in comparisons(parts):
        for ours in (name for name in OURS if name in values):
            better = sorted((value, name) for name, value in values.items() if name not in OURS and value < values[ours])
            if better:
                peers = ", ".join(f"{name} {value:,.2f}" for value, name in better)
                lines.append(f"- {ours}, {words}: {values[ours]:,.2f} {unit}; less: {peers}")
    return "\n".join(["## Where cprof loses", "", "Every figure above in which a peer's median is lower, whatever else the peer does not do:", "",
                      *(lines or ["- in none"])])
