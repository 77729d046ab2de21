// Each kind is a header, samples a line, and sections behind them. What an allocation profile sampled is scaled to what
// was allocated: an allocation of S bytes at one sample each R bytes on average was seen with probability 1 - exp(-S/R).
// All kinds of heap profile have the same four values, even where a program counted no frees, so that they can be merged.
#include "format/gperftools/legacy_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "format/gperftools/cpu_profile.h"
#include "format/gperftools/legacy_lines.h"
#include "format/words.h"

namespace cprof::format {
namespace {

constexpr int64_t kJavaHeapRate = 512 * 1024;
constexpr std::string_view kMapHeaders[] = {"--- Memory map: ---", "MAPPED_LIBRARIES:"};

bool is_map_header(std::string_view line) {
  for (std::string_view header : kMapHeaders)
    if (line.find(header) != line.npos) return true;
  return false;
}

bool is_section(std::string_view line) { return line.starts_with("---") || is_map_header(line); }

struct Amount {
  int64_t objects = 0, bytes = 0;
};

// Cut towards zero; at the limit of int64 when it would leave it.
int64_t scaled(int64_t value, double factor) {
  const double result = static_cast<double>(value) * factor;
  if (result >= 0x1p63) return INT64_MAX;
  return result <= -0x1p63 ? INT64_MIN : static_cast<int64_t>(result);
}

// As it was counted where that tells no size: gperftools takes mapped memory off again in other pieces than it was mapped in,
// which leaves bytes in 0 objects, and fewer objects than none.
Amount unsampled(Amount seen, int64_t rate) {
  const bool has_size = (seen.objects > 0 && seen.bytes > 0) || (seen.objects < 0 && seen.bytes < 0);
  if (rate <= 1 || !has_size) return seen;
  const double size = static_cast<double>(seen.bytes) / static_cast<double>(seen.objects);
  const double factor = 1 / (1 - std::exp(-size / static_cast<double>(rate)));
  return {scaled(seen.objects, factor), scaled(seen.bytes, factor)};
}

int64_t block_size(Amount amount) { return amount.objects == 0 || amount.objects == -1 ? 0 : amount.bytes / amount.objects; }

class LegacyText {
 public:
  LegacyText(LegacyStream& stream, LegacyProfile& profile) : stream_(stream), profile_(profile) {}

  Result<void> read() {
    if (!TRY(next_header())) return fail(fmt::format("{}: no profile in it", stream_.name()));
    if (line_.starts_with("--- symbol")) TRY(read_symbols());
    if (is_done_) return {};
    if (auto header = parse_heap_header(line_)) return read_heap(*header);
    if (auto rate = parse_jemalloc_header(line_)) return read_jemalloc(*rate);
    if (line_.starts_with("--- contention") || line_.starts_with("--- mutex")) return read_pairs(true);
    if (line_.starts_with("--- heapz")) return read_pairs(false);
    if (line_.starts_with("--- threadz") || line_.starts_with("--- Thread ")) return read_threads();
    if (auto word = parse_count_header(line_)) return read_counts(*word);
    return refuse("not the header of a profile");
  }

 private:
  std::unexpected<Error> refuse(std::string_view why) const {
    return fail(fmt::format("{}: line {}: {}", stream_.name(), stream_.line_number(), why));
  }

  // The next line, trimmed, into line_; false at the end of the input.
  Result<bool> next() {
    auto line = TRY(stream_.line());
    line_ = line ? trim(*line) : std::string_view();
    return line.has_value();
  }

  Result<bool> next_header() {
    while (TRY(next()))
      if (!is_before_legacy_header(line_)) return true;
    return false;
  }

  // "binary=/bin/app", "0x1f function--inlined in" ..., "---", then the header of what follows.
  Result<void> read_symbols() {
    while (TRY(next()) && !line_.starts_with("---"))
      if (auto symbol = parse_symbol(line_)) add_symbol(*symbol);
    while (line_ == "---")
      if (!TRY(next_header())) return refuse("names and no profile behind them");
    const bool is_title = line_.starts_with("--- ") && !line_.ends_with("---");
    if (!is_title) return {};
    if (const auto cpu = parse_cpu_header(TRY(stream_.peek()))) {
      TRY(read_cpu_samples(stream_, *cpu, profile_));
      is_done_ = true;
      return read_legacy_map(stream_, profile_);
    }
    if (!TRY(next_header())) return refuse("names and no profile behind them");
    return {};
  }

