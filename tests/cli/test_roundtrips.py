"""Ways through the formats on which nothing may change: pprof by way of a recording and back, and one perf.data in every
format that can be written.

Requires nothing: no privileges, no perf events.
"""

# verifies: R1, D2

import os
import re
import subprocess
import sys
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "lib"))
import harness
import perfdata
from pprof import Profile
from wire import ints, signed


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(**fields):
    """f1=3, f2=b"...", f3=[...]: a list is a repeated field, numbers in it are packed."""
    out = b""
    for name, value in fields.items():
        number = int(name[1:])
        if isinstance(value, list) and value and isinstance(value[0], int):
            value = b"".join(map(varint, value))
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, bytes):
                out += varint(number << 3 | 2) + varint(len(one)) + one
            elif one:
                out += varint(number << 3) + varint(one)
    return out


class Strings(list):
    def of(self, text):
        text = text.encode()
        if text not in self:
            self.append(text)
        return self.index(text)


def rich_pprof():
    """Two value types, labels of every kind, inlined lines with columns, address-only places, mappings with and without a file."""
    s = Strings([b""])
    types = [message(f1=s.of("alloc_objects"), f2=s.of("count")), message(f1=s.of("alloc_space"), f2=s.of("bytes"))]
    mappings = [message(f1=5, f2=0x400000, f3=0x500000, f4=0x1000, f5=s.of("/bin/app"), f6=s.of("0123abcd"), f7=1, f8=1, f9=1, f10=1),
                message(f1=2, f2=0x7f0000000000, f3=0x7f0000100000, f5=s.of("/lib/libx.so"), f6=s.of("ff00")),
                message(f1=9, f5=s.of("[vdso]"))]
    functions = [message(f1=i + 1, f2=s.of(name), f3=s.of(system), f4=s.of(file), f5=start) for i, (name, system, file, start) in
                 enumerate([("main", "main", "a.cc", 1), ("ns::f(int)", "_ZN2ns1fEi", "a.cc", 7), ("g", "g", "b.h", 0), ("main", "main", "other.cc", 3)])]
    line = lambda function, number, column=0: message(f1=function, f2=number, f3=column)
    locations = [message(f1=11, f2=5, f3=0x400110, f4=[line(3, 4, 9), line(2, 8), line(1, 3, 1)]),
                 message(f1=12, f2=5, f3=0x400120, f4=[line(2, 9)]), message(f1=13, f2=2, f3=0x7f0000000123),
                 message(f1=14, f2=5, f3=0x400130, f4=[line(1, 5)], f5=1), message(f1=15, f2=5, f3=0x400140, f4=[line(4, 5)]),
                 message(f1=16, f2=9, f3=0x10, f4=[line(3, 1)])]
    text = lambda key, value: message(f1=s.of(key), f2=s.of(value))
    number = lambda key, value, unit="": message(f1=s.of(key), f3=value, f4=s.of(unit))
    samples = [message(f1=[11, 14], f2=[3, 2**60 + 1], f3=[text("pool", "a"), number("size", 64, "bytes"), number("size", -5)]),
               message(f1=[13, 12, 14], f2=[-4, -(2**40)]), message(f1=[13, 12, 14], f2=[1, 10], f3=[text("pool", "a")]),
               message(f1=[16, 15], f2=[7, 0]), message(f1=[12, 12, 12, 14], f2=[0, 9], f3=[text("pool", "0"), text("thread", "x;y\n")])]
    comments = [s.of("first comment"), s.of("second")]
    period = message(f1=s.of("space"), f2=s.of("bytes"))
    default = s.of("alloc_objects")
    return message(f1=types, f2=samples, f3=mappings, f4=locations, f5=functions, f6=list(s), f9=1_700_000_000_123_456_789, f10=60_000_000_000,
                   f11=[period], f12=524288, f13=comments, f14=default)


class Facts(Profile):
    """A pprof without its own numbering: what two equal profiles share."""

    def line_facts(self, line):
        function = self.functions[line[1]]
        names = [self.text(function.get(n, 0)) for n in (2, 3, 4)]
        return (*names, function.get(5, 0), signed(line.get(2, 0)), signed(line.get(3, 0)))

    def mapping_facts(self, ident):
        row = self.mappings.get(ident, {})
        return tuple(row.get(n, 0) for n in (2, 3, 4)) + tuple(self.text(row.get(n, 0)) for n in (5, 6)) + tuple(row.get(n, 0) for n in (7, 8, 9, 10))

    def place(self, ident):
        row, lines = self.locations[ident]
        return self.mapping_facts(row.get(2, 0)), row.get(3, 0), tuple(map(self.line_facts, lines)), row.get(5, 0)

    def label_facts(self, label):
        is_number = 3 in label
        return (self.text(label[1]), signed(label[3]) if is_number else self.text(label.get(2, 0)), self.text(label.get(4, 0)))

    def values(self):
        sums = {}
        for locations, values, labels in self.samples:
            key = tuple(map(self.place, locations)), tuple(sorted(map(str, map(self.label_facts, labels))))
            before = sums.setdefault(key, [0] * len(values))
            sums[key] = [a + b for a, b in zip(before, values)]
        return sums

    def run(self):
        number = lambda field: self.scalar.get(field, [(0, 0)])[0][1]
        return number(9), number(10), number(12), self.text(number(14)), [self.text(i) for kind, value in self.scalar.get(13, []) for i in ints(kind, value)]


