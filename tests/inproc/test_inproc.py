#!/usr/bin/env python3
"""libcprof inside programs: what they record is read back with cprof and compared with what they did.

Which promises: see the comments at the cases. Run by ctest as: test_inproc.py CASE. Shares and counts only, never absolute speed.
"""
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live" / "lib"))
from folded import Folded  # noqa: E402

PROGRAM = os.environ["CPROF_PROGRAM"]
CASES = os.environ["CPROF_CASES"]
LIBRARY = os.environ["LIBCPROF"]
PLAIN = os.environ["CPROF_PLAIN"]
PROGRAMS = os.environ["CPROF_PROGRAMS"]
INCLUDE = os.environ["CPROF_INCLUDE"]
SKIPPED = 77


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def run(*command, timeout=100, status=0, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=timeout,
                          stdin=subprocess.DEVNULL, **options)
    expect(done.returncode == status, f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr.strip()}")
    return done


def case(name, *arguments, **options):
    return run(CASES, name, *arguments, **options).stdout


def sql(path, query):
    text = run(PROGRAM, "sql", path, "--format", "json", "-q", query).stdout
    return json.loads(text) if text.strip() else []


def preload(options, **more):
    return {**os.environ, "LD_PRELOAD": LIBRARY, "CPROF": options, **more}


def check_shares(folded, names, wanted, what, tolerance=0.06):
    got = [sum(count for frames, count in folded.stacks if any(name in frame for frame in frames)) for name in names]
    total = sum(got)
    expect(total > 0, f"{what}: none of {names} was sampled")
    for name, count, want in zip(names, got, wanted):
        expect(abs(count / total - want) < tolerance, f"{what}: {name} has {count / total:.3f} of {total}, not {want}")


def has_perf_events():
    return case("rate", 1, 100, 0.1).split()[-1] == "1"


# verifies: B6
def test_symbols(folder):
    exported = {line.split()[0] for line in run("nm", "-D", "--defined-only", "--format=posix", LIBRARY).stdout.splitlines()}
    strangers = sorted(name for name in exported if not name.startswith("cprof_"))
    expect(exported and not strangers, f"exported beside cprof_*: {strangers}")
    needed = re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", LIBRARY).stdout)
    strange = [name for name in needed if not re.match(r"(libc\.so|ld-linux|libm\.so|libpthread\.so|libdl\.so)", name)]
    expect(needed and not strange, f"needed beside libc: {strange}")