  void add_symbol(const NameLine& symbol) {
    std::string_view names = symbol.function;
    for (size_t split = names.find("--"); split != names.npos; split = names.find("--")) {
      if (split > 0) profile_.add_name(symbol.address, names.substr(0, split));
      names.remove_prefix(split + 2);
    }
    if (!names.empty()) profile_.add_name(symbol.address, names);
  }

  // A comment may be a name that Go wrote for its own addresses.
  void note_comment() {
    if (auto name = parse_go_name(line_)) profile_.add_name(name->address, name->function, name->file, name->line);
    if (line_.starts_with("# labels:"))
      profile_.profile().diagnostics.add("gperftools_labels", Severity::kNotice,
                                         "labels of samples, written as comments, were left out");
  }

  // The next sample's line; false at the next section or at the end.
  Result<bool> next_sample() {
    while (TRY(next())) {
      if (line_.empty()) continue;
      if (is_section(line_)) return false;
      if (line_[0] != '#') return true;
      note_comment();
    }
    return false;
  }

  Result<void> parse_stack(std::string_view text) {
    stack_.clear();
    if (!parse_addresses(text, stack_)) return refuse("an address of more than 64 bits");
    return {};
  }

  Result<void> read_heap(const HeapHeader& header) {
    if (header.kind == "growthz" || header.kind == "fragmentationz") return read_growth();
    int64_t rate = header.rate;
    if (header.kind == "heapprofile") rate = 1;
    if (header.kind == "heap") rate /= 2;
    const bool is_known = header.kind == "heapprofile" || header.kind == "heap" || header.kind == "heap_v2" ||
                          header.kind == "heapz_v2";
    if (!is_known) return refuse(fmt::format("not supported: a heap profile of the kind {}", header.kind));
    add_heap_metrics(rate);
    while (TRY(next_sample())) {
      const auto sample = parse_heap_sample(line_);
      if (!sample) return refuse("not \"objects: bytes [objects: bytes] @ addresses\"");
      TRY(parse_stack(sample->stack));
      TRY(add_heap_sample(*sample, rate));
    }
    return finish_with_map();
  }

  void add_heap_metrics(int64_t rate) {
    profile_.add_metric("alloc_objects", "count");
    profile_.add_metric("alloc_space", "bytes");
    profile_.add_metric("inuse_objects", "count");
    profile_.add_metric("inuse_space", "bytes");
    if (rate > 0) profile_.set_period("space", "bytes", rate);
  }

  Result<void> add_heap_sample(const HeapSample& sample, int64_t rate) {
    const Amount allocated{sample.allocated_objects, sample.allocated_bytes}, used{sample.objects, sample.bytes};
    const Amount all = unsampled(allocated, rate), now = unsampled(used, rate);
    profile_.add_stack(stack_, std::array{all.objects, all.bytes, now.objects, now.bytes},
                       block_size(used.objects ? used : allocated));
    return {};
  }

  Result<void> read_growth() {
    profile_.add_metric("objects", "count");
    profile_.add_metric("space", "bytes", 1);
    while (TRY(next_sample())) {
      const auto sample = parse_heap_sample(line_);
      if (!sample) return refuse("not \"objects: bytes [objects: bytes] @ addresses\"");
      TRY(parse_stack(sample->stack));
      profile_.add_stack(stack_, std::array{sample->objects, sample->bytes},
                         block_size({sample->objects, sample->bytes}));
    }
    return finish_with_map();
  }

