// The maps of the BPF programs as user space writes them: plain memory for tables, calls for hashes. An interface, so
// that publishers are tested without a kernel. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "collect/bpf/sampler_abi.h"
#include "unwind/core/unwind_rows.h"

namespace cprof::collect {

class SamplerMaps {
 public:
  virtual ~SamplerMaps() = default;
  // Another chunk of the store, zeroed, at the next place. Fails when there are SAMPLER_MAX_CHUNKS or no memory.
  virtual Result<std::span<uint32_t>> add_chunk() = 0;
  virtual std::span<cp_rule> rules() = 0;
  virtual std::span<sampler_module> modules() = 0;
  virtual std::span<sampler_mapping> mappings() = 0;
  virtual Result<void> set_process(int32_t pid, const sampler_process& process) = 0;
  virtual void drop_process(int32_t pid) = 0;
  // A file's code is this module, whoever maps it; module 0: no longer.
  virtual void set_file(const sampler_file_key& key, uint32_t module) = 0;
};

}  // namespace cprof::collect
