#!/usr/bin/env python3
"""The checks are checked: each must find what it is there to find, and pass what is right."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_docs  # noqa: E402
import check_layers  # noqa: E402
import check_licences  # noqa: E402
import check_options  # noqa: E402
import check_sizes  # noqa: E402
import check_skips  # noqa: E402
import check_translation  # noqa: E402
import describe  # noqa: E402
import gen_benchmarks  # noqa: E402
import gen_man  # noqa: E402
import gen_verified  # noqa: E402


class Tree(unittest.TestCase):
    """A small project in a temporary folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text=""):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target


class Layers(Tree):
    def faults(self, path):
        layers, faults = check_layers.read_layers(self.root / "docs/layers.txt")
        relative = Path(path)
        return faults + list(check_layers.name_faults(relative, self.root / "src")) + list(
            check_layers.include_faults(relative, self.root / "src", layers))

    def setUp(self):
        super().setUp()
        self.write("docs/layers.txt", "base:\nlow/core: base\nlow: base\nhigh: low base\ntop: *\n")
        for header in ("base/a.h", "low/b.h", "low/core/c.h", "high/d.h"):
            self.write(f"src/{header}")

    def test_what_a_row_names_is_allowed(self):
        self.write("src/high/d.cc", '#include "high/d.h"\n#include "low/b.h"\n#include <vector>\n')
        self.assertEqual(self.faults("high/d.cc"), [])

    def test_the_longest_row_counts(self):
        self.write("src/high/d.cc", '#include "low/core/c.h"\n')
        self.assertIn("high may not include low/core", self.faults("high/d.cc")[0])

    def test_an_include_that_goes_up_is_found(self):
        self.write("src/base/a.cc", '#  include "high/d.h"\n')
        self.assertIn("base/a.cc:1: base may not include high", self.faults("base/a.cc")[0])

    def test_a_test_may_include_any_lower_layer_but_none_above(self):
        self.write("src/high/d_test.cc", '#include "low/core/c.h"\n')
        self.write("src/low/b_test.cc", '#include "high/d.h"\n')
        self.assertEqual(self.faults("high/d_test.cc"), [])
        self.assertEqual(len(self.faults("low/b_test.cc")), 1)

    def test_loose_files_vague_names_and_unknown_folders_are_found(self):
        for path in ("stray.cc", "base/util.h", "helpers/x.cc", "nowhere/x.cc"):
            self.write(f"src/{path}")
            self.assertNotEqual(self.faults(path), [], path)

    def test_a_row_that_names_a_row_below_it_is_found(self):
        self.write("docs/layers.txt", "base: high\nhigh: base\n")
        self.assertEqual(len(check_layers.read_layers(self.root / "docs/layers.txt")[1]), 1)


CONSTRUCTOR = """
namespace x {
template <typename T, int N = (3)>
class alignas(64) A : public B {
 public:
  explicit A(int a) noexcept : B(a), a_{a}, b_{1, 2} {
    run();
    run();
  }
  int get() const { return a_; }
};
const int table[] = {1, 2};
int Long::name(const char* text) {
  // if (x) { " } \\" {
  for (int i = 0; i < 3; ++i) {
    if (text[i] == '{') {
      call([&] { while (true) { break; } });
    } else if (a) {
      a = 1'000;
    }
  }
  return 0;
}
}
"""


class Sizes(Tree):
    def test_functions_and_their_nesting(self):
        found = {name: (last - first + 1, deepest)
                 for name, first, last, deepest in check_sizes.functions_of(check_sizes.blank(CONSTRUCTOR))}
        self.assertEqual(found, {"A": (4, 0), "get": (1, 0), "Long::name": (11, 3)})

    def sizes(self, path):
        return {measure.what: measure for measure in check_sizes.measure_file(self.root / path, Path(path))}

    def test_a_long_function_is_over_unless_it_says_why(self):
        body = "int f(int x) {\n" + "  x++;\n" * 90 + "  return x;\n}\n"
        self.write("src/a.cc", "\n" * 20 + body)
        self.write("src/b.cc", "\n" * 20 + "// size-exempt: one table\n" + body)
        self.assertGreater(self.sizes("src/a.cc")["function f"].size, 80)
        self.assertFalse(self.sizes("src/a.cc")["function f"].exempt)
        self.assertTrue(self.sizes("src/b.cc")["function f"].exempt)

    def test_an_exemption_without_a_reason_is_none(self):
        self.write("src/a.cc", "// size-exempt:\n" + "int x;\n" * 900)
        self.assertFalse(self.sizes("src/a.cc")["file"].exempt)

    def test_four_levels_are_too_deep(self):
        self.write("src/a.cc", "void f() { if (a) { for (;;) { while (b) { switch (c) { default: if (d) { } } } } } }\n")
        self.assertEqual(self.sizes("src/a.cc")["nesting in f"].size, 5)


