#!/usr/bin/env python3
"""Checks what the documents claim: relative links and their anchors resolve, every command shown exists (`./dev VERB`
in dev, `cprof VERB --option` in the program's own --help), and each format and each command has its page. Run by ctest (label lint).
"""
import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

from describe import read_program
from gen_man import examples_of

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
# Commands are checked where people are told to type them; design notes may speak of what is not there yet.
COMMAND_PAGES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs/testing.md")


def pages_of(root):
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def anchor_of(title):
    title = re.sub(r"[`*]", "", title.strip().lower())
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def anchors_in(page):
    text = FENCE.sub("", page.read_text())
    return {anchor_of(title) for title in re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)}


def link_faults(page, root):
    faults = []
    for groups in LINK.findall(FENCE.sub("", page.read_text())):
        target = groups[0] or groups[1]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        name = page.relative_to(root)
        if not file.exists():
            faults.append(f"{name}: link to {target}, which does not exist")
        elif anchor and file.suffix == ".md" and anchor not in anchors_in(file):
            faults.append(f"{name}: link to {target}: no such heading")
    return faults


def command_lines(text):
    for language, body in FENCE.findall(text):
        if language in ("", "sh", "bash", "console"):
            yield from body.replace("\\\n", " ").splitlines()
    yield from INLINE.findall(FENCE.sub("", text))


def split_command(words):
    """(program, verb, options) for the first command of ours in the words, or None. Placeholders are no options."""
    for index, word in enumerate(words[:4]):
        program = Path(word).name
        if program not in ("dev", "cprof") or (program == "dev" and word != "./dev") or len(words) < index + 2:
            continue
        verb, rest = words[index + 1], words[index + 2:]
        if not re.fullmatch(r"[a-z]+", verb):
            return None
        own = rest[:rest.index("--")] if "--" in rest else rest
        return program, verb, [re.split(r"[=\[]", word)[0] for word in own if re.match(r"-{1,2}[A-Za-z]", word)]
    return None


def commands_in(text):
    found = []
    for line in command_lines(text):
        try:
            words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        except ValueError:
            continue
        command = split_command(words)
        if command:
            found.append(command)
    return found


def help_of(program, *verb):
    run = subprocess.run([program, *verb, "--help"], capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def dev_verbs(root):
    return set(re.findall(r"^do_([a-z]+)\(\)", (root / "dev").read_text(), re.MULTILINE))


def command_faults(page, root, program):
    faults, verbs = [], dev_verbs(root)
    for kind, verb, options in commands_in((root / page).read_text()):
        if kind == "dev":
            if verb not in verbs:
                faults.append(f"{page}: shows `./dev {verb}`, which dev does not know")
            continue
        text = help_of(program, verb)
        if text is None:
            faults.append(f"{page}: shows `cprof {verb}`, but `cprof {verb} --help` fails")
            continue
        missing = [option for option in options if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)]
        faults.extend(f"{page}: shows `cprof {verb} {option}`, which its --help does not name" for option in missing)
    return faults


def format_faults(root):
    formats = root / "src" / "format"
    for folder in sorted(path for path in formats.iterdir() if path.is_dir() and any(path.glob("*.cc"))):
        if not (root / "docs" / "formats" / f"{folder.name}.md").is_file():
            yield f"src/format/{folder.name} has no docs/formats/{folder.name}.md"


def verb_faults(root, commands):
    """Each command has docs/COMMAND.md, whose examples (the man page's, too) show it."""
    for command in commands:
        page = root / "docs" / f"{command.name}.md"
        if command.alias_of:
            continue
        if not page.is_file():
            yield f"cprof {command.name} has no docs/{command.name}.md"
        elif not any(re.search(rf"(?:^|\s)cprof {command.name}\b", line) for line, _ in examples_of(page)):
            yield f"docs/{command.name}.md has no example of cprof {command.name} in the first sh block below '## Examples'"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--program", help="the built cprof; without it its commands are not checked")
    options = parser.parse_args()
    faults = [fault for page in pages_of(options.root) for fault in link_faults(page, options.root)]
    faults.extend(format_faults(options.root))
    if options.program:
        _, commands = read_program(options.program)
        faults.extend(verb_faults(options.root, commands))
        own_pages = [f"docs/{command.name}.md" for command in commands]
        for page in [*COMMAND_PAGES, *own_pages]:
            if (options.root / page).is_file():
                faults.extend(command_faults(page, options.root, options.program))
    print("\n".join(faults) if faults else f"{len(pages_of(options.root))} pages: links, commands and format pages hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
