"""Makes the inputs of bench_formats.py, each once: recordings by perf of a compiler at work, and files of other formats
from a generator, with the totals that every reader must find in them.
"""

import gzip
import multiprocessing.pool
import os
import random
import shutil
import subprocess

from measure import apart, run

WORDS = ("parse", "emit", "visit", "walk", "fold", "merge", "hash", "lookup", "insert", "expand", "lower", "select", "spill", "scan")
COMPILERS = ("clang++-19", "clang++", "g++")
# What is compiled while it is sampled: headers and templates enough for some seconds.
SOURCE = """#include <regex>
#include <map>
#include <unordered_map>
#include <functional>
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>
template <int N> struct Table {
  std::map<std::string, std::vector<std::function<int(int)>>> rows;
  std::unordered_map<int, std::string> names;
  std::string find(const std::string& text) {
    std::smatch match;
    if (std::regex_search(text, match, std::regex("(a+|b*)" + std::to_string(N)))) return match.str();
    std::ostringstream out;
    for (auto& [key, value] : rows) for (auto& function : value) out << key << function(N);
    std::vector<std::string> sorted;
    for (auto& [number, name] : names) sorted.push_back(name + std::to_string(number));
    std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.size() < b.size() || (a.size() == b.size() && a > b); });
    for (auto& name : sorted) out << name;
    return out.str();
  }
};
"""


def source_text(tables):
    calls = "".join(f"  out += Table<{n}>().find(text);\n" for n in range(tables))
    return f"{SOURCE}std::string part_PART(const std::string& text) {{\n  std::string out;\n{calls}  return out;\n}}\n"


