"""Makes recording.perf.data of a small C program, with what recordings lack: lost records, code without a name, a stack that was
cut. Prints what is where, as JSON. Usage: recording.py FOLDER"""

import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import perfdata

SOURCE = """\
static inline unsigned mix(unsigned n) {
  return n * 31 + (n >> 3);
}
__attribute__((noinline)) unsigned hot(unsigned n) {
  for (unsigned i = n; i > 0; i--)
    n = mix(n + i);
  return n;
}
int main(int count, char **words) {
  return (int)hot((unsigned)count) + (words == 0);
}
"""
LOST = 2
REGISTERS, STACK = 1 << 12, 1 << 13
ALL_REGISTERS, SP, IP = 0xff0fff, 7, 8


class Recording(perfdata.PerfData):
    def add_metric_of_stacks(self, name):
        self.metrics[name] = ident = len(self.metrics) + 1
        kinds = perfdata.IDENTIFIER | perfdata.IP | perfdata.TID | perfdata.TIME | perfdata.PERIOD | REGISTERS | STACK
        attr = struct.pack("<IIQQQQQ", perfdata.SOFTWARE, 96, perfdata.CPU_CLOCK, 1_000_000, kinds, 0, perfdata.SAMPLE_ID_ALL)
        attr += bytes(32) + struct.pack("<QII", ALL_REGISTERS, 8, 0)
        self.record(perfdata.HEADER_ATTR, attr + struct.pack("<Q", ident))

    # A stack of one return address: all that was copied.
    def add_cut_sample(self, metric, thread, address, caller):
        self.time += 1_000_000
        registers = [0] * 24
        registers[SP], registers[IP] = 0x7ffc00001000, perfdata.BASE + address
        body = struct.pack("<QQIIQQQ", self.metrics[metric], registers[IP], perfdata.PROCESS, thread, self.time, 1_000_000, 2)
        body += b"".join(struct.pack("<Q", r) for bit, r in enumerate(registers) if ALL_REGISTERS >> bit & 1)
        self.record(perfdata.SAMPLE, body + struct.pack("<QQQ", 8, perfdata.BASE + caller, 8), perfdata.USER_MODE)

    def add_lost(self, count):
        self.record(LOST, struct.pack("<QQ", 1, count) + self.sample_id(perfdata.PROCESS))


def symbols_of(program):
    lines = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in map(str.split, lines) if len(row) == 4}


def build_id_of(program):
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return bytes.fromhex(notes.split("Build ID: ")[1].split()[0])


def main(folder):
    program, source = os.path.join(folder, "small"), os.path.join(folder, "small.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", program, source], check=True)
    (hot, size), (caller, _) = symbols_of(program)["hot"], symbols_of(program)["main"]
    data = Recording(program)
    data.add_metric("cpu-clock", perfdata.CPU_CLOCK, 1_000_000)
    data.add_metric_of_stacks("stacks")
    data.add_build_id(program, build_id_of(program))
    data.map_program()
    data.add_thread(perfdata.PROCESS, "small")
    for address, count in ((hot, 60), (hot + size - 1, 40)):
        for _ in range(count):
            data.add_sample("cpu-clock", perfdata.PROCESS, [address, caller + 4], 1_000_000)
    for _ in range(20):
        data.add_sample("cpu-clock", perfdata.PROCESS, [-0x100000], 1_000_000)
    for _ in range(10):
        data.add_cut_sample("stacks", perfdata.PROCESS, hot, caller + 4)
    data.add_lost(7)
    with open(os.path.join(folder, "recording.perf.data"), "wb") as file:
        file.write(data.content)
    print(json.dumps({"first": hot, "last": hot + size - 1}))


main(sys.argv[1])
