#include "collect/bpf/support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace cprof::collect {
namespace {

constexpr uint64_t capability(int number) { return uint64_t{1} << number; }
constexpr uint64_t kAdmin = capability(21), kPerfmon = capability(38), kBpf = capability(39),
                   kCheckpoint = capability(40);

BpfMachine good() {
  return {.release = "6.18.0", .version = "#1 SMP", .machine = "x86_64", .has_btf = true, .lockdown = "none", .paranoid = 2, .capabilities = kAdmin,
          .in_user_namespace = false, .in_pid_namespace = false};
}

struct Case {
  const char* name;
  void (*spoil)(BpfMachine&);
  const char* reason;  // part of it
  const char* mend;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BpfObstacle : public testing::TestWithParam<Case> {};

TEST_P(BpfObstacle, HasItsOwnReasonAndMend) {
  BpfMachine machine = good();
  GetParam().spoil(machine);
  auto obstacle = find_bpf_obstacle(machine);
  ASSERT_TRUE(obstacle);
  EXPECT_NE(obstacle->reason.find(GetParam().reason), std::string::npos) << obstacle->text();
  EXPECT_NE(obstacle->mend.find(GetParam().mend), std::string::npos) << obstacle->text();
  EXPECT_EQ(obstacle->text().find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, BpfObstacle, testing::Values(
    Case{"machine", [](BpfMachine& m) { m.machine = "riscv64"; }, "riscv64", ""},
    Case{"old", [](BpfMachine& m) { m.release = "5.9.16"; }, "5.9.16 is too old", ""},
    Case{"btf", [](BpfMachine& m) { m.has_btf = false; }, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF"},
    Case{"lockdown", [](BpfMachine& m) { m.lockdown = "confidentiality"; }, "lockdown=confidentiality", "integrity"},
    Case{"namespace", [](BpfMachine& m) { m.in_user_namespace = true; }, "user namespace", "host"},
    Case{"bpf", [](BpfMachine& m) { m.capabilities = kPerfmon | kCheckpoint; }, "CAP_BPF is missing", "cap_bpf"},
    Case{"perfmon", [](BpfMachine& m) { m.capabilities = kBpf | kCheckpoint; }, "CAP_PERFMON is missing", "cap_perfmon"},
    Case{"paranoid", [](BpfMachine& m) { m.capabilities = kBpf | kPerfmon | kCheckpoint, m.paranoid = 3; }, "wants CAP_SYS_ADMIN",
         "sysctl kernel.perf_event_paranoid=2"},
    Case{"map_files", [](BpfMachine& m) { m.capabilities = kBpf | kPerfmon; }, "CAP_CHECKPOINT_RESTORE", "cap_checkpoint_restore"},
    Case{"pids", [](BpfMachine& m) { m.in_pid_namespace = true; }, "pid namespace", "host"},
    Case{"nothing at all", [](BpfMachine& m) { m.capabilities = 0, m.paranoid = 4; }, "CAP_BPF is missing", "root"}));

TEST(BpfSupport, EnoughRightsAreEnough) {
  BpfMachine machine = good();
  EXPECT_FALSE(find_bpf_obstacle(machine));
  machine.paranoid = 4;
  EXPECT_FALSE(find_bpf_obstacle(machine)) << "root on a machine that is careful";
  machine = good();
  machine.capabilities = kBpf | kPerfmon | kCheckpoint;
  EXPECT_FALSE(find_bpf_obstacle(machine));
  machine.lockdown = "integrity";
  EXPECT_FALSE(find_bpf_obstacle(machine));
}

TEST(BpfSupport, KernelsThatMayLockUpAreRefused) {
  BpfMachine machine = good();
  for (const char* release : {"5.19.0-50-generic", "6.0.9", "6.1.0", "6.1.25-37.47.amzn2023.x86_64", "6.1.35", "6.2.0-26-generic", "6.3.9"}) {
    machine.release = release;
    auto obstacle = find_bpf_obstacle(machine);
    ASSERT_TRUE(obstacle) << release;
    EXPECT_NE(obstacle->reason.find("lock up"), std::string::npos);
    EXPECT_NE(obstacle->mend.find("6.1.36"), std::string::npos);
  }
  for (const char* release : {"5.10.0", "5.15.148-generic", "5.17.0", "5.18.19", "6.1.36", "6.1.192", "6.3.10", "6.4.0", "6.12.1-rc1", "7.3.4"}) {
    machine.release = release;
    EXPECT_FALSE(find_bpf_obstacle(machine)) << release;
  }
}

TEST(BpfSupport, ARefusalIsExplained) {
  BpfMachine machine = good();
  EXPECT_NE(explain_bpf_refusal(EPERM, machine).text().find("seccomp"), std::string::npos);
  EXPECT_EQ(explain_bpf_refusal(E2BIG, machine).mend, "");
  machine.memlock_bytes = 64 * 1024;
  EXPECT_EQ(explain_bpf_refusal(EPERM, machine).text().find("RLIMIT_MEMLOCK"), std::string::npos) << "a new kernel does not count it";
  machine.release = "5.10.0-30-amd64";
  EXPECT_NE(explain_bpf_refusal(EPERM, machine).text().find("RLIMIT_MEMLOCK is 64 KiB"), std::string::npos);
  EXPECT_NE(explain_bpf_refusal(EPERM, machine).mend.find("ulimit -l"), std::string::npos);
  EXPECT_EQ(explain_bpf_refusal(E2BIG, machine).mend, "");
  machine.lockdown = "confidentiality";
  EXPECT_NE(explain_bpf_refusal(EINVAL, machine).text().find("lockdown"), std::string::npos);
  machine = good();
  machine.capabilities = 0;
  EXPECT_NE(explain_bpf_refusal(EPERM, machine).text().find("CAP_BPF"), std::string::npos);
}

class FakedMachine : public testing::Test {
 protected:
  FakedMachine() : root_(testing::TempDir() + "/bpf_support." + std::to_string(getpid())) {
    std::filesystem::create_directory(root_);
    paths_ = {root_ + "/vmlinux", root_ + "/lockdown", root_ + "/paranoid", root_ + "/status", root_ + "/uid_map", root_ + "/pid"};
  }
  ~FakedMachine() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

  std::string root_;
  BpfMachinePaths paths_;
};

TEST_F(FakedMachine, IsReadAsItIs) {
  put(paths_.btf, "x");
  put(paths_.lockdown, "none integrity [confidentiality]\n");
  put(paths_.paranoid, "3\n");
  put(paths_.status, "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001c000000000\nThreads:\t1\n");
  put(paths_.uid_map, "         0          0 4294967295\n");
  BpfMachine machine = read_bpf_machine(paths_);
  EXPECT_TRUE(machine.has_btf);
  EXPECT_EQ(machine.lockdown, "confidentiality");
  EXPECT_EQ(machine.paranoid, 3);
  EXPECT_EQ(machine.capabilities, kPerfmon | kBpf | kCheckpoint);
  EXPECT_FALSE(machine.in_user_namespace);
  EXPECT_FALSE(machine.release.empty());
  put(paths_.uid_map, "         0       1000          1\n");
  EXPECT_TRUE(read_bpf_machine(paths_).in_user_namespace);
  EXPECT_FALSE(machine.in_pid_namespace);
  std::filesystem::create_symlink("pid:[4026532201]", paths_.pid_namespace);
  EXPECT_TRUE(read_bpf_machine(paths_).in_pid_namespace);
}

TEST(BpfSupport, DebiansReleaseIsNotItsVersion) {
  BpfMachine machine = good();
  machine.release = "6.1.0-57-cloud-amd64", machine.version = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-1 (2026-09-01)";
  EXPECT_FALSE(find_bpf_obstacle(machine));
  machine.release = "6.1.0-7-amd64", machine.version = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.20-1 (2023-03-19)";
  EXPECT_TRUE(find_bpf_obstacle(machine));
}

TEST_F(FakedMachine, WithoutFilesNothingIsAssumed) {
  BpfMachine machine = read_bpf_machine(paths_);
  EXPECT_FALSE(machine.has_btf);
  EXPECT_EQ(machine.lockdown, "");
  EXPECT_EQ(machine.capabilities, 0u);
  put(paths_.lockdown, "]none[");
  put(paths_.status, "CapEff:");
  machine = read_bpf_machine(paths_);
  EXPECT_EQ(machine.lockdown, "");
  EXPECT_EQ(machine.capabilities, 0u);
}

}  // namespace
}  // namespace cprof::collect
