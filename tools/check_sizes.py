#!/usr/bin/env python3
"""Checks the sizes that docs/style.md sets, and prints the ten that are nearest to or furthest over them. Run by ctest
(label lint). Over the first limit is a remark, over the hard one a failure. C, C++ and the project's own Python.

An exemption is a comment `// size-exempt: reason` (Python: `#`): within the first ten lines it is the file's, in the
line before a function or inside it, the function's.
"""
import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("src", "include", "tests", "examples", "tools")
FILE_LIMITS = {".cc": (400, 800), ".c": (400, 800), ".h": (150, 300), ".py": (400, 800)}
FUNCTION_LIMITS = (40, 80)
NESTING_LIMIT = 3
EXEMPT = re.compile(r"(?://|#|/\*)\s*size-exempt:[ \t]*\S+")
BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
                     re.DOTALL)
TOKEN = re.compile(r"[A-Za-z_]\w*|[{}();]|[^\s\w]")
CONTROL = {"if", "for", "while", "switch", "do", "else", "try", "catch"}
ACCESS = (["public"], ["private"], ["protected"])
SPECIFIERS = {"const", "noexcept", "override", "final", "mutable", "try"}
SCOPES = {"namespace", "class", "struct", "union", "enum", "extern"}


@dataclass
class Measure:
    where: str
    what: str
    size: int
    soft: int
    hard: int
    exempt: bool = False

    @property
    def ratio(self):
        return self.size / self.soft


def blank(text):
    """The same text with comments, strings and preprocessor lines made spaces, line breaks kept."""
    text = BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.MULTILINE)


def tokens_of(text):
    line, position = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        yield match.group(), line


@dataclass
class Block:
    kind: str        # scope, function, control, member (an initialiser before a constructor's body), other
    start: int
    name: str = ""
    deepest: int = 0
    head: tuple = ()


def without_template(head):
    if head[:2] != ["template", "<"]:
        return head
    depth = 0
    for index, token in enumerate(head[1:], 1):
        depth += (token == "<") - (token == ">")
        if depth == 0:
            return without_template(head[index + 1:])
    return head


def is_member_initialiser(head):
    """Foo(int a) : a_(a), b_  <- here"""
    if ")" not in head or not head[-1].isidentifier() or head[-1] in SPECIFIERS:
        return False
    tail = head[head.index(")"):]
    return any(token == ":" and tail[i - 1] != ":" and tail[i + 1:i + 2] != [":"] for i, token in enumerate(tail))


def kind_of_statement(head):
    if head[0] in CONTROL or (head[0] in ("case", "default") and CONTROL & set(head)):
        return "control"
    return "other"


def kind_of_declaration(head):
    words = [token for token in head if token.isidentifier()]
    first = words[0] if words else ""
    before_parens = head[head.index("(") - 1] if "(" in head[1:] else ""
    if first in SCOPES and before_parens in ("", "alignas", "__attribute__"):
        return "scope"
    if not before_parens or "=" in head[:head.index("(")]:
        return "other"
    return "member" if is_member_initialiser(head) else "function"


def name_of_function(head):
    before = head[:head.index("(")]
    name = before[-1]
    if name.startswith("TEST"):
        inside = head[head.index("(") + 1:head.index(")")]
        return f"{name}({''.join(inside)})"
    return f"{before[-4]}::{name}" if before[-3:-1] == [":", ":"] and len(before) > 3 else name


def open_block(blocks, head, line):
    head = without_template(head) or ["?"]
    inside_code = any(block.kind in ("function", "other") for block in blocks)
    kind = kind_of_statement(head) if inside_code else kind_of_declaration(head)
    blocks.append(Block(kind, line, name_of_function(head) if kind == "function" else "", head=tuple(head)))
    nesting = sum(block.kind == "control" for block in blocks)
    for block in blocks:
        block.deepest = max(block.deepest, nesting)


def functions_of(text):
    """Yields (name, first line, last line, deepest nesting of control blocks) of each function of C or C++ text."""
    blocks, head, head_line = [], [], 0
    for token, line in tokens_of(text):
        if token == "{":
            open_block(blocks, head, head_line if head else line)
            head = []
        elif token == "}":
            block = blocks.pop() if blocks else Block("other", line)
            if block.kind == "function":
                yield block.name, block.start, line, block.deepest
            head, head_line = ([*block.head, "}"], block.start) if block.kind == "member" else ([], 0)
        elif (token == ";" and "for" not in head) or (token == ":" and head in ACCESS):
            head = []
        else:
            head_line = head_line if head else line
            head.append(token)


def measure_cxx(path, text):
    lines = text.splitlines()
    for name, first, last, deepest in functions_of(blank(text)):
        exempt = any(EXEMPT.search(line) for line in lines[max(0, first - 2):last])
        where = f"{path}:{first}"
        yield Measure(where, f"function {name}", last - first + 1, *FUNCTION_LIMITS, exempt)
        yield Measure(where, f"nesting in {name}", deepest, NESTING_LIMIT, NESTING_LIMIT, exempt)


def measure_python(path, text):
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            exempt = any(EXEMPT.search(line) for line in lines[max(0, node.lineno - 2):node.end_lineno])
            yield Measure(f"{path}:{node.lineno}", f"function {node.name}", node.end_lineno - node.lineno + 1,
                          *FUNCTION_LIMITS, exempt)


def measure_file(path, relative):
    text = path.read_text(errors="replace")
    head = "\n".join(text.splitlines()[:10])
    yield Measure(str(relative), "file", text.count("\n"), *FILE_LIMITS[path.suffix], bool(EXEMPT.search(head)))
    yield from (measure_python if path.suffix == ".py" else measure_cxx)(relative, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    measures, files = [], 0
    for path in (p for folder in FOLDERS for p in sorted((root / folder).rglob("*"))):
        if path.suffix in FILE_LIMITS and path.is_file():
            files += 1
            measures.extend(measure_file(path, path.relative_to(root)))
    counted = [measure for measure in measures if not measure.exempt]
    over = [measure for measure in counted if measure.size > measure.hard]
    print(f"{files} files; the ten worst (size, limit, hard limit):")
    for measure in sorted(counted, key=lambda m: -m.ratio)[:10]:
        print(f"  {measure.size:5} {measure.soft:4} {measure.hard:4}  {measure.where}: {measure.what}")
    for measure in over:
        print(f"FAIL {measure.where}: {measure.what} is {measure.size}, over the hard limit {measure.hard}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
