"""CPU time, memory and written bytes of whole process trees, for the bench."""

import ctypes
import json
import os
import re
import signal
import statistics
import subprocess
import time
import traceback


PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Cost:
    """cpu_s holds the process and all that it started, whether it waited for them or not; rss_mb is the largest of them."""

    def __init__(self, cpu_s=0.0, rss_mb=0.0, wall_s=0.0, status=0, stderr=""):
        self.cpu_s, self.rss_mb, self.wall_s, self.status, self.stderr = cpu_s, rss_mb, wall_s, status, stderr


def run(command, stdin=None, stdout=None, timeout=600, before=None):
    """Runs to its end; stdin and stdout are paths. Raises when it fails or takes too long."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.monotonic()
    error_path = f"{stdout or '/tmp/cprof-bench'}.{os.getpid()}.stderr"
    with open(stdin or os.devnull, "rb") as source, open(stdout or os.devnull, "wb") as sink, open(error_path, "w+b") as errors:
        process = subprocess.Popen(command, stdin=source, stdout=sink, stderr=errors, start_new_session=True, preexec_fn=before)
        status, usage = wait_bounded(process.pid, timeout)
        process.returncode = os.waitstatus_to_exitcode(status)
        orphans = wait_for_orphans(process.pid, started + timeout)
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace")
    os.unlink(error_path)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {words_of(process.returncode, time.monotonic() - started >= timeout)}\n{text[-2000:]}".strip())
    usages = [usage, *orphans]
    return Cost(sum(u.ru_utime + u.ru_stime for u in usages), max(u.ru_maxrss for u in usages) / 1024, time.monotonic() - started,
                process.returncode, text)


def words_of(returncode, is_late):
    if is_late:
        return "took too long"
    return f"killed by signal {-returncode}" if returncode < 0 else f"status {returncode}"


def wait_for_orphans(group, end):
    """What a command leaves running when it ends, as perf its addr2line, comes to us: its costs are the command's."""
    usages = []
    while True:
        try:
            done, _, usage = os.wait4(-group, os.WNOHANG)
        except ChildProcessError:
            return usages
        if done:
            usages.append(usage)
        elif time.monotonic() > end:
            os.killpg(group, signal.SIGKILL)
            end = float("inf")
        else:
            time.sleep(0.01)


def apart(work):
    """The result of work() in a process of its own: a child's peak memory begins with what its parent held, so this one stays small."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        with os.fdopen(write_end, "w") as out:
            try:
                json.dump(work(), out)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        text = answer.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("a part of the bench failed; see above")
    return json.loads(text)


def wait_bounded(pid, timeout):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return status, usage


def spread(values):
    """median, least, most"""
    return statistics.median(values), min(values), max(values)


def show_spread(values, digits=2):
    middle, least, most = spread(values)
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def statistics_of(values):
    """What a row of measurements is summed up as; p95 by nearest rank, so of few rounds it is the most."""
    ordered = sorted(values)
    rank = max(0, -(-95 * len(ordered) // 100) - 1)
    return {"n": len(ordered), "mean": statistics.fmean(ordered), "sd": statistics.stdev(ordered) if len(ordered) > 1 else 0.0,
            "median": statistics.median(ordered), "p95": ordered[rank], "least": ordered[0], "most": ordered[-1]}


def machine():
    def first(path, key):
        with open(path) as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), "unknown")

    return {
        "cpu": first("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "kernel": re.match(r"[\d.]*\d", os.uname().release)[0],
        "memory": first("/proc/meminfo", "MemTotal"),
        "load": os.getloadavg()[0],
    }
