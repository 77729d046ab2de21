#include "collect/bpf/kernel_support.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <tuple>

#include "base/file.h"

namespace cprof::collect {
namespace {

struct Version {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const Version&) const = default;
};

Version parse_version(std::string_view text) {
  Version version;
  for (int* part : {&version.major, &version.minor, &version.patch}) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc()) break;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty() || text.front() != '.') break;
    text.remove_prefix(1);
  }
  return version;
}

// Debian's release has its own numbering; the stable version stands in the version line: "... Debian 6.1.192-1 ...".
Version version_of(const KernelIdentity& kernel) {
  constexpr std::string_view kDebian = "Debian ";
  size_t at = kernel.version.find(kDebian);
  if (at == std::string::npos) return parse_version(kernel.release);
  Version version = parse_version(std::string_view(kernel.version).substr(at + kDebian.size()));
  return version.major ? version : parse_version(kernel.release);
}

// The initial namespace's inode number is fixed (include/linux/proc_ns.h, PROC_PID_INIT_INO).
bool is_in_pid_namespace() {
  char target[64] = "";
  ssize_t length = readlink("/proc/self/ns/pid", target, sizeof(target) - 1);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)) != "pid:[4026531836]";
}

// From 5.19 on until "mm: Fix copy_from_user_nofault()" a program that reads user memory in an interrupt can lock the
// machine up. Fixed in 6.4 and in the stable versions 6.1.37 and 6.3.9 at the latest.
bool may_lock_up(const Version& version) {
  if (version < Version{5, 19, 0} || version >= Version{6, 4, 0}) return false;
  if (version.major == 6 && version.minor == 1) return version.patch < 37;
  if (version.major == 6 && version.minor == 3) return version.patch < 9;
  return true;
}

}  // namespace

KernelIdentity running_kernel() {
  utsname names{};
  uname(&names);
  KernelIdentity kernel{names.machine, names.release, names.version, access("/sys/kernel/btf/vmlinux", R_OK) == 0, "", is_in_pid_namespace()};
  if (auto text = read_text_file("/sys/kernel/security/lockdown", 256)) kernel.lockdown = *text;
  return kernel;
}

Result<void> check_bpf_support(const KernelIdentity& kernel) {
  if (kernel.machine != "x86_64") return fail("not supported: the bpf backend on " + kernel.machine, ENOTSUP);
  Version version = version_of(kernel);
  if (version < Version{5, 17, 0}) return fail("not supported: the bpf backend needs Linux 5.17, this is " + kernel.release, ENOTSUP);
  if (!kernel.has_btf) return fail("not supported: the bpf backend needs a kernel with BTF (/sys/kernel/btf/vmlinux)", ENOTSUP);
  if (kernel.lockdown.find("[confidentiality]") != std::string::npos)
    return fail("kernel lockdown=confidentiality forbids the bpf backend", EPERM);
  if (kernel.has_own_pids) return fail("not supported: the bpf backend inside a pid namespace (a container)", ENOTSUP);
  if (may_lock_up(version))
    return fail("Linux " + kernel.release + " has a fault by which BPF can lock the machine up; 6.1.37 and 6.4 are mended", ENOTSUP);
  return {};
}

}  // namespace cprof::collect
