#!/usr/bin/env python3
"""Writes man pages, cprof.1 and one for each command: gen_man.py PROGRAM FOLDER. Options, descriptions and summaries are the
program's own (describe.py); EXAMPLES are those of docs/COMMAND.md, the lines of the first `sh` block below `## Examples`.
"""
import re
import sys
from pathlib import Path

from describe import read_program

DOCS = Path(__file__).resolve().parent.parent / "docs"
EXAMPLES = re.compile(r"^## Examples\n.*?```sh\n(.*?)```", re.DOTALL | re.MULTILINE)
STATUS = [("0", "Done."), ("1", "Failed; one line on stderr says what, and how to mend it."), ("2", "Wrong usage.")]


def escape(text):
    """Text for roff: no character of it is a request, and hyphens stay what one types."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def bold(text):
    return f"\\fB{escape(text)}\\fR"


def italic(text):
    return f"\\fI{escape(text)}\\fR"


def sentence(text):
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def value_of(name, option):
    if not option.value:
        return ""
    if not option.takes_word:
        return "[=" + italic(option.value.strip("[=]")) + "]"
    shown = bold("|").join(map(bold, option.choices)) if option.value == "|".join(option.choices) else italic(option.value)
    return ("=" if name.startswith("--") else " ") + shown


def option_entry(option):
    long = option.names[-1]
    names = [bold(name) + (value_of(name, option) if name == long else "") for name in option.names]
    lines = [".TP", ", ".join(names), escape(sentence(option.description))]
    if option.default:
        lines.append(escape(f"Default: {option.default}."))
    if option.choices and option.value != "|".join(option.choices):
        lines += [".br", escape(("Known: " if option.value == "EVENT" else "One of: ") + ", ".join(option.choices) + ".")]
    return lines


def positional_entry(option):
    return [".TP", italic(option.names[0].upper()) + (" ..." if option.is_many else ""), escape(sentence(option.description))]


def synopsis(command):
    words = [bold(f"cprof {command.name}"), "[" + italic("OPTIONS") + "]"]
    for option in command.positionals:
        word = italic(option.names[0].upper()) + (" ..." if option.is_many else "")
        words.append(word if option.is_required else f"[{word}]")
    if command.takes_command:
        words.append("[[" + bold("--") + "] " + italic("CMD") + " [" + italic("ARGS") + "]]")
    return " ".join(words)


def examples_of(page):
    """(command line, what it is for) of the page's examples; the latter may be empty."""
    found = EXAMPLES.search(page.read_text()) if page.is_file() else None
    for line in (found.group(1).replace("\\\n", " ").splitlines() if found else ()):
        command, *purpose = re.split(r"\s+# ", line, maxsplit=1)
        if command.strip():
            yield " ".join(command.split()), "".join(purpose).strip()


def example_lines(page):
    lines = [".SH EXAMPLES"]
    for command, purpose in examples_of(page):
        lines += [".TP", bold(command), escape(sentence(purpose)) if purpose else "\\&"]
    return lines if len(lines) > 1 else []


def see_also(name, commands):
    others = ["cprof"] * (name != "cprof") + [f"cprof-{c.name}" for c in commands if f"cprof-{c.name}" != name and not c.alias_of]
    pages = ", ".join(bold(page) + "(1)" for page in others)
    return [".SH SEE ALSO", pages + ".", ".PP", "The documents of cprof in Markdown: " + italic("/usr/share/doc/cprof") + "."]


def heading(name, version, summary):
    return [f'.\\" Made of the program\'s own option tables by tools/gen_man.py.',
            f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "cprof {version}" "User Commands"',
            ".SH NAME", escape(name) + " \\- " + escape(summary)]


def status_lines(command):
    lines = [".SH EXIT STATUS"]
    for number, meaning in STATUS:
        lines += [".TP", bold(number), escape(meaning)]
    if command and command.takes_command:
        lines += [".PP", "When a command was run, its own exit status."]
    return lines


def command_page(command, version, commands):
    if command.alias_of:
        return f".so man1/cprof-{command.alias_of}.1\n"
    lines = heading(f"cprof-{command.name}", version, command.summary)
    lines += [".SH SYNOPSIS", synopsis(command), ".SH DESCRIPTION", escape(command.description)]
    if command.footer:
        lines += [".PP", escape(command.footer)]
    for option in command.positionals:
        lines += positional_entry(option)
    lines.append(".SH OPTIONS")
    for option in command.options:
        lines += option_entry(option)
    lines += example_lines(DOCS / f"{command.name}.md") + status_lines(command) + see_also(f"cprof-{command.name}", commands)
    return "\n".join(lines) + "\n"


def program_page(version, commands):
    lines = heading("cprof", version, "sampling profiler for native programs")
    lines += [".SH SYNOPSIS", bold("cprof") + " " + italic("COMMAND") + " [" + italic("OPTIONS") + "]", ".br",
              bold("cprof \\-\\-help".replace("\\-", "-")) + " | " + bold("--version"), ".SH DESCRIPTION",
              escape("Where the time of native programs goes: samples of CPU time, and of elapsed time with its waits. "
                     "Stacks come from programs as they are, without frame pointers."),
              ".PP", "Start with " + bold("cprof record -- ./your-program") + ".", ".SH COMMANDS"]
    for command in commands:
        lines += [".TP", bold(f"cprof {command.name}"), escape(sentence(command.summary))]
        lines.append(("See " if not command.alias_of else "It is described in ") + bold(f"cprof-{command.alias_of or command.name}") + "(1).")
    return "\n".join(lines + status_lines(None) + see_also("cprof", commands)) + "\n"


def write_pages(program, folder):
    version, commands = read_program(program)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cprof.1").write_text(program_page(version, commands))
    for command in commands:
        (folder / f"cprof-{command.name}.1").write_text(command_page(command, version, commands))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_pages(sys.argv[1], Path(sys.argv[2]))


if __name__ == "__main__":
    main()
