#!/usr/bin/env python3
"""docs/schema.md is what the list of tables says. Run by ctest (label lint) as: check_schema.py PROGRAM [--write], where
PROGRAM is cprof_schema_page. An empty recording is made too, so that every view is known to be valid SQL.
"""
import sqlite3
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "schema.md"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def view_faults(ddl):
    database = sqlite3.connect(":memory:")
    database.executescript(ddl)
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        try:
            database.execute(f"SELECT * FROM {name}").fetchall()
        except sqlite3.Error as error:
            yield f"view {name}: {error}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, write = sys.argv[1], "--write" in sys.argv[2:]
    page, faults = output_of(program), list(view_faults(output_of(program, "--ddl")))
    if write:
        PAGE.write_text(page)
    if not PAGE.is_file() or PAGE.read_text() != page:
        faults.append("docs/schema.md is not up to date: run ./dev docs")
    print("\n".join(faults) if faults else "docs/schema.md is up to date, every view can be queried")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