class Inputs:
    """Paths in a folder; each method makes its file when it is not there yet."""

    def __init__(self, folder, scale=1.0):
        self.folder, self.scale = folder, scale
        self.random = random.Random(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def made(self, name, make):
        path = self.path(name)
        if not os.path.exists(path):
            apart(lambda: make(path + ".part") and None)
            os.rename(path + ".part", path)
        return path

    # --- recordings -----------------------------------------------------------------------------------------------

    def compile_command(self):
        compiler = next((name for name in COMPILERS if shutil.which(name)), None)
        source = self.path("compiled.cc")
        with open(source, "w") as file:
            file.write(source_text(max(1, round(24 * self.scale))).replace("PART", "0"))
        return [compiler, "-std=c++17", "-O2", "-c", source, "-o", os.devnull]

    def perf_dwarf(self):
        return self.made("dwarf.data", lambda path: run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf,16384",
                                                         "-o", path, "--", *self.compile_command()]))

    def perf_frame_pointers(self):
        return self.made("fp.data", lambda path: run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "13000", "--call-graph", "fp", "-o",
                                                      path, "--", *self.compile_command()]))

    def perf_inlined(self, cprof):
        """Of a program with debug information: cprof itself, busy reading."""
        folded = self.folded()
        work = [cprof, "convert", folded, "-o", self.path("inlined.pb.gz")]
        return self.made("inlined.data", lambda path: run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "5000", "--call-graph", "dwarf,8192",
                                                           "-o", path, "--", *work]))

    def perf_text(self):
        data = self.perf_frame_pointers()
        return self.made("perf.txt", lambda path: run(["perf", "script", "--no-inline", "-i", data], stdout=path))

    # --- generated ------------------------------------------------------------------------------------------------

    def function_names(self, count):
        random_ = self.random
        return [f"ns{random_.randrange(40)}::{random_.choice(WORDS).capitalize()}er<{random_.choice(WORDS)}>::{random_.choice(WORDS)}_{i}" for i in range(count)]

    def stacks(self, count, names, least_shared=0.0):
        """Root first, each sharing its beginning with others, as call trees do: at least this part of another's frames."""
        paths, random_ = [[0]], self.random
        for _ in range(count):
            base = paths[random_.randrange(max(0, len(paths) - 5000), len(paths))]
            keep = random_.randrange(max(1, int(len(base) * least_shared)), len(base) + 1)
            paths.append((base[:keep] + [random_.randrange(names) for _ in range(random_.randrange(1, 9))])[:60])
        return paths[1:]

    def folded(self, lines=None):
        lines = lines or round(1_000_000 * self.scale)

        def make(path):
            names = self.function_names(8000)
            texts = ["app;" + ";".join(names[f] for f in stack) for stack in self.stacks(max(1, round(200_000 * self.scale)), 8000)]
            with open(path, "w") as file:
                for i in range(lines):
                    file.write(f"{texts[self.random.randrange(len(texts))]} {i % 7 + 1}\n")

        return self.made(f"f{lines}.folded", make)

    def pprof(self, samples, labels=True):
        def make(path):
            with gzip.open(path, "wb", compresslevel=1) as file:
                for piece in pprof_pieces(self, samples, labels):
                    file.write(piece)

        return self.made(f"p{samples}{'' if labels else 'plain'}.pb.gz", make)

    def chrome(self, megabytes):
        def make(path):
            names = self.function_names(3000)
            size, at = 0, 0.0
            with open(path, "w") as file:
                file.write('{"traceEvents":[\n')
                while size < megabytes * 1_000_000:
                    lines = []
                    for _ in range(1000):
                        at += 3.5
                        name = names[self.random.randrange(3000)]
                        lines.append(f'{{"name":"{name}","cat":"function","ph":"X","ts":{at:.3f},"dur":3.000,"pid":1,"tid":{1 + int(at) % 8},'
                                     f'"args":{{"id":{int(at)},"why":"a reason"}}}},\n')
                    text = "".join(lines)
                    size += len(text)
                    file.write(text)
                file.write('{"name":"end","ph":"i","ts":0,"pid":1,"tid":1,"s":"t"}]}\n')

        return self.made(f"c{megabytes}.trace.json", make)

    # --- a program with much debug information --------------------------------------------------------------------

    def big_program(self, parts=6):
        def make(path):
            with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
                objects = pool.map(lambda part: self.compiled_part(part, parts), range(parts))
            run(["g++", "-o", path, *objects])

        return self.made("big_program", make)

    def compiled_part(self, part, parts):
        source, out = self.path(f"big{part}.cc"), self.path(f"big{part}.o")
        with open(source, "w") as file:
            file.write(source_text(max(2, round(16 * self.scale)) + part).replace("PART", str(part)).replace("Table", f"Table{part}_"))
            if part == 0:
                declared = "".join(f"std::string part_{i}(const std::string&);\n" for i in range(parts))
                file.write(declared + "int main() { return " + " + ".join(f"int(part_{i}(\"x\").size())" for i in range(parts)) + "; }\n")
        run(["g++", "-std=c++17", "-O2", "-g", "-c", source, "-o", out], stdout=out + ".txt")
        return out

    def text_addresses(self, program, count):
        """Addresses in the functions of a program, each once."""
        listing = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True).stdout
        ranges = [(int(row[0], 16), int(row[1], 16)) for row in map(str.split, listing.splitlines()) if len(row) == 4 and row[2] in "tTwW"]
        total = sum(size for _, size in ranges)
        step, out, skip = max(1, total // count), [], 0
        for start, size in sorted(set(ranges)):
            out += range(start + skip, start + size, step)
            skip = (skip - size) % step
        out = sorted(set(out))
        self.random.shuffle(out)
        return out[:count]


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def pprof_pieces(inputs, samples, labels):
    """A profile of two value types; the sums of both are (samples * 3, samples * 30) by construction."""
    functions = 20000
    names = inputs.function_names(functions)
    texts = ["", "samples", "count", "cpu", "nanoseconds", "request", "user", "/bin/app", *[f"r{i}" for i in range(64)], *names]
    first_name = 8 + 64
    yield block(1, number(1, 1) + number(2, 2)) + block(1, number(1, 3) + number(2, 4))
    yield block(3, number(1, 1) + number(2, 0x400000) + number(3, 0x40000000) + number(5, 7))
    locations = 40000
    for i in range(locations):
        lines = block(4, number(1, i % functions + 1) + number(2, i % 900 + 1))
        if i % 3 == 0:
            lines += block(4, number(1, (i * 7) % functions + 1) + number(2, i % 800 + 1))
        yield block(4, number(1, i + 1) + number(2, 1) + number(3, 0x400000 + 16 * i) + lines)
    for i in range(functions):
        yield block(5, number(1, i + 1) + number(2, first_name + i) + number(3, first_name + i))
    for text in texts:
        yield block(6, text.encode())
    paths = [block(1, b"".join(varint(f + 1) for f in reversed(stack))) for stack in inputs.stacks(max(1, samples // 14), locations, 0.75)]
    value = block(2, varint(3) + varint(30))
    label_sets = [block(3, number(1, 5) + number(2, 8 + i % 64)) + block(3, number(1, 6) + number(3, i)) if labels else b"" for i in range(500)]
    piece = []
    for i in range(samples):
        piece.append(block(2, paths[i % len(paths)] + value + label_sets[i * 7 % 500]))
        if len(piece) == 10000:
            yield b"".join(piece)
            piece = []
    yield b"".join(piece)
    yield number(10, 1000)
