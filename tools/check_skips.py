#!/usr/bin/env python3
"""Reads ctest's JUnit file and fails for each test that skipped although this machine has what it said it needs.

A test skips with a line `needs NEED[, NEED]: reason` (a script exits 77 after printing `SKIP: needs ...`, a GoogleTest
calls GTEST_SKIP() << "needs ..."). The needs that can be probed are in PROBES; `tool:NAME` is a program in PATH. A skip
that names no known need is a failure: nobody could tell whether it should have run.
"""
import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

NEEDS_LINE = re.compile(r"needs[: ]+([a-z][\w:+.-]*(?:, *[a-z][\w:+.-]*)*)", re.IGNORECASE)
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT = 0, 1, 2
EXCLUDE_KERNEL = 1 << 5
EXCLUDE_HV = 1 << 6


def opens_event(kind, config, flags=0, task=0, cpu=-1):
    """Whether perf_event_open gives an event of this kind."""
    attributes = bytearray(112)
    attributes[0:4] = kind.to_bytes(4, "little")
    attributes[4:8] = len(attributes).to_bytes(4, "little")
    attributes[8:16] = config.to_bytes(8, "little")
    attributes[40:48] = flags.to_bytes(8, "little")
    number = PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return False
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(number, buffer, task, cpu, -1, ctypes.c_ulong(0))
    if descriptor < 0:
        return False
    os.close(descriptor)
    return True


def has_tracepoint(name="sched/sched_switch"):
    for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        path = Path(root, "events", name, "id")
        if os.access(path, os.R_OK):
            return opens_event(PERF_TYPE_TRACEPOINT, int(path.read_text()))
    return False


def runs(*command):
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


def reveals_kernel_names():
    with open("/proc/kallsyms") as names:
        return int(names.readline().split()[0], 16) != 0


PROBES = {
    "root": lambda: os.geteuid() == 0,
    "perf": lambda: opens_event(PERF_TYPE_SOFTWARE, 0, EXCLUDE_KERNEL | EXCLUDE_HV),
    "perf-kernel": lambda: opens_event(PERF_TYPE_SOFTWARE, 0),
    "perf-system": lambda: opens_event(PERF_TYPE_SOFTWARE, 0, task=-1, cpu=0),
    "pmu": lambda: opens_event(PERF_TYPE_HARDWARE, 0, EXCLUDE_KERNEL | EXCLUDE_HV),
    "tracepoints": has_tracepoint,
    "kallsyms": reveals_kernel_names,
    "btf": lambda: Path("/sys/kernel/btf/vmlinux").exists(),
    "bpf": lambda: os.geteuid() == 0 and Path("/sys/kernel/btf/vmlinux").exists(),
    "mount": lambda: runs("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"),
    "pid-namespace": lambda: runs("unshare", "-fp", "true"),
    "cgroup": lambda: os.access("/sys/fs/cgroup/cgroup.controllers", os.R_OK) and os.geteuid() == 0,
    "x86_64": lambda: platform.machine() == "x86_64",
    "aarch64": lambda: platform.machine() == "aarch64",
    "two-cpus": lambda: len(os.sched_getaffinity(0)) >= 2,
}


def has(need):
    """True, False, or None for a need that nobody knows."""
    if need.startswith("tool:"):
        return shutil.which(need[5:]) is not None
    return PROBES[need]() if need in PROBES else None


def judge(name, output, has_need):
    """The fault of this skipped test, or None when the machine really lacks something that it named."""
    match = NEEDS_LINE.search(output or "")
    if not match:
        return f"{name}: skipped without saying 'needs NEED: reason'"
    needs = re.split(r", *", match.group(1).rstrip(":").lower())
    answers = {need: has_need(need) for need in needs}
    unknown = [need for need, answer in answers.items() if answer is None]
    if unknown:
        return f"{name}: skipped for '{', '.join(unknown)}', which tools/check_skips.py cannot probe"
    if all(answers.values()):
        return f"{name}: skipped, but this machine has what it needs ({', '.join(needs)})"
    return None


def skipped_in(junit_file):
    for case in ElementTree.parse(junit_file).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None or case.get("status") in ("notrun", "skipped"):
            output = (case.findtext("system-out") or "") + (case.findtext("system-err") or "")
            yield case.get("name"), output


def main():
    faults, accepted = [], 0
    for name, output in skipped_in(sys.argv[1]):
        fault = judge(name, output, has)
        accepted += fault is None
        if fault:
            faults.append(fault)
    if accepted:
        print(f"{accepted} tests skipped for what this machine lacks", file=sys.stderr)
    for fault in faults:
        print(f"FAIL {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
