"""What the rounds of a bench say. A round is {profiler: {measurement: value}}; where one was not taken it is left out, or None."""

import statistics


def names_in(rounds):
    return list({name: None for row in rounds for name in row})


def column(rounds, name, key):
    """The values of one measurement over the rounds, where it was taken."""
    return [row[name][key] for row in rounds if row.get(name, {}).get(key) is not None]


def median_of(rounds, name, key):
    values = column(rounds, name, key)
    return statistics.median(values) if values else None


def ratios(rounds, name, to, key):
    """Per round, so that what was slow for both does not count."""
    return [row[name][key] / max(row[to][key], 1e-9) for row in rounds if name in row and to in row]


def added(rounds, name, key, baseline="none"):
    """What a profiler adds to the target's own figure of the same round."""
    return [row[name][key] - row[baseline][key] for row in rounds if name in row]


def added_percent(rounds, name, key="target_s", baseline="none"):
    return [100 * (row[name][key] / row[baseline][key] - 1) for row in rounds if name in row]
