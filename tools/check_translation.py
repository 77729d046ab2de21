#!/usr/bin/env python3
"""README.zh-CN.md says what README.md says: the same headings by level, and below each the same commands and code, links, table
rows and pictures. Run by ctest (label lint); `--write` copies code blocks of README.md that have changed into their places.
"""
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ORIGINAL, TRANSLATION = "README.md", "README.zh-CN.md"
FENCE = re.compile(r"```[^\n]*\n.*?```", re.DOTALL)
# A comment behind a command is for people.
COMMENT = re.compile(r"\s+# .*$", re.MULTILINE)


def sections(text):
    """[(level, title, body)]; the text before the first heading is level 0."""
    blocks = FENCE.findall(text)
    parts = re.split(r"^(#+) (.*)$", FENCE.sub("\0", text), flags=re.MULTILINE)
    found = [(0, "", parts[0])] + [(len(level), title, body) for level, title, body in zip(parts[1::3], parts[2::3], parts[3::3])]
    position = 0
    for level, title, body in found:
        count = body.count("\0")
        yield level, title, body, blocks[position:position + count]
        position += count


def facts(body, blocks):
    """What must be the same in every language."""
    plain = re.sub(r"^<!--.*?-->$", "", body, flags=re.MULTILINE | re.DOTALL)
    return {
        "code blocks": [COMMENT.sub("", block) for block in blocks],
        "code": Counter(re.findall(r"`([^`\n]+)`", plain.replace("\n", " "))),
        "links": Counter(link for link in re.findall(r"\]\(([^)\s]+)\)", plain) if link not in (ORIGINAL, TRANSLATION)),
        "table rows": len(re.findall(r"^\|", plain, re.MULTILINE)),
        "list items": len(re.findall(r"^- ", plain, re.MULTILINE)),
    }


def difference(kind, ours, theirs):
    if kind == "code blocks":
        return f"{len(ours)} and {len(theirs)} blocks" if len(ours) != len(theirs) else "differ: tools/check_translation.py --write"
    if isinstance(ours, Counter):
        words = [f"lacks {word}" for word in (ours - theirs)] + [f"has {word} as well" for word in (theirs - ours)]
        return ", ".join(words)
    return f"{ours} and {theirs}"


def faults_of(original, translation):
    ours, theirs = list(sections(original)), list(sections(translation))
    if [level for level, *_ in ours] != [level for level, *_ in theirs]:
        return [f"the headings are not the same: {[title for _, title, *_ in ours]} and {[title for _, title, *_ in theirs]}"]
    faults = []
    for (_, title, body, blocks), (_, other_title, other_body, other_blocks) in zip(ours, theirs):
        other = facts(other_body, other_blocks)
        faults += [f"'{title}' ('{other_title}'): {kind}: {difference(kind, fact, other[kind])}"
                   for kind, fact in facts(body, blocks).items() if fact != other[kind]]
    return faults


def with_blocks_of(original, translation):
    """The translation with the original's code blocks, where only that differs; its own comments stay where they can."""
    ours, theirs = FENCE.findall(original), FENCE.findall(translation)
    if len(ours) != len(theirs):
        return translation
    chosen = iter([old if COMMENT.sub("", old) == COMMENT.sub("", new) else new for new, old in zip(ours, theirs)])
    return FENCE.sub(lambda _: next(chosen), translation)


def main():
    original, translation = ((ROOT / name).read_text() for name in (ORIGINAL, TRANSLATION))
    if "--write" in sys.argv:
        translation = with_blocks_of(original, translation)
        (ROOT / TRANSLATION).write_text(translation)
    faults = faults_of(original, translation)
    print("\n".join(f"{TRANSLATION}: {fault}" for fault in faults) or f"{TRANSLATION} has what {ORIGINAL} has")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
