#include "collect/bpf/kernel_support.h"

#include <gtest/gtest.h>

namespace cprof::collect {
namespace {

KernelIdentity kernel(std::string release, std::string version = "#1 SMP PREEMPT_DYNAMIC") {
  return {"x86_64", std::move(release), std::move(version), true, "none [integrity] confidentiality", false};
}
bool works(const KernelIdentity& k) { return check_bpf_support(k).has_value(); }
std::string refusal(const KernelIdentity& k) {
  auto checked = check_bpf_support(k);
  return checked ? "" : checked.error().message;
}

TEST(KernelSupport, Versions) {
  EXPECT_TRUE(works(kernel("6.18.44")));
  EXPECT_TRUE(works(kernel("7.3.4+deb13-cloud-amd64")));
  EXPECT_TRUE(works(kernel("5.17.0")));
  EXPECT_TRUE(works(kernel("5.18.19-generic")));
  EXPECT_FALSE(works(kernel("5.15.0-91-generic")));
  EXPECT_FALSE(works(kernel("5.4.0")));
  EXPECT_FALSE(works(kernel("nonsense")));
}

TEST(KernelSupport, KernelsThatMayLockUpAreRefused) {
  EXPECT_NE(refusal(kernel("5.19.0-50-generic")).find("lock the machine up"), std::string::npos);
  EXPECT_FALSE(works(kernel("6.0.12")));
  EXPECT_FALSE(works(kernel("6.1.20")));
  EXPECT_TRUE(works(kernel("6.1.37")));
  EXPECT_FALSE(works(kernel("6.2.0-39-generic")));
  EXPECT_FALSE(works(kernel("6.3.8")));
  EXPECT_TRUE(works(kernel("6.4.0")));
}

TEST(KernelSupport, DebiansReleaseIsNotItsVersion) {
  EXPECT_TRUE(works(kernel("6.1.0-57-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-1 (2026-09-01)")));
  EXPECT_FALSE(works(kernel("6.1.0-7-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.20-1 (2023-03-19)")));
}

TEST(KernelSupport, WhatElseForbidsIt) {
  KernelIdentity k = kernel("6.18.44");
  k.lockdown = "none integrity [confidentiality]";
  EXPECT_NE(refusal(k).find("lockdown"), std::string::npos);
  k = kernel("6.18.44");
  k.has_btf = false;
  EXPECT_NE(refusal(k).find("BTF"), std::string::npos);
  k = kernel("6.18.44");
  k.has_own_pids = true;
  EXPECT_NE(refusal(k).find("pid namespace"), std::string::npos);
  k = kernel("6.18.44");
  k.machine = "aarch64";
  EXPECT_NE(refusal(k).find("aarch64"), std::string::npos);
}

}  // namespace
}  // namespace cprof::collect
