"""FlameGraph folded stacks: parsing, shares and what makes a frame named."""

import re

STAND_IN = re.compile(r"^\[(unknown|0x[0-9a-f]+|[^\]]*\+0x[0-9a-f]+)\](_\[[kj]\])?$")


def is_named(frame):
    return not STAND_IN.match(frame)


def is_kernel(frame):
    return frame.endswith("_[k]")


class Folded:
    """stacks: list of (frames, count), comm first and root first."""

    def __init__(self, text):
        self.stacks = []
        for number, line in enumerate(text.splitlines(), 1):
            stack, _, count = line.rpartition(" ")
            frames = stack.split(";")
            if len(frames) < 2 or not count.isdigit() or not all(frames):
                raise ValueError(f"line {number} is not 'comm;frame... count': {line[:200]!r}")
            self.stacks.append((frames, int(count)))

    @property
    def total(self):
        return sum(count for _, count in self.stacks)

    def only(self, predicate):
        out = Folded("")
        out.stacks = [(frames, count) for frames, count in self.stacks if predicate(frames)]
        return out

    def of_comm(self, comm):
        return self.only(lambda frames: frames[0] == comm)

    def with_frame(self, *names):
        """Stacks that hold all of names, root first, in this order."""
        return self.only(lambda frames: holds_in_order(frames, names))

    def count_with(self, *names):
        return self.with_frame(*names).total

    def share_of(self, *names):
        return self.count_with(*names) / self.total if self.total else 0.0

    def unnamed_leaves(self):
        """Samples whose innermost user frame has no name."""
        lost = 0
        for frames, count in self.stacks:
            user = [frame for frame in frames[1:] if not is_kernel(frame)]
            if user and not is_named(user[-1]):
                lost += count
        return lost


def base_name(frame):
    """A function's name without its parameters and scopes: 'f(int)' and '(anonymous namespace)::f' both match 'f'."""
    return frame.replace("(anonymous namespace)", "").split("(", 1)[0].rsplit(":", 1)[-1]


def matches(frame, name):
    return frame == name or base_name(frame) == name


def holds_in_order(frames, names):
    at = 0
    for frame in frames[1:]:
        if at < len(names) and matches(frame, names[at]):
            at += 1
    return at == len(names)
