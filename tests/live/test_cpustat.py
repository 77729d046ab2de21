"""cprof cpustat on programs that know what they do with their time: shares, totals, lines for programs, the live table."""
# verifies: A13
# covers: cpustat --pid --tid --name --all-cpus --cgroup --interval --count --duration --no-inherit --backend --json --csv --output
# covers: cpustat --by --sort --reverse --busy --filter --rows --batch --quiet

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import harness
from terminal import OnTerminal

CLASS_OF = {"do-sleep": "sleep", "do-pipe": "io", "do-socket": "network", "do-poll": "poll", "do-futex": "futex"}
KEYS = ["ts_ns", "interval_ns", "pid", "tid", "comm", "user_ns", "kernel_ns", "runnable_ns", "waits_ns", "switches_voluntary",
        "switches_involuntary", "migrations", "wakeups"]
CLASSES = {"futex", "lock", "poll", "sleep", "io", "network", "memory", "other"}


class Cpustat(harness.Live):
    def rows(self, done):
        return [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith("{")]

    def sums(self, rows):
        """By tid: everything added up over the intervals."""
        sums = {}
        for row in rows:
            to = sums.setdefault(row["tid"], {"comm": row["comm"], "waits_ns": dict.fromkeys(CLASSES, 0)})
            to["comm"] = row["comm"]
            for key in KEYS[5:8] + KEYS[9:]:
                to[key] = to.get(key, 0) + row[key]
            for name, ns in row["waits_ns"].items():
                to["waits_ns"][name] += ns
        return sums

    def truth(self, done):
        """By tid, what the program says of its own threads."""
        truth = {}
        for line in done.stdout.decode().splitlines():
            if not line.startswith("do-"):
                continue
            name, *values = line.split()
            tid, *values = map(int, values)
            truth[tid] = dict(zip(["wall", "cpu", "user", "system", "wait", "voluntary", "involuntary"], values), name=name)
        return truth

    def check_truth(self, done):
        sums, truth = self.sums(self.rows(done)), self.truth(done)
        self.assertEqual(len(truth), 7, done.stderr)
        for tid, own in truth.items():
            with self.subTest(thread=own["name"]):
                self.check_thread(own, sums[tid])

    def check_thread(self, own, row):
        wall, text = own["wall"], f"{own} but {row}"
        cpu = row["user_ns"] + row["kernel_ns"]
        self.assertLessEqual(abs(cpu - own["cpu"]), 0.02 * own["cpu"] + 2e6, text)
        self.assert_share(row["user_ns"] / wall, own["user"] / (own["user"] + own["system"]) * own["cpu"] / wall, f"user: {text}")
        waits = sum(row["waits_ns"].values())
        if own["name"] in CLASS_OF:
            # What it measured is the wait and what it was runnable after it.
            self.assertLessEqual(row["waits_ns"][CLASS_OF[own["name"]]], own["wait"] + 0.03 * wall, text)
            self.assertGreaterEqual(row["waits_ns"][CLASS_OF[own["name"]]], 0.9 * waits - 0.01 * wall, text)
            self.assertLessEqual(own["wait"] - 0.03 * wall, waits + row["runnable_ns"], text)
        else:
            self.assertLessEqual(waits, 0.03 * wall, text)
        self.assert_share((cpu + row["runnable_ns"] + waits) / wall, 1, f"all of it: {text}", 0.05)