class RoundTrips(harness.Live):
    def convert(self, source, name, *options):
        self.cprof("convert", source, "-o", self.path(name), *options)
        return self.path(name)

    def facts(self, path):
        with open(path, "rb") as file:
            return Facts(file.read())

    def test_pprof_by_way_of_a_recording(self):
        source = self.path("in.pb")
        with open(source, "wb") as file:
            file.write(rich_pprof())
        wanted = self.facts(source)
        direct = self.convert(source, "direct.pb", "--demangle", "none")
        through = self.convert(self.convert(source, "way.cprof", "--demangle", "none"), "out.pb")
        for path in (direct, through):
            found = self.facts(path)
            self.assertEqual(found.broken_rules(), [])
            self.assertEqual(found.types(), wanted.types())
            self.assertEqual(found.values(), wanted.values())
            self.assertEqual({found.mapping_facts(m) for m in found.mappings}, {wanted.mapping_facts(m) for m in wanted.mappings})
            self.assertEqual(found.run(), wanted.run())
        with open(direct, "rb") as one, open(through, "rb") as two:
            self.assertEqual(one.read(), two.read())
        again = self.convert(through, "again.pb")
        with open(through, "rb") as one, open(again, "rb") as two:
            self.assertEqual(one.read(), two.read())

    def program(self):
        source, program = self.path("p.c"), self.path("program")
        with open(source, "w") as file:
            file.write("volatile int sink;\n__attribute__((noinline)) void leaf(int i) { sink += i; }\n"
                       "__attribute__((noinline)) void middle(int i) { leaf(i); sink++; }\nint main(void) { middle(3); return sink; }\n")
        subprocess.run([harness.tool("gcc", "cc"), "-g", "-O1", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-o", program, source], check=True)
        symbols = subprocess.run([harness.tool("nm"), program], capture_output=True, text=True, check=True).stdout
        return program, {name: int(re.search(rf"^(\w+) T {name}$", symbols, re.M)[1], 16) for name in ("main", "middle", "leaf")}

    def perf_data(self):
        program, at = self.program()
        data = perfdata.PerfData(program)
        data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
        data.add_thread(100, "app")
        data.add_thread(101, "worker")
        data.map_program()
        for _ in range(10):
            data.add_sample("cpu-clock", 100, [at["leaf"], at["middle"] + 5, at["main"] + 5], 1_000_000)
        for _ in range(5):
            data.add_sample("cpu-clock", 101, [at["main"] + 1], 1_000_000)
        for _ in range(3):
            data.add_sample("cpu-clock", 100, [at["middle"] + 1, at["main"] + 5], 1_000_000)
        path = self.path("perf.data")
        with open(path, "wb") as file:
            file.write(data.content)
        return path

    def functions(self, path):
        """(self, total) of each function of one process, as shares of all."""
        lines = self.cprof("convert", path, "-o", "-", "--format", "folded").stdout.decode().splitlines()
        selves, totals = Counter(), Counter()
        for line in lines:
            stack, value = line.rsplit(" ", 1)
            frames = [frame for frame in stack.split(";") if frame not in ("app", "[unknown]")]
            selves[frames[-1]] += int(value)
            for frame in set(frames):
                totals[frame] += int(value)
        whole = sum(selves.values())
        return {name: (selves[name] / whole, totals[name] / whole) for name in totals}

    def test_every_output_of_one_perf_data_agrees(self):
        source = self.perf_data()
        wanted = self.functions(source)
        self.assertEqual(wanted, {"main": (5 / 18, 1), "middle": (3 / 18, 13 / 18), "leaf": (10 / 18, 10 / 18)})
        for name in ("a.cprof", "a.pb.gz", "a.pb", "a.folded", "a.txt", "a.speedscope.json", "a.callgrind", "a.json", "a.json.gz", "a.trace.json", "a.pftrace"):
            self.assertEqual(self.functions(self.convert(source, name)), wanted, name)

    def test_totals_are_those_of_the_samples(self):
        source = self.perf_data()
        query = "SELECT sum(value_int) FROM aggregate_sample JOIN aggregate_profile p ON p.id = aggregate_profile_id WHERE p.sample_type_type LIKE 'cpu%'"
        for name in ("perf.data", "b.cprof", "b.pb.gz", "b.txt", "b.trace.json"):
            path = source if name == "perf.data" else self.convert(source, name)
            out = self.cprof("sql", path, "--format", "csv", "-q", query).stdout.decode().splitlines()
            self.assertEqual(out[1:], ["18000000"], name)


if __name__ == "__main__":
    harness.main()
