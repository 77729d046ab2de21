#include "base/container_name.h"

#include <gtest/gtest.h>

#include <string>

namespace cprof {
namespace {

const std::string kId = "4f1ed8b6a3c2907d5e6f4f1ed8b6a3c2907d5e6f4f1ed8b6a3c2907d5e6f1234";
const std::string kOther = "a3c2907d5e6f4f1ed8b6a3c2907d5e6f4f1ed8b6a3c2907d5e6f12344f1ed8b6";

TEST(ContainerName, OfEachRuntime) {
  for (const std::string& cgroup :
       {"/docker/" + kId, "/system.slice/docker-" + kId + ".scope", "/machine.slice/libpod-" + kId + ".scope/container",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a.slice/cri-containerd-" + kId + ".scope",
        "/kubepods/besteffort/pod1a/" + kId, "/kubepods.slice/crio-" + kId + ".scope", "/docker/" + kOther + "/docker/" + kId,
        "/system.slice/docker-" + kId + ".scope/init.scope"}) {
    EXPECT_EQ(container_id_of(cgroup), kId) << cgroup;
    EXPECT_EQ(container_of(cgroup), "4f1ed8b6a3c2") << cgroup;
  }
  EXPECT_EQ(container_of("/ecs/1234/0123456789abcdef0123456789abcdef-3041590"), "0123456789ab");
  EXPECT_EQ(container_of("/machine.slice/machine-web\\x2d1.scope/payload"), "web-1");
  EXPECT_EQ(container_of("/machine.slice/systemd-nspawn@build.service"), "build");
  EXPECT_EQ(container_of("/lxc/web"), "web");
  EXPECT_EQ(container_of("/lxc.payload.web/system.slice/cron.service"), "web");
}

TEST(ContainerName, NoneOfWhatIsNoContainer) {
  for (const std::string& cgroup :
       {std::string(), std::string("/"), std::string("/user.slice/user-0.slice/session-3.scope"), std::string("/system.slice/ssh.service"),
        "/machine.slice/libpod-conmon-" + kId + ".scope", "/x/" + kId.substr(1), std::string("/docker"), std::string("/a\\x2/b"),
        std::string("/system.slice/machine-.scope")})
    EXPECT_EQ(container_id_of(cgroup), "") << cgroup;
}

TEST(ContainerName, IdsMayBeCutShort) {
  const std::string cgroup = "/docker/" + kId;
  EXPECT_TRUE(is_in_container(cgroup, kId));
  EXPECT_TRUE(is_in_container(cgroup, "4f1ed8b6a3c2"));
  EXPECT_TRUE(is_in_container(cgroup, "4f1e"));
  EXPECT_FALSE(is_in_container(cgroup, "4f1"));
  EXPECT_FALSE(is_in_container(cgroup, ""));
  EXPECT_FALSE(is_in_container(cgroup, kOther));
  EXPECT_FALSE(is_in_container("/lxc/beef1", "beef")) << "a name is no id";
  EXPECT_TRUE(is_in_container("/lxc/beef1", "beef1"));
}

}  // namespace
}  // namespace cprof
