"""The command-line contract: exit statuses, one plain line for a failure, whole files or none.

Requires nothing: no privileges, no perf events.
"""

# verifies: CL1, CL2, CL3, H1
# covers: convert --output --format
# covers: report --tree

import gzip
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness
from folded import Folded
from pprof import Profile

FOLDED = "app;main;parse;read_[k] 12\napp;main;work;inner loop 30\napp;main;work 8\n"


class Contract(harness.Live):
    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def assert_refused(self, *arguments, status=1, naming=None):
        done = self.cprof(*arguments, expect=status)
        self.assert_one_line(done)
        self.assertEqual(done.stdout, b"")
        if naming:
            self.assertIn(naming, done.stderr)
        return done


class Usage(Contract):
    def test_help_and_version_go_to_stdout(self):
        for arguments in (["--help"], ["--version"], ["record", "--help"], ["report", "--help"], ["convert", "--help"],
                          ["doctor", "--help"]):
            done = self.cprof(*arguments)
            self.assertTrue(done.stdout, arguments)
            self.assertEqual(done.stderr, "", arguments)

    def test_version_has_a_number(self):
        self.assertRegex(self.cprof("--version").stdout.decode(), r"^cprof \d+\.\d+")

    def test_options_of_record_are_in_its_help(self):
        text = self.cprof("record", "--help").stdout.decode()
        for option in ("--freq", "--count", "--duration", "--event", "--stack-size", "--max-depth", "--pid", "--tid", "--name",
                       "--cgroup", "--no-kernel", "--no-inherit", "--save-raw", "--demangle", "--folded-style", "--by", "--format"):
            self.assertIn(option, text)

    def test_wrong_usage_is_2_and_one_line(self):
        for arguments in (["no-such-verb"], ["record", "--no-such-option"], ["record", "-F", "fast", "--", "true"],
                          ["record", "--stack-size", "many", "--", "true"], ["record", "-p", "1", "-a"], ["record"],
                          ["record", "-o", "x.no-such-extension", "--", "true"], ["report"], ["convert", "x.folded"],
                          ["record", "-p", "1", "--", "true"], ["record", "--backend", "magic", "--", "true"],
                          ["record", "--max-depth", "0", "--", "true"], ["record", "-d", "-1", "--", "true"]):
            self.assert_refused(*arguments, status=2)
        self.assert_no_leftovers()

    def test_nothing_at_all_shows_the_help(self):
        self.assertIn("usage", self.cprof(expect=2).stderr)

    def test_doctor(self):
        done = self.cprof("doctor", expect=None)
        self.assertIn(done.status, (0, 1))
        self.assertIn("perf_event_paranoid", done.stdout.decode())
        self.check_findings(done.stdout.decode())

    def check_findings(self, text):
        """What doctor prints is what docs/doctor.md has rows for, and each note says what mends it."""
        found = re.findall(r"^(ok  |note|BAD ) (.{26}) .*\n(     .{26} -> .*\n)?", text, re.MULTILINE)
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/doctor.md")
        with open(page) as file:
            rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", file.read(), re.MULTILINE)[1:]
        self.assertEqual([subject.strip() for _, subject, _ in found], [row for row in rows if not row.startswith("---")])
        for mark, subject, mend in found:
            self.assertTrue(mend or mark == "ok  ", subject)

    def test_doctor_without_rights(self):
        harness.need_root()
        done = self.run_command([harness.tool("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "--", harness.CPROF,
                                 "doctor"], env={"PATH": "/usr/bin:/bin"})
        text = done.stdout.decode()
        self.assertIn(done.status, (0, 1), done.stderr)
        self.assertEqual(done.stderr, "")
        self.check_findings(text)
        self.assertRegex(text, "note capabilities +missing: cap_perfmon")
        self.assertRegex(text, "note eBPF backend +not used: ")


class Convert(Contract):
    def test_folded_to_pprof_and_back(self):
        source = self.write("in.folded", FOLDED)
        self.cprof("convert", source, "-o", self.path("mid.pb.gz"))
        self.assertEqual(Profile(self.read("mid.pb.gz")).broken_rules(), [])
        self.cprof("convert", self.path("mid.pb.gz"), "-o", self.path("back.folded"))
        back = self.read("back.folded").decode()
        self.assertEqual(sorted(back.splitlines()), sorted(FOLDED.splitlines()))

    def test_several_outputs_and_raw_pprof(self):
        source = self.write("in.folded", FOLDED)
        self.cprof("convert", source, "-o", self.path("a.pb"), "-o", self.path("b.pb.gz"), "-o", self.path("c.folded"))
        self.assertEqual(self.read("a.pb"), gzip.decompress(self.read("b.pb.gz")))
        self.assert_no_leftovers("in.folded", "a.pb", "b.pb.gz", "c.folded")

    def test_twice_is_the_same_bytes(self):
        source = self.write("in.folded", FOLDED)
        for name in ("1.pb.gz", "2.pb.gz"):
            self.cprof("convert", source, "-o", self.path(name))
        self.assertEqual(self.read("1.pb.gz"), self.read("2.pb.gz"))

    def test_dash_is_stdout(self):
        done = self.cprof("convert", self.write("in.folded", FOLDED), "--format", "folded", "-o", "-")
        self.assertEqual(Folded(done.stdout.decode()).total, 50)
        self.assertEqual(done.stderr, "")

    def test_input_is_known_by_its_bytes(self):
        self.cprof("convert", self.write("in.folded", FOLDED), "-o", self.path("x.pb.gz"))
        os.rename(self.path("x.pb.gz"), self.path("disguised.folded"))
        self.cprof("convert", self.path("disguised.folded"), "-o", self.path("y.folded"))
        self.assertEqual(self.folded("y.folded").total, 50)

    def test_input_from_stdin(self):
        with open(self.write("in.folded", FOLDED), "rb") as file:
            done = self.cprof("convert", "-", "--format", "folded", "-o", "-", stdin=file)
        self.assertEqual(Folded(done.stdout.decode()).total, 50)

    def test_existing_output_survives_a_failure(self):
        kept = self.write("out.folded", "kept;main 1\n")
        self.assert_refused("convert", self.write("bad", b"\x00\x01\x02 nothing known"), "-o", kept)
        self.assertEqual(self.read("out.folded"), b"kept;main 1\n")


class BadInput(Contract):
    def test_missing_empty_and_foreign_files(self):
        self.assert_refused("report", self.path("missing.folded"), naming="missing.folded")
        self.assert_refused("report", self.write("empty.pb.gz", ""), naming="empty.pb.gz")
        self.assert_refused("report", self.write("foreign.bin", bytes(range(256)) * 40), naming="foreign.bin")
        self.assert_refused("report", self.folder, naming=self.folder)

    def test_truncated_pprof(self):
        self.cprof("convert", self.write("in.folded", FOLDED * 50), "-o", self.path("whole.pb.gz"))
        whole = self.read("whole.pb.gz")
        for size in (1, 2, 3, 10, 11, len(whole) // 2, len(whole) - 9, len(whole) - 1):
            cut = self.write("cut.pb.gz", whole[:size])
            self.assert_refused("convert", cut, "-o", self.path("out.folded"), naming="cut.pb.gz")
            self.assertFalse(os.path.exists(self.path("out.folded")))

    def test_damaged_pprof_never_crashes(self):
        self.cprof("convert", self.write("in.folded", FOLDED), "-o", self.path("whole.pb"))
        whole, chance = self.read("whole.pb"), random.Random(3)
        for _ in range(40):
            damaged = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            done = self.cprof("report", self.write("damaged.pb", bytes(damaged)), expect=None, timeout=20)
            self.assertIn(done.status, (0, 1), done.stderr)
            if done.status == 1:
                self.assert_one_line(done)

    def test_gzip_bomb(self):
        """500 MB of zeros in half a megabyte: refused by ratio, in bounded memory."""
        bomb = self.path("bomb.pb.gz")
        with gzip.open(bomb, "wb", compresslevel=9) as file:
            for _ in range(500):
                file.write(bytes(1 << 20))
        limit = 512 << 20

        def bound_memory():
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        done = self.run_command([harness.CPROF, "report", bomb], preexec=None if is_sanitized() else bound_memory)
        self.assertEqual(done.status, 1, done.stderr)
        self.assert_one_line(done)

    def test_fifo_that_ends_early(self):
        read_end, write_end = os.pipe()
        os.write(write_end, b"\x1f\x8b\x08")
        os.close(write_end)
        with os.fdopen(read_end, "rb") as file:
            done = self.cprof("report", "-", stdin=file, expect=1)
        self.assert_one_line(done)


class FullDisk(Contract):
    def test_dev_full(self):
        source = self.write("in.folded", FOLDED)
        for name in ("folded", "pprof"):
            done = self.assert_refused("convert", source, "--format", name, "-o", "/dev/full", naming="/dev/full")
            self.assertIn("No space left", done.stderr)

    def test_stdout_full(self):
        source = self.write("in.folded", FOLDED)
        done = self.run_command(["/bin/sh", "-c", f"'{harness.CPROF}' report '{source}' > /dev/full"])
        self.assertEqual(done.status, 1, done.stderr)
        self.assertIn("No space left", done.stderr)

    def test_folder_that_is_not_there(self):
        self.assert_refused("convert", self.write("in.folded", FOLDED), "-o", self.path("none/out.folded"), naming="none/out.folded")


class Report(Contract):
    def test_top_and_tree(self):
        source = self.write("in.folded", FOLDED)
        top = self.cprof("report", source).stdout.decode()
        tree = self.cprof("report", source, "--tree").stdout.decode()
        for text in (top, tree):
            self.assertIn("inner loop", text)
            self.assertRegex(text, r"60(\.\d+)?\s?%")
        self.assertLess(tree.index("main"), tree.index("work"), "callers before callees")

    def test_closed_pipe_is_no_crash(self):
        source = self.write("in.folded", FOLDED * 2000)
        done = self.run_command(["/bin/sh", "-c", f"'{harness.CPROF}' report '{source}' --tree | head -1"])
        self.assertEqual(done.status, 0)
        self.assertNotIn("internal", done.stderr)


def is_sanitized():
    with open(harness.CPROF, "rb") as file:
        return b"__asan_init" in file.read()


if __name__ == "__main__":
    harness.main()
