// Reads a .pftrace as Perfetto's importer would, for tests only, and lists every rule of that importer that the file
// breaks: also those whose breach it reports nowhere. Nothing here is shared with the writer but field numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <protozero/pbf_reader.hpp>

namespace cprof::format::testing {

struct DecodedSlice {
  uint64_t track = 0, start_ns = 0, end_ns = 0;
  size_t depth = 0;
  std::string name;
  std::string note;  // " name=text" of its debug annotations
};

struct DecodedSample {
  uint64_t time_ns = 0;
  int32_t pid = -1, tid = -1;
  std::vector<std::string> frames;    // root first, names
  std::vector<std::string> mappings;  // of each frame
};

struct DecodedTrack {
  uint64_t parent = 0;
  int32_t pid = -1, tid = -1;
  std::string name, unit;
  bool is_counter = false;
};

struct DecodedMark {
  uint64_t track = 0, time_ns = 0;
  std::string name, note;
};

struct DecodedValue {
  uint64_t track = 0, time_ns = 0;
  double value = 0;
};

class TraceDecoder {
 public:
  explicit TraceDecoder(std::string_view bytes);

  std::vector<std::string> errors;
  std::map<uint64_t, DecodedTrack> tracks;
  std::vector<DecodedSlice> slices;
  std::vector<DecodedSample> samples;
  std::vector<DecodedMark> marks;
  std::vector<DecodedValue> values;
  std::vector<std::string> shared_keys;  // names of frames that another frame hides: equal mapping, rel_pc and name
  size_t packets = 0;
  bool has_clocks = false;

 private:
  using pbf_reader = protozero::pbf_reader;

  struct Frame {
    uint64_t name = 0, mapping = 0, rel_pc = 0, source = 0;
  };
  struct Mapping {
    uint64_t build_id = 0, start = 0, end = 0, path = 0;
  };
  struct Sequence {
    bool is_valid = false, has_monotonic_default = false;
    std::map<uint32_t, std::map<uint64_t, std::string>> texts;  // by field, then iid
    std::map<uint64_t, Frame> frames;
    std::map<uint64_t, Mapping> mappings;
    std::map<uint64_t, std::vector<uint64_t>> callstacks;
    std::map<std::tuple<uint64_t, uint64_t, std::string>, uint64_t> frame_keys;
  };
  struct Event {
    uint64_t time_ns = 0;
    uint32_t type = 0;
    std::string name, note;
    double value = 0;
    bool has_value = false;
  };

  void broken(std::string_view what);
  void packet(pbf_reader p);
  void clocks(pbf_reader snapshot);
  void defaults(pbf_reader d, Sequence& sequence);
  template <typename Map, typename Value>
  void define(Map& map, uint64_t iid, Value value, std::string_view what);
  void interned(protozero::data_view bytes, Sequence& s);
  void mapping(pbf_reader m, Sequence& s);
  void frame(pbf_reader f, Sequence& s);
  void callstack(pbf_reader c, Sequence& s);
  void descriptor(pbf_reader d);
  std::string annotation(pbf_reader a);
  void counter(pbf_reader c, DecodedTrack& track);
  void event(pbf_reader e, uint64_t time_ns, bool has_time);
  void sample(pbf_reader p, uint64_t time_ns, bool has_time, Sequence& s);
  void match_slices();
  void check_tracks();

  std::map<uint32_t, Sequence> sequences_;
  std::map<uint64_t, std::vector<Event>> events_;
};

}  // namespace cprof::format::testing
