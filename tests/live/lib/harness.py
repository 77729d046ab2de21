"""What every live and command-line test shares: running cprof with a time limit, its summary, what the machine allows.

Environment: CPROF is the program, CPROF_PROGRAMS the folder of the test programs. A test file ends with
`harness.main()`, which exits with 77 and the reason when nothing could run.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from folded import Folded

CPROF = os.environ.get("CPROF", "")
PROGRAMS = os.environ.get("CPROF_PROGRAMS", "")
SKIPPED = 77


def program(name):
    path = os.path.join(PROGRAMS, name)
    if not os.access(path, os.X_OK):
        raise unittest.SkipTest(f"needs the test program {name}: its compiler or linker is not installed")
    return path


def tool(*names):
    """The first of these commands that exists. /usr/bin first: a shim in PATH is another program."""
    for name in names:
        path = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin") or shutil.which(name)
        if path:
            return path
    raise unittest.SkipTest(f"needs {' or '.join(names)}")


def need_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root (perf_event_open of kernel and other users' tasks)")


def paranoid_level():
    try:
        with open("/proc/sys/kernel/perf_event_paranoid") as file:
            return int(file.read())
    except OSError:
        raise unittest.SkipTest("needs perf events in the kernel")


def need_perf():
    if os.geteuid() != 0 and paranoid_level() > 1:
        raise unittest.SkipTest("needs root or CAP_PERFMON, or kernel.perf_event_paranoid of 1 or less")
    paranoid_level()


def need_bpf():
    need_root()
    if not os.access("/sys/kernel/btf/vmlinux", os.R_OK):
        raise unittest.SkipTest("needs a kernel with BTF (/sys/kernel/btf/vmlinux)")


class Summary:
    """The lines that `cprof record` prints when a run ends."""

    def __init__(self, text):
        self.text = text
        complete = re.search(r"stacks complete:\s+([\d.]+) % \(([\d,]+) of ([\d,]+)\)", text)
        self.has_stacks = complete is not None
        self.complete = number(complete[2]) if complete else 0
        self.total = number(complete[3]) if complete else 0
        self.reasons = {}
        if complete:
            for line in text[complete.end() :].splitlines()[1:]:
                if not line.startswith("  "):
                    break
                reason = re.match(r"  ([a-z][a-z-]*): ([\d,]+)", line)  # what a reason means may go on below it
                if reason:
                    self.reasons[reason[1]] = number(reason[2])
        self.samples = self._count("samples")
        self.lost = self._count("lost")

    def _count(self, what):
        found = re.search(rf"\b{what}:?\s+([\d,]+)", self.text) or re.search(rf"\b([\d,]+) {what}\b", self.text)
        return number(found[1]) if found else None

    @property
    def complete_share(self):
        return self.complete / self.total if self.total else 0.0


def number(text):
    return int(text.replace(",", ""))


class Finished:
    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr

    @property
    def summary(self):
        return Summary(self.stderr)

    def notes(self, word):
        """Paragraphs of the summary that hold this word: a line and what is indented far below it."""
        return [note for note in re.split(r"\n(?! {8})", self.stderr) if word in note]

    def lines(self):
        return [line for line in self.stderr.splitlines() if line.strip()]


def write_text(path, text):
    with open(path, "w") as file:
        file.write(text)


class Live(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cprof-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_as_nobody(self, *arguments):
        """cprof without any right, at perf_event_paranoid 2, the level of most distributions."""
        need_root()
        level = "/proc/sys/kernel/perf_event_paranoid"
        with open(level) as file:
            before = file.read()
        self.addCleanup(write_text, level, before)
        write_text(level, "2")
        command = [tool("setpriv"), "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all",
                   "--inh-caps", "-all", CPROF, *arguments]
        return self.run_command(command, env={"PATH": "/usr/bin:/bin", "HOME": self.folder})

    def run_command(self, command, timeout=60, stdin=None, env=None, preexec=None, cwd=None):
        """Runs to its end in a session of its own; all of it is ended when the time is over."""
        process = subprocess.Popen(
            command, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env=env, preexec_fn=preexec, cwd=cwd or self.folder)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, stderr = process.communicate()
            self.fail(f"not done after {timeout} s: {' '.join(command)}\n{stderr.decode(errors='replace')[-2000:]}")
        return Finished(process.returncode, stdout, stderr.decode("utf-8", "replace"))

    def cprof(self, *arguments, expect=0, **options):
        done = self.run_command([CPROF, *arguments], **options)
        if expect is not None and done.status != expect:
            self.fail(f"status {done.status} instead of {expect}: cprof {' '.join(arguments)}\n{done.stderr[-3000:]}")
        return done

    def record(self, command, *options, outputs=("out.folded",), expect=0, **run_options):
        """Records a command; outputs are names in the test's folder."""
        to = [argument for name in outputs for argument in ("-o", self.path(name))]
        return self.cprof("record", *options, *to, "--", *command, expect=expect, **run_options)

    def folded(self, name="out.folded"):
        with open(self.path(name), encoding="utf-8") as file:
            return Folded(file.read())

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def assert_share(self, actual, expected, what, tolerance=0.03):
        self.assertLessEqual(abs(actual - expected), tolerance,
                             f"{what}: {100 * actual:.1f} % instead of {100 * expected:.1f} % +- {100 * tolerance:.0f}")

    def assert_complete(self, summary, least=0.999):
        self.assertTrue(summary.has_stacks, f"the summary has no 'stacks complete' line:\n{summary.text}")
        self.assertGreater(summary.total, 0, summary.text)
        self.assertEqual(sum(summary.reasons.values()), summary.total - summary.complete,
                         f"not every incomplete stack has its reason:\n{summary.text}")
        self.assertGreaterEqual(summary.complete_share, least, summary.text)

    def assert_one_line(self, done):
        self.assertEqual(len(done.lines()), 1, f"not one plain line:\n{done.stderr}")

    def assert_no_leftovers(self, *expected):
        """Nothing but the expected files in the test's folder: no temporary, no part."""
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(expected))


def without(names):
    """The test classes of the program that are not named, so that two runs share them and none is forgotten."""
    classes = {name for name, value in vars(sys.modules["__main__"]).items()
               if isinstance(value, type) and any(method.startswith("test") for method in dir(value))}
    unknown = set(names) - classes
    if unknown:
        sys.exit(f"no such test class: {', '.join(sorted(unknown))}")
    return sorted(classes - set(names))


def main():
    """Like unittest.main, but 77 when nothing ran, with the reason on one line. [CLASS...] or --except CLASS..."""
    if "CPROF" not in os.environ or "CPROF_PROGRAMS" not in os.environ:
        sys.exit("set CPROF to the program and CPROF_PROGRAMS to the folder of the test programs, or run by ctest")
    arguments = without(sys.argv[2:]) if sys.argv[1:2] == ["--except"] else sys.argv[1:]
    program_run = unittest.main(module="__main__", argv=[sys.argv[0], *arguments], exit=False, verbosity=2)
    result = program_run.result
    skipped = sorted({reason for _, reason in result.skipped})
    if skipped:
        print("skipped:", "; ".join(skipped))
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) >= result.testsRun else 0)