class Bpf(Cpustat):
    def setUp(self):
        super().setUp()
        harness.need_bpf()

    def test_shares_are_those_the_program_measured(self):
        done = self.cprof("cpustat", "-q", "--json", "--backend", "bpf", "-i", "0.5", "--", harness.program("time_shares"), "4")
        self.check_truth(done)
        for tid, own in self.truth(done).items():
            row = self.sums(self.rows(done))[tid]
            for key in ("voluntary", "involuntary"):
                self.assertLessEqual(abs(row[f"switches_{key}"] - own[key]), 3 + 0.02 * own[key], f"{key} of {own['name']}")

    def test_totals_are_those_of_proc(self):
        target = subprocess.Popen([harness.program("time_shares"), "60"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        time.sleep(0.3)

        def ticks():
            with open(f"/proc/{target.pid}/stat") as file:
                return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))

        command = [harness.CPROF, "cpustat", "-q", "--json", "--backend", "bpf", "-p", str(target.pid), "--count", "5", "-i", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            seen = []  # what /proc told, and when
            while run.poll() is None:
                seen.append((time.monotonic_ns(), ticks() * 1e9 / os.sysconf("SC_CLK_TCK")))
                time.sleep(0.02)
            rows = [json.loads(line) for line in run.stdout]
        ours = sum(row["user_ns"] + row["kernel_ns"] for row in rows)
        start = min(row["ts_ns"] - row["interval_ns"] for row in rows)
        end = max(row["ts_ns"] for row in rows)
        proc_ns = self.at(seen, end) - self.at(seen, start)
        self.assertLessEqual(abs(ours - proc_ns), 0.02 * proc_ns + 2 * 1e9 / os.sysconf("SC_CLK_TCK"), f"{ours / 1e9} s, /proc: {proc_ns / 1e9} s")

    def at(self, seen, time_ns):
        """What was counted at that time, between two looks."""
        after = next((i for i, (when, _) in enumerate(seen) if when >= time_ns), len(seen) - 1)
        (t0, v0), (t1, v1) = seen[max(0, after - 1)], seen[after]
        return v0 if t1 == t0 else v0 + (v1 - v0) * (time_ns - t0) / (t1 - t0)

    def test_threads_that_start_and_end_within_an_interval_are_counted(self):
        done = self.cprof("cpustat", "-q", "--json", "--backend", "bpf", "-i", "0.2", "--", harness.program("time_shares"), "0.5")
        sums, truth = self.sums(self.rows(done)), self.truth(done)
        self.assertEqual(len(truth), 7)
        for tid, own in truth.items():
            row = sums[tid]
            self.assertLessEqual(abs(row["user_ns"] + row["kernel_ns"] - own["cpu"]), 0.02 * own["cpu"] + 2e6)

    def test_two_thousand_threads_cost_under_two_percent(self):
        target = subprocess.Popen([harness.program("time_shares"), "60", "2000"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        deadline = time.monotonic() + 20
        while len(os.listdir(f"/proc/{target.pid}/task")) < 2008 and time.monotonic() < deadline:
            time.sleep(0.1)
        live = OnTerminal([harness.CPROF, "cpustat", "-q", "-p", str(target.pid)], 140, 50)
        self.addCleanup(live.close)
        self.assertTrue(live.wait_for(lambda text: "do-user" in text), live.screen.text)

        def own_cpu():
            with open(f"/proc/{live.process.pid}/schedstat") as file:
                return int(file.read().split()[0])

        before, start = own_cpu(), time.monotonic()
        while time.monotonic() < start + 6:
            live.read(0.2)
        share = (own_cpu() - before) / 1e9 / (time.monotonic() - start)
        self.assertIn("threads", live.screen.text)
        live.type("q")
        self.assertEqual(live.end(), 0)
        self.assertLess(share, 0.02, f"{100 * share:.2f} % of a core")

    def test_children_are_followed_unless_not_wanted(self):
        shell = ["sh", "-c", f"{harness.program('time_shares')} 1; exit 5"]
        done = self.cprof("cpustat", "-q", "--json", "--backend", "bpf", "--", *shell, expect=5)
        self.assertIn("do-user", {row["comm"] for row in self.rows(done)})
        done = self.cprof("cpustat", "-q", "--json", "--backend", "bpf", "--no-inherit", "--", *shell, expect=5)
        self.assertEqual({row["comm"] for row in self.rows(done)}, {"sh"})

    def test_counter_tracks_of_a_recording(self):
        self.cprof("cpustat", "-q", "--json", "-o", self.path("run.cprof"), "-o", self.path("run.pftrace"), "-i", "0.2", "--",
                   harness.program("time_shares"), "1.5")
        asked = self.cprof("sql", self.path("run.cprof"), "-q",
                           "select distinct t.name from counter c join counter_track t on c.track_id = t.id").stdout.decode()
        for name in ("user", "kernel", "runnable", "sleep", "futex", "wakeups"):
            self.assertRegex(asked, rf"(?m)^\W*{name}\W*$")
        self.cprof("convert", self.path("run.pftrace"), "-o", self.path("again.cprof"))
        count = "select count(*) from counter"
        self.assertEqual(self.cprof("sql", self.path("again.cprof"), "-q", count).stdout,
                         self.cprof("sql", self.path("run.cprof"), "-q", count).stdout)

    def test_the_whole_machine_has_every_thread(self):
        done = self.cprof("cpustat", "-q", "--json", "--backend", "bpf", "-a", "--count", "1", "-i", "0.3")
        rows = self.rows(done)
        self.assertIn(os.getpid(), {row["pid"] for row in rows})
        self.assertIn("cprof", {row["comm"] for row in rows})
        mine = next(row for row in rows if row["tid"] == os.getpid())
        self.assertGreater(sum(mine["waits_ns"].values()), 0.8 * mine["interval_ns"], mine)


class Proc(Cpustat):
    def test_looking_at_proc_gives_what_it_can(self):
        done = self.cprof("cpustat", "-q", "--json", "--backend", "proc", "-i", "0.5", "--", harness.program("time_shares"), "4")
        sums, truth = self.sums(self.rows(done)), self.truth(done)
        for tid, own in truth.items():
            if tid in sums:  # one that ended between two looks misses its last part
                cpu = sums[tid]["user_ns"] + sums[tid]["kernel_ns"]
                self.assertLessEqual(cpu, own["cpu"] * 1.02 + 2e6)
                self.assertGreater(cpu, own["cpu"] * 0.5 - 20e6)
        self.assertGreaterEqual(len(sums.keys() & truth.keys()), 7)

    def test_why_it_looks_at_proc_is_one_line(self):
        done = self.run_as_nobody("cpustat", "-q", "--json", "--count", "1", "-i", "0.2", "--", harness.tool("sleep"), "5")
        self.assertEqual(done.status, 128 + signal.SIGTERM, done.stderr)
        self.assert_one_line(done)
        self.assertIn("looks at /proc", done.stderr)
        self.assertIn("CAP_BPF", done.stderr)
        self.assertEqual([row["comm"] for row in self.rows(done)][-1], "sleep")


class Lines(Cpustat):
    def test_json_is_an_object_a_line(self):
        done = self.cprof("cpustat", "-q", "--json", "--count", "2", "-i", "0.2", "-p", str(os.getpid()))
        rows = self.rows(done)
        self.assertGreaterEqual(len(rows), 2)
        self.assertEqual(len({row["ts_ns"] for row in rows}), 2)
        for row in rows:
            self.assertEqual(list(row), KEYS)
            self.assertEqual(set(row["waits_ns"]), CLASSES)

    def test_csv_has_the_same_columns(self):
        done = self.cprof("cpustat", "-q", "--csv", "--count", "1", "-i", "0.2", "-p", str(os.getpid()), "-o", self.path("out.csv"))
        self.assertEqual(done.stdout, b"")
        rows = list(csv.DictReader(io.StringIO(self.read("out.csv").decode())))
        self.assertEqual(set(rows[0]), (set(KEYS) - {"waits_ns"}) | {f"{name}_ns" for name in CLASSES})
        self.assertEqual(int(rows[0]["pid"]), os.getpid())

    def test_a_table_that_is_not_live(self):
        options = ["--count", "2", "-i", "0.2", "--by", "process", "--sort", "pid", "--reverse", "--rows", "3", "--batch"]
        text = self.cprof("cpustat", "-a", *options).stdout.decode()
        self.assertEqual(text.count("COMMAND"), 2)
        pids = [int(line.split()[0]) for line in text.split("\n\n")[0].splitlines()[2:5]]
        self.assertEqual(pids, sorted(pids, reverse=True))
        text = self.cprof("cpustat", "-a", "--count", "1", "-i", "0.2", "--filter", "^1 ", "--busy", "-q").stdout.decode()
        self.assertTrue(all(line.split()[0] == "1" for line in text.splitlines()[2:] if line), text)

    def test_wrong_usage(self):
        for arguments in (["--json", "--csv"], ["-i", "0"], ["-p", "1", "-a"], ["-o", "x.folded"], ["--filter", "("]):
            done = self.cprof("cpustat", *arguments, expect=2)
            self.assert_one_line(done)
        self.assert_one_line(self.cprof("cpustat", "-p", "999999999", expect=1))
        self.assert_one_line(self.cprof("cpustat", "-q", "--", "/no/such/program", expect=127))


class Table(Cpustat):
    """The live table, on a terminal."""

    def start(self, *arguments, columns=140, rows=24):
        target = subprocess.Popen([harness.program("time_shares"), "120"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        live = OnTerminal([harness.CPROF, "cpustat", "-i", "0.3", "-p", str(target.pid), *arguments], columns, rows)
        self.addCleanup(live.close)
        self.assertTrue(live.wait_for(lambda text: "do-user" in text), live.screen.text)
        return live

    def rows_of(self, text):
        return [line for line in text.splitlines() if re.match(r" *\d+ ", line)]

    def test_keys(self):
        live = self.start()
        self.assertTrue(live.screen.is_alternate)
        self.assertFalse(live.screen.is_cursor_shown)
        self.assertGreater(live.screen.colours, 0)
        live.type("p")
        self.assertTrue(live.wait_for(lambda text: len(self.rows_of(text)) == 1), live.screen.text)
        live.type("p")
        self.assertTrue(live.wait_for(lambda text: len(self.rows_of(text)) > 7), live.screen.text)
        live.type("/do-f")
        self.assertTrue(live.wait_for(lambda text: all("do-futex" in row for row in self.rows_of(text))), live.screen.text)
        live.type("\r")
        live.type("/\x7f\x7f\x7f\x7f\r")
        self.assertTrue(live.wait_for(lambda text: len(self.rows_of(text)) > 7), live.screen.text)
        live.type("\x1b[D")
        self.assertTrue(live.wait_for(lambda text: "sort: comm" in text), live.screen.text)
        names = [row.split()[2] for row in self.rows_of(live.screen.text)]
        self.assertEqual(names, sorted(names))
        live.type("r")
        self.assertTrue(live.wait_for(lambda text: "reversed" in text), live.screen.text)
        live.type(" ")
        self.assertTrue(live.wait_for(lambda text: "PAUSED" in text), live.screen.text)
        live.read(0.5)
        paused = live.screen.text
        live.read(1)
        self.assertEqual(live.screen.text, paused)
        live.type("h")
        self.assertTrue(live.wait_for(lambda text: "regular expression" in text), live.screen.text)
        live.type("q")
        self.assertEqual(live.end(), 0)
        self.assertTrue(live.is_as_before())

    def test_resize(self):
        live = self.start()
        live.resize(60, 10)
        os.kill(live.process.pid, signal.SIGWINCH)
        self.assertTrue(live.wait_for(lambda text: text.splitlines()[-1].startswith("q quit") and len(text.splitlines()) == 10), live.screen.text)
        self.assertLessEqual(max(map(len, live.screen.text.splitlines())), 60)
        live.resize(200, 40)
        os.kill(live.process.pid, signal.SIGWINCH)
        self.assertTrue(live.wait_for(lambda text: "wake/s" in text), live.screen.text)
        live.type("q")
        self.assertEqual(live.end(), 0)

    def test_every_end_gives_the_terminal_back(self):
        for what, how in (("Ctrl-C", lambda live: live.type("\x03")),
                          ("SIGTERM", lambda live: live.process.send_signal(signal.SIGTERM)),
                          ("SIGHUP", lambda live: live.process.send_signal(signal.SIGHUP)),
                          ("SIGABRT", lambda live: live.process.send_signal(signal.SIGABRT)),
                          ("SIGSEGV", lambda live: live.process.send_signal(signal.SIGSEGV))):
            with self.subTest(end=what):
                live = self.start("-q")
                how(live)
                status = live.end()
                dies = what in ("SIGABRT", "SIGSEGV")
                self.assertEqual(status, -getattr(signal, what) if dies else 0, live.screen.text)
                self.assertTrue(live.is_as_before(), what)

    def test_suspended_and_continued(self):
        # Ctrl-Z stops what a shell with job control runs, no orphan.
        run = f"set -m; {harness.CPROF} cpustat -q -i 0.3 -p {os.getpid()}; read line; fg > /dev/null"
        live = OnTerminal([harness.tool("bash"), "-c", run], 140, 24)
        self.addCleanup(live.close)
        self.assertTrue(live.wait_for(lambda text: "python3" in text), live.screen.text)
        live.type("\x1a")
        deadline = time.monotonic() + 20
        while not live.is_as_before() and time.monotonic() < deadline:
            live.read(0.1)
        self.assertTrue(live.is_as_before())
        live.type("\n")
        self.assertTrue(live.wait_for(lambda text: "python3" in text and live.screen.is_alternate), live.screen.text)
        live.type("q")
        self.assertEqual(live.end(), 0)
        self.assertTrue(live.is_as_before())

    def test_what_a_command_prints_comes_after_the_table(self):
        live = OnTerminal([harness.CPROF, "cpustat", "-q", "-i", "0.2", "--", harness.program("time_shares"), "1.5"], 140, 24, env={"NO_COLOR": "1"})
        self.addCleanup(live.close)
        self.assertTrue(live.wait_for(lambda text: "do-user" in text and "COMMAND" in text), live.screen.text)
        self.assertEqual(live.screen.colours, 0)
        self.assertEqual(live.end(), 0)
        self.assertTrue(live.is_as_before())
        self.assertIn(b"do-kernel ", live.all.split(b"\x1b[?1049l")[-1])

    def test_a_terminal_that_cannot_draw_gets_tables(self):
        live = OnTerminal([harness.CPROF, "cpustat", "-q", "-i", "0.2", "--count", "1", "-p", str(os.getpid())], env={"TERM": "dumb"})
        self.addCleanup(live.close)
        self.assertEqual(live.end(), 0)
        self.assertNotIn(b"\x1b", live.all)
        self.assertIn(b"COMMAND", live.all)


if __name__ == "__main__":
    harness.main()
