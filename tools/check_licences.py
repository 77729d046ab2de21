#!/usr/bin/env python3
"""Lists the licence of every library that the program is linked from and of every third-party header folder that src/
includes, by the table tools/licences.txt. Fails on one without a row, on a licence that does not fit, and on one of which NOTICE
says nothing. Run by ctest (label lint) as: check_licences.py BUILD_DIRECTORY [TARGET]...
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "licences.txt"
# What an Apache-2.0 program may carry inside when it is linked static; the LGPL ones by the notice in NOTICE.
FITTING = {"Apache-2.0", "BSL-1.0", "Zlib", "BSD-2-Clause", "BSD-3-Clause", "MIT", "0BSD", "blessing", "bzip2-1.0.6", "Apache-2.0-with-LLVM-exception",
           "LGPL-2.1-or-later", "LGPL-3.0-or-later", "GPL-3.0-with-GCC-exception", "GPL-2.0-with-Linux-syscall-note"}
# Linked by the compiler driver without being named.
ALWAYS_LINKED = ["stdc++", "m", "gcc", "c"]


def read_table(path=TABLE):
    rows = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            kind, name, licence, origin = line.split(None, 3)
            rows[(kind, name)] = (licence, origin)
    return rows


def libraries_in(command):
    """The names of the libraries in a link command, our own archives left out."""
    names = []
    for word in shlex.split(command):
        file = re.fullmatch(r"lib(.+?)\.(?:a|so[.\d]*)", Path(word).name)
        name = word[2:] if re.fullmatch(r"-l\S+", word) else file.group(1) if file and not word.startswith("-") else None
        if name and not name.startswith("cprof") and name not in names:
            names.append(name)
    return names


def link_command(build, target):
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True)
    return commands.stdout.strip().splitlines()[-1]


def header_folders():
    found = set()
    for path in [*(ROOT / "src").rglob("*.cc"), *(ROOT / "src").rglob("*.h"), *(ROOT / "src").rglob("*.c")]:
        found.update(re.findall(r"^\s*#\s*include\s*<(\w+)/", path.read_text(errors="replace"), re.MULTILINE))
    return sorted(found - {folder.name for folder in (ROOT / "include").iterdir()})


def is_shipped(key, origin):
    """Whether code of it is in the program: not interfaces of the system, nor what only tests include."""
    return not (key[0] == "headers" and (origin == "glibc" or origin.startswith("the kernel's"))) and "tests only" not in origin


def main():
    build, targets = sys.argv[1], sys.argv[2:] or ["cprof"]
    table, faults, notice = read_table(), [], " ".join((ROOT / "NOTICE").read_text().split())
    used = [("archive", name) for target in targets for name in libraries_in(link_command(build, target))]
    used += [("archive", name) for name in ALWAYS_LINKED] + [("headers", name) for name in header_folders()]
    for key in dict.fromkeys(used):
        licence, origin = table.get(key, ("unknown", "no row in tools/licences.txt"))
        print(f"{key[0]:8} {key[1]:14} {licence:34} {origin}")
        if licence not in FITTING:
            faults.append(f"FAIL {key[0]} {key[1]}: licence {licence} does not fit an Apache-2.0 program")
        elif is_shipped(key, origin) and origin.split(" (")[0] not in notice:
            faults.append(f"FAIL {key[0]} {key[1]}: NOTICE does not name {origin.split(' (')[0]}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
