#!/usr/bin/env python3
"""Writes completions: gen_completions.py PROGRAM FOLDER gives FOLDER/cprof (bash), FOLDER/_cprof (zsh), FOLDER/cprof.fish.
Commands, options, kinds of values and choices are the program's own (describe.py); how a shell completes a kind is in the
three tables below, how it finds its way among words in tools/completions/.
"""
import sys
from pathlib import Path

from describe import read_program

TEMPLATES = Path(__file__).resolve().parent / "completions"
# Kinds that a shell can complete; choices are completed whatever the kind, all others are typed.
BASH = {"FILE": "files", "DIR": "directories", "CGROUP": "directories", "PID": "pids", "TID": "tids", "NAME": "names"}
ZSH = {"FILE": "_files", "DIR": "_files -/", "CGROUP": "_files -/ -W /sys/fs/cgroup", "PID": "_cprof_pids", "TID": "_cprof_tids",
       "NAME": "_cprof_names"}
FISH = {"DIR": "(__fish_complete_directories)", "CGROUP": "(__fish_complete_directories)", "PID": "(__fish_complete_pids)",
        "NAME": "(__cprof_process_names)", "TID": "(__cprof_tids)"}
LISTS = {"PID", "TID", "EVENT"}  # several in one word, by commas


def own_commands(commands):
    return [command for command in commands if not command.alias_of]


def pattern_of(command, commands):
    """The command and its aliases as an alternative of shell patterns."""
    return "|".join([command.name] + [other.name for other in commands if other.alias_of == command.name])


def runners(commands):
    """The commands that end in a command to run, each with its aliases as a pattern, and its options that take the next word."""
    for command in own_commands(commands):
        if command.takes_command:
            names = [name for option in command.options if option.takes_word for name in option.names]
            yield pattern_of(command, commands), " ".join(names)


def fill(template, **parts):
    text = (TEMPLATES / template).read_text()
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


# --- bash -----------------------------------------------------------------------------------------------------------


def bash_kind(option):
    """What the function _cprof_complete takes: a word for a kind, or =the choices."""
    kind = "=" + " ".join(option.choices) if option.choices else BASH.get(option.value, "nothing")
    return ("list " if option.value in LISTS else "") + kind


def bash_option_rows(command, commands):
    pattern = pattern_of(command, commands)
    for option in command.options:
        if option.takes_word:
            names = "|".join(f"{verb}:{name}" for verb in pattern.split("|") for name in option.names)
            yield f"    {names}) kind='{bash_kind(option)}' ;;"


def bash_positional_rows(command, commands):
    for index, option in enumerate(command.positionals):
        place = "*" if option.is_many else index
        names = "|".join(f"{verb}:{place}" for verb in pattern_of(command, commands).split("|"))
        yield f"    {names}) kind='{bash_kind(option)}' ;;"


def bash_script(commands):
    own = own_commands(commands)
    names = [f"    {pattern_of(c, commands)}) options='{' '.join(name for o in c.options for name in o.names)}' ;;" for c in own]
    return fill("bash.in", COMMANDS=" ".join(command.name for command in commands), OPTIONS="\n".join(names),
                VALUES="\n".join(row for command in own for row in bash_option_rows(command, commands)),
                POSITIONALS="\n".join(row for command in own for row in bash_positional_rows(command, commands)),
                RUNNERS="|".join(pattern for pattern, _ in runners(commands)))


# --- zsh ------------------------------------------------------------------------------------------------------------


def zsh_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_description(text):
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text


def zsh_action(option):
    choices = "(" + " ".join(option.choices) + ")"
    if option.value in LISTS and option.choices:
        return "_values -s , " + option.value.lower() + " " + " ".join(option.choices)
    return choices if option.choices else ZSH.get(option.value, " ")


def zsh_option(option):
    names = [name + ("=" if name.startswith("--") and option.takes_word else "") for name in option.names]
    value = f":{zsh_description(option.value)}:{zsh_action(option)}" if option.takes_word else ""
    if option.value and not option.takes_word:
        names, value = [name + "=-" for name in names], f"::{option.value.strip('[=]')}: "
    star = "*" if option.is_many else ""
    others = "" if star else f"({' '.join(option.names)})"
    return [zsh_quote(f"{others}{star}{name}[{zsh_description(option.description)}]{value}") for name in names]


def zsh_arguments(command):
    rows = [row for option in command.options for row in zsh_option(option)]
    for option in command.positionals:
        rows.append(zsh_quote(f"{'*' if option.is_many else ''}:{option.names[0]}:{zsh_action(option)}"))
    return " \\\n        ".join(rows)


def zsh_script(commands):
    listed = "\n".join("    " + zsh_quote(f"{c.name}:{c.summary}") for c in commands)
    cases = "\n".join(f"    {pattern_of(c, commands)})\n      _arguments -s -S \\\n        {zsh_arguments(c)} ;;"
                      for c in own_commands(commands))
    takers = "\n".join(f"    {pattern}) takes_value=({names}) ;;" for pattern, names in runners(commands))
    return fill("zsh.in", COMMANDS=listed, CASES=cases, TAKERS=takers)


# --- fish -----------------------------------------------------------------------------------------------------------


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_value(option):
    if not option.takes_word:
        return ""
    if option.choices and option.value in LISTS:
        return f" -x -a '(__fish_complete_list , \"printf %s\\\\\\\\n {' '.join(option.choices)}\")'"
    if option.choices:
        return f" -x -a {fish_quote(' '.join(option.choices))}"
    if option.value == "FILE":
        return " -r -F"
    return f" -x -a {fish_quote(FISH[option.value])}" if option.value in FISH else " -x"


def fish_names(option):
    flags = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    return " ".join(flags)


def fish_rows(command, commands):
    condition = "-n '__cprof_in " + pattern_of(command, commands).replace("|", " ") + "'"
    for option in command.options:
        yield f"complete -c cprof {condition} {fish_names(option)}{fish_value(option)} -d {fish_quote(option.description)}"
    if any(option.value == "FILE" for option in command.positionals):
        yield f"complete -c cprof {condition} -F"
    if command.takes_command:
        yield f"complete -c cprof {condition} -x -a '(__fish_complete_command)'"


def fish_script(commands):
    verbs = "\n".join(f"complete -c cprof -n __cprof_has_no_verb -a {c.name} -d {fish_quote(c.summary)}" for c in commands)
    rows = "\n".join(row for command in own_commands(commands) for row in fish_rows(command, commands))
    takers = "\n".join(f"        case {pattern.replace('|', ' ')}\n            set takes_value {names}" for pattern, names in runners(commands))
    return fill("fish.in", VERBS=verbs, ROWS=rows, TAKERS=takers)


FILES = {"cprof": bash_script, "_cprof": zsh_script, "cprof.fish": fish_script}


def write_scripts(program, folder):
    version, commands = read_program(program)
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in FILES.items():
        (folder / name).write_text(script(commands).replace("@VERSION@", version))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_scripts(sys.argv[1], Path(sys.argv[2]))


if __name__ == "__main__":
    main()
