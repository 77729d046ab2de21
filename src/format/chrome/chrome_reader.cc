// One pass over the file, event by event; a table tells what each phase means. Slices that are whole (X) go straight into
// the profile; begins and ends wait until all is read, since files may be in any order. Times are kept as signed numbers
// until the earliest is known; stacks by the id of their frame, since "stackFrames" usually stands last.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "format/chrome/async_tracks.h"
#include "format/chrome/chrome.h"
#include "format/chrome/own_data.h"
#include "format/chrome/stack_frames.h"
#include "format/chrome/tasks.h"
#include "format/chrome/trace_event.h"
#include "format/chrome/v8_profiles.h"
#include "format/json/json_number.h"
#include "format/scope_pairs.h"
#include "timeline/slice_lanes.h"

namespace cprof::format {
namespace {

using chrome::Argument;
using chrome::TraceEvent;
using profile::CallSiteId;
using profile::LabelSetId;
using profile::OffCpuInterval;
using profile::ProcessId;
using profile::Profile;
using profile::Slice;
using profile::ThreadId;
using profile::TrackId;
using Token = JsonTokenizer::Token;

constexpr std::string_view kSampleCategory = "sample", kOffCpuCategory = "offcpu";
constexpr size_t kFreeLabelBytes = size_t{4} << 20;  // and a quarter of the file

// A sample that waits for its stack.
struct PendingSample {
  int64_t time_ns = 0;
  ThreadId thread;
  StringId metric = profile::kNoText, frame = profile::kNoText;
  CallSiteId site;  // when the event had its stack in itself
  int64_t weight = 0;
  uint32_t cpu = 0;
  profile::StackEnd end = profile::StackEnd::kComplete;
};

struct PendingWait {
  OffCpuInterval interval;
  StringId frame = profile::kNoText;
  int32_t waker_tid = -1;
};

profile::StackEnd end_named(std::string_view name, profile::StackEnd otherwise) {
  for (uint8_t i = 0; i < static_cast<uint8_t>(profile::StackEnd::kCount); ++i)
    if (name_of(profile::StackEnd{i}) == name) return profile::StackEnd{i};
  return otherwise;
}

std::optional<profile::WaitClass> class_named(std::string_view name) {
  for (uint8_t i = 0; i < static_cast<uint8_t>(profile::WaitClass::kCount); ++i)
    if (name_of(profile::WaitClass{i}) == name) return profile::WaitClass{i};
  return std::nullopt;
}

void pair_threads(profile::ProfileBuilder& builder, const std::vector<Edge>& edges, int64_t end_of_trace,
                  PairCounts& counts) {
  LanePairs pairs(builder, end_of_trace, counts);
  uint32_t lane = 0;
  for (uint32_t row : in_lanes(edges, builder.profile().threads.size())) {
    const Edge& edge = edges[row];
    if (edge.lane != lane) pairs.close_all();
    lane = edge.lane;
    if (edge.kind == Edge::Kind::kEnd) pairs.end(edge);
    else builder.profile().slices[pairs.begin(edge)].thread = ThreadId(lane);
  }
  pairs.close_all();
}

class ChromeReader {
 public:
  explicit ChromeReader(InputStream input)
      : json_(std::move(input)),
        parser_(json_, builder_.profile().strings),
        tasks_(builder_),
        frames_(builder_),
        own_(builder_),
        async_(builder_),
        v8_(builder_) {
    builder_.profile().run.source = json_.name();
    value_key_ = builder_.intern("value");
  }

  Result<Profile> read() {
    const Token first = json_.next();
    if (first == Token::kBeginArray) TRY(read_events(true));
    else if (first == Token::kBeginObject) TRY(read_document());
    else return std::unexpected(first == Token::kBad ? json_.error() : json_.at_position("neither an array nor an object"));
    return finish();
  }

 private:
  enum class Source : uint8_t { kEvents, kSamples };

  std::unexpected<Error> broken(Token token, std::string_view where) {
    return std::unexpected(token == Token::kBad ? json_.error()
                                                : json_.at_position(fmt::format("the file ends inside {}", where)));
  }

