"""The decoders of the live tests, on data made here: a test tool that cannot see a fault tests nothing."""

import gzip
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from backends import ABSENT, FAILS, WORKS, state_of
from folded import Folded
from harness import Summary
from pftrace import Trace
from pprof import Profile
from wire import WireError, fields


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


class Wire(unittest.TestCase):
    def test_cut_message(self):
        with self.assertRaises(WireError):
            list(fields(field(1, "abc")[:-1]))


class Backends(unittest.TestCase):
    def test_what_the_program_says(self):
        self.assertEqual(state_of(0, "")[0], WORKS)
        self.assertEqual(state_of(2, "cprof: --backend bpf: not supported yet")[0], ABSENT)
        self.assertEqual(state_of(1, "cprof: eBPF: no BTF"), (FAILS, "cprof: eBPF: no BTF"))


class FoldedText(unittest.TestCase):
    def test_shares_and_order(self):
        folded = Folded("app;main;(anonymous namespace)::f(int);g 3\napp;main;h_[k] 1\n")
        self.assertEqual(folded.total, 4)
        self.assertEqual(folded.share_of("f"), 0.75)
        self.assertEqual(folded.share_of("g", "f"), 0)
        self.assertEqual(Folded("app;(anonymous namespace)::f(int) 1").share_of("f"), 1)

    def test_unnamed_leaf(self):
        self.assertEqual(Folded("a;main;[libx.so+0x10];k_[k] 2\na;[0x9];main 5\n").unnamed_leaves(), 2)

    def test_bad_lines(self):
        for bad in ("app 1", "app;main x", "app;;main 1", "# comment;x"):
            with self.assertRaises(ValueError):
                Folded(bad)


class SummaryText(unittest.TestCase):
    def test_reasons(self):
        summary = Summary("samples: 1,200, lost: 3\nstacks complete: 99.75 % (1,197 of 1,200)\n  max-depth: 2 (0.2 %): a\n        text: 7\n"
                          "  no-mapping: 1\nnext\n")
        self.assertEqual((summary.complete, summary.total, summary.lost), (1197, 1200, 3))
        self.assertEqual(summary.reasons, {"max-depth": 2, "no-mapping": 1})


def make_pprof(address=0x10, limit=0x100):
    strings = ["", "samples", "count", "main", "leaf", "app", "inlined"]
    out = field(1, field(1, 1) + field(2, 2))
    out += field(2, field(1, bytes([2, 1])) + field(2, bytes([7])))
    out += field(3, field(1, 1) + field(2, 1) + field(3, limit) + field(5, 5))
    out += field(4, field(1, 1) + field(2, 1) + field(3, 0x20) + field(4, field(1, 1)))
    out += field(4, field(1, 2) + field(2, 1) + field(3, address) + field(4, field(1, 3)) + field(4, field(1, 2)))
    for ident, name in ((1, 3), (2, 4), (3, 6)):
        out += field(5, field(1, ident) + field(2, name))
    return out + b"".join(field(6, text) for text in strings)


class Pprof(unittest.TestCase):
    def test_stacks_root_first_with_inlines(self):
        profile = Profile(gzip.compress(make_pprof()))
        self.assertEqual(list(profile.stacks("samples")), [(["main", "leaf", "inlined"], 7)])
        self.assertEqual(profile.broken_rules(), [])

    def test_rules_are_seen(self):
        self.assertTrue(Profile(make_pprof(address=0)).broken_rules())
        self.assertTrue(Profile(make_pprof(address=0x20)).broken_rules())
        self.assertTrue(Profile(make_pprof(limit=0)).broken_rules())
        self.assertTrue(Profile(make_pprof() + field(15, 1)).broken_rules())


def packet(*parts):
    return field(1, b"".join(parts))


def make_trace(flags=1, ends=1, parent=1, frame_ids=field(2, 1)):
    process = packet(field(60, field(1, 1) + field(3, field(1, 9) + field(6, "app"))))
    thread = packet(field(60, field(1, 2) + field(5, parent) + field(4, field(1, 9) + field(2, 9))))
    interned = field(5, field(1, 1) + field(2, "main")) + field(6, field(1, 1) + field(2, 1)) + field(7, field(1, 1) + frame_ids)
    first = packet(field(10, 1), field(13, flags), field(12, interned))
    sample = packet(field(8, 5), field(10, 1), field(13, 2), field(66, field(2, 9) + field(3, 9) + field(4, 1)))
    begin = packet(field(8, 5), field(10, 1), field(13, 2), field(11, field(9, 1) + field(11, 2) + field(23, "main")))
    end = packet(field(8, 9), field(10, 1), field(13, 2), field(11, field(9, 2) + field(11, 2)))
    return process + thread + first + sample + begin + end * ends


class Perfetto(unittest.TestCase):
    def test_good(self):
        trace = Trace(make_trace())
        self.assertEqual(trace.broken, [])
        self.assertEqual(trace.samples, [(5, 9, 9, ["main"])])
        self.assertEqual(trace.slices, [(2, "main", 5, 4, 0)])

    def test_rules_are_seen(self):
        for bad in (dict(flags=0), dict(ends=0), dict(ends=2), dict(parent=77), dict(frame_ids=field(2, b"\x01"))):
            self.assertTrue(Trace(make_trace(**bad)).broken, bad)


if __name__ == "__main__":
    unittest.main()
