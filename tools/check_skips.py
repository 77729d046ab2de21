#!/usr/bin/env python3
"""Reads ctest's JUnit file and fails for every skip whose need this machine has: a test that could run must run.

A skip says `needs WHAT` on a line of the test's output: a script prints `skipped: needs WHAT[; needs WHAT]` (and exits 77
when nothing ran), a GoogleTest calls GTEST_SKIP() << "needs WHAT". WHAT begins with a row of NEEDS, or is the names of
programs (`perf`, `node or nodejs`). A reason that fits neither is a failure too: nobody could tell whether it is true.
"""
import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SKIP_LINE = re.compile(r"^(?:SKIP|SKIPPED|skipped): *(.*)$|: Skipped\n(.*)$", re.MULTILINE)
PROGRAMS = re.compile(r"[\w.+-]+(?: or [\w.+-]+)*$")
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


def has_kernel_package(search="^linux-image-6[.]1[.].*-cloud-amd64$"):
    """Whether apt names a cloud kernel and gives it: a download, for nothing less tells."""
    if not runs("apt-get", "--version"):
        return False
    found = subprocess.run(["apt-cache", "search", "--names-only", search], capture_output=True, text=True).stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        return bool(found) and subprocess.run(["apt-get", "-qq", "download", found[0]], cwd=folder, capture_output=True).returncode == 0


def has_offline_switch():
    path = Path("/sys/devices/system/cpu/cpu1/online")
    return os.geteuid() == 0 and os.access(path, os.W_OK)


def has_node(least=(20, 19)):
    if not shutil.which("node"):
        return False
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
    return tuple(int(part) for part in version.split(".")[:2]) >= least


# What a reason may begin with (a regular expression) and whether this machine has it. The first that fits counts.
NEEDS = (
    (r"root or CAP_PERFMON|CAP_PERFMON|kernel samples", lambda: opens_event(PERF_TYPE_SOFTWARE, 0)),
    (r"the whole machine", lambda: opens_event(PERF_TYPE_SOFTWARE, 0, task=-1, cpu=0)),
    (r"root\b", lambda: os.geteuid() == 0),
    (r"perf_event_open|a kernel with perf events|perf events",
     lambda: opens_event(PERF_TYPE_SOFTWARE, 0, EXCLUDE_KERNEL | EXCLUDE_HV)),
    (r"a PMU|hardware counters", lambda: opens_event(PERF_TYPE_HARDWARE, 0, EXCLUDE_KERNEL | EXCLUDE_HV)),
    (r"tracepoints", has_tracepoint),
    (r"kallsyms|kernel names", reveals_kernel_names),
    (r"BTF", lambda: Path("/sys/kernel/btf/vmlinux").exists()),
    (r"mount\b", lambda: runs("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")),
    (r"to mount a cgroup v2 hierarchy", lambda: runs("unshare", "-m", "mount", "-t", "cgroup2", "none", "/mnt")),
    (r"namespaces", lambda: runs("unshare", "-fp", "true")),
    (r"cgroups", lambda: os.access("/sys/fs/cgroup/cgroup.controllers", os.R_OK) and os.geteuid() == 0),
    (r"a Debian kernel package", has_kernel_package),
    (r"CPU hotplug", has_offline_switch),
    (r"x86[-_]64", lambda: platform.machine() == "x86_64"),
    (r"aarch64", lambda: platform.machine() == "aarch64"),
    (r"(?:two|2) CPUs", lambda: len(os.sched_getaffinity(0)) >= 2),
    (r"Node 20[.]19", has_node),
    # ./dev setup installs every compiler and linker that a test program needs.
    (r"the test program", lambda: True),
)


def has(need):
    """True, False, or None for a need that nobody knows."""
    for pattern, probe in NEEDS:
        if re.match(pattern, need):
            return probe()
    programs = PROGRAMS.match(need)
    return any(map(shutil.which, programs.group().split(" or "))) if programs else None


def reasons_in(output):
    lines = (match.group(1) or match.group(2) or "" for match in SKIP_LINE.finditer(output))
    return [reason.strip() for line in lines for reason in line.split("; ")]


def judge(name, reason, has_need):
    """The fault of one skip, or None when the machine really lacks what it names."""
    need = reason.partition("needs ")[2].strip()
    answer = has_need(need) if need else None
    if answer is None:
        return f"{name}: skipped for '{reason}', which tools/check_skips.py cannot probe"
    return f"{name}: skipped, but this machine has what it needs: {need}" if answer else None


def skips_in(junit_file):
    """Yields (test, reason); a test that skipped without a word has the reason ''."""
    for case in ElementTree.parse(junit_file).iter("testcase"):
        output = (case.findtext("system-out") or "") + (case.findtext("system-err") or "")
        skipped = case.find("skipped") is not None or case.get("status") in ("notrun", "skipped")
        for reason in reasons_in(output) or ([""] if skipped else []):
            yield case.get("name"), reason


def main():
    faults, accepted = [], 0
    for name, reason in skips_in(sys.argv[1]):
        fault = judge(name, reason, has)
        accepted += fault is None
        if fault:
            faults.append(fault)
    if accepted:
        print(f"{accepted} skips for what this machine lacks", file=sys.stderr)
    for fault in faults:
        print(f"FAIL {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
