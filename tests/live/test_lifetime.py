"""Names while processes, threads and mappings come and go.

Requires: root or CAP_PERFMON, perf_event_open; pid reuse: root and a pid namespace.
"""

# verifies: A4, A5, CL5
# covers: record --pid --duration --freq --all-cpus --by

import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import harness
from folded import is_named


class Lifetime(harness.Live):
    def setUp(self):
        super().setUp()
        harness.need_perf()

    def stacks_of(self, name, *arguments, options=()):
        self.done = self.record([harness.program(name), *arguments], *options, timeout=200)
        return self.folded()

    def assert_in(self, folded, names, share, what, tolerance=0.2):
        self.assert_share(folded.share_of(*names), share, what, tolerance)

    def test_dlopen_and_dlclose(self):
        folded = self.stacks_of("dlopen_late", "2.4")
        self.assert_in(folded, ["main", "before_dlopen"], 1 / 3, "before dlopen")
        self.assert_in(folded, ["main", "plugin_spin"], 1 / 3, "in the plugin, through main")
        self.assert_in(folded, ["main", "after_dlclose"], 1 / 3, "after dlclose")

    def test_exec(self):
        folded = self.stacks_of("exec_chain", "2")
        self.assert_in(folded, ["main", "before_exec"], 1 / 2, "before exec")
        self.assert_in(folded, ["main", "after_exec"], 1 / 2, "after exec")
        self.assertEqual(folded.with_frame("after_exec").of_comm("exec_next").total, folded.count_with("after_exec"))

    def test_fork_tree(self):
        folded = self.stacks_of("fork_tree", "2")
        levels = [folded.count_with("tree_level_0", "level_work"), folded.count_with("tree_level_1", "level_work"),
                  folded.count_with("tree_level_2", "level_work")]
        self.assertGreaterEqual(levels[0], 0.97 * folded.total, "all descend from main's own call")
        self.assert_share(levels[2] / folded.total, 4 / 7, "the four leaves of the tree", 0.15)
        self.assert_share(levels[1] / folded.total, 6 / 7, "all but the root", 0.15)

    def test_thousand_children(self):
        """CTR-06"""
        folded = self.stacks_of("children", "1000").of_comm("child_20ms")
        self.assertGreater(folded.total, 10000)
        self.assertLessEqual(folded.unnamed_leaves(), 0.05 * folded.total)
        self.assertGreaterEqual(folded.share_of("main", "child_work"), 0.8)

    def test_pid_reuse(self):
        harness.need_root()
        unshare = harness.tool("unshare")
        for _ in range(3):
            command = [unshare, "--pid", "--fork", "--mount-proc", harness.CPROF, "record", "-o", self.path("out.folded"), "--",
                       harness.program("pid_reuse"), "1.2"]
            done = self.run_command(command)
            if done.status != 3:
                break
        if done.status == 3:
            self.skipTest("needs namespaces whose ns_last_pid can be written")
        self.assertEqual(done.status, 0, done.stderr)
        folded = self.folded()
        for comm, function in (("reuse_first", "first_life"), ("reuse_second", "second_life")):
            life = folded.of_comm(comm)
            self.assertGreater(life.total, 100)
            self.assertGreaterEqual(life.share_of("main", function), 0.97, comm)

    def test_thread_outlives_main(self):
        """CTR-08"""
        folded = self.stacks_of("main_exits", "3")
        self.assertGreater(folded.total, 300, "samples long after main has ended")
        self.assertGreaterEqual(folded.of_comm("main_exits").share_of("outliving_work"), 0.99)
        self.assertEqual(folded.of_comm("main_exits").total, folded.total)

    def test_rename_without_exec(self):
        """NAME-01"""
        folded = self.stacks_of("rename", "2")
        self.assertGreaterEqual(folded.of_comm("app").count_with("as_app"), 0.97 * folded.count_with("as_app"))
        self.assertEqual(folded.of_comm("app").count_with("as_zygote"), 0)
        self.assertGreaterEqual(folded.of_comm("zygote").count_with("as_zygote"), 0.97 * folded.count_with("as_zygote"))

    def test_thread_name_is_not_the_process(self):
        """NAME-03"""
        folded = self.stacks_of("server", "1")
        self.assertGreaterEqual(folded.of_comm("server").count_with("serve_attach"), folded.count_with("serve_attach"))
        by_thread = self.stacks_of("server", "1", options=("--by", "thread"))
        busy = by_thread.with_frame("serve_attach")
        self.assertEqual(busy.of_comm("server").total, busy.total)
        self.assertTrue(all("Attach API wait" in frames[1] for frames, _ in busy.stacks), busy.stacks[:2])

    def test_short_threads(self):
        folded = self.stacks_of("short_threads", "2")
        self.assertGreaterEqual(folded.share_of("short_work"), 0.85)
        self.assert_complete(self.done.summary, 0.995)

    def test_text_on_anonymous_memory(self):
        """SYM-11: names and callers as without the remapping."""
        plain = self.stacks_of("remap_text", "1", "plain").share_of("main", "moved_spin", "moved_leaf")
        folded = self.stacks_of("remap_text", "1")
        moved = folded.count_with("main", "moved_spin", "moved_leaf") / (folded.total - folded.count_with("remap"))
        self.assertGreaterEqual(plain, 0.97)
        self.assert_share(moved, plain, "named after the remapping")
        self.assertTrue(all(is_named(frames[-1]) for frames, _ in self.folded().with_frame("moved_leaf").stacks))

    def test_attach_to_what_runs(self):
        """-p: mappings, names and threads from before the recording."""
        target = subprocess.Popen([harness.program("two_busy"), "6"], start_new_session=True)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        self.cprof("record", "-p", str(target.pid), "-d", "1.5", "-F", "499", "-o", self.path("out.folded"))
        folded = self.folded()
        self.assertGreater(folded.total, 100)
        self.assertGreaterEqual(folded.of_comm("two_busy").share_of("start", "climb"), 0.97)

    def on_a_mount(self, script):
        """Runs the shell script in a mount namespace of its own: $1 is a program, $2 a folder to mount on."""
        harness.need_root()
        os.mkdir(self.path("mount"))
        target = subprocess.Popen([harness.tool("unshare"), "--mount", "sh", "-ec", script, "sh", harness.program("two_busy"),
                                   self.path("mount")], start_new_session=True)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        deadline = time.monotonic() + 10
        while os.readlink(f"/proc/{target.pid}/exe").split("/")[-1].split(" ")[0] != "hidden_program":
            self.assertIsNone(target.poll(), "the script has ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        return target

    def assert_named_while_it_runs(self, target):
        self.cprof("record", "-p", str(target.pid), "-d", "1", "-F", "499", "-o", self.path("out.folded"))
        folded = self.folded()
        self.assertGreater(folded.total, 20)
        self.assertGreaterEqual(folded.share_of("start", "climb"), 0.97)

    def test_program_in_another_mount_namespace(self):
        """CTR-01: the file is not where its path leads outside; another one is."""
        target = self.on_a_mount('mount -t tmpfs none "$2"; cp "$1" "$2/hidden_program"; exec "$2/hidden_program" 8')
        shutil.copy(harness.program("shares"), self.path("mount/hidden_program"))
        self.assert_named_while_it_runs(target)

    def test_program_whose_mount_is_gone(self):
        """CTR-04: only the kernel still knows the file."""
        target = self.on_a_mount('mount -t tmpfs none "$2"; cp "$1" "$2/hidden_program"; '
                                 '(sleep 0.3; umount -l "$2") & exec "$2/hidden_program" 8')
        time.sleep(0.8)
        self.assert_named_while_it_runs(target)

    def test_whole_machine(self):
        harness.need_root()
        target = subprocess.Popen([harness.program("shares"), "6"], start_new_session=True)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        done = self.cprof("record", "-a", "-d", "1.5", "-F", "499", "-o", self.path("out.folded"))
        mine = self.folded().of_comm("shares")
        self.assertGreater(mine.total, 50)
        self.assert_share(mine.share_of("share_sixty"), 0.6, "share_sixty", 0.15)
        self.assertTrue(done.summary.has_stacks)


if __name__ == "__main__":
    harness.main()
