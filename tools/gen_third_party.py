#!/usr/bin/env python3
"""Writes the licences of all that is linked into the program, as the distribution's packages state them, with the texts of
the GNU and Apache licences, to which those only refer: gen_third_party.py BUILD_DIRECTORY FILE. Which libraries those are
comes from the link command, as in check_licences.py. Where there is no dpkg it writes that it could not.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

from check_licences import header_folders, link_command, read_table

COMMON = Path("/usr/share/common-licenses")
# Linked without being named, and the headers whose code is inside: a file of each, by which its package is found.
UNNAMED = {"C++ runtime": "libstdc++.a", "C library": "libc.a", "compiler support": "libgcc.a"}
HEADER_FILES = {"fmt": "fmt/core.h", "boost": "boost/version.hpp", "protozero": "protozero/version.hpp",
                "rapidjson": "rapidjson/rapidjson.h", "CLI": "CLI/App.hpp", "nlohmann": "nlohmann/json.hpp"}


def linked_files(command):
    return [word for word in shlex.split(command) if re.fullmatch(r"/.*/lib[^/]+\.(?:a|so[.\d]*)", word)]


def compiler_file(name):
    return subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def used_files(build):
    headers = [f"/usr/include/{HEADER_FILES[folder]}" for folder in header_folders() if folder in HEADER_FILES]
    return linked_files(link_command(build, "cprof")) + [compiler_file(name) for name in UNNAMED.values()] + headers


def package_of(path):
    """The package that a file belongs to, or None."""
    for candidate in dict.fromkeys((str(path), str(Path(path).resolve()))):
        found = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0].split(",")[0]
    return None


def copyright_of(package):
    """The file, or None."""
    path = Path("/usr/share/doc", package, "copyright")
    return path if path.is_file() else None


def common_names(licences):
    """The files of common-licenses that these licences are: LGPL-3 refers to GPL-3 by itself."""
    names = {re.match(r"[A-Z]+-[\d.]*\d|Apache-2.0", licence) for licence in licences}
    names = {name.group().removesuffix(".0") if "GPL" in name.group() else name.group() for name in names if name}
    return sorted(name for name in names | {"GPL-3"} if (COMMON / name).is_file())


def section(title, text):
    return f"{'=' * 100}\n{title}\n{'=' * 100}\n\n{text.rstrip()}\n\n"


def collect(build):
    """{package: its copyright file's text}; a file of no package is an error."""
    texts, unknown = {}, []
    for path in used_files(build):
        package = package_of(path)
        file = package and copyright_of(package)
        if file:
            texts[package] = file.read_text(errors="replace")
        else:
            unknown.append(path)
    if unknown:
        sys.exit("no package with a copyright file holds " + ", ".join(unknown))
    return texts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = "".join(f"  {name:14} {licence:34} {origin}\n" for (_, name), (licence, origin) in read_table().items())
    head = "Libraries that cprof contains, and their licences:\n\n" + rows + "\nThe licences as their packages state them follow.\n\n"
    try:
        texts = collect(sys.argv[1])
    except FileNotFoundError:  # no dpkg
        Path(sys.argv[2]).write_text(head + "This build was made where no package database has them.\n")
        return
    out = head + "".join(section(package, text) for package, text in sorted(texts.items()))
    out += "".join(section(name, (COMMON / name).read_text()) for name in common_names(licence for licence, _ in read_table().values()))
    Path(sys.argv[2]).write_text(out)


if __name__ == "__main__":
    main()
