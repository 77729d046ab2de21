"""The commands and options of a built cprof, as `cprof COMMAND --describe-options` tells them. Man pages, completions and
their check are made of this, so that no option is written twice.
"""
import json
import subprocess
from dataclasses import dataclass


@dataclass
class Option:
    names: list  # "-o", "--output"; of a positional one word
    value: str  # kind of the value: FILE, a|b, "[=URL]"; "" for none
    choices: list  # every value, where that is known
    default: str
    is_required: bool
    is_many: bool
    description: str

    @property
    def takes_word(self):
        """Whether the next word is its value."""
        return bool(self.value) and not self.value.startswith("[")


@dataclass
class Command:
    name: str  # "record"
    summary: str  # of the list of commands
    description: str
    footer: str
    takes_command: bool  # [--] CMD ARGS
    options: list
    positionals: list
    alias_of: str = ""  # another command, whose options these are


def run_json(program, *words):
    run = subprocess.run([str(program), *words, "--describe-options"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def read_command(program, name, summary):
    told = run_json(program, name)
    own_name = told["command"].removeprefix("cprof ")
    lists = {key: [Option(**option) for option in told[key]] for key in ("options", "positionals")}
    return Command(name, summary, told["description"], told["footer"], told["takes_command"], **lists,
                   alias_of="" if own_name == name else own_name)


def read_program(program):
    """(version, [Command])"""
    told = run_json(program)
    return told["version"], [read_command(program, command["name"], command["summary"]) for command in told["commands"]]