  // An array of events may lack its closing bracket: writers that are killed leave it so, and the format allows it.
  Result<void> read_events(bool may_be_open) {
    while (true) {
      Token token = json_.next();
      if (token == Token::kEndArray) break;
      if (token == Token::kEnd && may_be_open) return {};
      if (JsonTokenizer::is_over(token)) return broken(token, "the list of events");
      TRY(read_event(token, Source::kEvents));
    }
    if (!may_be_open) return {};
    const Token behind = json_.next();
    return behind == Token::kEnd ? Result<void>() : broken(behind, "the list of events");
  }

  Result<void> read_event(Token token, Source source) {
    if (token != Token::kBeginObject) {
      ++malformed_;
      token = json_.skip(token);
      return JsonTokenizer::is_over(token) ? broken(token, "a value") : Result<void>();
    }
    token = parser_.parse(event_);
    if (token != Token::kEndObject) return broken(token, "an event");
    if (event_.is_empty) return {};
    if (source == Source::kSamples) add_sample(event_);
    else add_event(event_);
    return {};
  }

  Result<void> read_document() {
    while (true) {
      Token token = json_.next();
      if (token == Token::kEndObject) break;
      if (token != Token::kKey) return broken(token, "the document");
      const std::string key(json_.text().substr(0, 32));
      token = json_.next();
      if (token == Token::kBeginArray && (key == "traceEvents" || key == "samples")) {
        TRY(key == "samples" ? read_samples() : read_events(false));
        continue;
      }
      if (token == Token::kBeginObject && key == "stackFrames") token = frames_.parse(json_);
      else if (token == Token::kBeginObject && key == "otherData") token = own_.parse(json_);
      else token = json_.skip(token);
      if (JsonTokenizer::is_over(token)) return broken(token, fmt::format("\"{}\"", key));
    }
    const Token behind = json_.next();
    return behind == Token::kEnd ? Result<void>() : broken(behind, "the document");
  }

  Result<void> read_samples() {
    while (true) {
      const Token token = json_.next();
      if (token == Token::kEndArray) return {};
      if (JsonTokenizer::is_over(token)) return broken(token, "\"samples\"");
      TRY(read_event(token, Source::kSamples));
    }
  }

  struct Phase {
    char letter;
    void (ChromeReader::*add)(const TraceEvent&);
  };

  void add_event(const TraceEvent& event) {
    static constexpr std::array<Phase, 22> kPhases = {{{'X', &ChromeReader::add_complete},
                                                       {'B', &ChromeReader::add_edge},
                                                       {'E', &ChromeReader::add_edge},
                                                       {'b', &ChromeReader::add_async},
                                                       {'n', &ChromeReader::add_async},
                                                       {'e', &ChromeReader::add_async},
                                                       {'S', &ChromeReader::add_async},
                                                       {'T', &ChromeReader::add_async},
                                                       {'p', &ChromeReader::add_async},
                                                       {'F', &ChromeReader::add_async},
                                                       {'i', &ChromeReader::add_instant},
                                                       {'I', &ChromeReader::add_instant},
                                                       {'R', &ChromeReader::add_instant},
                                                       {'P', &ChromeReader::add_sample},
                                                       {'C', &ChromeReader::add_counter},
                                                       {'M', &ChromeReader::add_name},
                                                       {'s', &ChromeReader::leave_out},
                                                       {'t', &ChromeReader::leave_out},
                                                       {'f', &ChromeReader::leave_out},
                                                       {'N', &ChromeReader::leave_out},
                                                       {'O', &ChromeReader::leave_out},
                                                       {'D', &ChromeReader::leave_out}}};
    if (parser_.v8_part().is_present) return add_v8_part(event);
    for (const Phase& phase : kPhases)
      if (phase.letter == event.phase) return (this->*phase.add)(event);
    if (event.phase == 0) ++malformed_;
    else leave_out(event);
  }

  void leave_out(const TraceEvent& event) {
    builder_.profile().diagnostics.add("chrome_events_left_out", Severity::kInfo,
                                       "events of kinds that have no place in a profile (flows, objects, memory dumps, "
                                       "clock marks) were left out", 1, fmt::format("ph \"{}\"", event.phase));
  }

  // The time, which also becomes part of the trace's span; nothing when the event has none.
  std::optional<int64_t> time_of(const TraceEvent& event) {
    if (!event.time_ns || event.has_bad_time) {
      ++malformed_;
      return std::nullopt;
    }
    first_ns_ = std::min(first_ns_, *event.time_ns);
    last_ns_ = std::max(last_ns_, *event.time_ns);
    return event.time_ns;
  }

