// What a flight recorder keeps and forgets, on rings that are filled here; when a long scope makes a report.
#include "embed/recording.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace cprof::embed {
namespace {

constexpr uint64_t kRing = 1024;

class RecordedThread {
 public:
  explicit RecordedThread(int32_t tid) {
    state_->scopes.ring = ring_.data();
    state_->scopes.mask = kRing - 1;
    state_->scopes.limit = UINT64_MAX;
    live.state = state_.get();
    live.tid = tid;
  }
  void scope(uint32_t name, uint64_t start, uint64_t end) { cprof_put_(&state_->scopes, start, end, name); }
  void mark(uint64_t time) { cprof_put_(&state_->scopes, time, 0, uint64_t{CPROF_KIND_MARK_} << 24 | 1); }

  LiveThread live;

 private:
  std::vector<cprof_record> ring_ = std::vector<cprof_record>(kRing);
  std::unique_ptr<inproc::ThreadState> state_ = std::make_unique<inproc::ThreadState>();
};

TEST(EmbedRecording, ForgetsWhatIsOlderAndNothingElse) {
  const Options options;
  const ModuleTracker modules;
  Recording recording(options);
  RecordedThread thread(7);
  for (uint64_t n = 1; n <= 10; n++) thread.scope(1, 1, 100 * n);
  thread.mark(1050);
  recording.drain(thread.live, modules);
  recording.forget_before(501);
  ASSERT_EQ(recording.threads()[0].records.size(), 6u);
  EXPECT_EQ(recording.threads()[0].records.front().end, 600u) << "a scope is as old as its end";
  recording.forget_before(1050);
  EXPECT_EQ(recording.threads()[0].records.size(), 1u);
  EXPECT_EQ(recording.counts().written, 11u) << "what was forgotten was written all the same";
  EXPECT_EQ(recording.counts().lost, 0u);
}

TEST(EmbedRecording, ThreadsThatComeAndGoTakeNoMemoryForEver) {
  const Options options;
  const ModuleTracker modules;
  Recording recording(options);
  RecordedThread stays(1);
  uint64_t bytes = 0;
  for (uint64_t n = 1; n <= 100; n++) {
    RecordedThread comes(static_cast<int32_t>(n + 1));
    comes.scope(1, 10 * n, 10 * n + 5);
    stays.scope(2, 10 * n, 10 * n + 5);
    recording.drain(stays.live, modules);
    recording.drain(comes.live, modules);
    EXPECT_EQ(recording.threads()[comes.live.row].tid, comes.live.tid);
    recording.forget_before(10 * n - 20);
    if (n == 50) bytes = recording.bytes();
  }
  EXPECT_EQ(recording.bytes(), bytes);
  EXPECT_LT(recording.threads().size(), 8u);
  EXPECT_EQ(recording.threads_seen(), 101u);
  EXPECT_EQ(recording.threads()[stays.live.row].tid, 1) << "a thread that lives keeps its row, whatever it has";
}

TEST(EmbedScopeLimits, TheShorterHoldsAndThereIsAnEnd) {
  ScopeLimits limits;
  EXPECT_TRUE(limits.empty());
  EXPECT_TRUE(limits.add(5, 100) && limits.add(5, 200) && limits.add(6, 50));
  EXPECT_EQ(limits.of(5), 100u);
  EXPECT_EQ(limits.of(6), 50u);
  EXPECT_EQ(limits.of(7), ScopeLimits::kNone);
  for (uint32_t name = 10; name < 10 + ScopeLimits::kMost - 2; name++) EXPECT_TRUE(limits.add(name, 1));
  EXPECT_FALSE(limits.add(1000, 1));
  EXPECT_TRUE(limits.add(5, 10));
}

TEST(EmbedSpikeWatch, OneReportInAGapTheLongestOfALook) {
  TickClock::choose_source();
  TickClock clock;
  clock.calibrate();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  clock.calibrate();
  const ScopeLimits none;
  NameTable names;
  Options options;
  options.scope_limits = {{"request", 1'000'000}};
  SpikeWatch spikes(none, clock, 10);
  ASSERT_TRUE(spikes.add(options, names));
  const uint32_t request = names.of_text("request"), other = names.of_text("other");
  const uint64_t start = cprof_ticks_();
  const auto lasts = [&](uint32_t name, uint64_t ns) {
    spikes.see({start, clock.to_ticks(clock.to_ns(start) + ns), name}, 3);
  };
  lasts(request, 900'000);
  lasts(other, 9'000'000);
  EXPECT_FALSE(spikes.take(1));
  lasts(request, 2'000'000);
  lasts(request, 4'000'000);
  lasts(request, 3'000'000);
  const auto spike = spikes.take(1);
  ASSERT_TRUE(spike);
  EXPECT_NEAR(static_cast<double>(spike->lasted_ns), 4e6, 1e3);
  EXPECT_EQ(spike->thread, 3u);
  lasts(request, 2'000'000);
  EXPECT_FALSE(spikes.take(2)) << "too soon after the last report";
  EXPECT_FALSE(spikes.take(2 + SpikeWatch::kShortestGapNs)) << "what came too soon is not told later";
  lasts(request, 2'000'000);
  EXPECT_TRUE(spikes.take(2 + SpikeWatch::kShortestGapNs));
  EXPECT_EQ(spikes.spikes(), 5u);
}

}  // namespace
}  // namespace cprof::embed
