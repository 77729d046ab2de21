"""Recordings of another machine: --root and --debug-dir give names in every verb that reads profiles.

The recording is a text as `perf script` prints it, of addresses inside a program that lies in a copy of its root.
"""
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from urllib.parse import urlsplit

# covers: sql --root --debug-dir --debuginfod
# covers: diff --root --debug-dir --debuginfod
# covers: annotate --root --debug-dir --debuginfod
# covers: view --root --debug-dir --debuginfod --input-format --port --no-browser --source-path --demangle --no-inline --kallsyms

CPROF = os.environ["CPROF"]
SOURCE = "__attribute__((noinline)) int burn_here(int n) { for (volatile int i = 0; i < n; i++) n ^= i; return n; }\nint main(int c, char**) { return burn_here(c); }\n"


@unittest.skipUnless(shutil.which("g++") and shutil.which("objcopy"), "needs g++")
class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.root = Path(cls.folder.name, "root")
        cls.debug = Path(cls.folder.name, "debug")
        program = root / "opt/app/burner"
        program.parent.mkdir(parents=True)
        cls.source = Path(cls.folder.name, "burner.cc")
        cls.source.write_text(SOURCE)
        subprocess.run(["g++", "-O1", "-g", "-no-pie", "-Wl,--build-id", "-o", program, cls.source], check=True)
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        address = int(re.search(r"^([0-9a-f]+) T _Z9burn_herei$", symbols, re.MULTILINE).group(1), 16) + 1
        # Stripped, with the debug file in a directory of build-ids: --root alone then gives no names of functions.
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        debug_file = cls.debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        debug_file.parent.mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug_file], check=True)
        subprocess.run(["strip", program], check=True)
        event = f"burner 7 [000] 1.{{:06d}}: 1 cpu-clock:\n\t{address:x} [unknown] (/opt/app/burner)\n\n"
        cls.profile = Path(cls.folder.name, "recording.txt")
        cls.profile.write_text("".join(event.format(i) for i in range(10)))
        cls.options = ["--root", str(root), "--debug-dir", str(cls.debug)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def cprof(self, *arguments, expect=0):
        done = subprocess.run([CPROF, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout

    def test_without_them_there_are_no_names(self):
        self.assertNotIn("burn_here", self.cprof("report", self.profile))

    def test_sql(self):
        rows = json.loads(self.cprof("sql", *self.options, "--format", "json", "-q", "SELECT DISTINCT name FROM stack_profile_frame", self.profile))
        self.assertIn("burn_here(int)", [row["name"] for row in rows])

    def test_diff(self):
        self.assertIn("burn_here", self.cprof("diff", *self.options, "--rows", "50", self.profile, self.profile))

    def test_annotate(self):
        self.assertIn("volatile int i", self.cprof("annotate", *self.options, self.profile, "burn_here"))

    def test_a_directory_that_is_none(self):
        for verb, inputs in (("sql", [self.profile, "-q", "SELECT 1"]), ("diff", [self.profile, self.profile]),
                             ("annotate", [self.profile, "burn_here"]), ("view", ["--no-browser", self.profile])):
            self.cprof(verb, "--root", "/nonexistent/root", *inputs, expect=1)
            self.cprof(verb, "--debug-dir", "/nonexistent/debug", *inputs, expect=1)

    def test_a_server_that_is_none(self):
        """Said once, and the rest goes on without it."""
        server = "--debuginfod=http://127.0.0.1:9"
        self.cprof("sql", server, "-q", "SELECT 1", self.profile)
        self.cprof("diff", server, self.profile, self.profile)
        self.cprof("annotate", server, *self.options, self.profile, "burn_here")

    def view(self, *options):
        process = subprocess.Popen([CPROF, "view", "--no-browser", *options, str(self.profile)], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return urlsplit(process.stdout.readline().strip())

    def ask(self, address, path, body=None):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        connection.request("POST" if body else "GET", address.path + path, body, {"Origin": f"http://127.0.0.1:{address.port}"} if body else {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def test_view(self):
        address = self.view(*self.options, "--debuginfod=http://127.0.0.1:9", "--input-format", "text", "--demangle", "short", "--no-inline",
                            "--kallsyms", "/dev/null")
        status, data = self.ask(address, "api/sql", json.dumps({"f": 0, "sql": "SELECT name FROM stack_profile_frame WHERE name LIKE 'burn%'"}))
        self.assertEqual((status, json.loads(data)["rows"]), (200, [["burn_here"]]), "--demangle short: no arguments")

    def test_view_source(self):
        moved = Path(self.folder.name, "moved")
        moved.mkdir(exist_ok=True)
        shutil.copy(self.source, moved / "burner.cc")
        address = self.view(*self.options, "--source-path", f"{self.folder.name}/nowhere:{moved}")
        texts = [self.ask(address, f"api/source?f=0&func={i}") for i in range(3)]
        found = [json.loads(data) for status, data in texts if status == 200]
        self.assertTrue(any(source["file"] == str(moved / "burner.cc") for source in found), texts)

    def test_view_port(self):
        address = self.view()
        taken = subprocess.run([CPROF, "view", "--no-browser", "--port", str(address.port), str(self.profile)], capture_output=True, text=True, timeout=60)
        self.assertEqual(taken.returncode, 1)
        self.assertIn(f"port {address.port}", taken.stderr)


if __name__ == "__main__":
    unittest.main()
