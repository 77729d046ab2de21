#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md and the sentence of README.md from the raw results in docs/benchmarks.
`--check` (ctest, label lint) fails when a page is not what the results say: no figure in it is typed by hand.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/benchmarks")
END = "<!-- generated: end -->\n"
sys.path.insert(0, str(ROOT / "tests/bench"))
import format_tables  # noqa: E402
import inproc_tables  # noqa: E402
import tables  # noqa: E402

# Results, the page that they go to, and what makes words of them. Results that are not there yet make nothing.
PARTS = (
    ("perf.json", Path("docs/benchmarks.md"), tables.page),
    ("perf.json", Path("README.md"), tables.summary),
    ("formats.json", Path("docs/benchmarks.md"), format_tables.page),
    ("inproc.json", Path("docs/benchmarks.md"), inproc_tables.page),
)


def begin_of(results):
    return f"<!-- generated from {FOLDER / results} by ./dev docs: begin -->\n"


def page_with(text, mark, words):
    """The page with its generated part made anew; None when it has no place for one."""
    before, begin, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    return before + begin + "\n" + words + "\n" + end + after if begin and end else None


def fault_of(results, page, words, check):
    """Writes a page, or says why it cannot be or is not up to date."""
    old, mark = (ROOT / page).read_text(), begin_of(results)
    new = page_with(old, mark, words)
    if new is None:
        return f"{page} has no '{mark.strip()}' and '{END.strip()}'"
    if not check:
        (ROOT / page).write_text(new)
    elif new != old:
        return f"{page} is not what {FOLDER / results} says: run ./dev docs"
    return None


def main():
    faults = []
    for results, page, words in PARTS:
        path = ROOT / FOLDER / results
        if path.exists():
            faults.append(fault_of(results, page, words(json.loads(path.read_text())), "--check" in sys.argv))
    for fault in filter(None, faults):
        print(f"FAIL {fault}")
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