  StringId name_of_event(const TraceEvent& event) {
    return event.name == profile::kNoText ? parser_.intern("[unnamed]") : event.name;
  }

  // A vector that doubles touches twice the memory that it needs in the end. What was read so far tells how many rows the
  // file will have.
  template <typename Row>
  void make_room(std::vector<Row>& rows) {
    constexpr size_t kMany = size_t{1} << 16, kMostTimes = 64;
    constexpr size_t kOfOneEvent = 64;
    if (rows.size() + kOfOneEvent < rows.capacity() || rows.size() < kMany || json_.size().value_or(0) <= json_.position()) return;
    const double times = static_cast<double>(*json_.size()) / static_cast<double>(json_.position());
    rows.reserve(static_cast<size_t>(static_cast<double>(rows.size()) * std::min<double>(times * 1.01, kMostTimes)) + kMany);
  }

  int64_t duration_of(const TraceEvent& event) {
    const auto duration = event.duration_ns ? event.duration_ns : event.thread_duration_ns;
    without_duration_ += !duration;
    negative_durations_ += duration && *duration < 0;
    return std::max<int64_t>(0, duration.value_or(0));
  }

  void add_complete(const TraceEvent& event) {
    const auto time = time_of(event);
    if (!time) return;
    const int64_t duration = duration_of(event);
    last_ns_ = std::max(last_ns_, *time + duration);
    const ThreadId thread = tasks_.thread(event);
    Profile& profile = builder_.profile();
    if (profile.text(event.category) == kOffCpuCategory && add_wait(event, thread, *time, duration)) return;
    std::vector<Slice>& into = event.is_sampled ? sampled_ : profile.slices;
    make_room(into);
    into.push_back({.thread = thread,
                    .name = name_of_event(event),
                    .category = event.category,
                    .start_ns = static_cast<uint64_t>(*time),
                    .duration_ns = static_cast<uint64_t>(duration),
                    .labels = labels()});
  }

  std::optional<int64_t> number_argument(std::string_view key) const {
    const auto found = parser_.find_argument(key);
    return found ? whole_number(found->text) : std::nullopt;
  }

  bool add_wait(const TraceEvent& event, ThreadId thread, int64_t time, int64_t duration) {
    const auto wait_class = class_named(builder_.profile().text(event.name));
    if (!wait_class || number_argument("wait").value_or(0) != 1) return false;
    PendingWait wait{.interval = {.thread = thread,
                                  .start_ns = static_cast<uint64_t>(time),
                                  .end_ns = static_cast<uint64_t>(time + duration),
                                  .wait_class = *wait_class},
                     .frame = event.frame};
    const int64_t runnable = std::clamp<int64_t>(number_argument("runnable_ns").value_or(-1), -1, duration);
    if (runnable >= 0) wait.interval.woken_ns = static_cast<uint64_t>(time + duration - runnable);
    wait.waker_tid = static_cast<int32_t>(std::clamp<int64_t>(number_argument("waker").value_or(-1), -1, INT32_MAX));
    wait.interval.cpu = cpu_argument();
    wait.interval.is_borrowed = parser_.find_argument("borrowed").has_value();
    wait.interval.is_guessed = parser_.find_argument("guessed").has_value();
    wait.interval.is_open = parser_.find_argument("open").has_value();
    wait.interval.is_uninterruptible = parser_.find_argument("uninterruptible").has_value();
    if (const auto end = parser_.find_argument("end")) wait.interval.end = end_named(end->text, wait.interval.end);
    waits_.push_back(wait);
    return true;
  }

  uint32_t cpu_argument() const {
    const int64_t cpu = number_argument("cpu").value_or(0);
    return cpu > 0 && cpu <= UINT32_MAX ? static_cast<uint32_t>(cpu) : 0;
  }

  void add_edge(const TraceEvent& event) {
    const auto time = time_of(event);
    if (!time) return;
    const bool is_begin = event.phase == 'B';
    make_room(edges_);
    edges_.push_back({.time_ns = *time,
                      .lane = tasks_.thread(event).value,
                      .name = is_begin ? name_of_event(event) : event.name,
                      .category = event.category,
                      .labels = labels(),
                      .kind = is_begin ? Edge::Kind::kBegin : Edge::Kind::kEnd});
  }

