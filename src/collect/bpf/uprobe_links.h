// Probes of the uprobe programs in files: many at once by one link (Linux 6.6), else one by one through perf events. They are
// gone when this goes. Used by UprobeObject's owners, on one thread. Never prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct bpf_program;
struct bpf_link;

namespace cprof::collect {

// What a program that is attached by one link for many places is loaded as. Younger than the system's headers.
inline constexpr uint32_t kUprobeMultiAttachType = 48;

struct ProbePlace {
  uint64_t file_offset = 0;
  uint32_t site = 0;  // what the program is told
};

class UprobeLinks {
 public:
  enum class At : uint8_t { kEntry, kExit, kReturn };  // kReturn: the kernel puts itself in place of the return address

  UprobeLinks(bpf_program* entry, bpf_program* exit, bool is_multi) : entry_(entry), exit_(exit), is_multi_(is_multi) {}
  ~UprobeLinks();
  UprobeLinks(const UprobeLinks&) = delete;
  UprobeLinks& operator=(const UprobeLinks&) = delete;

  struct File {
    std::string path;  // as this process sees it
    int32_t pid = 0;   // only in this process; 0: in every one that has the file
  };
  // Gives the sites that the kernel refused; an error when it refused all of them. done: how many since the last call.
  Result<std::vector<uint32_t>> attach(const File& file, At at, std::span<const ProbePlace> places,
                                       const std::function<void(size_t done)>& progress);
  void detach();

 private:
  Result<void> attach_group(const File& file, At at, std::span<const ProbePlace> places);
  Result<void> attach_multi(const File& file, At at, std::span<const ProbePlace> places);
  Result<void> attach_one(const File& file, At at, const ProbePlace& place);

  bpf_program *entry_, *exit_;
  bool is_multi_;
  std::vector<Fd> multi_;
  std::vector<bpf_link*> single_;
};

}  // namespace cprof::collect
