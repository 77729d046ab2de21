"""cprof top on programs that know where they spend their time: pictures for pipes, and the live view on a terminal."""
# covers: top --pid --tid --name --all-cpus --cgroup --interval --window --count --duration --freq --event --backend --unwind --no-kernel
# covers: top --no-inherit --show --rows --batch --focus --ignore --hide --show-from --thread --process --time --label
# covers: top --demangle --no-inline --debug-dir --debuginfod

import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import harness
from terminal import OnTerminal


class Top(harness.Live):
    backend = "auto"

    def setUp(self):
        super().setUp()
        harness.need_root()
        harness.need_perf()

    def shares(self, text):
        """By function, of the last picture: (self, total)."""
        found = {}
        for line in text.rstrip().split("\n\n")[-1].splitlines():
            match = re.match(r" *([\d.]+) % +([\d.]+) % +[\d,]+  (\S+)", line)
            if match:
                found[match[3].split("(")[0]] = (float(match[1]) / 100, float(match[2]) / 100)
        return found

    def test_shares_of_a_command(self):
        for backend in ("perf", "bpf"):
            with self.subTest(backend=backend):
                if backend == "bpf":
                    harness.need_bpf()
                done = self.cprof("top", "--backend", backend, "-i", "1", "--window", "60", "--no-kernel", "--", harness.program("shares"), "4")
                shares = self.shares(done.stdout.decode())
                for name, expected in (("share_sixty", 0.6), ("share_thirty", 0.3), ("share_ten", 0.1)):
                    self.assertIn(name, shares, done.stdout.decode() + done.stderr)
                    self.assert_share(shares[name][1], expected, name, 0.05)

    def test_count_and_panes(self):
        target = subprocess.Popen([harness.program("time_shares"), "120"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        for show, wanted in (("functions", "spin_ns"), ("stacks", "spin_ns < "), ("tree", "start_thread"), ("threads", "do-user of time_shares")):
            with self.subTest(show=show):
                done = self.cprof("top", "-p", str(target.pid), "--count", "2", "-i", "0.7", "--show", show, "--rows", "60", "--batch")
                self.assertEqual(done.stdout.decode().count("after "), 2)
                self.assertIn(wanted, done.stdout.decode())

    def test_filters(self):
        target = subprocess.Popen([harness.program("time_shares"), "120"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        done = self.cprof("top", "-n", "time_shares", "--thread", "do-kernel", "--count", "1", "-i", "1.5", "--show", "threads")
        rows = [line for line in done.stdout.decode().splitlines() if " of time_shares" in line]
        self.assertEqual(len(rows), 1, done.stdout)
        self.assertIn("do-kernel", rows[0])

    def test_wrong_usage(self):
        for arguments in (["-i", "0"], ["--window", "0"], ["-p", "1", "-a"], ["--focus", "("]):
            self.assert_one_line(self.cprof("top", *arguments, expect=2))
        self.assert_one_line(self.cprof("top", "--", "/no/such/program", expect=127))
        self.assertEqual(self.cprof("top", "-i", "0.3", "--", harness.tool("sh"), "-c", "exit 7", expect=7).status, 7)

    def test_live(self):
        target = subprocess.Popen([harness.program("time_shares"), "120"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        live = OnTerminal([harness.CPROF, "top", "-i", "0.5", "-p", str(target.pid)], 120, 24)
        self.addCleanup(live.close)
        self.assertTrue(live.wait_for(lambda text: "spin_ns" in text, 60), live.screen.text)
        self.assertTrue(live.screen.is_alternate)
        live.type("t")
        self.assertTrue(live.wait_for(lambda text: "do-user of time_shares" in text), live.screen.text)
        live.type("ndo-kernel\r")
        self.assertTrue(live.wait_for(lambda text: "thread: do-kernel" in text and "do-user" not in text), live.screen.text)
        live.type("s")
        self.assertTrue(live.wait_for(lambda text: "innermost first" in text), live.screen.text)
        live.resize(70, 12)
        os.kill(live.process.pid, signal.SIGWINCH)
        self.assertTrue(live.wait_for(lambda text: len(text.splitlines()) == 12 and text.splitlines()[-1].startswith("q quit")), live.screen.text)
        self.assertLessEqual(max(map(len, live.screen.text.splitlines())), 70)
        live.type("\x03")
        self.assertEqual(live.end(), 0, live.screen.text)
        self.assertTrue(live.is_as_before())


if __name__ == "__main__":
    harness.main()
