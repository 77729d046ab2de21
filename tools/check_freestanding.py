#!/usr/bin/env python3
"""Checks that a freestanding module needs nothing from outside: every symbol that its archive uses it also defines, and
its headers compile alone with no libc. Run by ctest (label lint) as: check_freestanding.py FOLDER [ARCHIVE].
"""
import subprocess
import sys
import tempfile
from pathlib import Path

# The linker makes this one, it is nobody's code.
MADE_BY_THE_LINKER = {"_GLOBAL_OFFSET_TABLE_"}
COMPILE = ["cc", "-std=c11", "-O2", "-ffreestanding", "-fno-stack-protector", "-nostdlib", "-Wall", "-Wextra", "-Werror"]


def symbols(path, *options):
    output = subprocess.run(["nm", "--format=posix", *options, path], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in output.splitlines() if len(line.split()) >= 2}


def needed_from_outside(path):
    return symbols(path, "--undefined-only") - symbols(path, "--defined-only") - MADE_BY_THE_LINKER


def header_faults(folder):
    src = next(parent for parent in [folder, *folder.parents] if parent.name == "src")
    with tempfile.TemporaryDirectory() as scratch:
        for header in sorted(folder.glob("*.h")):
            # Static inline functions are emitted too (-fkeep-inline-functions), else an unused call would hide.
            source, made = Path(scratch, "one.c"), Path(scratch, "one.o")
            source.write_text(f'#include "{header.relative_to(src)}"\n')
            run = subprocess.run([*COMPILE, "-fkeep-inline-functions", "-fkeep-static-functions", f"-I{src}", "-c", source,
                                  "-o", made], capture_output=True, text=True)
            if run.returncode:
                yield f"{header} does not compile alone as freestanding C:\n{run.stderr.strip()}"
            elif needed_from_outside(made):
                yield f"{header} needs {', '.join(sorted(needed_from_outside(made)))} from outside"


def main():
    folder, archive = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else None
    if not any(folder.iterdir()):
        sys.exit(f"{folder} is empty: there is nothing to check")
    faults = list(header_faults(folder))
    if archive:
        faults += [f"{archive} needs {name} from outside" for name in sorted(needed_from_outside(archive))]
    print("\n".join(faults) if faults else f"{folder.name}: needs nothing from outside ({archive or 'headers only'})")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
