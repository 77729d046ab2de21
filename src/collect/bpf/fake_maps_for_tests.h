// Tests only: the BPF programs' maps as plain memory, and the walk of user_walk.h over them.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <vector>

#include "collect/bpf/sampler_maps.h"

namespace cprof::collect {

class FakeMaps final : public SamplerMaps {
 public:
  FakeMaps() : rules_(SAMPLER_MAX_RULES), modules_(SAMPLER_MAX_MODULES), mappings_(SAMPLER_MAX_MAPPINGS) {}

  Result<std::span<uint32_t>> add_chunk() override {
    if (chunks.size() >= most_chunks) return fail("no more chunks", ENOSPC);
    chunks.push_back(std::make_unique<uint32_t[]>(SAMPLER_CHUNK_WORDS));
    return std::span(chunks.back().get(), SAMPLER_CHUNK_WORDS);
  }
  std::span<cp_rule> rules() override { return rules_; }
  std::span<sampler_module> modules() override { return modules_; }
  std::span<sampler_mapping> mappings() override { return mappings_; }
  Result<void> set_process(int32_t pid, const sampler_process& process) override {
    if (refuses_processes) return fail("full", E2BIG);
    processes[pid] = process;
    return {};
  }
  void drop_process(int32_t pid) override { processes.erase(pid); }
  void set_file(const sampler_file_key& key, uint32_t module) override { files[key.inode] = module; }

  size_t most_chunks = SAMPLER_MAX_CHUNKS;
  bool refuses_processes = false;
  std::vector<std::unique_ptr<uint32_t[]>> chunks;
  std::map<int32_t, sampler_process> processes;
  std::map<uint64_t, uint32_t> files;

 private:
  std::vector<cp_rule> rules_;
  std::vector<sampler_module> modules_;
  std::vector<sampler_mapping> mappings_;
};

// What the walk looks into.
inline FakeMaps* walked_maps = nullptr;
inline std::vector<uint32_t> wanted_modules;
inline sampler_mapping learnable{};  // found by the walk alone when the address lies in it
inline bool knows_unmapped = false;  // anything else is known to be no code
inline size_t chunks_looked_up = 0;  // each search for a row does so

}  // namespace cprof::collect

struct user_walk;
static inline const uint32_t* walk_chunk(uint32_t chunk) {
  cprof::collect::chunks_looked_up++;
  auto& chunks = cprof::collect::walked_maps->chunks;
  return chunk < chunks.size() ? chunks[chunk].get() : nullptr;
}
static inline const cp_rule* walk_rule(uint32_t index) {
  return index < SAMPLER_MAX_RULES ? &cprof::collect::walked_maps->rules()[index] : nullptr;
}
static inline const sampler_module* walk_module(uint32_t index) {
  return index < SAMPLER_MAX_MODULES ? &cprof::collect::walked_maps->modules()[index] : nullptr;
}
static inline const sampler_mapping* walk_mapping(uint32_t index) {
  return index < SAMPLER_MAX_MAPPINGS ? &cprof::collect::walked_maps->mappings()[index] : nullptr;
}
static inline int read_words(uint64_t address, uint64_t* values, size_t bytes) {
  iovec local{values, bytes}, remote{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes) ? 0 : 1;
}
static inline int walk_read(uint64_t address, uint64_t* value) { return read_words(address, value, 8); }
static inline int walk_read_some(uint64_t address, uint64_t* words, uint32_t bytes) {
  return read_words(address, words, bytes);
}

#include "collect/bpf/user_walk.h"

static inline void walk_want_module(user_walk*, uint32_t module) { cprof::collect::wanted_modules.push_back(module); }
static inline int walk_learn(user_walk* walk, uint64_t pc) {
  if (walk_is_in(&cprof::collect::learnable, pc)) {
    walk->found = cprof::collect::learnable;
    return 1;
  }
  walk->surely_unmapped = cprof::collect::knows_unmapped;
  return 0;
}
