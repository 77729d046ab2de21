#!/usr/bin/env python3
"""Makes views.json: profiles, what is asked of them, and what every view must then show, worked out stack by stack in the
plainest way. The page (ui/src/ops/vectors.test.ts) and analyze/ (src/analyze/view_vectors_test.cc) are held to the same file.

Usage: make_views.py > views.json
"""
import json
import math
import random
import re
from collections import defaultdict

CUT = "[truncated]"


def parse(line):
    stack, value = line.rsplit(" ", 1)
    frames = stack.split(";")
    return (frames[0] == CUT, frames[1:] if frames[0] == CUT else frames, int(value))


def found(pattern, name, places):
    texts = [name, *places.get(name, {}).values()]
    return any(re.search(pattern, text) for text in texts if text)


def filtered(stacks, filters, places):
    for cut, frames, value in stacks:
        kinds = defaultdict(list)
        for kind, pattern in filters:
            kinds[kind].append(pattern)
        has = lambda pattern: any(found(pattern, f, places) for f in frames)
        if not all(has(p) for p in kinds["focus"]) or any(has(p) for p in kinds["ignore"]):
            continue
        shown = [(f, any(found(p, f, places) for p in kinds["hide"])) for f in frames]
        if kinds["show-from"]:
            starts = [i for i, (f, hidden) in enumerate(shown) if not hidden and found(kinds["show-from"][0], f, places)]
            if not starts:
                continue
            shown, cut = shown[starts[0]:], False
        left = [f for f, hidden in shown if not hidden]
        if left:
            yield ([CUT] if cut else []) + left, value


def joined(frames):
    return [f for i, f in enumerate(frames) if i == 0 or frames[i - 1] != f]


def tree_of(stacks):
    own, whole = defaultdict(int), defaultdict(int)
    for frames, value in stacks:
        for i in range(1, len(frames) + 1):
            whole[";".join(frames[:i])] += value
            own[";".join(frames[:i])] += 0
        own[";".join(frames)] += value
    return sorted(f"{path} {own[path]}/{whole[path]}" for path in whole)


def table_of(stacks):
    own, whole = defaultdict(int), defaultdict(int)
    for frames, value in stacks:
        own[frames[-1]] += value
        for name in set(frames):
            whole[name] += value
    # The mark of a cut stack is no function.
    return sorted([name, own[name], whole[name]] for name in whole if name != CUT and (own[name] or whole[name]))


def neighbours_of(stacks, name):
    callers, callees = defaultdict(int), defaultdict(int)
    for frames, value in stacks:
        pairs = set(zip(frames, frames[1:]))
        for a, b in pairs:
            if b == name:
                callers[a] += value
            if a == name:
                callees[b] += value
    clean = lambda sums: sorted([n, v] for n, v in sums.items() if v)
    return {"of": name, "callers": clean(callers), "callees": clean(callees)}


def search_of(stacks, pattern):
    return sum(abs(value) for frames, value in stacks if any(re.search(pattern, f) for f in frames))


def diff_of(now, before, scaled):
    now_table, before_table = ({n: (s, t) for n, s, t in table_of(x)} for x in (now, before))
    total_now, total_before = sum(v for _, v in now), sum(v for _, v in before)
    scale = total_now / total_before if scaled and total_before and total_now / total_before > 0 else 1
    largest = max(abs(total_before) * scale, abs(total_now))
    rows = []
    for name in sorted({*now_table, *before_table}):
        for by, at in (("self", 0), ("total", 1)):
            after, base = now_table.get(name, (0, 0))[at], before_table.get(name, (0, 0))[at]
            if not after and not base:
                continue
            noise = max(2 * math.sqrt(abs(base) * scale * scale + abs(after)), largest / 1000)
            delta = after - base * scale
            if abs(abs(delta) - noise) < 1e-9 * noise:
                continue  # on the edge, rounding decides
            change = "noise" if abs(delta) <= noise else "new" if not base else "gone" if not after else "more" if delta > 0 else "less"
            rows.append([name, by, base, after, change])
    return {"scaled": scaled, "rows": rows}


def case(title, lines, filters=(), places=None, before=None, of=None, search=None, scaled=True):
    places = places or {}
    stacks = list(filtered([parse(line) for line in lines], filters, places))
    result = {"title": title, "stacks": lines, "places": places, "filters": list(filters), "total": sum(v for _, v in stacks),
              "width": sum(abs(v) for _, v in stacks), "down": tree_of(stacks), "table": table_of(stacks),
              "up": tree_of([(frames[::-1], v) for frames, v in stacks]),
              "joined": tree_of([(joined(frames), v) for frames, v in stacks])}
    if of:
        result["neighbours"] = neighbours_of(stacks, of)
    if search:
        result["search"] = {"pattern": search, "width": search_of(stacks, search)}
    if before:
        base = list(filtered([parse(line) for line in before], filters, places))
        result["before"], result["diff"] = before, diff_of(stacks, base, scaled)
    return result