  // "@ addresses", then "t*: objects: bytes [objects: bytes]" of all threads and a line for each of them.
  Result<void> read_jemalloc(int64_t rate) {
    add_heap_metrics(rate);
    constexpr std::string_view kAllThreads = "t*:";
    bool has_stack = false;
    while (TRY(next_sample())) {
      if (line_.starts_with("@")) {
        TRY(parse_stack(line_));
        has_stack = true;
        continue;
      }
      if (!line_.starts_with("t")) return refuse("neither \"@ addresses\" nor \"t*: objects: bytes [...]\"");
      if (!line_.starts_with(kAllThreads) || !has_stack) continue;
      const auto sample = parse_heap_sample(line_.substr(kAllThreads.size()));
      if (!sample) return refuse("not \"t*: objects: bytes [objects: bytes]\"");
      TRY(add_heap_sample(*sample, rate));
      has_stack = false;
    }
    return finish_with_map();
  }

  struct PairHeader {
    int64_t cycles_per_second = 0, period = 1, duration_ms = 0;
    bool is_java = false, has_period = false;
    std::string unit;
  };

  // "name = value" up to the first line that is none; that line stays in line_.
  Result<PairHeader> read_attributes() {
    PairHeader header;
    is_at_end_ = true;
    while (TRY(next())) {
      if (line_.empty()) continue;
      const auto attribute = parse_attribute(line_);
      if (!attribute) {
        is_at_end_ = false;
        break;
      }
      TRY(take_attribute(*attribute, header));
    }
    return header;
  }

  Result<void> take_attribute(const Attribute& attribute, PairHeader& header) {
    const auto number = parse_integer(attribute.value);
    const auto take = [&](int64_t& into) -> Result<void> {
      if (!number || *number < 0) return refuse(fmt::format("{} is not a number", attribute.name));
      into = *number;
      return {};
    };
    if (attribute.name == "cycles/second") return take(header.cycles_per_second);
    if (attribute.name == "ms since reset") return take(header.duration_ms);
    if (attribute.name == "sampling period") {
      header.has_period = true;
      return take(header.period);
    }
    if (attribute.name == "resolution") header.unit = attribute.value;
    if (attribute.name == "format") {
      header.is_java = attribute.value == "java";
      if (!header.is_java) return refuse(fmt::format("not supported: the format {}", attribute.value));
    }
    return {};
  }

  // "value count @ addresses": contention of C++ and Java, the heap of Java.
  Result<void> read_pairs(bool is_contention) {
    const PairHeader header = TRY(read_attributes());
    if (!is_contention && !header.is_java) return refuse("not supported: a heap profile without \"format = java\"");
    if (header.is_java && header.unit.empty()) return refuse("no \"resolution = UNIT\" before the samples");
    if (header.is_java) profile_.set_numbered();
    if (header.duration_ms <= INT64_MAX / 1'000'000)
      profile_.profile().run.end_ns = static_cast<uint64_t>(header.duration_ms) * 1'000'000;
    const std::string_view unit = header.unit.empty() ? "nanoseconds" : std::string_view(header.unit);
    profile_.add_metric(is_contention ? "contentions" : "inuse_objects", "count");
    profile_.add_metric(is_contention ? "delay" : "inuse_space", unit);
    if (is_contention && (header.has_period || !header.is_java)) profile_.set_period("contentions", "count", header.period);
    for (bool more = !is_at_end_ && (!line_.empty() || TRY(next_sample())); more; more = TRY(next_sample())) {
      if (is_section(line_)) break;
      const auto sample = parse_pair_sample(line_);
      if (!sample && header.is_java) break;  // the names begin
      if (!sample) return refuse("not \"value count @ addresses\"");
      TRY(parse_stack(sample->stack));
      TRY(is_contention ? add_contention(*sample, header) : add_java_heap(*sample));
    }
    if (!header.is_java) return finish_with_map();
    add_java_name(profile_);
    return read_java_names(stream_, profile_);
  }

  void add_java_name(LegacyProfile& profile) const {
    if (auto name = parse_java_name(line_)) profile.add_name(name->address, name->function, name->file, name->line);
  }

