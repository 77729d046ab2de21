"""One run of a virtual machine by software emulation: an initramfs made here, a stock kernel, a script inside, its output.

Used by test_vm.py. The guest has busybox, cprof's static program, test programs with the shared libraries that ldd names,
and nothing else: no disk, no network, no module. It needs no privileges on this machine and no /dev/kvm.
"""

import os
import re
import shutil
import stat
import subprocess

QEMU = "qemu-system-x86_64"
MEMORY = "1G"

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t securityfs securityfs /sys/kernel/security
mount -t bpf bpf /sys/fs/bpf
echo 1 >/proc/sys/kernel/printk
# run NAME SECONDS COMMAND...: its output between two lines, with its status. Bounded, for a guest that waits is a test that waits.
run() {
  name=$1 seconds=$2
  shift 2
  echo "<<<< $name"
  timeout -s KILL "$seconds" "$@" >/tmp/said 2>&1
  status=$?
  cat /tmp/said
  echo ">>>> $name $status"
}
"""
# No word of stalls: a guest whose CPUs are threads on a busy machine has them without a fault of its kernel.
FINISH = """
run kernel-log 10 sh -c 'dmesg | grep -E "BUG:|WARNING:|Oops|general protection|scheduling while atomic" | grep -v "soft lockup"; true'
run end 1 true
poweroff -f
"""


class Cpio:
    """A 'newc' archive, as the kernel unpacks it: everything belongs to root."""

    def __init__(self):
        self.parts, self.known, self.number = [], set(), 0

    def add(self, name, mode, data=b""):
        self.number += 1
        encoded = name.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self.parts += [padded(header + encoded), padded(data)]

    def folder(self, path):
        if path in ("", "/") or path in self.known:
            return
        self.folder(os.path.dirname(path))
        self.known.add(path)
        self.add(path.lstrip("/"), stat.S_IFDIR | 0o755)

    def file(self, path, data, mode=0o755):
        if path in self.known:
            return
        self.folder(os.path.dirname(path))
        self.known.add(path)
        self.add(path.lstrip("/"), stat.S_IFREG | mode, data)

    def copy(self, source, path):
        with open(source, "rb") as file:
            self.file(path, file.read())

    def bytes(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def padded(data):
    return data + bytes(-len(data) % 4)


def libraries_of(program):
    """Paths of the shared libraries and the loader of a program; none for a static one."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return re.findall(r"=> (/\S+) \(", text) + re.findall(r"^\s*(/\S+) \(", text, re.MULTILINE)


def initramfs(cprof, programs, script, texts):
    """Bytes of the archive: programs are paths and lie in /programs in the guest, script is what /init runs, texts are more
    files of the guest by their paths."""
    archive = Cpio()
    for folder in ("/proc", "/sys", "/dev", "/tmp", "/root"):
        archive.folder(folder)
    archive.copy(shutil.which("busybox"), "/bin/busybox")
    archive.copy(cprof, "/cprof")
    for library in libraries_of(cprof):  # none for the static program, but any other can be tried
        archive.copy(library, library)
    for program in programs:
        beside = os.path.dirname(program) + "/"
        archive.copy(program, "/programs/" + os.path.basename(program))
        for library in libraries_of(program):
            archive.copy(library, library)
            if library.startswith(beside):  # one found by $ORIGIN
                archive.copy(library, "/programs/" + os.path.basename(library))
    for path, text in texts.items():
        archive.file(path, text.encode())
    archive.file("/init", (INIT + script + FINISH).encode())
    return archive.bytes()


def boot(kernel, archive, log, timeout):
    """Runs to power-off; the serial console's text. log is also left as a file for who looks into a failure."""
    image = log + ".initramfs"
    with open(image, "wb") as file:
        file.write(archive)
    try:
        console = boot_once(kernel, image, log, timeout, "multi")
        if died_of_patched_code(console):
            print(f"{os.path.basename(kernel)}: again, with one emulator thread", flush=True)
            console = boot_once(kernel, image, log, 2 * timeout, "single")
    finally:
        os.unlink(image)
    return console


def boot_once(kernel, image, log, timeout, threads):
    command = [QEMU, "-accel", f"tcg,thread={threads}", "-smp", "2", "-m", MEMORY, "-cpu", "max", "-nodefaults", "-nic", "none",
               "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", image,
               "-append", "console=ttyS0 panic=-1 quiet"]
    try:
        with open(log, "wb") as output:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=timeout)
    except subprocess.TimeoutExpired:
        pass  # the parts that are missing tell
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read().replace("\r", "")


def died_of_patched_code(console):
    """The kernel patches its own code by way of a breakpoint. With one emulator thread a CPU, QEMU may run its translation of
    that breakpoint after the kernel has taken it away: an 'Oops: int3' that no real CPU has. One thread for all does not."""
    return "Kernel panic" in console and re.search(r"Oops: int3|int3: \d+", console) is not None


class Part:
    def __init__(self, text, status):
        self.text, self.status = text, status


def parts_of(console):
    """{name: Part} of the console's text; a part that did not end has status None."""
    parts = {}
    for match in re.finditer(r"^<<<< (\S+)\n(.*?)(?:^>>>> \1 (\d+)$|(?=^<<<< )|\Z)", console, re.MULTILINE | re.DOTALL):
        parts[match[1]] = Part(match[2], None if match[3] is None else int(match[3]))
    return parts