PLACES = {"read": {"file": "lib/io.cc", "path": "/usr/lib/libio.so"}, "write": {"file": "lib/io.cc", "path": "/usr/lib/libio.so"},
          "parse": {"file": "src/parse.cc", "path": "/opt/app"}, "main": {"file": "src/main.cc", "path": "/opt/app"}}
APP = ["main;parse;read 600", "main;parse 100", "main;work;write 250", "main;work;read 50", "init;read 7", "[unknown] 3"]


def written():
    yield case("nothing asked", APP, places=PLACES, of="read", search="read|write")
    yield case("focus by name", APP, [("focus", "^parse$")], PLACES)
    yield case("focus by source file", APP, [("focus", "^lib/io")], PLACES)
    yield case("focus by binary", APP, [("focus", "libio\\.so")], PLACES)
    yield case("every focus must be found", APP, [("focus", "work"), ("focus", "read")], PLACES)
    yield case("focus that finds nothing", APP, [("focus", "nowhere")], PLACES)
    yield case("focus by a stack that is not known", APP, [("focus", "unknown")], PLACES)
    yield case("ignore", APP, [("ignore", "^read$"), ("ignore", "unknown")], PLACES)
    yield case("hide: weight goes to the caller", APP, [("hide", "^read$")], PLACES, of="main")
    yield case("hide everything of a stack", APP, [("hide", "read|init")], PLACES)
    yield case("show-from", APP, [("show-from", "^parse$|^work$")], PLACES)
    yield case("show-from does not begin at a hidden frame", APP, [("show-from", "parse|read"), ("hide", "parse")], PLACES)
    yield case("focus looks at hidden frames too", APP, [("focus", "parse"), ("hide", "parse")], PLACES)
    yield case("cut stacks", ["[truncated];f;g 5", "f;g 2", "[truncated];g 1"], of="g")
    yield case("no expression finds the mark of a cut stack", ["[truncated];f;g 5", "f 2"], [("ignore", "truncated")])
    yield case("hide what a cut stack has", ["[truncated];f;g 5", "[truncated];f 2"], [("hide", "^f$")])
    yield case("show-from of cut stacks", ["[truncated];f;g 5", "f;g 2"], [("show-from", "g")])
    yield case("recursion", ["main;f;f;f;g 4", "main;g;f 1", "f;f 2", "main;f;g;f;g 3"], of="f", search="^f$")
    yield case("recursion after hiding", ["main;f;glue;f;g 4", "main;f;g 1"], [("hide", "glue")], of="f")
    yield case("negative values", ["a;gone -3", "a;fresh 5", "b -1"], of="a", search="a")
    yield case("sums of nothing", ["a;x 3", "a;y -3"], search="x")
    yield case("names that are no words", ["operator()(int) const;f<T*, 3> 2", "a[b];x|y 3", "main 1"], [("focus", "^operator\\(\\)\\(int\\) const$")])
    yield case("letters beyond ASCII", ["größe;naïve 2", "größe 1", "main 4"], [("focus", "ö")], search="ï")
    yield case("diff: both1, both2 and what only one has", ["both1 25", "both2 50", "changed_only 125"],
               before=["base_only 50", "both1 25", "both2 25"], scaled=False)
    yield case("diff: twice as many samples of the same", ["main;a 200", "main;b 400"], before=["main;a 100", "main;b 200"])
    yield case("diff: a ratio of two counts", ["main;f 3000", "main;g 500", "main;h 4000"],
               before=["main;f 1000", "main;g 1000", "main;h 4000"], scaled=False)
    yield case("diff: filters hold for both", APP, [("focus", "main"), ("hide", "work")], PLACES, before=["main;work;read 900", "main;parse 50", "init 5"])


def made(seed):
    rng = random.Random(seed)
    names = ["main", "alpha", "beta", "gamma", "delta", "read", "write", "parse", "omega"]
    line = lambda low: ";".join((["[truncated]"] if rng.random() < 0.15 else []) + [rng.choice(names) for _ in range(rng.randint(1, 7))]) + f" {rng.randint(low, 400)}"
    lines = lambda low: [line(low) for _ in range(rng.randint(3, 14))]
    kinds = ["focus", "ignore", "hide"] + rng.sample(["show-from"], 1)
    patterns = ["^alpha$", "a$", "beta|gamma", "lib/io", "opt/app", "e", "^main$", "m", "delta", "r.*e"]
    filters, seen = [], set()
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(kinds)
        if kind == "show-from" and kind in seen:
            continue
        seen.add(kind)
        filters.append((kind, rng.choice(patterns)))
    low = -200 if rng.random() < 0.25 else 1
    before = lines(1) if low > 0 and rng.random() < 0.5 else None
    return case(f"made {seed}", lines(low), filters, PLACES, before, rng.choice(names), rng.choice(patterns[:1] + patterns[5:]), rng.random() < 0.5)


if __name__ == "__main__":
    cases = [*written(), *(made(seed) for seed in range(1, 41))]
    print("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]")
