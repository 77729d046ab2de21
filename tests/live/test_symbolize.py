"""cprof symbolize: a recording without names gets the same ones afterwards as it would have got at once, from local files, another
root, debug directories and debuginfod servers: the real one, and servers that hang, drip, lie or send too much.

Requires: perf events; objcopy (binutils); debuginfod and openssl for the tests that name them.
"""

# verifies: CL10, CL11
# covers: symbolize --input-format --quiet --output --format --weight --metric --by --folded-style --demangle --no-inline
# covers: symbolize --debug-dir --debuginfod --kallsyms --root
# covers: convert --debug-dir --debuginfod --root
# covers: report --debug-dir --debuginfod --root
# covers: record --debug-dir --debuginfod

import http.server
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from folded import is_named
from pprof import Profile


def build_id(path):
    text = subprocess.run([harness.tool("readelf"), "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", text)[1]


class Server:
    """A debuginfod of our own on loopback; answer(handler) decides. Counts what it was asked for."""

    def __init__(self, answer, certificate=None):
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                answer(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            self.url = f"https://localhost:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Symbolize(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()
        self.environment = {**os.environ, "DEBUGINFOD_CACHE_PATH": self.path("cache"), "DEBUGINFOD_URLS": ""}

    def run_symbolize(self, *arguments, verb="symbolize", **options):
        return self.cprof(verb, *arguments, env={**self.environment, **options.pop("more", {})}, **options)

    def server(self, answer, **options):
        server = Server(answer, **options)
        self.addCleanup(server.close)
        return server

    def split_program(self, name="nofp_gcc"):
        """A stripped copy of a program and its debug file, apart."""
        program, debug = self.path("prog"), self.path("prog.debug")
        shutil.copy(harness.program(name), program)
        self.run_command([harness.tool("objcopy"), "--only-keep-debug", program, debug])
        self.run_command([harness.tool("objcopy"), "--strip-all", program])
        return program, debug

    def record_without_names(self, program, *outputs, options=()):
        self.record([program, "1"], "--no-symbolize", *options, outputs=outputs)

    def user_part(self, name):
        """The folded stacks of a file without kernel frames, summed."""
        sums = {}
        for frames, count in self.folded(name).stacks:
            user = tuple(frame for frame in frames if not frame.endswith("_[k]"))
            sums[user] = sums.get(user, 0) + count
        return sums


class Local(Symbolize):
    def test_every_kind_of_recording_gets_the_names_of_a_run_with_names(self):
        """One run, so the stacks are the same: with names at once by its raw events, and afterwards from each other form."""
        program = harness.program("nofp_gcc")
        self.record_without_names(program, "raw.pb.gz", "raw.txt", options=("--save-raw", self.path("raw.data")))
        self.cprof("convert", self.path("raw.data"), "-o", self.path("expected.folded"))
        expected = self.user_part("expected.folded")
        self.assertGreater(sum(expected.values()), 50)
        self.assertTrue(any("recurse" in frame for stack in expected for frame in stack))
        for name in ("raw.pb.gz", "raw.data", "raw.txt"):
            self.run_symbolize(self.path(name), "-o", self.path("named.folded"))
            named = self.user_part("named.folded")
            if name == "raw.txt":  # a text does not say which kernel's vdso it was
                self.assertEqual({stack: count for stack, count in named.items() if "vdso" not in stack[-1]},
                                 {stack: count for stack, count in expected.items() if "vdso" not in stack[-1]})
            else:
                self.assertEqual(named, expected, name)

    def test_kernel_frames_of_this_boot(self):
        harness.need_root()
        self.record([harness.program("faults"), "30000"], "--no-symbolize", outputs=("raw.pb.gz",))
        self.run_symbolize(self.path("raw.pb.gz"), "-o", self.path("named.folded"))
        kernel = {frame for frames, _ in self.folded("named.folded").stacks for frame in frames if frame.endswith("_[k]")}
        self.assertGreater(len(kernel), 5)
        self.assertTrue(all(is_named(frame) for frame in kernel), kernel)

    def test_lines_and_inlined_functions_are_in_the_pprof(self):
        self.record_without_names(harness.program("nofp_gcc"), "raw.pb.gz")
        self.run_symbolize(self.path("raw.pb.gz"), "-o", self.path("named.pb.gz"))
        profile = Profile(self.read("named.pb.gz"))
        self.assertEqual(profile.broken_rules(), [])
        source = {profile.text(function.get(4, 0)) for function in profile.functions.values()}
        self.assertTrue(any(path.endswith("nofp.cc") for path in source), source)
        depths = {len(lines) for _, lines in profile.locations.values()}
        self.assertGreater(max(depths), 1, "inlined functions")
        self.assertTrue(all(line.get(2) for _, lines in profile.locations.values() for line in lines[:-1]), "lines of the calls")
        self.run_symbolize(self.path("raw.pb.gz"), "--no-inline", "--demangle", "none", "-o", self.path("plain.folded"))
        names = {frame for frames, _ in self.folded("plain.folded").stacks for frame in frames}
        self.assertIn("_ZN12_GLOBAL__N_17recurseEj", names)
        self.assertFalse(any("operator()" in name for name in names))

    def test_a_file_without_symbols_stays_as_it_is_and_is_counted(self):
        program, _ = self.split_program()
        self.record_without_names(program, "raw.pb.gz")
        done = self.run_symbolize(self.path("raw.pb.gz"), "-o", self.path("named.folded"))
        # The example is the first that was met, of any file.
        self.assertRegex(done.stderr, r"frames without a name: .*\(\d+, as /\S+\+0x[0-9a-f]+\)")
        frames = {frame for frames, _ in self.folded("named.folded").stacks for frame in frames}
        self.assertTrue(any(frame.startswith("[prog+0x") for frame in frames))
        quiet = self.run_symbolize("--quiet", self.path("raw.pb.gz"), "-o", self.path("named.folded"))
        self.assertEqual(quiet.stderr, "")

    def test_debug_directory_and_root(self):
        program, debug = self.split_program()
        self.record_without_names(program, "raw.pb.gz", options=("--save-raw", self.path("raw.data")))
        ident = build_id(program)
        tree = self.path("debug")
        os.makedirs(f"{tree}/.build-id/{ident[:2]}")
        shutil.copy(debug, f"{tree}/.build-id/{ident[:2]}/{ident[2:]}.debug")
        self.run_symbolize(self.path("raw.pb.gz"), "--debug-dir", tree, "-o", self.path("named.folded"))
        expected = self.user_part("named.folded")
        self.assertTrue(any("recurse(unsigned int)" in frame for stack in expected for frame in stack))
        for verb in ("convert", "symbolize"):
            self.run_symbolize(self.path("raw.data"), "--debug-dir", tree, "-o", self.path("again.folded"), verb=verb)
            self.assertEqual(self.user_part("again.folded"), expected, verb)
        # The program is gone from here and lies, whole, below a copy of the recording's root.
        root = self.path("root") + os.path.dirname(program)
        os.makedirs(root)
        shutil.copy(harness.program("nofp_gcc"), f"{root}/prog")
        os.unlink(program)
        self.run_symbolize(self.path("raw.pb.gz"), "--root", self.path("root"), "-o", self.path("rooted.folded"))
        self.assertEqual(self.user_part("rooted.folded"), expected)
        # Another build below that root is not used.
        shutil.copy(harness.program("shares"), f"{root}/prog")
        done = self.run_symbolize(self.path("raw.pb.gz"), "--root", self.path("root"), "-o", self.path("wrong.folded"))
        self.assertIn("could not be", done.stderr)
        self.assertFalse(any("recurse" in frame or "share_" in frame for stack in self.user_part("wrong.folded") for frame in stack))

    def test_wrong_usage(self):
        self.assertEqual(self.run_symbolize("x.pb.gz", expect=2).lines()[0].count("-o FILE"), 1)
        for arguments in (["--debuginfod"], ["--debuginfod=ftp://x"], ["--root", self.path("none")], ["--debug-dir", self.path("none")]):
            with open(self.path("x.folded"), "w") as file:
                file.write("a;b 1\n")
            done = self.run_symbolize(self.path("x.folded"), *arguments, "-o", self.path("y.folded"), expect=1)
            self.assert_one_line(done)


class Debuginfod(Symbolize):
    def test_a_real_server(self):
        """Names and lines equal to those of a local run; what is fetched lies in the common cache and is not fetched again."""
        program, debug = self.split_program()
        self.record_without_names(program, "raw.pb.gz", options=("--save-raw", self.path("raw.data")))
        os.makedirs(self.path("served"))
        shutil.move(debug, self.path("served/prog.debug"))
        shutil.copy(program, self.path("served/prog"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [harness.tool("debuginfod"), "-F", "-p", str(port), "-d", ":memory:", "-t0", "-g0", self.path("served")]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "DEBUGINFOD_URLS": ""}, start_new_session=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        url = f"http://127.0.0.1:{port}"
        self.wait_for(f"{url}/buildid/{build_id(program)}/debuginfo")
        self.run_symbolize(self.path("raw.pb.gz"), f"--debuginfod={url}", "-o", self.path("named.folded"), "-o", self.path("named.pb.gz"))
        tree = self.path(f"debug/.build-id/{build_id(program)[:2]}")
        os.makedirs(tree)
        shutil.copy(self.path("served/prog.debug"), f"{tree}/{build_id(program)[2:]}.debug")
        local = ("--debug-dir", self.path("debug"))
        self.run_symbolize(self.path("raw.pb.gz"), *local, "-o", self.path("local.folded"), "-o", self.path("local.pb.gz"))
        self.assertEqual(self.folded("named.folded").stacks, self.folded("local.folded").stacks)
        self.assertEqual(self.read("named.pb.gz"), self.read("local.pb.gz"), "lines too")
        self.assertTrue(os.path.getsize(self.path(f"cache/{build_id(program)}/debuginfo")) > 0)
        server.kill()
        server.wait()
        self.run_symbolize(self.path("raw.pb.gz"), f"--debuginfod={url}", "-o", self.path("cached.folded"))
        self.assertEqual(self.folded("cached.folded").stacks, self.folded("local.folded").stacks)
        self.run_symbolize(self.path("raw.data"), "--debuginfod", "-o", self.path("raw.folded"), verb="convert", more={"DEBUGINFOD_URLS": url})
        self.assertEqual(self.user_part("raw.folded"), self.user_part("local.folded"))
        told = self.run_symbolize(self.path("raw.data"), f"--debuginfod={url}", "--top", verb="report").stdout.decode()
        self.assertIn("recurse(unsigned int)", told)

    @staticmethod
    def wait_for(url):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                return urllib.request.urlopen(url, timeout=5).read(1)
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"{url} is not served")

    def test_record_asks_when_told_to(self):
        program, debug = self.split_program()
        with open(debug, "rb") as file:
            content = file.read()

        def answer(handler):
            mine = handler.path == f"/buildid/{build_id(program)}/debuginfo"
            handler.send_response(200 if mine else 404)
            handler.end_headers()
            if mine:
                handler.wfile.write(content)

        server = self.server(answer)
        with_names = lambda: any("recurse" in frame for frames, _ in self.folded().stacks for frame in frames)
        self.record([program, "0.4"], env={**self.environment, "DEBUGINFOD_URLS": server.url})
        self.assertEqual(server.asked, [], "the environment alone asks nothing")
        self.assertFalse(with_names())
        self.record([program, "0.4"], f"--debuginfod={server.url}", env=self.environment)
        self.assertTrue(with_names())
        self.assertTrue(all(path.endswith("/debuginfo") for path in server.asked), server.asked)
        self.record([program, "0.4"], f"--debuginfod={server.url}", env=self.environment)
        self.assertTrue(with_names())
        self.assertEqual(len(server.asked), len(set(server.asked)), "found or absent, both are remembered")

    def check_given_up(self, answer, least=0, most=15):
        """DBG-12: such a server costs seconds once, the names come from what is here, and one line says so."""
        program, _ = self.split_program()
        self.record_without_names(program, "raw.pb.gz")
        self.run_symbolize("-q", self.path("raw.pb.gz"), "-o", self.path("local.folded"))
        server = self.server(answer)
        started = time.monotonic()
        done = self.run_symbolize(self.path("raw.pb.gz"), "-q", f"--debuginfod={server.url}", "-o", self.path("named.folded"))
        self.assertLess(time.monotonic() - started, most)
        self.assertEqual(self.folded("named.folded").stacks, self.folded("local.folded").stacks)
        self.assert_one_line(done)
        self.assertIn("given up", done.stderr)
        self.assertEqual(len(server.asked), 1)
        return done

    def test_a_server_that_never_answers(self):
        self.check_given_up(lambda handler: time.sleep(30))

    def test_a_server_that_drips(self):
        def answer(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            for _ in range(60):
                time.sleep(0.5)
                try:
                    handler.wfile.write(b"x")
                except OSError:
                    return

        self.check_given_up(answer)

    def test_a_server_that_is_broken(self):
        def answer(handler):
            handler.send_response(500)
            handler.end_headers()

        self.check_given_up(answer, most=10)

    def test_nobody_there(self):
        program, _ = self.split_program()
        self.record_without_names(program, "raw.pb.gz")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        done = self.run_symbolize(self.path("raw.pb.gz"), "-q", f"--debuginfod={url}", "-o", self.path("named.folded"))
        self.assert_one_line(done)
        self.assertIn("given up", done.stderr)

    def test_answers_that_are_refused(self):
        """Another build's file, no ELF file, a size beyond all limits, an endless redirection, a body that breaks off."""
        program, _ = self.split_program()
        self.record_without_names(program, "raw.pb.gz")
        with open(harness.program("shares"), "rb") as file:
            other = file.read()

        def sends(body, length=None, status=200, **headers):
            def answer(handler):
                handler.send_response(status)
                handler.send_header("Content-Length", str(length if length is not None else len(body)))
                for name, value in headers.items():
                    handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(body)

            return answer

        for answer, word in ((sends(other), "build-id"), (sends(b"<html>sign in</html>" * 100), "ELF"),
                             (sends(b"x", length=10**15), "larger than"), (sends(b"", status=302, Location="/again"), "redirected"),
                             (sends(b"\x7fELF" * 100, length=100000), "download")):
            shutil.rmtree(self.path("cache"), ignore_errors=True)
            server = self.server(answer)
            done = self.run_symbolize(self.path("raw.pb.gz"), "-q", f"--debuginfod={server.url}", "-o", self.path("named.folded"))
            self.assertIn(word, done.stderr)
            frames = {frame for frames, _ in self.folded("named.folded").stacks for frame in frames}
            self.assertTrue(any(frame.startswith("[prog+0x") for frame in frames), word)
            left = [name for _, _, names in os.walk(self.path("cache")) for name in names]
            self.assertEqual(left, [], word)

    def test_https_with_a_certificate_that_is_trusted_and_one_that_is_not(self):
        program, debug = self.split_program()
        self.record_without_names(program, "raw.pb.gz")
        with open(debug, "rb") as file:
            content = file.read()

        def answer(handler):
            mine = handler.path == f"/buildid/{build_id(program)}/debuginfo"
            handler.send_response(200 if mine else 404)
            handler.send_header("Content-Length", str(len(content) if mine else 0))
            handler.end_headers()
            if mine:
                handler.wfile.write(content)

        key, certificate = self.path("key.pem"), self.path("certificate.pem")
        self.run_command([harness.tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out",
                          certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        server = self.server(answer, certificate=(certificate, key))
        refused = self.run_symbolize(self.path("raw.pb.gz"), "-q", f"--debuginfod={server.url}", "-o", self.path("none.folded"))
        self.assertIn("given up", refused.stderr)
        self.assertEqual(server.asked, [])
        self.run_symbolize(self.path("raw.pb.gz"), "-q", f"--debuginfod={server.url}", "-o", self.path("named.folded"),
                           more={"SSL_CERT_FILE": certificate})
        self.assertTrue(any("recurse" in frame for frames, _ in self.folded("named.folded").stacks for frame in frames))

    def test_a_program_that_is_gone_comes_from_the_server(self):
        program, debug = self.split_program()
        self.record_without_names(program, "raw.pb.gz", options=("--save-raw", self.path("raw.data")))
        files = {}
        for kind, path in (("debuginfo", debug), ("executable", program)):
            with open(path, "rb") as file:
                files[f"/buildid/{build_id(program)}/{kind}"] = file.read()
        ident = build_id(program)
        os.unlink(program)

        def answer(handler):
            content = files.get(handler.path)
            handler.send_response(200 if content else 404)
            handler.end_headers()
            if content:
                handler.wfile.write(content)

        server = self.server(answer)
        for name in ("raw.pb.gz", "raw.data"):
            self.run_symbolize(self.path(name), "-q", f"--debuginfod={server.url}", "-o", self.path("named.folded"))
            frames = {frame for frames, _ in self.folded("named.folded").stacks for frame in frames}
            self.assertTrue(any("recurse(unsigned int)" in frame for frame in frames), (name, ident))
            self.assertTrue(any(frames[1] == "_start" and len(frames) > 5 for frames, _ in self.folded("named.folded").stacks), name)
        # Without the program its debug file alone still tells where a whole mapping lay.
        del files[f"/buildid/{ident}/executable"]
        shutil.rmtree(self.path("cache"))
        self.run_symbolize(self.path("raw.pb.gz"), "-q", f"--debuginfod={server.url}", "-o", self.path("named.folded"))
        self.assertTrue(any("recurse" in frame for frames, _ in self.folded("named.folded").stacks for frame in frames))


if __name__ == "__main__":
    harness.main()
