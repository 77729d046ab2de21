// size-exempt: one table
#include "store/profile_tables.h"

namespace cprof::store {
namespace {

using profile::Profile;

const profile::Process& process(ProfileSource& s, uint32_t row) { return s.profile().processes[row]; }
const profile::Thread& thread(ProfileSource& s, uint32_t row) { return s.profile().threads[row]; }

template <typename Id>
Cell id_or_null(int64_t base, Id id) {
  return id.valid() ? Cell::of(base + id.value) : Cell{};
}

ColumnTableDef processes() {
  return {
      "process",
      {{"id", "INTEGER"},
       {"upid", "INTEGER"},
       {"pid", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{process(s, row).pid}); }},
       {"name", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(process(s, row).name)); }},
       {"start_ts", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::known_time(process(s, row).start_ns); }},
       {"end_ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::known_time(process(s, row).end_ns); }},
       {"cgroup", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(process(s, row).cgroup)); }},
       {"container", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.container(row)); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().processes.size()); }};
}

ColumnTableDef threads() {
  return {
      "thread",
      {{"id", "INTEGER"},
       {"utid", "INTEGER"},
       {"tid", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{thread(s, row).tid}); }},
       {"name", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(thread(s, row).name)); }},
       {"upid", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return id_or_null(s.bases().process, thread(s, row).process); }},
       {"is_main_thread", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          const profile::Thread& t = thread(s, row);
          return Cell::of(int64_t{t.process.valid() && process(s, t.process.value).pid == t.tid});
        }},
       {"start_ts", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::known_time(thread(s, row).start_ns); }},
       {"end_ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::known_time(thread(s, row).end_ns); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().threads.size()); }};
}

// The tracks of a profile: each thread's own, those that were named, and for each thread the lane of its frames.
struct TrackPlace {
  const profile::Track* named = nullptr;
  uint32_t row = 0;  // of the thread, or of the named track
  bool is_frames = false;
};

TrackPlace track(ProfileSource& s, uint32_t row) {
  const auto threads = static_cast<uint32_t>(s.profile().threads.size());
  if (row < threads) return {nullptr, row, false};
  if (row < s.own_track_count()) return {&s.profile().tracks[row - threads], row - threads, false};
  return {nullptr, row - s.own_track_count(), true};
}

int64_t track_id(ProfileSource& s, profile::TrackId named, profile::ThreadId own) {
  return s.bases().track + (named.valid() ? static_cast<int64_t>(s.profile().threads.size()) + named.value : own.value);
}

Cell track_type(ProfileSource& s, uint32_t row) {
  const TrackPlace place = track(s, row);
  if (!place.named || place.named->thread.valid())
    return Cell::of(place.named && s.is_counter(place.row) ? "counter" : "thread_slice");
  if (s.is_counter(place.row)) return Cell::of("counter");
  return Cell::of(place.named->process.valid() ? "process_slice" : "global_slice");
}

Cell track_name(ProfileSource& s, uint32_t row) {
  const TrackPlace place = track(s, row);
  if (place.is_frames) return Cell::of("frames");
  return Cell::of(s.profile().text(place.named ? place.named->name : thread(s, place.row).name));
}

ColumnTableDef tracks() {
  return {"track",
          {{"id", "INTEGER"},
           {"name", "TEXT", track_name},
           {"type", "TEXT", track_type},
           {"parent_id", "INTEGER", [](ProfileSource&, uint32_t) { return Cell{}; }},
           {"utid", "INTEGER",
            [](ProfileSource& s, uint32_t row) {
              const TrackPlace place = track(s, row);
              return place.named ? id_or_null(s.bases().thread, place.named->thread)
                                 : Cell::of(s.bases().thread + place.row);
            }},
           {"upid", "INTEGER",
            [](ProfileSource& s, uint32_t row) {
              const TrackPlace place = track(s, row);
              return place.named ? id_or_null(s.bases().process, place.named->process) : Cell{};
            }},
           {"unit", "TEXT",
            [](ProfileSource& s, uint32_t row) {
              const TrackPlace place = track(s, row);
              return place.named ? Cell::known(s.profile().text(place.named->unit)) : Cell{};
            }}},
          [](ProfileSource& s) { return s.track_count(); }};
}

// The slices of a profile: its own, its marks (without a duration), and the frames of its timeline.
struct SlicePlace {
  const profile::Slice* own = nullptr;
  const profile::Mark* mark = nullptr;
  const FrameSliceRow* frame = nullptr;
  uint32_t row = 0;
};

