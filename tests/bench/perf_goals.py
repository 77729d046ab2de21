"""Which goals the raw results of bench_perf.py meet. Used by bench_perf.py and tables.py; it measures nothing."""

import statistics

from rounds import added, added_percent, column, ratios

ALL_IN = "all in"
MET, MISSED, NOT_JUDGED = "met", "MISSED", "not judged"

# What of the main part, whose, against which peer's, at most what share of it, and what is aimed for.
MAIN = (
    ("collector_s", "CPU time of the recording process", "cprof bpf", "perf dwarf,65528", 1 / 3, 1 / 10),
    ("ring_bytes", "bytes from kernel to user", "cprof bpf", "perf dwarf,65528", 1 / 300, 1 / 300),
    ("file_bytes", "bytes of the recording", "cprof bpf", "perf dwarf,65528", 1 / 100, 1 / 100),
    (ALL_IN, "CPU time to folded stacks", "cprof bpf", "perf dwarf,65528", 1 / 30, 1 / 30),
    (ALL_IN, "CPU time to folded stacks", "cprof perf", "perf dwarf,16384", 1 / 10, 1 / 10),
)
# At which rate at most how many percent of the target's CPU time, or how many points more than a peer takes.
OVERHEAD = ((199, None, 2.0), (999, "perf fp", 1.0))
# One event: at most this share of what the peer adds.
EVENT = (("perf dwarf,8192", 1.0, 0.5), ("perf fp", 1.0, 1.0))
MOST_START_S, MOST_MACHINE_MB = 0.25, 200


def verdicts(parts):
    """(verdict, in words) of each goal that these results can judge."""
    if "main" in parts:
        yield from main_verdicts(parts["main"]["rounds"])
    if "rates" in parts:
        yield from overhead_verdicts(parts["rates"]["rounds"])
    if "faults" in parts:
        yield from event_verdicts(parts["faults"]["rounds"])
    if "startup" in parts:
        for name in ("cprof perf", "cprof bpf"):
            if values := column(parts["startup"]["rounds"], name, "cpu_s"):
                yield judged(statistics.median(values) <= MOST_START_S,
                             f"{name}: start and end take {statistics.median(values):.3f} s of CPU time (goal {MOST_START_S})")
    if "machine" in parts:
        for name, row in parts["machine"]["rounds"][0].items():
            yield judged(row["rss_mb"] < MOST_MACHINE_MB,
                         f"{name}: peak memory {row['rss_mb']:.0f} MB for the whole machine (goal under {MOST_MACHINE_MB})")


def judged(is_met, words):
    return (MET if is_met else MISSED), words


def main_verdicts(rounds):
    for key, what, ours, peer, most, aim in MAIN:
        pairs = [(row[ours], row[peer]) for row in rounds if ours in row and peer in row]
        if not pairs:
            continue
        values = [of_ours[key] / max(of_peer[key], 1e-9) for of_ours, of_peer in pairs] if key != ALL_IN else [all_in_ratio(*pair) for pair in pairs]
        times = 1 / max(statistics.median(values), 1e-9)
        words = f"{ours}, {what}: 1/{times:.1f} of {peer}'s (goal 1/{1 / most:.0f}, aim 1/{1 / aim:.0f})"
        if key != ALL_IN:
            yield judged(times >= 1 / most, words)
        elif "collapse_s" in pairs[0][1]:
            yield judged(times >= 1 / most, words + ", folded by FlameGraph's script")
        elif times >= 1 / most:
            yield MET, words
        else:
            yield NOT_JUDGED, words + "; FlameGraph's stackcollapse-perf.pl, slower than the script that folded, was not at hand"
    if lost := column(rounds, "cprof bpf", "lost"):
        yield judged(max(lost) == 0, f"cprof bpf: {max(lost)} samples lost (goal 0)")


def all_in_ratio(ours, peer):
    """People fold perf's text by FlameGraph's script: where it was at hand its time counts, else that of the quicker one."""
    return ours["cpu_s"] / (peer["cpu_s"] - peer["fold_s"] + peer.get("collapse_s", peer["fold_s"]))


def overhead_verdicts(rounds):
    for hz, peer, most in OVERHEAD:
        for ours in ("cprof perf", "cprof bpf"):
            taken = added_percent(rounds, f"{ours} @ {hz}", baseline=f"none @ {hz}")
            if not taken:
                continue
            value, against = statistics.median(taken), ""
            if peer:
                value -= statistics.median(added_percent(rounds, f"{peer} @ {hz}", baseline=f"none @ {hz}"))
                against = f" more than {peer}"
            yield judged(value <= most, f"{ours} at {hz} Hz takes {value:+.1f} % of the target's CPU time{against} (goal {most:g})")


def event_verdicts(rounds):
    for peer, most, aim in EVENT:
        ours, theirs = (added(rounds, name, "fault_ns") for name in ("cprof bpf", peer))
        if ours and theirs:
            value = statistics.median(ours) / max(statistics.median(theirs), 1e-9)
            yield judged(value <= most, f"cprof bpf adds {value:.2f} of what {peer} adds to one event (goal {most:g}, aim {aim:g})")
