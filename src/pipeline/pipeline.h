// The only place where events become a profile: follows address spaces, unwinds each snapshot as it comes, interns the
// stack, keeps the addresses only; names them when the run ends. A live collector and a replayed recording are the same
// to it, except that a live one may be asked for memory and mappings, and what it answers goes to the journal.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "event/event.h"
#include "object/process_files.h"
#include "pipeline/file_sources.h"
#include "profile/profile.h"
#include "symbolize/symbolizer.h"

namespace cprof::pipeline {

enum class UnwindMode : uint8_t { kDwarf, kFramePointer };

// What can be asked of processes that still live. Absent in a replay.
class LiveAccess {
 public:
  virtual ~LiveAccess() = default;
  virtual Result<std::vector<object::MapsEntry>> read_maps(int32_t pid) = 0;
  virtual size_t read_memory(int32_t pid, uint64_t address, std::span<std::byte> into) = 0;
  virtual Result<std::string> read_cgroup(int32_t pid) = 0;
};
std::unique_ptr<LiveAccess> make_live_access();

struct Options {
  size_t max_depth = 4096;
  UnwindMode unwind = UnwindMode::kDwarf;
  symbolize::DemangleStyle demangle = symbolize::DemangleStyle::kFull;
  bool inline_frames = true;
  bool symbolize = true;
  NameSources sources{};
  LiveAccess* live = nullptr;
  event::EventSink* journal = nullptr;   // receives every event, what was asked of the live process before its sample
  uint64_t window_ns = 0;                // not 0: what is older than that is forgotten as the run goes on
  std::string kallsyms_path = "/proc/kallsyms";
  bool kallsyms_given = false;           // kallsyms_path is the recording's own, not this machine's
};

class Pipeline : public event::EventSink {
 public:
  explicit Pipeline(Options options);
  ~Pipeline() override;

  Result<void> begin(const event::SessionInfo& info) override;
  Result<void> on_event(const event::Event& event) override;
  Result<void> on_round(uint64_t time_ns) override;
  Result<void> finish(uint64_t end_ns) override;

  struct StackCounts {
    uint64_t samples = 0;    // all
    uint64_t unwound = 0;    // with user registers
    uint64_t truncated = 0;  // cut by the end of their snapshot
    uint64_t nearly_cut = 0; // complete, but the next may be cut
    uint64_t live = 0;       // needed memory of the live thread, which changes: better read soon
  };
  StackCounts stack_counts() const;

  // For recordings that keep their last seconds, or are written in parts. Lets go of all that happened before then and of
  // what only that used: memory stays in proportion to what is kept. Not with a journal.
  void forget_before(uint64_t time_ns);
  // Everything up to here has come; 0 before the first round.
  uint64_t delivered_until() const;
  // What there is, with the names and ends of tasks as they are now, and code without names. Rows keep their numbers
  // until renumberings() grows. Before finish().
  const profile::Profile& so_far();
  uint64_t renumberings() const;
  // Of the rows recorded so far.
  size_t bytes_held() const;

  // For the profile's diagnostics, before finish().
  void add_note(std::string_view name, std::string_view description);

  // After finish().
  profile::Profile take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cprof::pipeline
