#include "collect/bpf/uprobe_links.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "collect/bpf/bpf_messages.h"

namespace cprof::collect {
namespace {

constexpr size_t kGroup = 512;  // places a link: few enough that progress can be told

// The arguments of BPF_LINK_CREATE for many places (include/uapi/linux/bpf.h since 6.6).
struct MultiLinkArguments {
  uint32_t program, target, attach_type, flags;
  uint64_t path, offsets, reference_counters, cookies;
  uint32_t count, multi_flags, pid, unused;
};
constexpr uint32_t kMultiReturn = 1;

// Two descriptors a place.
void allow_many_files() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

UprobeLinks::~UprobeLinks() { detach(); }

void UprobeLinks::detach() {
  // Entries came last: what begins now would have no end.
  while (!multi_.empty()) multi_.pop_back();
  for (size_t i = single_.size(); i-- > 0;) bpf_link__destroy(single_[i]);
  single_.clear();
}

Result<void> UprobeLinks::attach_multi(const File& file, At at, std::span<const ProbePlace> places) {
  std::vector<uint64_t> offsets, cookies;
  for (const ProbePlace& place : places) {
    offsets.push_back(place.file_offset);
    cookies.push_back(place.site);
  }
  MultiLinkArguments arguments{};
  arguments.program = static_cast<uint32_t>(bpf_program__fd(at == At::kEntry ? entry_ : exit_));
  arguments.attach_type = kUprobeMultiAttachType;
  arguments.path = reinterpret_cast<uint64_t>(file.path.c_str());
  arguments.offsets = reinterpret_cast<uint64_t>(offsets.data());
  arguments.cookies = reinterpret_cast<uint64_t>(cookies.data());
  arguments.count = static_cast<uint32_t>(places.size());
  arguments.multi_flags = at == At::kReturn ? kMultiReturn : 0;
  arguments.pid = static_cast<uint32_t>(file.pid);
  Fd link(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &arguments, sizeof(arguments))));
  if (!link) return fail_errno("probing " + file.path);
  multi_.push_back(std::move(link));
  return {};
}

Result<void> UprobeLinks::attach_one(const File& file, At at, const ProbePlace& place) {
  BpfMessages messages;
  bpf_uprobe_opts options{};
  options.sz = sizeof(options);
  options.bpf_cookie = place.site;
  options.retprobe = at == At::kReturn;
  bpf_program* program = at == At::kEntry ? entry_ : exit_;
  bpf_link* link = bpf_program__attach_uprobe_opts(program, file.pid ? file.pid : -1, file.path.c_str(), place.file_offset, &options);
  if (!link) return fail_errno(fmt::format("probing {} at offset {:#x}", file.path, place.file_offset));
  single_.push_back(link);
  return {};
}

Result<void> UprobeLinks::attach_group(const File& file, At at, std::span<const ProbePlace> places) {
  return is_multi_ ? attach_multi(file, at, places) : attach_one(file, at, places.front());
}

// A group that is refused is halved until what the kernel does not want stands alone.
Result<std::vector<uint32_t>> UprobeLinks::attach(const File& file, At at, std::span<const ProbePlace> places,
                                                  const std::function<void(size_t)>& progress) {
  if (!is_multi_) allow_many_files();
  std::vector<uint32_t> refused;
  std::vector<std::span<const ProbePlace>> waiting;
  for (size_t first = 0; first < places.size(); first += kGroup) waiting.push_back(places.subspan(first, std::min(kGroup, places.size() - first)));
  std::ranges::reverse(waiting);
  Error last;
  while (!waiting.empty()) {
    const std::span<const ProbePlace> group = waiting.back();
    waiting.pop_back();
    const size_t half = is_multi_ ? group.size() / 2 : 1;
    if (!is_multi_ && group.size() > 1) {
      waiting.push_back(group.subspan(half));
      waiting.push_back(group.first(half));
      continue;
    }
    auto attached = attach_group(file, at, group);
    if (attached) {
      progress(group.size());
    } else if (group.size() == 1) {
      refused.push_back(group.front().site);
      last = attached.error();
    } else if (attached.error().code == EMFILE || attached.error().code == ENOMEM || attached.error().code == EPERM ||
               attached.error().code == ENOENT || attached.error().code == ESRCH) {
      return std::unexpected(attached.error());
    } else {
      waiting.push_back(group.subspan(half));
      waiting.push_back(group.first(half));
    }
  }
  if (!places.empty() && refused.size() == places.size()) return std::unexpected(last);
  return refused;
}

}  // namespace cprof::collect