  // b, n, e find each other by category and id; the older S, T, p, F by name and id.
  void add_async(const TraceEvent& event) {
    const auto time = time_of(event);
    if (!time) return;
    const bool is_old = event.phase < 'a' || event.phase == 'p';
    const bool is_begin = event.phase == 'b' || event.phase == 'S';
    const bool is_end = event.phase == 'e' || event.phase == 'F';
    const ProcessId process = builder_.profile().threads[tasks_.thread(event).index()].process;
    const StringId name = is_end ? event.name : name_of_event(event);
    async_.add({.process = process, .family = is_old ? event.name : event.category, .id = event.id, .scope = event.id_scope},
               {.time_ns = *time,
                .name = name,
                .category = event.category,
                .labels = labels(),
                .kind = is_begin ? Edge::Kind::kBegin : is_end ? Edge::Kind::kEnd : Edge::Kind::kMark});
  }

  void add_instant(const TraceEvent& event) {
    const std::string_view category = builder_.profile().text(event.category);
    if (category == kSampleCategory) return add_sample(event);
    const auto time = time_of(event);
    if (!time) return;
    if (event.frame != profile::kNoText || !event.stack.empty()) keep_stack(event, *time);
    const bool is_of_thread = event.scope != 'p' && event.scope != 'g';
    make_room(builder_.profile().marks);
    builder_.profile().marks.push_back({.thread = is_of_thread ? tasks_.thread(event) : ThreadId(),
                                        .name = name_of_event(event),
                                        .category = event.category,
                                        .time_ns = static_cast<uint64_t>(*time),
                                        .track = is_of_thread ? TrackId() : mark_track(event),
                                        .labels = labels()});
  }

  // In a trace that has nothing else, marks with stacks are its samples.
  void keep_stack(const TraceEvent& event, int64_t time) {
    PendingSample sample{.time_ns = time, .thread = tasks_.thread(event), .metric = parser_.intern("marks"), .frame = event.frame, .site = {}};
    if (!event.stack.empty()) sample.site = frames_.site_of(event.stack);
    marked_stacks_.push_back(sample);
  }

  void choose_samples() {
    if (samples_.empty() && builder_.profile().slices.empty() && sampled_.empty()) samples_ = std::move(marked_stacks_);
    else stacks_left_out_ = marked_stacks_.size();
    marked_stacks_ = {};
  }

  TrackId mark_track(const TraceEvent& event) {
    Profile& profile = builder_.profile();
    const bool is_global = event.scope == 'g';
    const ProcessId process = is_global ? ProcessId() : tasks_.process(event);
    auto [it, is_new] = mark_tracks_.try_emplace(process, TrackId(profile.tracks.size()));
    if (is_new) profile.tracks.push_back({.name = builder_.intern(is_global ? "global marks" : "marks"), .process = process});
    return it->second;
  }

  // The event "Profile" tells when and on which thread; those with the samples often come from another thread.
  void begin_v8_profile(const TraceEvent& event) {
    const auto time = time_of(event);
    if (time) v8_.begin(v8_key(event), tasks_.thread(event), *time);
  }

  void add_v8_part(const TraceEvent& event) {
    const auto time = time_of(event);
    if (!time) return;
    if (event.phase == 'P') v8_.add_chunk(v8_key(event), tasks_.thread(event), *time, parser_.v8_part());
    else v8_.add_whole(tasks_.thread(event), *time, parser_.v8_part());
  }

  chrome::V8Profiles::Key v8_key(const TraceEvent& event) { return {tasks_.process(event), event.id}; }

  void add_sample(const TraceEvent& event) {
    const bool has_stack = event.frame != profile::kNoText || !event.stack.empty();
    if (event.phase == 'P' && !has_stack)
      return builder_.profile().text(event.name) == "Profile" ? begin_v8_profile(event) : leave_out(event);
    const auto time = time_of(event);
    if (!time) return;
    PendingSample sample{.time_ns = *time, .thread = tasks_.thread(event), .metric = event.name, .frame = event.frame, .site = {}};
    if (!event.stack.empty()) sample.site = frames_.site_of(event.stack);
    sample.weight = event.weight ? event.weight : number_argument("weight").value_or(0);
    sample.cpu = cpu_argument();
    if (const auto end = parser_.find_argument("end")) sample.end = end_named(end->text, sample.end);
    make_room(samples_);
    samples_.push_back(sample);
  }

