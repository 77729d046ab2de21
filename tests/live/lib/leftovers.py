"""What a killed or failed recording may leave in the kernel: BPF programs and maps, perf events in other processes, complaints
in the kernel's log."""

import json
import os
import re
import subprocess
import time

import harness

COMPLAINT = re.compile(r"BUG:|WARNING:|Oops|general protection|kernel NULL pointer|rcu.*stall|soft lockup|blocked for more than")


class BpfObjects:
    """The kernel's BPF programs and maps by kind and id. What appears while another process uses BPF cannot be told from ours,
    so only what nobody holds open counts as left behind."""

    def __init__(self):
        self.bpftool = harness.tool("bpftool")
        self.before = set(self.now())

    def now(self):
        """{(kind, id): pids that hold it open}"""
        found = {}
        for kind in ("prog", "map", "link"):
            done = subprocess.run([self.bpftool, "-j", kind, "list"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
            rows = json.loads(done.stdout or b"[]")
            found.update({(kind, row["id"]): [holder["pid"] for holder in row.get("pids", [])] for row in rows if "id" in row})
        return found

    def new(self, pid):
        """What this process holds that was not there before."""
        return {key for key, pids in self.now().items() if key not in self.before and pid in pids}

    def left_of(self, held, seconds=15):
        """Those of `held` that are still there when the kernel has had its time: it frees them after a grace period."""
        end = time.monotonic() + seconds
        while True:
            left = held & set(self.now())
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.3)


def special_descriptors(pid):
    """The perf events and BPF objects that a process has open."""
    folder = f"/proc/{pid}/fd"
    links = (os.readlink(os.path.join(folder, name)) for name in os.listdir(folder))
    return [link for link in links if re.search(r"perf_event|bpf", link)]


def kernel_complaints():
    """Lines of the kernel's log that a healthy kernel does not write; None where it cannot be read."""
    done = subprocess.run(["dmesg"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    return [line for line in done.stdout.decode(errors="replace").splitlines() if COMPLAINT.search(line)]