# verifies: B3
def test_compiled_out(folder):
    body = "int work(int); int f(int x) { %s int r = work(x) + 1; %s return r; }\n"
    macros = ('CPROF_SCOPE("a"); CPROF_SCOPE("b"); CPROF_FUNCTION(); CPROF_COUNTER("c", x);', 'CPROF_MARK("m"); CPROF_THREAD("t"); CPROF_SCOPE_TRIGGER("s", 5);')
    for compiler, suffix in (("gcc", "c"), ("g++", "cc")):
        objects = []
        for name, text in (("with", "#include <cprof/cprof.h>\n" + body % macros), ("without", body % ("", ""))):
            source, made, code = (folder / f"{name}.{end}" for end in (suffix, "o", "text"))
            source.write_text(text)
            run(compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-DCPROF_ENABLED=0", f"-I{INCLUDE}", "-c", source, "-o", made)
            run("objcopy", "-O", "binary", "-j", ".text", made, code)
            objects.append(code.read_bytes())
        expect(objects[0] and objects[0] == objects[1], f"{compiler}: other code with CPROF_ENABLED=0 than without the macros")
    for standard in ("-std=c11", "-std=gnu17"):
        source = folder / "pedantic.c"
        source.write_text("#include <cprof/cprof.h>\n" + "int work(int x) { return x; }" + body % macros)
        run("gcc", standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}", "-c", source, "-o", folder / "p.o")
    for standard in ("-std=c++11", "-std=c++20"):
        run("g++", standard, "-x", "c++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}", "-c", source, "-o", folder / "p.o")


# verifies: B1
def test_shares(folder):
    case("shares", folder / "shares.folded")
    folded = Folded((folder / "shares.folded").read_text())
    check_shares(folded, ["worker_six", "worker_three", "worker_one"], [0.6, 0.3, 0.1], "in-process")
    in_main = sum(count for frames, count in folded.stacks if "main" in frames)
    expect(abs(in_main / folded.total - 1 / 7) < 0.05, f"{in_main} of {folded.total} samples are the main thread's, one of seven")
    # libc's own functions have no names here: a thread's stack begins in it.
    rooted = sum(count for frames, count in folded.stacks if re.match(r"_start|clone3|\[libc", frames[1]))
    expect(rooted > folded.total * 0.995, f"{rooted} of {folded.total} stacks reach the root")


# verifies: B1r
def test_rates(folder):
    if not has_perf_events():
        print("needs perf events for this process")
        sys.exit(SKIPPED)
    for threads in (1, 2, 8):
        for hz in (1000, 4000):
            words = case("rate", threads, hz, 0.8 / threads).split()
            cpu, samples, lost, weighed = float(words[2]), int(words[3]), int(words[4]), float(words[5])
            expect((samples + lost) / (cpu * hz) > 0.95, f"{threads} threads, {hz} Hz: {samples} samples of {cpu} s")
            expect(lost == 0, f"{threads} threads, {hz} Hz: {lost} lost")
            expect(abs(weighed / cpu - 1) < 0.1, f"{threads} threads, {hz} Hz: {weighed} s weighed of {cpu} s")


# Where perf events are refused.
def test_timers(folder):
    words = case("rate", 2, 1000, 0.5, "events=timer").split()
    cpu, weighed = float(words[2]), float(words[5])
    expect(words[6] == "2", "not sampled by timers")
    expect(abs(weighed / cpu - 1) < 0.1, f"{weighed} s weighed of {cpu} s")
    out = folder / "t.folded"
    # The kernel looks at CPU timers once a tick: each sample stands for several periods, so it takes long to have many.
    run(PLAIN, 5, env=preload(f"out={out},events=timer,freq=1000"))
    folded = Folded(out.read_text())
    check_shares(folded, ["share_sixty", "share_thirty", "share_ten"], [0.6, 0.3, 0.1], "timers")
    expect(folded.total > 4000, f"{folded.total} periods of 5 s at 1,000 Hz")


# verifies: B4
def test_overflow(folder):
    case("overflow", 2, 3_000_000, "drop")
    case("overflow", 2, 3_000_000, "overwrite")


# verifies: B4e
def test_churn(folder):
    out = folder / "churn.pftrace"
    case("churn", out, 1000)
    rows = sql(out, "select count(*) as n from slice where name = 'counted'")
    expect(rows[0]["n"] == 10_000, f"{rows[0]['n']} scopes of 10,000")


def test_jump(folder):
    out = folder / "jump.pftrace"
    case("jump", out)
    rows = {row["name"]: row for row in sql(out, "select name, ts, dur, depth, parent_id, id from slice")}
    expect(set(rows) == {"main", "foo", "bar", "baz"}, f"slices {sorted(rows)}")
    expect(rows["baz"]["parent_id"] == rows["main"]["id"], "baz is not in main")
    for name in ("foo", "bar"):
        end = rows[name]["ts"] + rows[name]["dur"]
        expect(rows["baz"]["ts"] - end > 15e6, f"{name} did not end at the jump")


def test_names(folder):
    out = folder / "names.pftrace"
    case("names", out)
    names = {row["name"] for row in sql(out, "select name from thread")}
    for name in ("named-before", "named-after", "a name of more than fifteen bytes", "the-last-name"):
        expect(name in names, f"{name!r} is not among {sorted(filter(None, names))}")


# verifies: B3e
def test_everything(folder):
    out = folder / "everything.pftrace"
    case("everything", out)
    counts = {row["name"]: row["n"] for row in sql(out, "select name, count(*) as n from slice where category = 'scope' group by name")}
    expect(counts.get("outer") == 20 and counts.get("beside") == 20, f"scopes {counts}")
    expect(counts.get("request 3") == 4, f"dynamic names {counts}")
    values = [row["value"] for row in sql(out, "select value from counter order by ts")]
    expect(values == list(range(20)), f"counter values {values}")
    samples = sql(out, "select count(*) as n from perf_sample")[0]["n"]
    expect(samples > 20, f"{samples} samples beside the scopes")
    inside = sql(out, "select count(*) as n from perf_sample p join slice s on p.ts >= s.ts and p.ts < s.ts + s.dur where s.name = 'outer'")
    expect(inside[0]["n"] > samples * 0.9, f"{inside[0]['n']} of {samples} samples lie in a scope: two clocks?")


# verifies: B10
def test_fibers(folder):
    out = folder / "fibers.pftrace"
    case("fibers", out)
    rows = sql(out, "select s.name as slice, t.name as track, s.depth as depth from slice s join track t on s.track_id = t.id "
                    "where s.name in ('in fiber', 'counted')")
    by_track = {}
    for row in rows:
        by_track.setdefault(row["track"], []).append((row["slice"], row["depth"]))
    expect(len(by_track) == 200, f"{len(by_track)} tracks of 200 fibers")
    for track, slices in by_track.items():
        expect(sorted(slices) == [("counted", 1), ("counted", 1), ("in fiber", 0)], f"{track}: {slices}")


def test_restart(folder):
    case("restart", 60)


# verifies: B2
def test_storm(folder):
    case("storm", f"{PROGRAMS}/libcprof_test_plugin.so", 4)


# Nothing that takes a lock is called from the handler; a preloaded run stands the loader and the allocator at work.
def test_guarded(folder):
    guard = os.environ["CPROF_GUARD"]
    caught = run(CASES, "malloc_in_handler", env={**os.environ, "LD_PRELOAD": guard}, status=-signal.SIGABRT)
    expect("handler calls malloc" in caught.stderr, f"the guard does not see: {caught.stderr!r}")
    plugin = f"{PROGRAMS}/libcprof_test_plugin.so"
    out = folder / "storm.folded"
    told = run(PLAIN, "storm", plugin, 2, env={**os.environ, "LD_PRELOAD": f"{guard}:{LIBRARY}", "CPROF": f"freq=4000,out={out}"}).stderr
    expect(Folded(out.read_text()).total > 1000, f"few samples of 2 s of four threads: {told}")
    case("storm", plugin, 1.5, env={**os.environ, "LD_PRELOAD": guard})


# verifies: B9
def test_forks(folder):
    case("forks", folder / "forks.folded")
    files = sorted(folder.glob("forks.folded*"))
    expect(len(files) == 4, f"files {[file.name for file in files]}")
    for file in files:
        folded = Folded(file.read_text())
        check_shares(folded, ["worker_six", "worker_three", "worker_one"], [0.6, 0.3, 0.1], file.name, 0.1)


def test_large_fork(folder):
    case("large_fork", timeout=60)


def test_spawn(folder):
    case("spawn")


def test_own_signals(folder):
    case("own_signals")


def test_interrupted(folder):
    case("interrupted", 3)


def test_restarted(folder):
    case("restarted", 1.5)


def test_bad_stack(folder):
    case("bad_stack")


def test_kept(folder):
    case("kept")


# verifies: B7
def test_window(folder):
    out = folder / "window.folded"
    run(PLAIN, 2, env=preload(f"out={out},freq=1000,window=100ms/500ms"))
    total = Folded(out.read_text()).total
    expect(100 < total < 900, f"{total} samples of 2 s, on for a fifth of it")


# verifies: B8t
def test_spikes(folder):
    is_calm = case("spikes", folder / "spike-%n.pftrace").split() == ["2"]
    files = sorted(file.name for file in folder.glob("*.pftrace"))
    wanted = ["spike-0.pftrace", "spike-1.pftrace"]
    expect(files == wanted if is_calm else files, f"one report for each spike that was not too soon, none at the end: {files}")
    for number, name, least in ((0, "request", 200e6), (1, "a part", 150e6)) if is_calm else ():
        trace = folder / f"spike-{number}.pftrace"
        rows = sql(trace, "select name, ts, dur from slice where category = 'scope'")
        longest = max(row["dur"] for row in rows if row["name"] == name)
        expect(longest > least, f"report {number}: the longest {name} took {longest} ns")
        ends = [row["ts"] + row["dur"] for row in rows]
        expect(max(ends) - min(ends) <= 300e6, f"report {number}: {max(ends) - min(ends)} ns of the last 300 ms")
        expect(len(rows) > 1, f"report {number}: {len(rows)} scopes: nothing of what came before")
        times = [row["ts"] for row in sql(trace, "select ts from perf_sample")]
        expect(max(ends) - min(times, default=max(ends)) <= 300e6, f"report {number}: older samples among {len(times)}")
        comment = gzip.decompress((folder / f"spike-{number}.pftrace.pb.gz").read_bytes())
        expect(f"scope '{name}' in thread".encode() in comment, f"report {number} does not say why it was written")


def test_trigger(folder):
    out = folder / "trigger.folded"
    program = subprocess.Popen([PLAIN, "60"], env=preload(f"out={out},freq=1000,signal=USR1,seconds=0.8"))
    try:
        for wanted in ("trigger.folded", "trigger.folded.1"):
            time.sleep(0.3)
            program.send_signal(signal.SIGUSR1)
            deadline = time.monotonic() + 20
            while not (folder / wanted).exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            expect((folder / wanted).exists(), f"no {wanted} after the signal")
        expect(program.poll() is None, "the program ended")
    finally:
        program.kill()
        program.wait()
    folded = Folded(out.read_text())
    expect(any("share_sixty" in frame for frames, _ in folded.stacks for frame in frames), "nothing of the program was sampled")


# verifies: B8
def test_preload(folder):
    out = folder / "app.folded"
    run(PLAIN, 1.5, env=preload(f"out={out},freq=1000"))
    check_shares(Folded(out.read_text()), ["share_sixty", "share_thirty", "share_ten"], [0.6, 0.3, 0.1], "preloaded")
    wrong = run(PLAIN, 0.01, env=preload("freq=often"))
    expect("cprof: options of cprof: freq: 'often'" in wrong.stderr, f"a wrong option: {wrong.stderr!r}")
    python = [sys.executable, "-c", "print(sum(i * i for i in range(3000000)))"]
    plain = run(*python).stdout
    for name in ("p.pb.gz", "p.pftrace", "p.trace.json", "p.folded"):
        traced = run(*python, env=preload(f"out={folder / name},freq=1000"))
        expect(traced.stdout == plain, "the program's own output changed")
        run(PROGRAM, "report", folder / name)
    if shutil.which("sqlite3"):
        statement = "with recursive c(x) as (select 1 union all select x+1 from c where x < 2000000) select sum(x) from c;"
        plain = run("sqlite3", ":memory:", statement).stdout
        expect(run("sqlite3", ":memory:", statement, env=preload(f"out={folder}/s.folded")).stdout == plain, "sqlite3's result changed")
    source = folder / "one.cc"
    source.write_text("#include <vector>\n#include <string>\nint main() { return std::vector<std::string>(3).size() - 3; }\n")
    run("g++", "-O2", source, "-o", folder / "one", env=preload(f"out={folder}/g.folded,freq=1000"))
    run(folder / "one")
    made = sorted(folder.glob("g.folded*"))
    expect(len(made) >= 3, f"g++ and its parts: {[file.name for file in made]}")
    expect(any("cc1plus" in file.read_text() for file in made), "no profile of cc1plus")


# SIGKILL: the last report stays whole.
def test_killed(folder):
    program = subprocess.Popen([CASES, "churn", str(folder / "k.pftrace"), "100000"])
    part = folder / "k.pftrace.part.pftrace"
    deadline = time.monotonic() + 20
    while not part.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    program.kill()
    program.wait()
    expect(part.exists(), "no report was written")
    run(PROGRAM, "report", part)


class Preloaded:
    """A program with the library preloaded that works for `seconds` of CPU time, unless it is ended before."""

    def __init__(self, folder, options, seconds=60, command=None):
        self.process = subprocess.Popen([str(word) for word in command or (PLAIN, seconds)], env=preload(options), cwd=folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        end = time.monotonic() + 20
        while not self.has_block():
            expect(time.monotonic() < end and self.process.poll() is None, "the program cannot be asked")
            time.sleep(0.01)

    def has_block(self):
        folder = Path(f"/proc/{self.pid}/fd")
        return any("memfd:cprof-control" in os.readlink(link) for link in folder.iterdir())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def ctl(pid, *arguments, status=0):
    return run(PROGRAM, "ctl", pid, *arguments, status=status)


# verifies: B8c
# covers: ctl --json --output --format --weight --metric --by --folded-style
def test_ctl(folder):
    with Preloaded(folder, f"start=no,freq=1000,out={folder}/end.folded,quiet=yes") as program:
        status = lambda: json.loads(ctl(program.pid, "status", "--json").stdout)
        expect(status()["running"] is False and status()["samples"] == 0, f"nothing was started: {status()}")
        expect("no session runs" in ctl(program.pid, "dump", "-o", folder / "no.folded", status=1).stderr, "a dump of nothing")
        expect("no session runs" in ctl(program.pid, "stop", status=1).stderr, "a stop of nothing")
        ctl(program.pid, "start")
        time.sleep(1.5)
        now = status()
        expect(now["running"] and now["frequency_hz"] == 1000 and now["samples"] > 300, f"it runs: {now}")
        expect("a session runs already" in ctl(program.pid, "start", status=1).stderr, "a second start")
        before = set(os.listdir(folder))
        # What the library writes, and what is made of it here.
        for name in ("now.folded", "now.pb.gz", "now.pftrace", "now.cprof", "now.svg"):
            ctl(program.pid, "dump", "-o", folder / name)
        expect(set(os.listdir(folder)) - before == {"now.folded", "now.pb.gz", "now.pftrace", "now.cprof", "now.svg"},
               "the program wrote a file, or something was left")
        shares = ["share_sixty", "share_thirty", "share_ten"], [0.6, 0.3, 0.1]
        check_shares(Folded((folder / "now.folded").read_text()), *shares, "dumped")
        ctl(program.pid, "dump", "-o", folder / "by.txt", "--format", "folded", "--by", "thread", "--folded-style", "extended")
        text = (folder / "by.txt").read_text()
        expect(all(re.match(rf"[^;]+-{program.pid};[^;]+;", line) for line in text.splitlines()), f"by thread, with ids: {text[:80]}")
        ctl(program.pid, "dump", "-o", folder / "wall.folded", "--weight", "wall")
        expect(Folded((folder / "wall.folded").read_text()).total > 500_000, "microseconds of wall time")
        unknown = ctl(program.pid, "dump", "-o", folder / "no.folded", "--metric", "nothing", status=1).stderr
        expect("nothing" in unknown and not (folder / "no.folded").exists(), f"a metric that it has not: {unknown}")
        samples = sql(folder / "now.cprof", "select count(*) n from perf_sample")[0]["n"]
        expect(samples >= now["samples"], f"{samples} samples in a dump that came after {now['samples']}")
        last = json.loads(ctl(program.pid, "stop", "--json").stdout)
        expect(last["samples"] >= samples, f"{last} at the end")
        check_shares(Folded((folder / "end.folded").read_text()), *shares, "the session's own file")
        ctl(program.pid, "start", "mode=wall,freq=100")
        time.sleep(0.5)
        ctl(program.pid, "dump", "-o", folder / "threads.cprof")
        names = {row["name"] for row in sql(folder / "threads.cprof", "select name from thread")}
        expect(names and not any(name and name.startswith("cprof-") for name in names), f"threads of the program: {names}")
        ctl(program.pid, "stop")
        ctl(program.pid, "start", f"freq=99,out={folder}/second.folded")
        expect(status()["frequency_hz"] == 99, "a start with options of its own")
        expect("freq: 'often'" in ctl(program.pid, "start", "freq=often", status=1).stderr, "a wrong option")
        open_files = len(os.listdir(f"/proc/{program.pid}/fd"))
        for _ in range(20):
            ctl(program.pid, "dump", "-o", folder / "again.folded")
        expect(len(os.listdir(f"/proc/{program.pid}/fd")) == open_files, "dumps leave descriptors open")


# A program that closed all its descriptors, the block's too, can still be asked.
def test_ctl_closed(folder):
    with subprocess.Popen([PLAIN, "closed", "60"], env=preload("start=no,freq=1000"), stdout=subprocess.PIPE, text=True) as program:
        try:
            expect(program.stdout.readline() == "closed\n", "the program does not begin")
            ctl(program.pid, "start")
            time.sleep(0.7)
            ctl(program.pid, "dump", "-o", folder / "closed.folded")
            check_shares(Folded((folder / "closed.folded").read_text()), ["share_sixty", "share_thirty", "share_ten"], [0.6, 0.3, 0.1],
                         "closed", 0.1)
            ctl(program.pid, "stop")
        finally:
            program.kill()


# Whoever asks gets one line, whatever the process is.
# covers: ctl --timeout
def test_ctl_refused(folder):
    refused = lambda pid, *more: ctl(pid, "status", *more, status=1).stderr
    expect("No such file" in refused(2 ** 22 - 1), "no such process")
    with subprocess.Popen(["sleep", "60"]) as other:
        expect("no libcprof inside" in refused(other.pid), "a process without the library")
        other.kill()
    for make in ("f = os.memfd_create('cprof-control')", "f = os.memfd_create('cprof-control'); os.ftruncate(f, 1 << 20)",
                 "import fcntl; f = os.memfd_create('cprof-control', os.MFD_ALLOW_SEALING); os.ftruncate(f, 1 << 20); "
                 "fcntl.fcntl(f, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)"):
        with subprocess.Popen([sys.executable, "-c", f"import os, time; {make}; print('made', flush=True); time.sleep(60)"],
                              stdout=subprocess.PIPE) as hostile:
            hostile.stdout.readline()
            error = refused(hostile.pid)
            expect(error.count("\n") == 1 and f"process {hostile.pid}" in error, f"{make}: {error!r}")
            hostile.kill()
    # One that answers every request with a failure, or with a dump that is none; its words must not reach the terminal as they are.
    liar = ("import fcntl, mmap, os, struct, time; f = os.memfd_create('cprof-control', os.MFD_ALLOW_SEALING); os.ftruncate(f, 1 << 16); "
            "fcntl.fcntl(f, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK); m = mmap.mmap(f, 1 << 16); "
            "m[0:12] = struct.pack('<QI', 0x6c74632d666f7270, 1); m[24:32] = struct.pack('<Ii', FAILED, 999); "
            "print('made', flush=True)\n"
            "while True:\n  m[96:104] = b'\\x1b[2J\\nno!'\n  m[16:20] = m[12:16]\n  time.sleep(0.01)")
    for failed, verb in (("1", ("status",)), ("0", ("dump", "-o", folder / "x.folded"))):
        with subprocess.Popen([sys.executable, "-c", liar.replace("FAILED", failed)], stdout=subprocess.PIPE) as hostile:
            hostile.stdout.readline()
            error = ctl(hostile.pid, *verb, status=1).stderr
            expect(error.count("\n") == 1 and error.strip().isprintable(), f"what a liar says: {error!r}")
            hostile.kill()
    expect(not (folder / "x.folded").exists(), "a dump of a liar")
    with Preloaded(folder, "start=no") as program:
        os.kill(program.pid, signal.SIGSTOP)
        expect("does not answer" in refused(program.pid, "--timeout", 0.5), "a stopped program")
        os.kill(program.pid, signal.SIGCONT)
        ctl(program.pid, "status")  # the request that nobody waited for is answered, too
    for wrong in (("dump",), ("status", "-o", "x.folded"), ("stop", "freq=1"), ("restart",)):
        run(PROGRAM, "ctl", os.getpid(), *wrong, status=2)


# A child is asked for itself; one whose parent's children are not recorded cannot be.
def test_ctl_children(folder):
    code = "import os, time\nif os.fork():\n  time.sleep(60)\nwhile True:\n  sum(range(1000))"
    for children, has_block in (("yes", True), ("exec", False)):
        with Preloaded(folder, f"start=no,children={children}", command=(sys.executable, "-c", code)) as parent:
            tasks, end = Path(f"/proc/{parent.pid}/task/{parent.pid}/children"), time.monotonic() + 20
            while not tasks.read_text().split():
                expect(time.monotonic() < end, "no child")
                time.sleep(0.01)
            child = int(tasks.read_text().split()[0])
            try:
                time.sleep(0.3)
                if has_block:
                    ctl(child, "start", "freq=1000")
                    time.sleep(0.5)
                    counts = [json.loads(ctl(pid, "status", "--json").stdout)["samples"] for pid in (parent.pid, child)]
                    expect(counts[0] == 0 and counts[1] > 50, f"samples of parent and child: {counts}")
                else:
                    expect("no libcprof inside" in ctl(child, "status", status=1).stderr, "a child without a block of its own")
            finally:
                os.kill(child, signal.SIGKILL)


# verifies: B7r
def test_sample_rate(folder):
    out = folder / "rate.pb.gz"
    case("sample_rate", out)
    run(PROGRAM, "convert", out, "--metric", "cpu", "-o", folder / "rate.folded")
    folded = Folded((folder / "rate.folded").read_text())
    check_shares(folded, ["worker_six", "worker_three"], [0.5, 0.5], "by CPU time")
    run(PROGRAM, "convert", out, "-o", folder / "counts.folded", "--metric", "samples")
    check_shares(Folded((folder / "counts.folded").read_text()), ["worker_six", "worker_three"], [5 / 6, 1 / 6], "by samples")


def test_wall(folder):
    out = folder / "wall.folded"
    case("wall", out)
    folded = Folded(out.read_text())
    waiting = sum(count for frames, count in folded.stacks if any("usleep" in frame or "nanosleep" in frame for frame in frames))
    expect(0.3 < waiting / folded.total < 0.7, f"{waiting} of {folded.total} samples are of the waiting thread")
    expect(folded.total > 300, f"{folded.total} samples of 2 threads in 1.5 s at 200 Hz")


def test_closed(folder):
    case("closed")


def test_left(folder):
    """The library's threads do not keep a process that its last thread has left; the file is where it was asked for."""
    case("left", cwd=folder, timeout=20)
    stacks = Folded((Path(folder) / "left.folded").read_text())
    expect(stacks.total > 0, "no sample of the thread that went on")


def test_gone_reader(folder):
    """The closing line finds nobody who reads it: the program ends as it would have."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PLAIN, "0.1"], env=preload(f"out={folder}/gone.folded"), stderr=writing, timeout=30)
    os.close(writing)
    expect(done.returncode == 0, f"status {done.returncode}")


# verifies: B13
def test_package(folder):
    build, prefix = Path(os.environ["CPROF_BUILD"]), folder / "prefix"
    run("cmake", "--install", build, "--component", "libcprof", "--prefix", prefix)
    examples = Path(INCLUDE).parent / "examples"
    project = folder / "project"
    project.mkdir()
    for name in ("hello.c", "server.cc"):
        shutil.copy(examples / name, project)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C CXX)\nfind_package(cprof 0.1 REQUIRED)\nfind_package(Threads)\n"
        "add_executable(hello hello.c)\ntarget_link_libraries(hello cprof::cprof)\n"
        "add_executable(server server.cc)\ntarget_link_libraries(server cprof::static Threads::Threads)\n")
    run("cmake", "-S", project, "-B", folder / "made", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "made")
    run(folder / "made" / "hello", cwd=folder)
    names = {row["name"] for row in sql(folder / "hello.pftrace", "select distinct name from slice where category = 'scope'")}
    expect(names == {"round", "integrate"}, f"hello's scopes: {names}")
    run(folder / "made" / "server", cwd=folder)
    names = {row["name"] for row in sql(folder / "server.pftrace", "select distinct name from slice where category = 'scope'")}
    expect({"wait for a request", "parse", "respond", "request of size 3"} <= names, f"server's scopes: {names}")
    # The static library hides what it holds.
    defined = run("nm", "--format=posix", "--defined-only", "--extern-only", prefix / "lib" / "x86_64-linux-gnu" / "libcprof.a"
                  if (prefix / "lib" / "x86_64-linux-gnu").exists() else prefix / "lib" / "libcprof.a").stdout
    strangers = [line.split()[0] for line in defined.splitlines() if len(line.split()) > 2 and not line.startswith("cprof_")]
    expect(not strangers, f"global in libcprof.a: {strangers[:5]}")
    description = next(prefix.rglob("cprof.pc"))
    if shutil.which("pkg-config"):
        flags = run("pkg-config", "--cflags", "--libs", "cprof", env={**os.environ, "PKG_CONFIG_PATH": description.parent}).stdout.split()
        flags = [flag.replace("/usr/local", str(prefix)) for flag in flags]
        run("cc", "-O2", project / "hello.c", "-o", folder / "by_pkg_config", *flags)


def as_subdirectory(folder, *options):
    """A project around ours that wants the library; where it is built."""
    root, project, made = Path(INCLUDE).parent, folder / "project", folder / "made"
    project.mkdir()
    shutil.copy(root / "examples" / "hello.c", project)
    (project / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(user C)\nadd_subdirectory({root} cprof)\nadd_executable(hello hello.c)\n"
        "target_link_libraries(hello cprof::cprof)\n")
    run("cmake", "-G", "Ninja", "-S", project, "-B", made, *options)
    return made


# What is to be compiled is the library alone, and all of it: what the files became in this build is linked, which takes a second.
# verifies: B13s
def test_subdirectory(folder):
    made, build = as_subdirectory(folder), Path(os.environ["CPROF_BUILD"])
    files = [line for line in run("ninja", "-C", made, "-t", "inputs", "hello").stdout.split() if re.search(r"/src/.*\.cc?$", line)]
    strange = [file for file in files if re.search(r"/src/(page|collect/bpf|collect/perf|cli|store|serve)/", file)]
    expect(files and not strange, f"compiled for a user of the library: {strange[:5]}")
    objects = []
    for file in files:
        found = list(build.glob(f"src/CMakeFiles/cprof_*.dir/{file.partition('/src/')[2]}.o"))
        expect(len(found) == 1, f"{file}: {len(found)} objects in this build")
        objects += found
    (folder / "map").write_text("{ global: cprof_*; local: *; };")
    run("g++", "-shared", "-o", folder / "libcprof.so.0", *objects, "-Wl,-z,defs", f"-Wl,--version-script={folder}/map", "-Wl,-soname,libcprof.so.0",
        "-static-libstdc++", "-static-libgcc", "-Wl,--gc-sections", "-lz", "-lzstd", "-ldeflate", "-llzma")
    run(PLAIN, 0.2, env={**preload(f"out={folder}/linked.folded"), "LD_PRELOAD": folder / "libcprof.so.0"})
    expect("share_sixty" in (folder / "linked.folded").read_text(), "the library of those files records nothing")


def test_subdirectory_built(folder):
    made = as_subdirectory(folder, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_UNITY_BUILD=ON")
    run("cmake", "--build", made, timeout=1800)
    run(made / "hello", cwd=folder)
    names = {row["name"] for row in sql(folder / "hello.pftrace", "select distinct name from slice where category = 'scope'")}
    expect(names == {"round", "integrate"}, f"hello's scopes: {names}")


# Slices of a fiber are on its track, whole although it waits between, and its samples end at its base.
def check_example(folder, outer, tracks):
    example = Path(os.environ["CPROF_EXAMPLE"])
    run(example, cwd=folder)
    (trace,) = folder.glob("*.pftrace")
    rows = sql(trace, "select s.id, s.name, s.depth, s.parent_id, s.ts, s.dur, t.name as track from slice s join track t on s.track_id = t.id "
                      f"where s.name in ('{outer}', 'step') order by s.ts")
    by_track = {}
    for row in rows:
        by_track.setdefault(row["track"], []).append(row)
    expect(sorted(by_track) == sorted(tracks), f"tracks {sorted(by_track)}")
    for track, slices in by_track.items():
        expect([row["name"] for row in slices] == [outer] + 4 * ["step"], f"{track}: {[row['name'] for row in slices]}")
        whole, steps = slices[0], slices[1:]
        expect(all(row["parent_id"] == whole["id"] for row in steps), f"{track}: steps are not inside {outer}")
        spent = sum(row["dur"] for row in steps)
        expect(whole["dur"] > 2 * spent, f"{track}: {outer} took {whole['dur']} ns, its steps {spent}: it did not wait for the others")
    (text,) = folder.glob("*.folded")
    return Folded(text.read_text())


# verifies: B10x
def test_fibers_of_boost(folder):
    folded = check_example(folder, "job", [f"job {number}" for base in (1, 101) for number in range(base, base + 8)])
    inside = [frames for frames, _ in folded.stacks if any(frame.startswith("job(") or "::job" in frame for frame in frames)]
    expect(inside, "no sample in a fiber")
    expect(not any("main" in frames or any("run_fibers" in frame for frame in frames) for frames in inside),
           f"stacks of fibers go on into the scheduler: {inside[0]}")


# verifies: B10c
def test_coroutines(folder):
    folded = check_example(folder, "serve", [f"request {number}" for number in range(1, 17)])
    expect(any("serve" in frame for frames, _ in folded.stacks for frame in frames), "no sample in a coroutine")


def test_soak(folder):
    run(PLAIN, "storm", f"{PROGRAMS}/libcprof_test_plugin.so", 10, env=preload("freq=4000"))
    for round_number in range(20):
        case("storm", f"{PROGRAMS}/libcprof_test_plugin.so", 30, timeout=120)
        print(f"storm {round_number + 1} of 20: no hang", flush=True)
    case("restart", 1000, timeout=600)
    case("overflow", 2, 50_000_000, "drop", timeout=600)
    case("overflow", 2, 50_000_000, "overwrite", timeout=600)
    case("interrupted", 60, timeout=200)


def main():
    name = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="cprof-inproc-") as folder:
        globals()[f"test_{name}"](Path(folder))
    print(f"{name}: as it should be")


if __name__ == "__main__":
    main()