SlicePlace slice(ProfileSource& s, uint32_t row) {
  const auto own = static_cast<uint32_t>(s.profile().slices.size()),
             marks = static_cast<uint32_t>(s.profile().marks.size());
  if (row < own) return {.own = &s.profile().slices[row], .row = row};
  if (row < own + marks) return {.mark = &s.profile().marks[row - own], .row = row - own};
  return {.frame = &s.frame_slices()[row - own - marks], .row = row - own - marks};
}

Cell slice_ts(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  return Cell::of_address(place.own ? place.own->start_ns : place.mark ? place.mark->time_ns : place.frame->start_ns);
}

Cell slice_dur(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  if (place.mark) return Cell::of(int64_t{0});
  if (place.frame) return Cell::of_address(place.frame->end_ns - place.frame->start_ns);
  return place.own->is_open ? Cell::of(int64_t{-1}) : Cell::of_address(place.own->duration_ns);
}

Cell slice_track(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  if (place.own) return Cell::of(track_id(s, place.own->track, place.own->thread));
  if (place.mark) return Cell::of(track_id(s, place.mark->track, place.mark->thread));
  return Cell::of(s.bases().track + s.own_track_count() + place.frame->thread);
}

Cell slice_category(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  if (place.frame) return Cell::of("function");
  return Cell::known(s.profile().text(place.own ? place.own->category : place.mark->category));
}

Cell slice_name(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  if (place.frame) return Cell::of(s.frame_name(place.frame->location, place.frame->line));
  return Cell::of(s.profile().text(place.own ? place.own->name : place.mark->name));
}

Cell slice_depth(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  return Cell::of(int64_t{place.own ? place.own->depth : place.frame ? place.frame->depth : 0});
}

Cell slice_parent(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  if (place.own) {
    const auto parent = s.own_slice_parents()[place.row];
    return parent ? Cell::of(s.first_slice() + *parent) : Cell{};
  }
  if (place.mark || place.frame->parent == FrameSliceRow::kNoParent) return {};
  return Cell::of(s.first_slice() + static_cast<int64_t>(s.profile().slices.size() + s.profile().marks.size()) +
                  place.frame->parent);
}

Cell slice_arguments(ProfileSource& s, uint32_t row) {
  const SlicePlace place = slice(s, row);
  return place.frame ? Cell{} : id_or_null(s.bases().label_set, place.own ? place.own->labels : place.mark->labels);
}

ColumnTableDef slices() {
  auto nothing = [](ProfileSource&, uint32_t) { return Cell{}; };
  return {"slice",
          {{"id", "INTEGER"},
           {"ts", "INTEGER", slice_ts},
           {"dur", "INTEGER", slice_dur},
           {"track_id", "INTEGER", slice_track},
           {"category", "TEXT", slice_category},
           {"name", "TEXT", slice_name},
           {"depth", "INTEGER", slice_depth},
           {"parent_id", "INTEGER", slice_parent},
           {"arg_set_id", "INTEGER", slice_arguments},
           {"thread_ts", "INTEGER", nothing},
           {"thread_dur", "INTEGER", nothing},
           {"slice_id", "INTEGER"},
           {"cat", "TEXT", slice_category}},
          [](ProfileSource& s) { return s.slice_count(); }};
}

const profile::CounterValue& counter(ProfileSource& s, uint32_t row) { return s.profile().counters[row]; }

ColumnTableDef counters() {
  return {"counter",
          {{"id", "INTEGER"},
           {"ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(counter(s, row).time_ns); }},
           {"track_id", "INTEGER",
            [](ProfileSource& s, uint32_t row) { return Cell::of(track_id(s, counter(s, row).track, {})); }},
           {"value", "REAL", [](ProfileSource& s, uint32_t row) { return Cell::of_real(counter(s, row).value); }}},
          [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().counters.size()); }};
}

const profile::OffCpuInterval& interval(ProfileSource& s, uint32_t row) {
  return s.profile().off_cpu[s.off_cpu()[row].interval];
}

uint64_t off_cpu_start(ProfileSource& s, uint32_t row) {
  return s.off_cpu()[row].is_runnable ? interval(s, row).runnable_ns() : interval(s, row).start_ns;
}
uint64_t off_cpu_end(ProfileSource& s, uint32_t row) {
  return s.off_cpu()[row].is_runnable ? interval(s, row).end_ns : interval(s, row).runnable_ns();
}
std::string_view off_cpu_class(ProfileSource& s, uint32_t row) {
  return profile::name_of(s.off_cpu()[row].is_runnable ? profile::WaitClass::kSched : interval(s, row).wait_class);
}

