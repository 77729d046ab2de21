"""perf script's text to folded stacks, as FlameGraph's stackcollapse does: comm;root;...;leaf count. stdin to stdout.

One pass, no regular expression per line: what a reasonable script of this kind costs.
"""

import sys


def fold(lines, out):
    counts, frames, comm = {}, [], ""
    for line in lines:
        if line[0] in "\t " and line.strip():
            # "\t    55d0 name+0x12 (/path)"
            _, _, rest = line.strip().partition(" ")
            name = rest.rpartition(" (")[0]
            at = name.rfind("+0x")
            frames.append(name[:at] if at > 0 else name or "[unknown]")
        elif line.strip():
            comm = line.split(None, 1)[0]
        elif comm:
            frames.append(comm)
            frames.reverse()
            stack = ";".join(frames)
            counts[stack] = counts.get(stack, 0) + 1
            frames, comm = [], ""
    for stack in sorted(counts):
        out.write(f"{stack} {counts[stack]}\n")
    return sum(counts.values())


if __name__ == "__main__":
    fold(sys.stdin, sys.stdout)
