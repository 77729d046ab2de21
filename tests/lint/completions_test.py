#!/usr/bin/env python3
"""Man pages and completions hold every option of every command, and the shells really complete: each shell is run with its
script and asked. completions_test.py PROGRAM; a shell that is not installed is said and left out.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import describe  # noqa: E402
import gen_completions  # noqa: E402
import gen_man  # noqa: E402

PROGRAM = None  # set by main
missing = set()


def needs(program):
    def wrap(test):
        if shutil.which(program):
            return test
        missing.add(program)
        return unittest.skip(f"needs {program}")(test)
    return wrap


class Shipped(unittest.TestCase):
    """Everything is made once; folder, inputs and commands are set by main."""

    def own_commands(self):
        return [command for command in self.commands if not command.alias_of]

    def names_of(self, command):
        return {name for option in command.options for name in option.names}


class Descriptions(Shipped):
    def test_every_value_has_a_kind(self):
        """TEXT, INT and the like are what CLI11 says of an option that has no row in src/cli/option_table.cc."""
        bare = [f"{command.name} {option.names[-1]}: {option.value}" for command in self.commands
                for option in command.options + command.positionals if re.match(r"(TEXT|U?INT|FLOAT|BOOLEAN|\w+:)", option.value)]
        self.assertEqual(bare, [])

    def test_the_description_is_the_help(self):
        for command in self.own_commands():
            told = subprocess.run([PROGRAM, command.name, "--help"], capture_output=True, text=True, check=True).stdout
            for option in command.options:
                self.assertIn(",".join(option.names), told)
                self.assertIn(option.description, told)

    def test_an_alias_is_told_as_one(self):
        self.assertEqual({command.name: command.alias_of for command in self.commands}["perf"], "record")

    def test_choices_and_formats_are_known(self):
        convert = next(command for command in self.commands if command.name == "convert")
        options = {option.names[-1]: option for option in convert.options}
        self.assertEqual(options["--weight"].choices, ["samples", "wall", "offcpu"])
        self.assertIn("pprof", options["--format"].choices)
        self.assertNotIn("perfdata", options["--format"].choices)
        self.assertIn("perfdata", options["--input-format"].choices)
        self.assertNotIn("svg", options["--input-format"].choices)


class ManPages(Shipped):
    def page(self, command):
        text = (self.folder / "man" / f"cprof-{command.name}.1").read_text()
        return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")

    def test_each_command_has_one_and_is_listed(self):
        top = (self.folder / "man/cprof.1").read_text()
        for command in self.commands:
            self.assertIn(f"cprof {command.name}", top)
            self.assertTrue((self.folder / "man" / f"cprof-{command.name}.1").is_file())

    def test_every_option_is_there_with_its_description(self):
        for command in self.own_commands():
            lines = self.page(command).splitlines()
            for option in command.options:
                wanted = ", ".join(option.names)
                found = [i for i, line in enumerate(lines)
                         if re.match(re.escape(wanted) + r"(?![\w-])", line) and lines[i - 1] == ".TP"]
                self.assertEqual(len(found), 1, f"{command.name}: {wanted}")
                self.assertIn(option.description[1:], lines[found[0] + 1])

    def test_the_alias_leads_to_its_page(self):
        self.assertEqual((self.folder / "man/cprof-perf.1").read_text(), ".so man1/cprof-record.1\n")

    @needs("groff")
    def test_groff_has_nothing_to_say(self):
        for page in sorted((self.folder / "man").iterdir()):
            if page.read_text().startswith(".so"):
                continue
            run = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Wbreak", "-z", page], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""), page.name)


class Shell(Shipped):
    """What each of them must do; a class below runs one shell."""
    def complete(self, line):
        """The words that the shell offers for the last one of the line."""
        raise NotImplementedError

    def check_commands(self):
        self.assertLessEqual({command.name for command in self.commands}, set(self.complete("cprof ")))
        self.assertEqual(self.complete("cprof conv"), ["convert"])

    def check_options(self):
        for command in self.commands:
            offered = set(self.complete(f"cprof {command.name} --"))
            self.assertLessEqual({name for name in self.names_of(command) if name.startswith("--")}, offered, command.name)

    def check_values(self):
        self.assertEqual(sorted(self.complete("cprof convert --weight ")), ["offcpu", "samples", "wall"])
        self.assertEqual(self.complete("cprof convert x --format pp"), ["pprof"])
        self.assertEqual(self.complete("cprof perf --backend b"), ["bpf"])
        self.assertIn("perfdata", self.complete("cprof report --input-format p"))
        self.assertNotIn("perfdata", self.complete("cprof convert --format p"))
        self.assertEqual(self.complete("cprof sql --format js"), ["json"])

    def check_files(self):
        self.assertEqual(self.complete("cprof report my"), ["my profile.pb.gz"])
        self.assertEqual(self.complete("cprof diff a my"), ["my profile.pb.gz"])
        self.assertEqual(self.complete("cprof convert x -o my"), ["my profile.pb.gz"])
        self.assertEqual([word.rstrip("/") for word in self.complete("cprof report --debug-dir ")], ["symbols"])

    def check_command_to_run(self):
        for start in ("cprof record -- ", "cprof record -F 99 --off-cpu ", "cprof perf -o x.pb.gz -- ", "cprof record -q ",
                      "cprof cpustat --json "):
            self.assertIn("sleep", self.complete(start + "slee"), start)
        self.assertNotIn("--off-cpu", self.complete("cprof record -- ls --of"))

    def check_pids(self):
        self.assertIn(str(os.getpid()), [word.rstrip(",") for word in self.complete(f"cprof record -p {os.getpid()}")])


def checks_of(shell):
    """One test for each check of Shell."""
    for name in [name for name in dir(Shell) if name.startswith("check_")]:
        setattr(shell, name.replace("check_", "test_"), lambda self, name=name: getattr(self, name)())
    return shell


@needs("bash")
@checks_of
class Bash(Shell):
    framework = ""

    def complete(self, line):
        script = f"""
            {self.framework}
            source "$1"
            cd "$2"
            # As readline does: words, of which = is one by itself.
            COMP_LINE=$3 COMP_POINT=${{#3}} COMP_TYPE=9 COMP_KEY=9
            eval "COMP_WORDS=($(sed 's/=/ = /g' <<<"$3"))"
            [[ $3 != *' ' ]] || COMP_WORDS+=('')
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _cprof 2>/dev/null
            printf '%s\\n' "${{COMPREPLY[@]}}" """
        run = subprocess.run(["bash", "-c", script, "bash", self.folder / "completions/cprof", self.inputs, line],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.stderr, "")
        return [word for word in run.stdout.splitlines() if word]

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(sorted(self.complete("cprof convert --weight=")), ["offcpu", "samples", "wall"])
        self.assertEqual(self.complete("cprof convert --format=pp"), ["pprof"])

    def test_lists_by_commas(self):
        self.assertEqual(self.complete("cprof record -e cycles,instr"), ["cycles,instructions"])

    def test_short_options_too(self):
        self.assertIn("-F", self.complete("cprof record -"))

    def test_an_interactive_bash_types_it(self):
        """The script as it is used: Tab at a prompt, with readline and file names quoted by it."""
        setup = f"source '{self.folder}/completions/cprof'; cd '{self.inputs}'"
        typed = type_at_prompt(["bash", "--norc", "--noprofile", "-i"], setup, "cprof conv\tmy\t --weig\tof\t")
        self.assertIn("cprof convert my\\ profile.pb.gz  --weight offcpu", typed)


FRAMEWORK = Path("/usr/share/bash-completion/bash_completion")


@unittest.skipUnless(FRAMEWORK.is_file(), "needs bash-completion")
@checks_of
class BashWithItsFramework(Bash):
    framework = f"source {FRAMEWORK}"


def type_at_prompt(command, setup, keys):
    """What the terminal shows after the keys."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PS1="$ ", COLUMNS="200", INPUTRC="/dev/null")
        os.execvp(command[0], command)
    try:
        os.write(terminal, setup.encode() + b"\necho re''ady\n")
        read_until(terminal, b"ready")
        for key in re.findall(r"[^\t]+|\t", keys):
            os.write(terminal, key.encode())
            time.sleep(0.3)
        os.write(terminal, b"\x01#\necho do''ne\n")  # a comment now: not run
        return read_until(terminal, b"done").decode(errors="replace")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal, marker, seconds=60):
    shown, end = b"", time.monotonic() + seconds
    while marker not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            raise AssertionError(f"no {marker!r} within {seconds} s, but: {shown.decode(errors='replace')}")
        shown += os.read(terminal, 65536)
    return shown


@needs("fish")
@checks_of
class Fish(Shell):
    def complete(self, line):
        run = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; cd $argv[2]; complete -C $argv[3]',
                              self.folder / "completions/cprof.fish", self.inputs, line],
                             capture_output=True, text=True, timeout=60, env=dict(os.environ, HOME=str(self.folder)))
        self.assertEqual(run.stderr, "")
        return [word.split("\t")[0] for word in run.stdout.splitlines()]


