"""What a killed or failed recording may leave in the kernel: BPF programs and maps, perf events in other processes, complaints
in the kernel's log."""

import json
import os
import re
import subprocess
import time

import harness

HELD = re.compile(r"^(prog|map|link)_id:\s*(\d+)", re.MULTILINE)
COMPLAINT = re.compile(r"BUG:|WARNING:|Oops|general protection|kernel NULL pointer|rcu.*stall|soft lockup|blocked for more than")


class BpfObjects:
    """The kernel's BPF programs, maps and links, by kind and id."""

    def __init__(self):
        self.bpftool = harness.tool("bpftool")

    def now(self):
        found = set()
        for kind in ("prog", "map", "link"):
            done = subprocess.run([self.bpftool, "-j", kind, "list"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
            found |= {(kind, row["id"]) for row in json.loads(done.stdout or b"[]") if "id" in row}
        return found

    def left_of(self, held, seconds=15):
        """Those of `held` that are still there when the kernel has had its time: it frees them after a grace period."""
        end = time.monotonic() + seconds
        while True:
            left = held & self.now()
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.3)


def bpf_objects_of(pid):
    """{(kind, id)} of what a process holds open; nothing when it is gone."""
    held, folder = set(), f"/proc/{pid}/fdinfo"
    try:
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                held |= {(kind, int(number)) for kind, number in HELD.findall(file.read())}
    except (FileNotFoundError, ProcessLookupError):
        pass
    return held


def special_descriptors(pid):
    """The perf events and BPF objects that a process has open."""
    folder, found = f"/proc/{pid}/fd", []
    for name in os.listdir(folder):
        try:
            link = os.readlink(os.path.join(folder, name))
        except FileNotFoundError:  # closed since it was listed
            continue
        if re.search(r"perf_event|bpf", link):
            found.append(link)
    return found


def kernel_complaints():
    """Lines of the kernel's log that a healthy kernel does not write; None where it cannot be read."""
    done = subprocess.run(["dmesg"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    return [line for line in done.stdout.decode(errors="replace").splitlines() if COMPLAINT.search(line)]
