"""Which sampling backends a cprof program has, and which of them this machine lets run: asked of the program itself."""

import re
import subprocess


def bpf_finding(cprof):
    """(mark, words) of `cprof doctor` about the eBPF backend; the mark is 'ok' where it can run."""
    done = subprocess.run([cprof, "doctor"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    return finding_in(done.stdout)


def finding_in(text):
    found = re.search(r"^(\S+)\s+eBPF backend\s+(.*)$", text, re.MULTILINE)
    return (found[1], found[2]) if found else ("none", "cprof doctor says nothing of an eBPF backend")


def has_bpf(cprof):
    """Built in, whether or not this machine lets it run."""
    mark, words = bpf_finding(cprof)
    return mark != "none" and "not built" not in words


def built_backends(cprof):
    return ["perf"] + (["bpf"] if has_bpf(cprof) else [])
