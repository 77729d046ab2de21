"""Names of code that a compiler makes while the program runs: perf maps and jitdumps, that grow, and out of reach at the end."""
# verifies: A9j

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import harness

SCRIPT = """
function hot_inner(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum + i * 7) % 1000003; return sum; }
function late_inner(n) { let sum = 1; for (let i = 1; i < n; i++) sum = (sum * 3 + i) % 999983; return sum; }
function cpu() { const used = process.cpuUsage(); return (used.user + used.system) / 1000; }
let total = 0;
for (const start = cpu(); cpu() - start < 1500;) total += hot_inner(200000);
for (const start = cpu(); cpu() - start < 1500;) total += late_inner(200000);
console.log(total);
"""


class Jit(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_root()
        harness.need_perf()
        self.node = harness.tool("node")
        harness.write_text(self.path("work.js"), SCRIPT)

    def check(self, *options, command):
        for backend in ("perf", "bpf"):
            with self.subTest(backend=backend, command=command):
                self.record(command, "--backend", backend, "--no-kernel", *options)
                folded = self.folded()
                for name in ("hot_inner", "late_inner"):
                    share = folded.only(lambda frames: any(re.search(rf"\b{name}\b.*_\[j\]$", frame) for frame in frames)).total / folded.total
                    self.assertGreater(share, 0.2, f"{name}: {sorted({frames[-1] for frames, _ in folded.stacks})[:40]}")

    def test_a_perf_map(self):
        self.check(command=[self.node, "--perf-basic-prof", self.path("work.js")])

    def test_a_jitdump(self):
        self.check(command=[self.node, "--perf-prof", self.path("work.js")])

    def test_a_perf_map_in_namespaces_that_are_gone(self):
        inside = f"mount -t tmpfs none /tmp && mkdir -p {self.folder} && cat > {self.path('in.js')} && exec {self.node} --perf-basic-prof {self.path('in.js')}"
        command = [harness.tool("sh"), "-c", f"exec {harness.tool('unshare')} --mount --pid --fork sh -c '{inside}' < {self.path('work.js')}"]
        self.check(command=command)


if __name__ == "__main__":
    harness.main()
