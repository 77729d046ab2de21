"""Makes small perf.data files (pipe form) whose samples lie in a real program: input for tests that cannot record."""

import os
import struct

IDENTIFIER, IP, TID, TIME, CALLCHAIN, PERIOD = 1 << 16, 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 8
SAMPLE_ID_ALL = 1 << 18
SOFTWARE, CPU_CLOCK, PAGE_FAULTS = 1, 0, 2
COMM, SAMPLE, MMAP2, HEADER_ATTR, HEADER_BUILD_ID, HEADER_FEATURE = 3, 9, 10, 64, 67, 80
HOSTNAME, OS_RELEASE = 3, 4
KERNEL_MODE, USER_MODE = 1, 2
KERNEL_CONTEXT, USER_CONTEXT = 2**64 - 128, 2**64 - 512
PT_LOAD, PF_X = 1, 1
BASE = 0x555555554000
PROCESS = 100


def executable_segment(program):
    """(file offset, address, size) of the loadable segment with the code."""
    with open(program, "rb") as file:
        header = file.read(64)
        table, (size, count) = struct.unpack_from("<Q", header, 32)[0], struct.unpack_from("<HH", header, 54)
        for row in range(count):
            file.seek(table + row * size)
            kind, flags, offset, address, _, _, in_memory, _ = struct.unpack("<IIQQQQQQ", file.read(56))
            if kind == PT_LOAD and flags & PF_X:
                return offset, address, in_memory
    raise ValueError(f"{program} has no code")


class PerfData:
    def __init__(self, program):
        self.content = b"PERFILE2" + struct.pack("<Q", 16)
        self.time = 1_000_000_000
        self.metrics = {}
        self.program = program

    def record(self, kind, body, misc=0):
        self.content += struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def add_metric(self, name, config, period):
        self.metrics[name] = ident = len(self.metrics) + 1
        kinds = IDENTIFIER | IP | TID | TIME | CALLCHAIN | PERIOD
        attr = struct.pack("<IIQQQQQ", SOFTWARE, 96, config, period, kinds, 0, SAMPLE_ID_ALL).ljust(96, b"\0")
        self.record(HEADER_ATTR, attr + struct.pack("<Q", ident))

    def add_feature(self, number, text):
        padded = text.encode().ljust(64, b"\0")
        self.record(HEADER_FEATURE, struct.pack("<QI", number, len(padded)) + padded + b"\0\0\0\0")

    def add_build_id(self, path, build_id):
        text = path.encode() + b"\0"
        self.record(HEADER_BUILD_ID, struct.pack("<i", -1) + build_id.ljust(24, b"\0") + text.ljust(-len(text) % 4 + len(text), b"\0"))

    def sample_id(self, thread):
        return struct.pack("<IIQQ", PROCESS, thread, self.time, 1)

    def add_thread(self, thread, name):
        text = name.encode() + b"\0"
        self.record(COMM, struct.pack("<II", PROCESS, thread) + text.ljust(-len(text) % 8 + len(text), b"\0") + self.sample_id(thread))

    def map_program(self):
        offset, address, size = executable_segment(self.program)
        page = offset % 4096
        text = self.program.encode() + b"\0"
        file = os.stat(self.program)  # device and inode tell that the file of this path is the one that was mapped
        body = struct.pack("<IIQQQIIQQII", PROCESS, PROCESS, BASE + address - page, size + page, offset - page,
                           os.major(file.st_dev), os.minor(file.st_dev), file.st_ino, 0, 5, 2)
        self.record(MMAP2, body + text.ljust(-len(text) % 8 + len(text), b"\0") + self.sample_id(PROCESS), USER_MODE)

    def add_sample(self, metric, thread, addresses, period):
        """addresses: as in the program's file, leaf first."""
        self.add_chain(metric, thread, [USER_CONTEXT] + [BASE + address for address in addresses], period, USER_MODE)

    def add_kernel_sample(self, metric, thread, addresses, period):
        self.add_chain(metric, thread, [KERNEL_CONTEXT] + addresses, period, KERNEL_MODE)

    def add_chain(self, metric, thread, chain, period, mode):
        self.time += 1_000_000
        self.record(SAMPLE, struct.pack("<QQIIQQQ", self.metrics[metric], chain[1], PROCESS, thread, self.time, period, len(chain))
                    + struct.pack(f"<{len(chain)}Q", *chain), mode)
