"""cprof view: the server's answers over real sockets, and what it refuses."""
# verifies: D6
# covers: convert --with-source --source-path
# covers: view --no-recent
import base64
import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from urllib.parse import urlsplit

CPROF = os.environ["CPROF"]


class View:
    """A running `cprof view` of a folded file."""

    def __init__(self, folder, *arguments):
        self.file = Path(folder, "app.folded")
        self.file.write_text("app;main;work 75\napp;main;wait 25\n")
        self.process = subprocess.Popen([CPROF, "view", "--no-browser", *arguments, str(self.file)], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()
        parts = urlsplit(self.address)
        self.host, self.port, self.root = parts.hostname, parts.port, parts.path

    def ask(self, path, method="GET", body=None, headers=None, root=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        every = {"Origin": f"http://127.0.0.1:{self.port}"} if method == "POST" else {}
        connection.request(method, (self.root if root is None else root) + path, body, {**every, **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, answer.headers

    def close(self):
        self.process.terminate()
        return self.process.wait(timeout=30)


class ViewTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.view = View(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.status = cls.view.close()
        cls.view.process.stdout.close()
        cls.folder.cleanup()

    def sql(self, text, status=200):
        got, data, _ = self.view.ask("api/sql", "POST", json.dumps({"f": 0, "sql": text}))
        self.assertEqual(got, status, data)
        return json.loads(data) if status == 200 else data.decode()

    def test_the_address_has_a_token_and_is_loopback(self):
        self.assertRegex(self.view.address, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")

    def test_the_page_and_its_policy(self):
        status, data, headers = self.view.ask("")
        self.assertEqual(status, 200)
        nonce = re.search(rb'<script type="module" nonce="([0-9a-f]+)"', data).group(1).decode()
        policy = headers["Content-Security-Policy"]
        self.assertIn(f"script-src 'nonce-{nonce}'", policy)
        self.assertIn("default-src 'none'", policy)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_the_profile(self):
        status, data, _ = self.view.ask("api/files")
        self.assertEqual((status, json.loads(data)[0]), (200, {"name": str(self.view.file)}))
        status, data, _ = self.view.ask("api/profile?f=0")
        self.assertEqual(status, 200)
        self.assertEqual(gzip.decompress(data)[:4], b"CPV1")

    def test_sql(self):
        answer = self.sql("SELECT sum(value) AS total FROM aggregate_sample")
        self.assertEqual((answer["columns"], answer["rows"], answer["cut"]), (["total"], [[100]], False))
        self.assertIn("no such table", self.sql("SELECT * FROM nowhere", 422))

    def test_sql_cannot_write_or_reach_files(self):
        for text in ("INSERT INTO stack_profile_frame(name) VALUES (1)", "DELETE FROM stack_profile_frame", "ATTACH '/tmp/x.db' AS x", "PRAGMA writable_schema = 1",
                     "SELECT load_extension('x')"):
            self.sql(text, 422)

    def test_an_upload_is_read_like_any_input(self):
        status, data, _ = self.view.ask("api/open?name=other.folded", "POST", b"x;y 7\n")
        self.assertEqual(status, 200, data)
        index = json.loads(data)["index"]
        status, data, _ = self.view.ask(f"api/export?f={index}&format=folded")
        self.assertEqual((status, data.decode()), (200, "x;y 7\n"))

    def test_an_upload_that_is_nothing_is_said_by_its_name(self):
        status, data, _ = self.view.ask("api/open?name=bad.bin", "POST", b"\x00\x01nonsense" * 10)
        self.assertEqual(status, 422)
        self.assertTrue(data.decode().startswith("bad.bin: "), data)

    def test_sql_of_all_files_tells_them_apart(self):
        status, data, _ = self.view.ask("api/open?name=second.folded", "POST", b"x;y 7\n")
        self.assertEqual(status, 200, data)
        query = "SELECT scope, sum(value) FROM aggregate_sample s JOIN aggregate_profile p ON p.id = s.aggregate_profile_id GROUP BY 1"
        status, data, _ = self.view.ask("api/sql", "POST", json.dumps({"f": "all", "sql": query}))
        self.assertEqual(status, 200, data)
        sums = dict(json.loads(data)["rows"])
        self.assertEqual((sums[str(self.view.file)], sums["second.folded"]), (100, 7))
        self.assertEqual(self.view.ask("api/tables?f=all")[0], 200)
        self.assertEqual(self.view.ask("api/sql", "POST", json.dumps({"f": "none", "sql": query}))[0], 400)

    def test_export(self):
        status, data, headers = self.view.ask("api/export?f=0&format=pb.gz")
        self.assertEqual(status, 200)
        self.assertIn('filename="app.pb.gz"', headers["Content-Disposition"])
        self.assertTrue(gzip.decompress(data))
        self.assertEqual(self.view.ask("api/export?f=0&format=nothing")[0], 404)

    def test_strangers_are_refused(self):
        for what, (path, options, status) in {
            "another token": ("api/files", {"root": "/" + "0" * 32 + "/"}, 404),
            "no token": ("api/files", {"root": "/"}, 404),
            "another Host": ("api/files", {"headers": {"Host": "evil.example"}}, 403),
            "another Origin": ("api/sql", {"method": "POST", "body": "{}", "headers": {"Origin": "http://evil.example"}}, 403),
            "another site": ("api/files", {"headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
            "a path out of here": ("../../etc/passwd", {}, 404),
            "a function that is none": ("api/source?f=0&func=9999", {}, 404),
            "a file that is none": ("api/profile?f=7", {}, 404),
            "another method": ("api/files", {"method": "DELETE"}, 405),
        }.items():
            self.assertEqual(self.view.ask(path, **options)[0], status, what)

    def raw(self, text):
        with socket.create_connection((self.view.host, self.view.port), timeout=60) as connection:
            connection.sendall(text.encode())
            return connection.recv(65536).decode(errors="replace")

    def head(self, extra, token=None):
        root = self.view.root if token is None else f"/{token}/"
        return (f"POST {root}api/open?name=x HTTP/1.1\r\nHost: 127.0.0.1:{self.view.port}\r\n"
                f"Origin: http://127.0.0.1:{self.view.port}\r\n{extra}\r\n")

    def test_a_body_of_10_gb_is_refused_unread(self):
        self.assertIn(" 413 ", self.raw(self.head("Content-Length: 10737418240\r\n")).split("\r\n")[0])
        self.assertIn(" 404 ", self.raw(self.head("Content-Length: 1000000\r\n", "0" * 32)).split("\r\n")[0], "a stranger's body is not read")

    def test_chunks_of_10_gb_are_refused_too(self):
        answer = self.raw(self.head("Transfer-Encoding: chunked\r\n") + "280000000\r\n" + "x" * 1000)
        self.assertIn(" 413 ", answer.split("\r\n")[0])

    def test_source_of_what_debug_info_does_not_name(self):
        for function in ("../../etc/passwd", "/etc/passwd", "-1", "99"):
            self.assertEqual(self.view.ask(f"api/source?f=0&func={function}")[0], 404)
        status, data, _ = self.view.ask("api/source?f=0&func=0")
        self.assertEqual(status, 200)
        self.assertIn("does not say where", json.loads(data)["note"])

    def start_endless_query(self):
        body = json.dumps({"f": 0, "sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"})
        connection = socket.create_connection((self.view.host, self.view.port), timeout=60)
        connection.sendall((f"POST {self.view.root}api/sql HTTP/1.1\r\nHost: 127.0.0.1:{self.view.port}\r\nOrigin: http://127.0.0.1:{self.view.port}\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        return connection

    def test_others_are_served_while_a_query_runs(self):
        with self.start_endless_query():
            for path in ("api/files", "api/profile?f=0", "api/export?f=0&format=folded", ""):
                self.assertEqual(self.view.ask(path)[0], 200, path)

    def test_a_query_that_nobody_waits_for_ends(self):
        start = time.monotonic()
        self.start_endless_query().close()
        self.assertEqual(self.sql("SELECT 42 AS answer")["rows"], [[42]])
        self.assertLess(time.monotonic() - start, 20, "before its limit of 30 s")

    def test_tables_and_their_columns(self):
        status, data, _ = self.view.ask("api/tables?f=0")
        self.assertEqual(status, 200)
        tables = {table["name"]: [name for name, _ in table["columns"]] for table in json.loads(data)}
        self.assertIn("value", tables["aggregate_sample"])
        self.assertIn("callsite_id", tables["__intrinsic_aggregate_sample"])

    def test_the_sample_is_a_profile_like_any(self):
        status, data, _ = self.view.ask("api/sample", "POST", b"")
        self.assertEqual(status, 200, data)
        index = json.loads(data)["index"]
        self.assertEqual(gzip.decompress(self.view.ask(f"api/profile?f={index}")[1])[:4], b"CPV1")
        status, data, _ = self.view.ask("api/sql", "POST", json.dumps({"f": index, "sql": "SELECT count(*) FROM perf_sample"}))
        self.assertGreater(json.loads(data)["rows"][0][0], 5000)

    def test_a_small_request_stays_small(self):
        status, _, _ = self.view.ask("api/sql", "POST", b" " * (2 << 20))
        self.assertEqual(status, 413)

    def test_garbage_ends_the_connection_only(self):
        self.raw("\x16\x03\x01 what\r\n\r\n")
        self.raw("GET " + "x" * 70000)
        self.assertEqual(self.view.ask("api/files")[0], 200)


class SourceInAPage(unittest.TestCase):
    def payload(self, folder, *options):
        page = Path(folder, "page.html")
        subprocess.run([CPROF, "convert", str(Path(folder, "in.callgrind.out")), "-o", str(page), *options], check=True)
        data = re.search(r'class="cprof-data"[^>]*>([^<]*)<', page.read_text()).group(1)
        return gzip.decompress(base64.b64decode(data))

    def test_only_when_asked_for_and_only_what_debug_info_names(self):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "src", "hot.c")
            source.parent.mkdir()
            source.write_text("".join(f"text of line {i}\n" for i in range(1, 101)))
            Path(folder, "in.callgrind.out").write_text("events: Ir\n\nfl=/build/src/hot.c\nfn=hot\n50 900\n52 80\n")
            self.assertNotIn(b"text of line", self.payload(folder))
            self.assertNotIn(b"text of line", self.payload(folder, "--with-source"), "it is not where it was built")
            found = self.payload(folder, "--with-source", "--source-path", folder)
            for line in (38, 50, 64):
                self.assertIn(f"text of line {line}\n".encode(), found)
            for line in (37, 65, 100):
                self.assertNotIn(f"text of line {line}\n".encode(), found, "a dozen lines around what costs")

    def test_it_is_for_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "in.folded").write_text("a;b 1\n")
            done = subprocess.run([CPROF, "convert", "--with-source", str(Path(folder, "in.folded")), "-o", str(Path(folder, "x.pb.gz"))], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


class RecentFilesTest(unittest.TestCase):
    """What the page offers before a file is open, and what is kept for it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = Path(self.folder.name, "state")
        os.environ["XDG_STATE_HOME"], before = str(self.state), os.environ.get("XDG_STATE_HOME")
        self.addCleanup(lambda: os.environ.update(XDG_STATE_HOME=before) if before else os.environ.pop("XDG_STATE_HOME"))

    def view(self, *arguments):
        view = View(self.folder.name, *arguments)
        self.addCleanup(view.process.stdout.close)
        self.addCleanup(view.close)
        return view

    def recent(self, view):
        status, data, _ = view.ask("api/recent")
        self.assertEqual(status, 200)
        return [entry["path"] for entry in json.loads(data)]

    def test_files_are_remembered_opened_again_and_forgotten(self):
        first = self.view()
        Path(self.folder.name, "other.folded").write_text("x;y 7\n")
        self.assertEqual(self.recent(first), [str(first.file)])
        second = self.view(str(Path(self.folder.name, "other.folded")))
        self.assertEqual(self.recent(second), [str(second.file), str(Path(self.folder.name, "other.folded"))])
        status, data, _ = second.ask("api/recent?path=" + self.recent(second)[1], "POST", b"")
        self.assertEqual(status, 200, data)
        self.assertEqual(second.ask(f"api/export?f={json.loads(data)['index']}&format=folded")[1], b"x;y 7\n")
        self.assertEqual(self.recent(second)[0], str(Path(self.folder.name, "other.folded")), "what was opened last is first")
        self.assertEqual(second.ask("api/forget", "POST", b"")[0], 200)
        self.assertEqual((self.recent(first), list(self.state.rglob("recent*"))), ([], []))

    def test_only_what_was_open_before_is_opened_by_its_path(self):
        view = self.view()
        Path(self.folder.name, "secret.folded").write_text("x 1\n")
        for path in ("/etc/passwd", str(Path(self.folder.name, "secret.folded")), "app.folded", ""):
            self.assertEqual(view.ask(f"api/recent?path={path}", "POST", b"")[0], 404, path)
        for path in (f"api/recent?path={view.file}", "api/forget"):
            self.assertEqual(view.ask(path, "POST", b"", {"Origin": "http://evil.example"})[0], 403)

    def test_uploads_are_not_kept_and_no_recent_keeps_and_tells_nothing(self):
        view = self.view()
        view.ask("api/open?name=dropped.folded", "POST", b"x 1\n")
        self.assertEqual(self.recent(view), [str(view.file)])
        view.ask("api/forget", "POST", b"")
        self.view()
        before = (self.state / "cprof" / "recent_files").read_bytes()
        private = self.view("--no-recent")
        self.assertEqual(self.recent(private), [])
        self.assertEqual((self.state / "cprof" / "recent_files").read_bytes(), before)


class EndTest(unittest.TestCase):
    def test_a_signal_ends_it_while_a_query_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            view = View(folder)
            body = json.dumps({"f": 0, "sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"})
            connection = http.client.HTTPConnection(view.host, view.port, timeout=60)
            connection.request("POST", view.root + "api/sql", body, {"Origin": f"http://127.0.0.1:{view.port}"})
            time.sleep(0.3)
            start = time.monotonic()
            self.assertEqual(view.close(), 0)
            self.assertLess(time.monotonic() - start, 20)
            connection.close()
            view.process.stdout.close()

    def test_a_signal_ends_it_well(self):
        with tempfile.TemporaryDirectory() as folder:
            view = View(folder)
            self.assertEqual(view.ask("api/files")[0], 200)
            self.assertEqual(view.close(), 0)
            view.process.stdout.close()

    def test_a_forced_format_is_not_that_of_uploads(self):
        with tempfile.TemporaryDirectory() as folder:
            view = View(folder, "--input-format", "folded")
            profile = subprocess.run([CPROF, "convert", str(view.file), "--format", "pprof", "-o", "-"], capture_output=True, check=True).stdout
            status, data, _ = view.ask("api/open?name=x.pb.gz", "POST", profile)
            self.assertEqual(status, 200, data)
            view.close()
            view.process.stdout.close()

    def test_the_browser_is_given_the_address(self):
        with tempfile.TemporaryDirectory() as folder:
            seen = Path(folder, "seen")
            browser = Path(folder, "browser")
            browser.write_text(f"#!/bin/sh\necho \"$1\" > {seen}.new; mv {seen}.new {seen}\n")
            browser.chmod(0o755)
            (file := Path(folder, "app.folded")).write_text("a;b 1\n")
            process = subprocess.Popen([CPROF, "view", str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env={**os.environ, "BROWSER": str(browser)})
            address = process.stdout.readline()
            deadline = time.monotonic() + 30
            while not seen.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.terminate()
            process.stdout.close()
            self.assertEqual(process.wait(timeout=30), 0)
            self.assertEqual(seen.read_text(), address)

    def test_a_file_that_is_not_there(self):
        done = subprocess.run([CPROF, "view", "--no-browser", "/nonexistent/x.folded"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
