"""Which sampling backends a cprof program has, and whether the eBPF one runs here: found out by trying, not by reading of it."""

import os
import shutil
import subprocess
import tempfile

WORKS, FAILS, ABSENT = "works", "fails", "absent"


def bpf_state(cprof):
    """(state, words): WORKS, FAILS here with the program's words, or ABSENT from the program."""
    with tempfile.TemporaryDirectory(prefix="cprof-test-") as folder:
        command = [cprof, "record", "-q", "--backend", "bpf", "-o", os.path.join(folder, "out.folded"), "--", shutil.which("true")]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=60)
    return state_of(done.returncode, done.stderr.strip())


def state_of(status, words):
    if status == 0:
        return WORKS, ""
    return (ABSENT if "not supported yet" in words or "not built" in words else FAILS), words


def built_backends(cprof):
    return ["perf"] + (["bpf"] if bpf_state(cprof)[0] != ABSENT else [])