class Skips(Tree):
    def test_a_skip_that_lacks_nothing_is_a_failure(self):
        self.assertIn("live.x", check_skips.judge("live.x", "needs root", {"root": True}.get))

    def test_a_skip_that_lacks_something_is_none(self):
        self.assertIsNone(check_skips.judge("live.x", "needs root", {"root": False}.get))

    def test_a_skip_without_a_known_reason_is_a_failure(self):
        for reason in ("", "too slow", "needs luck and time"):
            self.assertIsNotNone(check_skips.judge("live.x", reason, check_skips.has), reason)

    def test_programs_are_needs(self):
        self.assertTrue(check_skips.has("no-such-program or sh"))
        self.assertFalse(check_skips.has("no-such-program"))
        self.assertTrue(check_skips.has("the test program x: its compiler or linker is not installed"))

    def test_skips_are_read_from_scripts_googletest_and_passed_tests(self):
        junit = self.write("junit.xml", """<testsuite>
<testcase name="a" status="notrun"><skipped/><system-out>skipped: needs root (x); needs perf</system-out></testcase>
<testcase name="b" status="run"><system-out>OK (skipped=1)\nskipped: needs mold</system-out></testcase>
<testcase name="c" status="notrun"><system-out>a_test.cc:12: Skipped\nneeds hardware counters</system-out></testcase>
<testcase name="d" status="notrun"/><testcase name="e" status="run"/></testsuite>""")
        self.assertEqual(list(check_skips.skips_in(junit)), [
            ("a", "needs root (x)"), ("a", "needs perf"), ("b", "needs mold"), ("c", "needs hardware counters"), ("d", "")])


class Options(Tree):
    HELP = "Usage: cprof record\nOptions:\n  -h,--help   Print\n  -F,--freq HZ  see --count\n  --no-kernel\n  -o FILE  out\n"

    def test_options_are_read_from_help(self):
        self.assertEqual(check_options.options_in(self.HELP), ["--freq", "--no-kernel", "-o"])

    def test_claims_name_options_with_or_without_a_command(self):
        self.write("tests/cli/a.py", "# covers: record --freq --no-kernel\n")
        self.write("src/cli/b_test.cc", "// covers: -o, --freq\n")
        claims = check_options.claims_in(self.root)
        self.assertEqual(claims[("record", "--freq")], {"tests/cli/a.py"})
        self.assertEqual(claims[("", "-o")], {"src/cli/b_test.cc"})
        rows = check_options.rows_for({"record": ["--freq", "-o"], "report": ["--peek"]}, claims)
        self.assertEqual(rows[("record", "--freq")], ["src/cli/b_test.cc", "tests/cli/a.py"])
        self.assertEqual(rows[("report", "--peek")], [])