  // Each argument is a series; a series "value" is the counter itself.
  void add_counter(const TraceEvent& event) {
    const auto time = time_of(event);
    if (!time) return;
    const ProcessId process = tasks_.process(event);
    for (size_t i = 0; i < parser_.argument_count(); ++i) {
      const Argument argument = parser_.argument(i);
      const auto value = real_number(argument.text);
      if (!value) {
        ++malformed_;
        continue;
      }
      const TrackId track = counter_track(process, event, argument.key);
      make_room(builder_.profile().counters);
      builder_.profile().counters.push_back({.track = track, .time_ns = static_cast<uint64_t>(*time), .value = *value});
    }
  }

  TrackId counter_track(ProcessId process, const TraceEvent& event, std::string_view series) {
    Profile& profile = builder_.profile();
    const StringId key = parser_.intern(series);
    auto [it, is_new] = counter_tracks_.try_emplace({process, event.name, event.id, key}, TrackId(profile.tracks.size()));
    if (!is_new) return it->second;
    std::string name(profile.text(name_of_event(event)));
    if (key != value_key_) name += fmt::format(" {}", series);
    profile.tracks.push_back({.name = builder_.intern(name), .process = process});
    return it->second;
  }

  void add_name(const TraceEvent& event) {
    const std::string_view what = builder_.profile().text(event.name);
    const auto name = parser_.find_argument("name");
    if (!name || (what != "process_name" && what != "thread_name")) return;
    if (what == "process_name") tasks_.name_process(tasks_.process(event.process.value_or(chrome::TaskKey{})), name->text);
    else tasks_.name_thread(tasks_.thread(event), name->text);
  }

  // The newest event's arguments. They are kept while they take less than a quarter of what was read.
  LabelSetId labels() {
    Profile& profile = builder_.profile();
    arguments_cut_ += event_.is_cut;
    if (parser_.argument_count() == 0) return {};
    const size_t bytes = profile.labels.size() * sizeof(profile::Label) + label_text_bytes_;
    if (bytes > kFreeLabelBytes + json_.position() / 4) {
      ++labels_left_out_;
      return {};
    }
    label_scratch_.clear();
    const size_t before = profile.strings.size();
    for (size_t i = 0; i < parser_.argument_count(); ++i) {
      const Argument argument = parser_.argument(i);
      profile::Label label{.key = parser_.intern(argument.key)};
      const auto number = argument.kind == Argument::Kind::kNumber ? whole_number(argument.text) : std::nullopt;
      label.is_number = number.has_value();
      if (number) label.number = *number;
      else label.text = parser_.intern(argument.text);
      if (profile.strings.size() > before) label_text_bytes_ += argument.text.size() + 64;
      label_scratch_.push_back(label);
    }
    make_room(profile.labels);
    make_room(profile.label_sets);
    return builder_.recent_label_set(label_scratch_);
  }

  Result<Profile> finish() {
    Profile& profile = builder_.profile();
    if (first_ns_ > last_ns_) return fail(no_events());
    PairCounts counts;
    pair_threads(builder_, edges_, last_ns_, counts);
    edges_ = {};
    if (!async_.empty()) async_.pair(last_ns_, counts);
    choose_samples();
    if (samples_.empty()) profile.slices.insert(profile.slices.end(), sampled_.begin(), sampled_.end());
    sampled_ = {};
    add_samples();
    own_.apply();
    give_weights();
    add_v8_samples();
    add_waits();
    shift_times();
    tasks_.give_numbers();
    const bool has_anything = !profile.slices.empty() || !profile.samples.empty() || !profile.marks.empty() ||
                              !profile.counters.empty() || !profile.off_cpu.empty();
    if (!has_anything) return fail(no_events());
    std::ranges::stable_sort(profile.marks, {}, &profile::Mark::time_ns);
    std::ranges::stable_sort(profile.counters, {}, &profile::CounterValue::time_ns);
    if (own_.is_own()) take_off_categories();
    moved_ = timeline::nest_slices(profile);
    timeline::add_slice_stacks(builder_);
    note_losses(counts);
    return builder_.take();
  }

  void take_off_categories() {
    const StringId usual = builder_.intern(chrome::kSliceCategory), async = builder_.intern(chrome::kAsyncCategory);
    for (Slice& slice : builder_.profile().slices)
      if (slice.category == usual || slice.category == async) slice.category = profile::kNoText;
  }