  Result<void> add_contention(const PairSample& sample, const PairHeader& header) {
    int64_t delay = sample.first, count = sample.second;
    if (header.period > 0) {
      const auto period = static_cast<double>(header.period);
      if (header.cycles_per_second > 0)
        delay = scaled(delay, period / (static_cast<double>(header.cycles_per_second) / 1e9));
      else if (header.is_java)
        delay = scaled(delay, period);
      count = scaled(count, period);
    }
    profile_.add_stack(stack_, std::array{count, delay});
    return {};
  }

  Result<void> add_java_heap(const PairSample& sample) {
    const Amount seen{sample.second, sample.first};
    const Amount all = unsampled(seen, kJavaHeapRate);
    profile_.add_stack(stack_, std::array{all.objects, all.bytes}, block_size(seen));
    return {};
  }

  Result<void> read_threads() {
    profile_.add_metric("thread", "count", 1);
    profile_.set_exact_leaves();
    while (!line_.starts_with("--- Thread "))
      if (!TRY(next()) || is_map_header(line_)) return finish_with_map();
    while (line_.starts_with("--- Thread ")) TRY(read_thread());
    return finish_with_map();
  }

  // Up to the next "---", which stays in line_.
  Result<void> read_thread() {
    stack_.clear();
    bool is_same = false;
    line_ = {};
    while (TRY(next()) && !is_section(line_)) {
      is_same |= line_.find("same as previous thread") != line_.npos;
      if (!parse_addresses(line_, stack_)) return refuse("an address of more than 64 bits");
      std::string_view named = line_.starts_with("PC:") ? line_.substr(3) : line_;
      if (auto symbol = parse_symbol(named)) profile_.add_name(symbol->address, symbol->function);
    }
    if (is_same && profile_.has_stacks())
      ++profile_.last_values()[0];
    else if (!is_same)
      profile_.add_stack(stack_, std::array{int64_t{1}});
    return {};
  }

  Result<void> read_counts(std::string_view word) {
    profile_.add_metric(word, "count", 1);
    while (TRY(next_sample())) {
      const auto sample = parse_count_sample(line_);
      if (!sample) return refuse("not \"count @ addresses\"");
      TRY(parse_stack(sample->stack));
      profile_.add_stack(stack_, std::array{sample->count});
    }
    return finish_with_map();
  }

  Result<void> finish_with_map() {
    while (!is_map_header(line_))
      if (!TRY(next())) return {};
    return read_legacy_map(stream_, profile_);
  }

  LegacyStream& stream_;
  LegacyProfile& profile_;
  std::string_view line_;
  std::vector<uint64_t> stack_;
  bool is_done_ = false, is_at_end_ = false;
};

}  // namespace

// What jemalloc prints about leaks at the end of a program comes first where both went into one file.
bool is_before_legacy_header(std::string_view line) {
  line = trim(line);
  return line.empty() || line[0] == '#' || line.starts_with("<jemalloc>:");
}

bool is_legacy_header(std::string_view line) {
  line = trim(line);
  for (std::string_view start : {"--- symbol", "--- contention", "--- mutex", "--- heapz", "--- threadz", "--- Thread "})
    if (line.starts_with(start)) return true;
  return parse_heap_header(line) || parse_jemalloc_header(line) || parse_count_header(line);
}

Result<void> read_legacy_text(LegacyStream& stream, LegacyProfile& profile) {
  return LegacyText(stream, profile).read();
}

Result<void> read_legacy_map(LegacyStream& stream, LegacyProfile& profile) {
  while (auto line = TRY(stream.line())) {
    const auto text = trim(*line);
    if (text.empty() || is_map_header(text) || profile.map().add_line(text)) continue;
    profile.profile().diagnostics.add("gperftools_unknown_lines", Severity::kNotice,
                                      "lines behind the samples that are no mapping were left out", 1, text.substr(0, 60));
  }
  return {};
}

Result<void> read_java_names(LegacyStream& stream, LegacyProfile& profile) {
  while (auto line = TRY(stream.line()))
    if (auto name = parse_java_name(*line)) profile.add_name(name->address, name->function, name->file, name->line);
  return {};
}

}  // namespace cprof::format