class Docs(Tree):
    def test_broken_links_are_found_and_whole_ones_not(self):
        self.write("docs/b.md", "# A title, here\n")
        page = self.write("docs/a.md", "[x](b.md) [y](b.md#a-title-here) [z](https://x.org) [w](c.md) [v](b.md#nope)\n")
        faults = check_docs.link_faults(page, self.root)
        self.assertEqual(len(faults), 2)
        self.assertIn("c.md", faults[0])

    def test_commands_in_code_are_found(self):
        text = "Text `./dev build`.\n```sh\nsudo build/release/cprof record -F 99 -- sleep 1\n$ cprof report x.folded\n```\n"
        self.assertCountEqual(check_docs.commands_in(text), [("dev", "build", []), ("cprof", "record", ["-F"]),
                                                             ("cprof", "report", [])])


    def test_a_command_without_page_or_example_is_found(self):
        def command(name, alias=""):
            return describe.Command(name, "", "", "", False, [], [], alias)
        self.write("docs/good.md", "# good\n## Examples\n\n```sh\nsudo cprof good -a   # all\n```\n")
        self.write("docs/bare.md", "# bare\n## Examples\n\n```sh\ncprof good\n```\n")
        commands = [command("good"), command("bare"), command("none"), command("other", "good")]
        faults = list(check_docs.verb_faults(self.root, commands))
        self.assertEqual(len(faults), 2, faults)
        self.assertIn("docs/bare.md has no example", faults[0])
        self.assertIn("cprof none has no docs/none.md", faults[1])

    def test_examples_have_a_command_and_a_purpose(self):
        page = self.write("docs/x.md", "## Examples\n\n```sh\ncprof x -q 'a # b'\ncprof x \\\n  --all    # all of it\n```\n")
        self.assertEqual(list(gen_man.examples_of(page))[1], ("cprof x --all", "all of it"))


class Translation(unittest.TestCase):
    ORIGINAL = "# cprof\n\nUse `cprof top`, see [x](x.md).\n\n## Try\n\n```sh\n./dev demo   # looks\n```\n\n- one\n"

    def faults(self, *changes):
        translation = self.ORIGINAL
        for old, new in changes:
            self.assertIn(old, translation)
            translation = translation.replace(old, new)
        return check_translation.faults_of(self.ORIGINAL, translation)

    def test_words_may_differ_and_nothing_else(self):
        self.assertEqual(self.faults(("Use", "Utilise"), ("Try", "Essayez"), ("looks", "regarde")), [])
        self.assertIn("headings", self.faults(("## Try", "### Try"))[0])
        self.assertIn("lacks cprof top", self.faults(("`cprof top`", "`cprof to`"))[0])
        self.assertIn("lacks x.md", self.faults(("(x.md)", "(y.md)"))[0])
        self.assertIn("code blocks", self.faults(("./dev demo", "./dev test"))[0])
        self.assertIn("list items", self.faults(("- one\n", "- one\n- two\n"))[0])

    def test_changed_blocks_are_copied(self):
        old = self.ORIGINAL.replace("./dev demo", "./dev test")
        self.assertEqual(check_translation.faults_of(self.ORIGINAL, check_translation.with_blocks_of(self.ORIGINAL, old)), [])


class Licences(unittest.TestCase):
    def test_libraries_of_a_link_command(self):
        command = "g++ -O2 x.o -o cprof libcprof_a.a /usr/lib/x86_64-linux-gnu/libz.a -ldl /usr/lib/libdw.so.1 -static"
        self.assertEqual(check_licences.libraries_in(command), ["z", "dl", "dw"])


class Verified(Tree):
    def test_claims_name_the_test_that_follows(self):
        self.write("src/a/b_test.cc", "// verifies: A2, A5\nTEST_F(Suite, Name) {\n}\n")
        self.write("tests/live/x.py", "# verifies: A2 CL10 and more\n")
        claims = gen_verified.claims_in(self.root)
        self.assertEqual(claims["A2"], ["`Suite.Name` (src/a/b_test.cc)", "tests/live/x.py"])
        self.assertEqual(claims["CL10"], ["tests/live/x.py"])
        self.assertEqual(claims["A5"], ["`Suite.Name` (src/a/b_test.cc)"])


class Benchmarks(unittest.TestCase):
    def test_only_the_generated_part_changes_and_a_second_time_nothing(self):
        mark = gen_benchmarks.begin_of("perf.json")
        text = "before\n" + mark + "old\n" + gen_benchmarks.END + "after\n"
        page = gen_benchmarks.page_with(text, mark, "new\n")
        self.assertEqual(page, "before\n" + mark + "\nnew\n\n" + gen_benchmarks.END + "after\n")
        self.assertEqual(gen_benchmarks.page_with(page, mark, "new\n"), page)

    def test_a_page_without_a_place_for_it_is_found(self):
        self.assertIsNone(gen_benchmarks.page_with("before\n" + gen_benchmarks.begin_of("perf.json"), gen_benchmarks.begin_of("perf.json"), "new\n"))


if __name__ == "__main__":
    unittest.main()
