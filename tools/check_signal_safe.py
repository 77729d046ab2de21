#!/usr/bin/env python3
"""Checks what a signal handler can reach: every symbol that the given objects and archives use is defined in one of them, or
is on the list below. Run by ctest (label lint) as: check_signal_safe.py ARCHIVE...
"""
import subprocess
import sys

# memcpy and its like are async-signal-safe, and compilers make calls to them by themselves. cprof_ticks_by_call_ is
# clock_gettime, which POSIX lists as safe.
ALLOWED = {"memcpy", "memset", "memmove", "memcmp", "cprof_ticks_by_call_", "_GLOBAL_OFFSET_TABLE_"}


def symbols(path, option):
    run = subprocess.run(["nm", "--format=posix", option, path], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in run.stdout.splitlines() if len(line.split()) >= 2}


def main():
    archives = sys.argv[1:]
    if not archives:
        sys.exit("no archive given: there is nothing to check")
    needed = set().union(*(symbols(path, "--undefined-only") for path in archives))
    defined = set().union(*(symbols(path, "--defined-only") for path in archives))
    if not defined:
        sys.exit("the archives define nothing: there is nothing to check")
    outside = sorted(needed - defined - ALLOWED)
    for name in outside:
        print(f"reachable from the signal handler: {name}")
    print(f"{len(defined)} symbols reach {'only what is safe' if not outside else f'{len(outside)} that are not'}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
