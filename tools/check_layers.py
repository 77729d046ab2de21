#!/usr/bin/env python3
"""Checks every #include of src/ against docs/layers.txt. Run by ctest (label lint).

A file belongs to the longest row that its folder lies in. It may include its own module and what the row names. A
*_test.cc may include any row above its own as well: tests build their inputs with what lies below.
"""
import argparse
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCES = {".cc", ".c", ".h", ".inc"}
LOOSE_ALLOWED = {"main.cc", "CMakeLists.txt"}
VAGUE_NAMES = {"util", "utils", "common", "misc", "helper", "helpers"}
EVERYTHING = "*"


def read_layers(path):
    """Returns {module: allowed modules or EVERYTHING} in the file's order, and the table's own faults."""
    layers, faults = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        module, colon, allowed = line.partition(":")
        module, names = module.strip(), allowed.split()
        if not colon or module in layers:
            faults.append(f"{path}:{number}: not 'module: modules', or named twice: {line}")
            continue
        for name in names:
            if name != EVERYTHING and name not in layers:
                faults.append(f"{path}:{number}: {module} names {name}, which is no row above it")
        layers[module] = names
    return layers, faults


def module_of(relative, layers):
    """The longest row that this path (relative to src/) lies in, or None."""
    folder = relative.parent
    while folder.as_posix() != ".":
        if folder.as_posix() in layers:
            return folder.as_posix()
        folder = folder.parent
    return None


def allowed_for(module, is_test, layers):
    rows = list(layers)
    below = set(rows[:rows.index(module)])
    if is_test or EVERYTHING in layers[module]:
        return below | {module}
    return set(layers[module]) | {module}


def name_faults(relative, src):
    for part in relative.parts:
        if Path(part).stem.lower() in VAGUE_NAMES:
            yield f"{src / relative}: a name that says nothing ('{part}'): name what it holds"
    if len(relative.parts) == 1 and relative.name not in LOOSE_ALLOWED:
        yield f"{src / relative}: a loose file in src/ (only main.cc may be)"


def include_faults(relative, src, layers):
    module = module_of(relative, layers)
    if module is None and len(relative.parts) > 1:
        yield f"{src / relative}: its folder has no row in docs/layers.txt"
        return
    allowed = set(layers) if module is None else allowed_for(module, relative.stem.endswith("_test"), layers)
    for number, line in enumerate((src / relative).read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"{src / relative}:{number}"
        if not (src / target).is_file():
            if quote == '"' and not target.endswith(".skel.h"):
                yield f'{where}: "{target}" is no path below src/ (write includes as "module/file.h")'
            continue
        if quote == "<":
            yield f'{where}: <{target}> is ours: write it in quotes'
        wanted = module_of(Path(target), layers)
        if wanted not in allowed:
            yield f"{where}: {module or 'main.cc'} may not include {wanted} ({target})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    src = (root := parser.parse_args().root) / "src"
    layers, faults = read_layers(root / "docs" / "layers.txt")
    files = sorted(path.relative_to(src) for path in src.rglob("*") if path.is_file())
    for relative in files:
        faults.extend(name_faults(relative, src))
        if relative.suffix in SOURCES:
            faults.extend(include_faults(relative, src, layers))
    print("\n".join(faults) if faults else f"{len(files)} files in {len(layers)} layers: no include goes up")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
