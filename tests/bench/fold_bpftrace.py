"""bpftrace's `@[ustack, comm]: count` maps to folded stacks, as FlameGraph's stackcollapse does. stdin to stdout."""

import re
import sys

HEAD = re.compile(r"^@\w*\[$")
TAIL = re.compile(r"^, (.+)\]: (\d+)$")


def fold(lines, out):
    frames, inside, total = [], False, 0
    for line in lines:
        line = line.rstrip("\n")
        if HEAD.match(line):
            frames, inside = [], True
        elif inside and (tail := TAIL.match(line)):
            # A stack that bpftrace could not take is empty; a folded line has at least one frame.
            out.write(";".join([tail[1], *reversed(frames or ["[unknown]"])]) + f" {tail[2]}\n")
            total, inside = total + int(tail[2]), False
        elif inside and line.strip():
            frames.append(name_of(line.strip()))
    return total


def name_of(frame):
    name, plus, offset = frame.rpartition("+")
    return (name if plus and offset.isdigit() else frame).replace(";", ":")


if __name__ == "__main__":
    fold(sys.stdin, sys.stdout)
