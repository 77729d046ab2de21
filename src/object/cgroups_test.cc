#include "object/cgroups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "object/temporary_tree.h"

namespace cprof::object {
namespace {

const std::string kContainerId = "4f1ed8b6a3c2907d5e6f4f1ed8b6a3c2907d5e6f4f1ed8b6a3c2907d5e6f1234";
const std::string kSimilar = "4f1ed8b6a3c2ffffffff4f1ed8b6a3c2907d5e6f4f1ed8b6a3c2907d5e6f1234";

TEST(Cgroups, OfAProcess) {
  EXPECT_EQ(cgroup_in("0::/user.slice/user-0.slice\n"), "/user.slice/user-0.slice");
  EXPECT_EQ(cgroup_in("12:perf_event:/a\n1:name=systemd:/b\n0::/c\n"), "/c") << "version 2's";
  EXPECT_EQ(cgroup_in("12:perf_event:/a\n1:name=systemd:/b\n"), "/a");
  EXPECT_EQ(cgroup_in("2:cpu,cpuacct:/docker/" + kContainerId + "\n0::/system.slice/containerd.service\n"), "/docker/" + kContainerId) << "what tells a container";
  EXPECT_EQ(cgroup_in("0::/a:b:c\n"), "/a:b:c");
  for (const char* text : {"", "\n", "nonsense\n", "1:x\n"}) EXPECT_EQ(cgroup_in(text), "") << text;
  EXPECT_TRUE(read_cgroup(getpid()));
  EXPECT_FALSE(read_cgroup(-1));
}

TEST(Cgroups, WhereTheyAreMounted) {
  EXPECT_EQ(cgroup_roots_in("proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
                            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/perf_event cgroup rw,perf_event 0 0\nshort\n"),
            (std::vector<std::string>{"/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified"}));
}

TEST(Cgroups, AGroupByItsPath) {
  TemporaryTree tree;
  tree.write("system.slice/ssh.service/cgroup.procs", "");
  tree.directory("empty");
  const std::vector<std::string> roots{tree / "none", tree.path()};
  const std::string group = tree / "system.slice/ssh.service";
  EXPECT_EQ(find_cgroup("/system.slice/ssh.service", roots).value(), group);
  EXPECT_EQ(find_cgroup("system.slice/ssh.service", roots).value(), group);
  EXPECT_EQ(find_cgroup(group, roots).value(), group);
  EXPECT_EQ(find_cgroup("/empty", roots).error().message, "cgroup /empty: no such group below " + (tree / "none") + " or " + tree.path());
  EXPECT_TRUE(find_cgroup("/x", {}).error().message.contains("no cgroup file system is mounted"));
}

TEST(Cgroups, AContainerByItsIdOrName) {
  TemporaryTree tree;
  const std::string docker = tree.directory("system.slice/docker-" + kContainerId + ".scope");
  tree.directory("system.slice/docker-" + kContainerId + ".scope/init.scope");
  tree.directory("docker/" + kSimilar);
  const std::string lxc = tree.directory("lxc/web");
  tree.link("loop", tree.path());
  const std::vector<std::string> roots{tree / "none", tree.path()};
  EXPECT_EQ(find_container(kContainerId, roots).value(), docker);
  EXPECT_EQ(find_container("4f1ed8b6a3c290", roots).value(), docker);
  EXPECT_EQ(find_container("web", roots).value(), lxc);
  EXPECT_EQ(find_container("4f1ed8b6a3c2", roots).error().message,
            "--container 4f1ed8b6a3c2: more than one; there is: 4f1ed8b6a3c2, 4f1ed8b6a3c2");
  EXPECT_EQ(find_container("db", roots).error().message,
            "--container db: no container of this id or name has a cgroup here; there is: 4f1ed8b6a3c2, 4f1ed8b6a3c2, web");
  EXPECT_TRUE(find_container("db", {}).error().message.ends_with("there are none"));
}

}  // namespace
}  // namespace cprof::object
