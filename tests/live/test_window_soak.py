"""The flight recorder for two minutes: memory goes up and down, it does not grow, and what is written is the last ten seconds.

test_window_soak.py perf|bpf
Requires: root.
"""

# covers: record --overwrite-window --backend

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness

BACKEND = sys.argv.pop(1) if sys.argv[1:2] and sys.argv[1] in ("perf", "bpf") else "perf"
WINDOW, SECONDS, FULL = 10, 120, 35  # FULL: the window, and what may outlast it, are full for sure
GROWTH, SLACK_KB = 1.25, 8192


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])


class Window(harness.Live):
    def test_two_minutes(self):
        harness.need_root()
        if BACKEND == "bpf":
            harness.need_bpf()
        command = [harness.CPROF, "record", "--backend", BACKEND, "--off-cpu", "-F", "1999", "--overwrite-window", str(WINDOW),
                   "-o", self.path("w.txt"), "--", harness.program("new_stacks"), str(SECONDS)]
        recorder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        began, early, late = time.monotonic(), [], []
        while recorder.poll() is None and time.monotonic() - began < SECONDS - 2:
            time.sleep(1)
            age = time.monotonic() - began
            if age > FULL:
                (early if age < (FULL + SECONDS) / 2 else late).append(resident_kb(recorder.pid))
        _, stderr = recorder.communicate(timeout=120)
        self.assertEqual(recorder.returncode, 0, stderr.decode())
        print(f"{BACKEND}: {max(early)} kB until half of the time, {max(late)} kB after it", flush=True)
        self.assertLess(max(late), GROWTH * max(early) + SLACK_KB)
        with open(self.path("w.txt")) as file:
            times = [float(at) for at in re.findall(r"^new_stacks.* ([\d.]+): +\d+ cpu-clock", file.read(), re.MULTILINE)]
        self.assertGreater(len(times), 100)
        self.assertLessEqual(max(times) - min(times), 1.3 * WINDOW)
        self.assertGreaterEqual(max(times) - min(times), 0.8 * WINDOW)


if __name__ == "__main__":
    harness.main()
