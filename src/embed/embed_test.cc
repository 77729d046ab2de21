// What of the library can be tried without a running session: options, names, clock, file names.
#include <gtest/gtest.h>
#include <signal.h>

#include <cprof/cprof.h>

#include "base/clock.h"
#include "base/control_block.h"
#include "embed/name_table.h"
#include "embed/options.h"
#include "embed/outputs.h"
#include "embed/tick_clock.h"

namespace cprof::embed {
namespace {

TEST(EmbedOptions, EveryKey) {
  auto options = parse_options(
      "out=a.folded,out=b.pftrace,freq=4000,mode=wall,overflow=overwrite,children=exec,kernel=yes,events=timer,quiet=yes,"
      "ring=1024,buffer=2M,window=100ms/2s,signal=USR1,seconds=1.5,start=no,trigger=a>b>20ms,trigger=c>1,keep=5s");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->outputs, (std::vector<std::string>{"a.folded", "b.pftrace"}));
  EXPECT_EQ(options->frequency_hz, 4000u);
  EXPECT_EQ(options->mode, Mode::kWall);
  EXPECT_EQ(options->overflow, Overflow::kOverwrite);
  EXPECT_EQ(options->children, Children::kExec);
  EXPECT_TRUE(options->with_kernel && options->timers_only && options->quiet && options->waits);
  EXPECT_EQ(options->ring_records, 1024u);
  EXPECT_EQ(options->buffer_bytes, 2u << 20);
  EXPECT_EQ(options->window_on_ns, 100'000'000u);
  EXPECT_EQ(options->window_period_ns, 2'000'000'000u);
  EXPECT_EQ(options->trigger_signal, SIGUSR1);
  EXPECT_DOUBLE_EQ(options->trigger_seconds, 1.5);
  ASSERT_EQ(options->scope_limits.size(), 2u);
  EXPECT_EQ(options->scope_limits[0].scope, "a>b");
  EXPECT_EQ(options->scope_limits[0].longest_ns, 20'000'000u);
  EXPECT_EQ(options->scope_limits[1].longest_ns, 1'000'000'000u);
  EXPECT_EQ(options->keep_ns, 5'000'000'000u);
}

TEST(EmbedOptions, WhatIsKeptForAWhileIsTheNewest) {
  EXPECT_EQ(parse_options("keep=1s")->overflow, Overflow::kOverwrite);
  EXPECT_EQ(parse_options("overflow=drop,keep=1s")->overflow, Overflow::kDrop);
  EXPECT_EQ(parse_options("freq=1")->overflow, Overflow::kDrop);
}

TEST(EmbedOptions, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"freq=often", "freq: 'often' is not"},       {"freq", "'freq' is no KEY=VALUE"},   {"colour=red", "'colour=red'"},
      {"ring=1000", "a power of two"},              {"window=3s/2s", "part of its period"}, {"signal=USR1", "needs seconds="},
      {"trigger=a,keep=1s", "not NAME>TIME"},       {"trigger=>1s,keep=1s", "not NAME>TIME"}, {"trigger=a>soon,keep=1s", "not a number"},
      {"mode=fast", "one of cpu, wall"},            {"trigger=a>1ms", "needs keep="},     {"out=", "not a file"},
  };
  for (const auto& [text, words] : cases) {
    auto options = parse_options(text);
    ASSERT_FALSE(options) << text;
    EXPECT_NE(options.error().message.find(words), std::string::npos) << options.error().message;
  }
  EXPECT_TRUE(parse_options(""));
}

TEST(EmbedNames, EachTextOnceAndNotWithoutEnd) {
  NameTable names;
  const uint32_t first = names.of_site("a");
  EXPECT_EQ(names.of_text("a"), first);
  EXPECT_EQ(names.name(first), "a");
  for (int n = 0; n < 70'000; n++) names.of_text(std::to_string(n));
  EXPECT_EQ(names.of_text("one more"), NameTable::kTooMany);
  EXPECT_GT(names.refused(), 4000u);
  EXPECT_NE(names.of_site("a place in the code"), NameTable::kTooMany);
}

TEST(EmbedOutputs, NamesDoNotCollide) {
  const OutputName first{"app", 77, 0, true}, child{"app", 78, 0, false}, second{"app", 77, 1, true};
  EXPECT_EQ(expand_name("x.folded", first), "x.folded");
  EXPECT_EQ(expand_name("x.folded", child), "x.folded.78");
  EXPECT_EQ(expand_name("x.folded", second), "x.folded.1");
  EXPECT_EQ(expand_name("%e-%p-%n.pb.gz", child), "app-78-0.pb.gz");
  EXPECT_EQ(expand_name("100%%.folded", first), "100%.folded");
  EXPECT_FALSE(check_output("x.svg"));
  for (std::string_view ending : kControlEndings) EXPECT_TRUE(check_output("x" + std::string(ending))) << ending;
}

// verifies: B5
TEST(EmbedClock, GoesWithTheMonotonicClock) {
  TickClock::choose_source();
  TickClock clock;
  clock.calibrate();
  const uint64_t start_ns = monotonic_ns();
  while (monotonic_ns() - start_ns < 20'000'000) {
  }
  clock.calibrate();
  uint64_t before = 0;
  for (int n = 0; n < 1000; n++) {
    const uint64_t low = monotonic_ns(), ns = clock.to_ns(cprof_ticks_()), high = monotonic_ns();
    EXPECT_GE(ns, before);
    EXPECT_GT(ns + 50'000, low);
    EXPECT_LT(ns, high + 50'000);
    before = ns;
  }
}

}  // namespace
}  // namespace cprof::embed
