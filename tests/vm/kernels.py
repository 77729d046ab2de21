"""Finds stock Debian kernels in the archive that this machine's apt is set up for, and brings their image into a folder.

Used by test_vm.py. The machine's own package lists come first; when they name nothing (or something that the archive has
since replaced) fresh ones are read into a private folder. Other suites of the same archive are reached by private lists
too. Nothing of the machine's apt changes, no address is written here, and what is not signed is not taken.
"""

import os
import re
import shutil
import subprocess

PACKAGE = re.compile(r"linux-image-(\d+)\.(\d+)\.(\S+)-cloud-amd64$")
SEARCH = r"^linux-image-[0-9].*-cloud-amd64$"
RELEASES = ("bullseye", "bookworm", "trixie")
POCKETS = ("", "-security", "-backports")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DOWNLOAD_SECONDS = 300


class NoKernel(Exception):
    """No such package can be had; the text says why in a few words."""


def call(command, timeout=DOWNLOAD_SECONDS, cwd=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=timeout,
                          cwd=cwd, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        raise NoKernel(f"{command[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout


class Suite:
    """One view of the archive: the machine's own lists (folder None) or private ones of the given source lines."""

    def __init__(self, name, folder=None, sources=None):
        self.name, self.folder, self.options = name, folder, []
        if folder is None:
            return
        os.makedirs(os.path.join(folder, "lists", "partial"), exist_ok=True)
        os.makedirs(os.path.join(folder, "cache"), exist_ok=True)
        self.options = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache",
                        "-o", "APT::Sandbox::User=root"]
        if sources:
            with open(os.path.join(folder, "sources.list"), "w") as file:
                file.write(sources)
            self.options += ["-o", f"Dir::Etc::sourcelist={folder}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null"]

    def update(self):
        if self.folder is not None:
            call(["apt-get", *self.options, "-qq", "update"])

    def images(self):
        """{(major, minor): newest package} of the cloud images in the lists."""
        names = [line.split(" ", 1)[0] for line in call(["apt-cache", *self.options, "search", "--names-only", SEARCH]).splitlines()]
        return newest_by_line(names)

    def download(self, package, folder):
        call(["apt-get", *self.options, "-qq", "download", package], cwd=folder)

    def depends(self, package):
        text = call(["apt-cache", *self.options, "depends", "--no-recommends", "--no-suggests", package])
        return re.findall(r"Depends: (\S+)", text)


def newest_by_line(names):
    newest = {}
    for name in names:
        match = PACKAGE.match(name)
        if not match:
            continue  # a meta package: linux-image-6.12-cloud-amd64
        line = int(match[1]), int(match[2])
        if version_key(name) > version_key(newest.get(line, "")):
            newest[line] = name
    return newest


def version_key(name):
    return [int(digits) for digits in re.findall(r"\d+", name.replace("amd64", ""))]


def repositories():
    """{suite: address} of Debian's suites that this machine's apt reads."""
    if not shutil.which("apt-get"):
        raise NoKernel("no apt-get")
    text = call(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"])
    rows = [line.split() for line in text.splitlines()]
    return {row[1]: row[0] for row in rows if len(row) == 3 and row[2] == "main" and row[1].startswith(RELEASES)}


def other_suites(folder):
    """The suites of the same archive, this machine's own release and others, each with private lists in folder."""
    known = repositories()
    security = next((address for suite, address in known.items() if suite.endswith("-security")), None)
    general = next((address for suite, address in known.items() if "-" not in suite), None)
    signed = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    for suite in (release + pocket for release in RELEASES for pocket in POCKETS):
        address = security if suite.endswith("-security") else general
        if address:
            yield Suite(suite, os.path.join(folder, suite), f"deb {signed}{address} {suite} main\n")


def bring(suite, package, folder):
    """The kernel image of a package, as a file in folder; kept for the next run."""
    image = os.path.join(folder, package)
    if os.path.exists(image):
        return image
    unpacked = os.path.join(folder, package + ".unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    os.makedirs(unpacked)
    try:
        found = unpack(suite, package, unpacked)
        if not found:  # since 7.x the image package may be empty and depend on the one that holds the image
            binary = next((name for name in suite.depends(package) if name.startswith("linux-binary-")), None)
            found = binary and unpack(suite, binary, unpacked)
        if not found:
            raise NoKernel(f"{package} holds no vmlinuz")
        os.rename(found, image)
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return image


def unpack(suite, package, folder):
    suite.download(package, folder)
    for name in [name for name in os.listdir(folder) if name.endswith(".deb")]:
        call(["dpkg-deb", "-x", name, "."], cwd=folder)
        os.unlink(os.path.join(folder, name))
    for place, _, names in os.walk(folder):
        for name in names:
            if name.startswith("vmlinuz"):
                return os.path.join(place, name)
    return None


def newest_image(line, folder):
    """The newest image of one kernel line, say (6, 1), of this machine's own release."""
    os.makedirs(folder, exist_ok=True)
    if not repositories():
        raise NoKernel("this machine's apt reads no Debian suite")
    reasons = []
    for suite in (Suite("own"), Suite("fresh", os.path.join(folder, "fresh"))):
        try:
            suite.update()
            package = suite.images().get(line)
            if package:
                return bring(suite, package, folder)
            reasons.append(f"{suite.name} lists: no {line[0]}.{line[1]}")
        except (NoKernel, subprocess.TimeoutExpired) as error:
            reasons.append(f"{suite.name} lists: {error}")
    raise NoKernel(" / ".join(reasons).replace(";", ","))


def all_images(folder):
    """Yields (line, image or None, words) for the newest image of every line that any suite has; words tell what failed."""
    best, suites = {}, {}
    for suite in other_suites(folder):
        try:
            suite.update()
            images = suite.images()
        except (NoKernel, subprocess.TimeoutExpired) as error:
            yield None, None, f"{suite.name}: {error}"
            continue
        for line, package in images.items():
            if version_key(package) > version_key(best.get(line, "")):
                best[line], suites[line] = package, suite
    for line in sorted(best):
        try:
            yield line, bring(suites[line], best[line], folder), f"{best[line]} of {suites[line].name}"
        except (NoKernel, subprocess.TimeoutExpired) as error:
            yield line, None, f"{best[line]}: {error}"
