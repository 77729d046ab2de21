"""The raw results of bench_inproc.py as text: its part of docs/benchmarks.md, and which goals they meet. Measures nothing."""

import statistics

from tables import added_percent, column, machine_words, median_of, show, spread, table, times

# What is allowed.
MOST_OF_FLOOR, MOST_OF_FLOOR_BY_CALL, MOST_OF_WARM, MOST_DISABLED_NS, MOST_INSTRUCTIONS = 1.10, 1.25, 2, 1, 6
LEAST_DELIVERED = {"1000": 97, "4000": 97, "10000": 94}
LEAST_EVENNESS, MOST_WEIGHT_ERROR, MOST_OF_BACKTRACE = 0.95, 0.01, 0.25
MOST_OF_PERF = {"1000": 1.1, "4000": 1.35}
WORDS = {True: "met", False: "**MISSED**"}


def page(results):
    parts, blocks = results["parts"], [machine_words(results)]
    for name, section in (("scopes", scopes_section), ("handler", handler_section), ("samples", samples_section),
                          ("overhead", overhead_section)):
        if name in parts:
            blocks.append(section(parts[name]))
    blocks.append("\n".join(["Goals:", "", *(f"- {WORDS[met]}: {words}" for met, words in verdicts(results))]))
    return "\n\n".join(blocks) + "\n"


def of_same_round(rounds, name, key, by):
    """Per round, so that what was slow for both does not count."""
    return [row[name][key] / row[name][by] for row in rounds]


def above_empty(rounds, name):
    return [row[name]["disabled_ns"] - row[name]["empty_ns"] for row in rounds]


def scopes_section(part):
    rounds = part["rounds"]
    rows = []
    for name in rounds[0]:
        cells = [spread(of_same_round(rounds, name, key, by), 2)
                 for key, by in (("scope_ns", "floor_ns"), ("call_ns", "floor_ns"), ("cold_ns", "scope_ns"))]
        rows.append([name, spread(column(rounds, name, "floor_ns"), 1), *cells, show(median_of(rounds, name, "cold_faults"), 0),
                     spread(above_empty(rounds, name), 2)])
    counted = part["settings"].get("instructions")
    words = f" That is {show(counted)} instructions (callgrind)." if counted is not None else ""
    return "\n\n".join([
        f"## A scope: {times(rounds)}",
        "Enter and leave, both times kept, CPU time of a thread. The *floor* is two readings of the counter and a record of 24 bytes in a "
        "ring; *by call* is `cprof_scope_begin(name)` and `cprof_scope_end()` through the shared library; *first burst* is the "
        "first 20,000 scopes of a thread, with its page faults; *disabled* is what a scope adds to an empty loop while no session runs."
        + words,
        table(["threads", "floor, ns", "scope / floor", "by call / floor", "first burst / warm", "page faults", "disabled, ns"], rows)])


def handler_ratio(rounds):
    return of_same_round(rounds, "handler", "capture_ns", "backtrace_ns")


def handler_section(part):
    rounds = part["rounds"]
    cells = [spread(column(rounds, "handler", key), 0) for key in ("capture_ns", "backtrace_ns")]
    return "\n\n".join([
        f"## The sampling handler: {times(rounds)}",
        table(["frames", "capture, ns", "glibc's backtrace(), ns", "ratio"],
              [[show(median_of(rounds, "handler", "frames"), 0), *cells, spread(handler_ratio(rounds), 2)]])])


def delivered_percent(rounds, name):
    hz = int(name.rpartition(" ")[2])
    return [100 * (row[name]["samples"] + row[name].get("lost", 0)) / (row[name]["cpu_s"] * hz) for row in rounds if name in row]


def weight_ratios(rounds, name):
    return [row[name]["weighed_s"] / row[name]["cpu_s"] for row in rounds]


def samples_section(part):
    rounds, rows = part["rounds"], []
    for name in rounds[0]:
        threads, _, hz = name.partition(" @ ")
        cells = [spread(delivered_percent(rounds, name), 1), show(median_of(rounds, name, "lost"), 0)]
        if threads.isdigit():
            rows.append([threads, hz, *cells, spread(weight_ratios(rounds, name), 3), spread(column(rounds, name, "evenness"), 2)])
        else:
            rows.append([f"2, {threads}", hz, *cells, "", ""])
    return "\n\n".join([
        f"## Samples delivered: {times(rounds)} of {part['settings']['seconds']:g} CPU seconds",
        "Of the samples that the CPU time of the threads is worth at the rate that was asked for. *Weights* is their sum against that CPU "
        "time; *evenness* the slowest thread's count against the fastest's.",
        table(["threads", "Hz", "delivered %", "lost", "weights / CPU", "evenness"], rows)])