  std::string no_events() const {
    const std::string left_out =
        malformed_ ? fmt::format(" (left out: {} events without a phase, or without a time within 146 years of 0)", malformed_) : "";
    return fmt::format("{}: this trace has no slices, samples, marks or counters{}", json_.name(), left_out);
  }

  void add_samples() {
    for (const PendingSample& sample : samples_) {
      CallSiteId site = sample.site;
      if (sample.frame != profile::kNoText) {
        site = frames_.site_of(sample.frame);
        broken_stacks_ += !site.valid();
      }
      const Profile& profile = builder_.profile();
      const bool in_kernel = site.valid() && profile.locations[profile.sites[site.index()].location.index()].kind ==
                                                 profile::FrameKind::kKernel;
      builder_.add_sample({.time_ns = static_cast<uint64_t>(sample.time_ns),
                           .weight = sample.weight,
                           .thread = sample.thread,
                           .site = site,
                           .cpu = sample.cpu,
                           .metric = own_.metric(sample.metric),
                           .end = sample.end,
                           .in_kernel = in_kernel});
    }
    if (!samples_.empty()) builder_.profile().run.default_metric = builder_.profile().metrics[0].name;
    samples_ = {};
  }

  void add_v8_samples() {
    if (v8_.empty()) return;
    const chrome::V8Profiles::Outcome outcome = v8_.finish();
    broken_stacks_ += outcome.broken_stacks;
    malformed_ += outcome.malformed;
    if (outcome.samples == 0) return;
    first_ns_ = std::min(first_ns_, outcome.first_ns);
    last_ns_ = std::max(last_ns_, outcome.last_ns);
    Profile& profile = builder_.profile();
    if (profile.run.default_metric == profile::kNoText) profile.run.default_metric = builder_.intern("duration");
  }

  // A weight that was not told is one period.
  void give_weights() {
    Profile& profile = builder_.profile();
    for (profile::Sample& sample : profile.samples) {
      if (sample.weight != 0) continue;
      const uint64_t period = profile.metrics[sample.metric.index()].period;
      sample.weight = period && period <= INT64_MAX ? static_cast<int64_t>(period) : 1;
    }
  }

  // Waits of one thread follow each other; those of another program that do not are slices.
  void add_waits() {
    Profile& profile = builder_.profile();
    std::map<int32_t, ThreadId> by_tid;
    for (size_t i = 0; i < profile.threads.size(); ++i) by_tid.try_emplace(profile.threads[i].tid, ThreadId(i));
    std::ranges::stable_sort(waits_, [](const PendingWait& a, const PendingWait& b) {
      return std::pair(a.interval.thread, static_cast<int64_t>(a.interval.start_ns)) <
             std::pair(b.interval.thread, static_cast<int64_t>(b.interval.start_ns));
    });
    for (PendingWait& wait : waits_) {
      OffCpuInterval& interval = wait.interval;
      const bool overlaps = !profile.off_cpu.empty() && profile.off_cpu.back().thread == interval.thread &&
                            static_cast<int64_t>(profile.off_cpu.back().end_ns) > static_cast<int64_t>(interval.start_ns);
      if (overlaps) {
        profile.slices.push_back({.thread = interval.thread,
                                  .name = builder_.intern(name_of(interval.wait_class)),
                                  .category = builder_.intern(kOffCpuCategory),
                                  .start_ns = interval.start_ns,
                                  .duration_ns = interval.duration_ns()});
        continue;
      }
      if (wait.frame != profile::kNoText) {
        interval.site = frames_.site_of(wait.frame);
        broken_stacks_ += !interval.site.valid();
      }
      if (const auto found = by_tid.find(wait.waker_tid); wait.waker_tid >= 0 && found != by_tid.end())
        interval.waker = found->second;
      profile.off_cpu.push_back(interval);
    }
    waits_ = {};
    if (!profile.off_cpu.empty()) builder_.add_metric(profile::kOffCpuMetric, "nanoseconds");
  }