ColumnTableDef off_cpu() {
  return {
      "off_cpu",
      {{"id", "INTEGER"},
       {"ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(off_cpu_start(s, row)); }},
       {"dur", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of_address(off_cpu_end(s, row) - off_cpu_start(s, row)); }},
       {"utid", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().thread + interval(s, row).thread.value); }},
       {"class", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(off_cpu_class(s, row)); }},
       {"callsite_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          return interval(s, row).site.valid() ? Cell::of(s.site_id(interval(s, row).site)) : Cell{};
        }},
       {"waker_utid", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return id_or_null(s.bases().thread, interval(s, row).waker); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.off_cpu().size()); }};
}

const profile::SwitchInterval& on_cpu(ProfileSource& s, uint32_t row) { return s.profile().on_cpu[row]; }

ColumnTableDef scheduling() {
  return {
      "sched",
      {{"id", "INTEGER"},
       {"ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(on_cpu(s, row).start_ns); }},
       {"dur", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          return Cell::of_address(on_cpu(s, row).end_ns - on_cpu(s, row).start_ns);
        }},
       {"cpu", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{on_cpu(s, row).cpu}); }},
       {"utid", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().thread + on_cpu(s, row).thread.value); }},
       {"end_state", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::of(on_cpu(s, row).preempted ? "R+" : "S"); }},
       {"priority", "INTEGER", [](ProfileSource&, uint32_t) { return Cell{}; }},
       {"ucpu", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{on_cpu(s, row).cpu}); }},
       {"ts_end", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(on_cpu(s, row).end_ns); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().on_cpu.size()); }};
}

const StateRow& state(ProfileSource& s, uint32_t row) { return s.states()[row]; }

Cell state_name(ProfileSource& s, uint32_t row) {
  if (state(s, row).is_running) return Cell::of("Running");
  const uint32_t at = state(s, row).interval;
  if (off_cpu_class(s, at) != profile::name_of(profile::WaitClass::kSched))
    return Cell::of(interval(s, at).is_uninterruptible ? "D" : "S");
  // Woken when it left, so it never waited: it was preempted or yielded.
  const auto& found = interval(s, at);
  return Cell::of(found.woken_ns == found.start_ns && found.woken_ns != 0 ? "R+" : "R");
}

Cell state_cpu(ProfileSource& s, uint32_t row) {
  return state(s, row).is_running ? Cell::of(int64_t{on_cpu(s, state(s, row).interval).cpu}) : Cell{};
}

ColumnTableDef states() {
  return {
      "thread_state",
      {{"id", "INTEGER"},
       {"ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(state(s, row).start_ns); }},
       {"dur", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of_address(state(s, row).end_ns - state(s, row).start_ns); }},
       {"cpu", "INTEGER", state_cpu},
       {"utid", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          const StateRow& r = state(s, row);
          return Cell::of(s.bases().thread +
                          (r.is_running ? on_cpu(s, r.interval).thread : interval(s, r.interval).thread).value);
        }},
       {"state", "TEXT", state_name},
       {"io_wait", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          const StateRow& r = state(s, row);
          return r.is_running
                     ? Cell{}
                     : Cell::of(int64_t{off_cpu_class(s, r.interval) == profile::name_of(profile::WaitClass::kIo)});
        }},
       {"blocked_function", "TEXT", [](ProfileSource&, uint32_t) { return Cell{}; }},
       {"waker_utid", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          const StateRow& r = state(s, row);
          return r.is_running ? Cell{} : id_or_null(s.bases().thread, interval(s, r.interval).waker);
        }},
       {"class", "TEXT",
        [](ProfileSource& s, uint32_t row) {
          const StateRow& r = state(s, row);
          return r.is_running ? Cell{} : Cell::of(off_cpu_class(s, r.interval));
        }},
       {"waker_id", "INTEGER", [](ProfileSource&, uint32_t) { return Cell{}; }},
       {"irq_context", "INTEGER", [](ProfileSource&, uint32_t) { return Cell{}; }},
       {"ucpu", "INTEGER", state_cpu}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.states().size()); }};
}

}  // namespace

void add_time_columns(std::vector<ColumnTableDef>& list) {
  list.push_back(processes());
  list.push_back(threads());
  list.push_back(tracks());
  list.push_back(slices());
  list.push_back(counters());
  list.push_back(off_cpu());
  list.push_back(scheduling());
  list.push_back(states());
}

}  // namespace cprof::store