def overhead_section(part):
    rounds, rows = part["rounds"], []
    for name in (name for name in rounds[0] if name != "none"):
        rows.append([name, spread(added_percent(rounds, name), 2), spread(added_percent(rounds, name, "all_s"), 2)])
    return "\n\n".join([
        f"## Overhead: {times(rounds)}, two threads with {part['settings']['seconds']:g} s of work each",
        "What is added to the CPU time that the program takes alone. *Program*: its two threads; "
        "*all*: with the profiler's process or thread, from its start to the written file.",
        table(["", "program, added %", "all, added %"], rows)])


def of_perf(rounds, hz):
    """The library's added CPU time of the program against perf's, by medians: single rounds are noise."""
    ours, perf = (statistics.median(added_percent(rounds, f"{name} @ {hz}")) for name in ("libcprof", "perf -g"))
    return ours / max(perf, 0.01)


def verdicts(results):
    """(met, in words) of each goal that these results can judge."""
    parts = results["parts"]
    for name, judge in (("scopes", scopes_verdicts), ("handler", handler_verdicts), ("samples", samples_verdicts),
                        ("overhead", overhead_verdicts)):
        if name in parts:
            yield from judge(parts[name])


def scopes_verdicts(part):
    rounds = part["rounds"]
    for name in rounds[0]:
        suffix = f"{name} thread{'' if name == '1' else 's'}"
        for words, values, most in (("a scope, times the floor", of_same_round(rounds, name, "scope_ns", "floor_ns"), MOST_OF_FLOOR),
                                    ("by call, times the floor", of_same_round(rounds, name, "call_ns", "floor_ns"), MOST_OF_FLOOR_BY_CALL),
                                    ("first burst, times the warm cost", of_same_round(rounds, name, "cold_ns", "scope_ns"), MOST_OF_WARM),
                                    ("page faults of the first burst", column(rounds, name, "cold_faults"), 0),
                                    ("a disabled scope, ns above an empty loop", above_empty(rounds, name), MOST_DISABLED_NS)):
            value = statistics.median(values)
            yield value <= most, f"{words}, {suffix}: {value:.2f} (at most {most:g})"
    counted = part["settings"].get("instructions")
    if counted is not None:
        yield counted <= MOST_INSTRUCTIONS, f"a disabled scope, instructions: {counted:g} (at most {MOST_INSTRUCTIONS})"


def handler_verdicts(part):
    value = statistics.median(handler_ratio(part["rounds"]))
    yield value <= MOST_OF_BACKTRACE, f"the handler's capture, times backtrace(): {value:.2f} (at most {MOST_OF_BACKTRACE:g})"


def samples_verdicts(part):
    rounds = part["rounds"]
    for name in (name for name in rounds[0] if name[0].isdigit()):
        least = LEAST_DELIVERED[name.rpartition(" ")[2]]
        delivered = statistics.median(delivered_percent(rounds, name))
        yield delivered >= least, f"samples delivered, threads @ Hz {name}: {delivered:.1f} % (at least {least})"
        error = abs(statistics.median(weight_ratios(rounds, name)) - 1)
        yield error <= MOST_WEIGHT_ERROR, f"weights, {name}: off by {100 * error:.2f} % (at most {100 * MOST_WEIGHT_ERROR:g})"
        evenness = statistics.median(column(rounds, name, "evenness"))
        yield evenness >= LEAST_EVENNESS, f"slowest to fastest thread, {name}: {evenness:.2f} (at least {LEAST_EVENNESS:g})"


def overhead_verdicts(part):
    rounds = part["rounds"]
    for hz, most in MOST_OF_PERF.items():
        if f"perf -g @ {hz}" in rounds[0]:
            value = of_perf(rounds, hz)
            yield value <= most, f"overhead at {hz} Hz, times perf record -g's: {value:.2f} (at most {most:g})"