  // The profile's times are unsigned: a trace that begins before 0 is moved as a whole.
  void shift_times() {
    Profile& profile = builder_.profile();
    const uint64_t shift = first_ns_ < 0 ? static_cast<uint64_t>(-first_ns_) : 0;
    if (profile.run.start_ns == 0) profile.run.start_ns = static_cast<uint64_t>(first_ns_) + shift;
    if (profile.run.end_ns == 0) profile.run.end_ns = static_cast<uint64_t>(last_ns_) + shift;
    if (shift == 0) return;
    for (profile::Sample& sample : profile.samples) sample.time_ns += shift;
    for (Slice& slice : profile.slices) slice.start_ns += shift;
    for (profile::Mark& mark : profile.marks) mark.time_ns += shift;
    for (profile::CounterValue& value : profile.counters) value.time_ns += shift;
    for (OffCpuInterval& wait : profile.off_cpu) {
      wait.start_ns += shift;
      wait.end_ns += shift;
      if (wait.woken_ns) wait.woken_ns += shift;
    }
    note("chrome_times_shifted", Severity::kNotice, "the trace begins before time 0: all its times were moved by as much", 1);
  }

  void note(std::string_view name, Severity severity, std::string_view text, uint64_t count) {
    if (count) builder_.profile().diagnostics.add(name, severity, text, count);
  }

  void note_losses(const PairCounts& counts) {
    note("chrome_events_malformed", Severity::kDataLoss, "events without a phase, a time or a value were left out", malformed_);
    note("chrome_negative_durations", Severity::kError, "slices with a negative duration are shown with a duration of 0",
         negative_durations_);
    note("chrome_no_duration", Severity::kError, "complete events (X) without dur are shown with a duration of 0",
         without_duration_);
    note("chrome_open_slices", Severity::kError, "slices without an end: shown until the end of the trace", counts.open);
    note("chrome_unmatched_ends", Severity::kError, "ends (E, e, F) that close no open slice were left out",
         counts.unmatched_ends);
    note("chrome_pairs_not_nested", Severity::kError,
         fmt::format("{} not nested, or not known to be: an end closes the newest open slice of its name, an end without a "
                     "name the newest open slice", counts.not_nested == 1 ? "1 pair" : fmt::format("{} pairs", counts.not_nested)),
         counts.not_nested);
    note("chrome_overlapping_slices", Severity::kNotice,
         "slices that overlap others of their thread without nesting are shown on a further track", moved_);
    note("chrome_broken_stacks", Severity::kDataLoss, "samples whose stack is not in the file count on [unknown]",
         broken_stacks_);
    note("chrome_stacks_left_out", Severity::kInfo, "stacks of marks are not kept beside slices and samples", stacks_left_out_);
    note("chrome_arguments_cut", Severity::kInfo, "arguments that are arrays, deeply nested, many or long were left out",
         arguments_cut_);
    note("chrome_arguments_left_out", Severity::kInfo,
         "events' arguments beyond a quarter of the file's size were left out", labels_left_out_);
  }

  struct CounterKey {
    ProcessId process;
    StringId name, id, series;
    auto operator<=>(const CounterKey&) const = default;
  };

  profile::ProfileBuilder builder_;
  JsonTokenizer json_;
  chrome::EventParser parser_;
  chrome::Tasks tasks_;
  chrome::StackFrames frames_;
  chrome::OwnData own_;
  chrome::AsyncTracks async_;
  chrome::V8Profiles v8_;
  TraceEvent event_;
  StringId value_key_;
  std::vector<Edge> edges_;
  std::vector<Slice> sampled_;  // made of samples by our own writer
  std::vector<PendingSample> samples_, marked_stacks_;
  std::vector<PendingWait> waits_;
  std::map<ProcessId, TrackId> mark_tracks_;
  std::map<CounterKey, TrackId> counter_tracks_;
  std::vector<profile::Label> label_scratch_;
  int64_t first_ns_ = std::numeric_limits<int64_t>::max(), last_ns_ = std::numeric_limits<int64_t>::min();
  uint64_t malformed_ = 0, negative_durations_ = 0, without_duration_ = 0, moved_ = 0, broken_stacks_ = 0;
  uint64_t stacks_left_out_ = 0, arguments_cut_ = 0, labels_left_out_ = 0, label_text_bytes_ = 0;
};

}  // namespace

Result<Profile> read_chrome(Input input, const ReadOptions& options) {
  auto stream = TRY(InputStream::open(std::move(input), options));
  return ChromeReader(std::move(stream)).read();
}

}  // namespace cprof::format