@needs("zsh")
@checks_of
class Zsh(Shell):
    # Matches are written to a file as the completion system is given them, then the line is thrown away.
    SETUP = """
        PROMPT= ; unsetopt beep zle_bracketed_paste prompt_sp ; fpath=('{completions}' $fpath) ; cd '{inputs}'
        autoload -Uz compinit && compinit -D -u
        compadd () {{ local -a given; [[ "$*" == *-[OAD]\\ * ]] || {{ builtin compadd -O given "$@"; print -rl -- $given >>'{found}'; }}; builtin compadd "$@" }}
        end-of-test () {{ print done >>'{found}'; BUFFER= ; zle accept-line }}
        zle -N end-of-test ; bindkey '^X' end-of-test ; bindkey '^I' complete-word
        print re''ady
    """

    @classmethod
    def setUpClass(cls):
        cls.found = cls.folder / "found"
        cls.pid, cls.terminal = pty.fork()
        if cls.pid == 0:
            os.environ.update(TERM="dumb", HOME=str(cls.folder), COLUMNS="200", LISTMAX="100000")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        setup = cls.folder / "setup.zsh"
        setup.write_text(cls.SETUP.format(completions=cls.folder / "completions", inputs=cls.inputs, found=cls.found))
        os.write(cls.terminal, f"source '{setup}'\n".encode())
        read_until(cls.terminal, b"ready")

    @classmethod
    def tearDownClass(cls):
        os.close(cls.terminal)
        os.waitpid(cls.pid, 0)

    def complete(self, line):
        self.found.write_text("")
        os.write(self.terminal, line.encode() + b"\t\x18")
        end = time.monotonic() + 60
        while "done\n" not in self.found.read_text():
            self.assertLess(time.monotonic(), end, self.found.read_text())
            if select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)
        words = dict.fromkeys(re.sub(r"\\(.)", r"\1", word) for word in self.found.read_text().splitlines())
        return [word for word in words if word not in ("", "done")]


def make_everything(folder):
    gen_man.write_pages(PROGRAM, folder / "man")
    gen_completions.write_scripts(PROGRAM, folder / "completions")
    Shipped.folder, Shipped.inputs = folder, folder / "inputs"
    _, Shipped.commands = describe.read_program(PROGRAM)
    Shipped.inputs.mkdir()
    (Shipped.inputs / "my profile.pb.gz").touch()
    (Shipped.inputs / "symbols").mkdir()


def main():
    global PROGRAM
    PROGRAM = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as folder:
        make_everything(Path(folder))
        result = unittest.main(exit=False).result
    for program in sorted(missing):
        print(f"skipped: needs {program}")
    if not FRAMEWORK.is_file():
        print("skipped: needs bash-completion")
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
