"""Counts the records of a perf.data file (file mode): samples, losses, bytes. Their heads only, so gigabytes take a second.

The layout is that of the kernel's include/uapi/linux/perf_event.h and of tools/perf/Documentation/perf.data-file-format.txt.
"""

import mmap
import struct
from dataclasses import dataclass

MAGIC = b"PERFILE2"
DATA_SECTION_AT = 40
LOST, SAMPLE, LOST_SAMPLES = 2, 9, 13


@dataclass
class Facts:
    samples: int
    lost: int
    data_bytes: int


def facts_of(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:8] != MAGIC:
            raise ValueError(f"{path} is no perf.data file")
        offset, size = struct.unpack_from("<QQ", data, DATA_SECTION_AT)
        return count(data, offset, offset + size)


def count(data, at, end):
    start, samples, lost, lost_samples = at, 0, 0, 0
    while at + 8 <= end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if size < 8:
            raise ValueError(f"a record of {size} bytes at {at}")
        if kind == SAMPLE:
            samples += 1
        elif kind == LOST:
            lost += struct.unpack_from("<Q", data, at + 16)[0]
        elif kind == LOST_SAMPLES:
            lost_samples += struct.unpack_from("<Q", data, at + 8)[0]
        at += size
    # Newer kernels tell the same loss twice: as it happens, and per event at the end.
    return Facts(samples, max(lost, lost_samples), end - start)
