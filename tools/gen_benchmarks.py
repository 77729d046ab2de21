#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md and the sentence of README.md from the raw results, docs/benchmarks/perf.json.
`--check` (ctest, label lint) fails when a page is not what the results say: no figure in it is typed by hand.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path("docs/benchmarks/perf.json")
BEGIN = "<!-- generated from docs/benchmarks/perf.json by ./dev docs: begin -->\n"
END = "<!-- generated: end -->\n"
sys.path.insert(0, str(ROOT / "tests/bench"))
import tables  # noqa: E402

PAGES = {Path("docs/benchmarks.md"): tables.page, Path("README.md"): tables.summary}


def page_with(text, words):
    """The page with its generated part made anew; None when it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + "\n" + words + "\n" + end + after if begin and end else None


def fault_of(page, words, check):
    """Writes a page, or says why it cannot be or is not up to date."""
    old = (ROOT / page).read_text()
    new = page_with(old, words)
    if new is None:
        return f"{page} has no '{BEGIN.strip()}' and '{END.strip()}'"
    if not check:
        (ROOT / page).write_text(new)
    elif new != old:
        return f"{page} is not what {RESULTS} says: run ./dev docs"
    return None


def main():
    results = json.loads((ROOT / RESULTS).read_text())
    faults = [fault_of(page, words(results), "--check" in sys.argv) for page, words in PAGES.items()]
    for fault in filter(None, faults):
        print(f"FAIL {fault}")
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
