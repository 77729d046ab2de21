#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md from the raw results beside it, docs/benchmarks/perf.json. `--check` (ctest, label
lint) fails when the page is not what the results say: no figure in it is typed by hand.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, RESULTS = Path("docs/benchmarks.md"), Path("docs/benchmarks/perf.json")
BEGIN = "<!-- generated from benchmarks/perf.json by ./dev docs: begin -->\n"
END = "<!-- generated: end -->\n"
sys.path.insert(0, str(ROOT / "tests/bench"))
import tables  # noqa: E402


def page_with(text, results):
    """The page with its generated part made anew; None when it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + "\n" + tables.page(results) + "\n" + end + after if begin and end else None


def main():
    root = Path(sys.argv[sys.argv.index("--root") + 1]) if "--root" in sys.argv else ROOT
    old = (root / PAGE).read_text()
    new = page_with(old, json.loads((root / RESULTS).read_text()))
    if new is None:
        print(f"FAIL {PAGE} has no '{BEGIN.strip()}' and '{END.strip()}'")
        return 1
    if "--check" not in sys.argv:
        (root / PAGE).write_text(new)
    elif new != old:
        print(f"FAIL {PAGE} is not what {RESULTS} says: run ./dev docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
