// A paragraph is a header and its frames, leaf first, up to an empty line or the next header. Inlined lines come before
// the frame they are in, innermost first, and share its address. A file whose times are all 0 has none: its samples
// become aggregates. The same few frame lines come over and over: a line that was read once is known by its hash, joined
// with those of the inlined lines before it.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "base/text_hash.h"
#include "format/frame_text.h"
#include "format/line_reader.h"
#include "format/text/text.h"
#include "format/text/text_lines.h"
#include "format/words.h"
#include "profile/builder.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::FrameKind;
using profile::ProfileBuilder;

constexpr uint64_t kFirstKernelAddress = 0xffff'8000'0000'0000;  // below it and above user space no address is real

bool is_clock(std::string_view event) { return event.starts_with("cpu-clock") || event.starts_with("task-clock"); }

class TextReader {
 public:
  explicit TextReader(LineReader lines) : lines_(std::move(lines)) { builder_.profile().run.source = lines_.name(); }

  Result<profile::Profile> read() {
    while (auto line = TRY(lines_.next())) add_line(*line);
    finish_sample();
    profile::Profile& profile = builder_.profile();
    if (profile.samples.empty()) return fail(no_samples());
    if (!any_time_) make_untimed(profile);
    if (any_time_) set_run(profile);
    return builder_.take();
  }

 private:
  void add_line(std::string_view line) {
    if (line.empty()) return finish_sample();
    bool indented = line.front() == ' ' || line.front() == '\t';
    if (in_sample_ && indented && add_known(key_of(line))) return;
    if (indented && is_blank(line)) return finish_sample();
    if (line.starts_with('#')) return;
    auto frame = in_sample_ && indented ? parse_frame(line) : std::nullopt;
    if (!frame && in_sample_ && indented && add_without_address(line)) return;
    if (frame && !is_header_of_hex_comm(*frame)) {
      if (auto known = add_frame(*frame, key_of(line))) remember(*known);
      return;
    }
    if (auto header = parse_header(line)) {
      finish_sample();
      begin_sample(*header);
      return;
    }
    if (!frame && in_sample_) frame = parse_frame(line);  // some copies have lost their indentation
    if (frame) {
      add_frame(*frame, key_of(line));
      return;
    }
    if (!malformed_++) first_malformed_ = lines_.line_number();
    builder_.profile().diagnostics.add("text_malformed_lines", Severity::kDataLoss,
                                       "lines that are neither a sample's header nor a frame were left out", 1,
                                       fmt::format("line {}: {}", lines_.line_number(), line.substr(0, 60)));
  }

  bool add_without_address(std::string_view line) {
    const bool is_first = path_.empty() && pending_.empty();
    if (is_first) is_bare_ = true;
    if (!is_first)
      if (const auto source = parse_source_line(line)) return add_source(*source, line);
    const auto frame = is_bare_ && !parse_header(line) ? parse_bare_frame(line) : std::nullopt;
    if (!frame) return false;
    if (auto known = add_frame(*frame, key_of(line))) remember(*known);
    return true;
  }

  // The source line of the frame before.
  bool add_source(const TextSource& source, std::string_view text) {
    if (source.file.empty()) return true;
    if (!pending_.empty()) {
      pending_.back() = with_source(pending_.back(), source);
      pending_key_ = hasher_.join(pending_key_, hasher_(text));
      return true;
    }
    auto [it, is_new] = with_source_.try_emplace({path_.back(), std::string(text)});
    if (is_new) {
      const auto lines = builder_.profile().lines_of(path_.back());
      std::vector<profile::Line> changed(lines.begin(), lines.end());
      if (!changed.empty()) changed.back() = with_source(changed.back(), source);
      const profile::Location location = builder_.profile().locations[path_.back().index()];
      it->second = location.address == 0 ? builder_.named_location(location.mapping, location.kind, changed)
                                         : builder_.add_location(location, changed);
    }
    path_.back() = it->second;
    return true;
  }

  profile::Line with_source(const profile::Line& line, const TextSource& source) {
    profile::Function function = builder_.profile().functions[line.function.index()];
    function.file = builder_.intern(source.file);
    return {builder_.function(function), source.line, 0};
  }

  void begin_sample(const TextHeader& header) {
    in_sample_ = true;
    is_bare_ = false;
    sample_ = {};
    sample_.time_ns = header.time_ns;
    sample_.weight = header.period ? header.period : 1;
    sample_.cpu = header.cpu;
    sample_.metric = metric(header.event.empty() ? "samples" : header.event);
    if (header.tid >= 0 || !header.comm.empty()) sample_.thread = thread(header);
    any_time_ |= header.time_ns != 0;
    if (header.rest.empty()) return;
    if (auto frame = parse_trailing_frame(header.rest)) add_frame(*frame, key_of(header.rest));
  }

  // What a frame's line came to, together with the inlined lines before it.
  struct KnownLine {
    TextHash key;
    profile::LocationId location{};  // invalid: an inlined line, whose function this is
    profile::FunctionId function{};
    FrameKind kind = FrameKind::kUser;
    bool is_null = false;            // how a sample without a stack is written, when there is nothing else
    uint32_t next = profile::RowIndex::kNone;  // of known_: what followed it last
  };

  TextHash key_of(std::string_view line) const {
    const TextHash key = hasher_(line);
    return pending_.empty() ? key : hasher_.join(pending_key_, key);
  }

  bool add_known(const TextHash& key) {
    constexpr uint32_t kNone = profile::RowIndex::kNone;
    uint32_t row = last_known_ == kNone ? kNone : known_[last_known_].next;
    if (row == kNone || known_[row].key != key) row = known_index_.find(key.a, [&](uint32_t r) { return known_[r].key == key; });
    follow(row);
    if (row == kNone) return false;
    add(known_[row]);
    return true;
  }

  // Callers mostly come in the order in which they came before: then the next line is found without asking the index.
  void follow(uint32_t row) {
    if (last_known_ != profile::RowIndex::kNone) known_[last_known_].next = row;
    last_known_ = row;
  }

  void remember(const KnownLine& line) {
    auto equal = [&](uint32_t row) { return known_[row].key == line.key; };
    follow(known_index_.find_or_add(line.key.a, equal, [&] {
      known_.push_back(line);
      return static_cast<uint32_t>(known_.size() - 1);
    }));
  }

  void add(const KnownLine& line) {
    const bool is_first = path_.empty() && pending_.empty();
    is_no_stack_ = line.is_null && is_first;
    if (is_first) sample_.in_kernel = line.kind == FrameKind::kKernel;
    last_kind_ = line.kind;
    if (!line.location.valid()) {
      pending_.push_back({line.function});
      pending_key_ = line.key;
      return;
    }
    path_.push_back(line.location);
    pending_.clear();
  }

  // Nothing: the same line may be something else in another place.
  std::optional<KnownLine> add_frame(const TextFrame& frame, const TextHash& key) {
    const bool is_unknown = frame.name.empty() || frame.name == profile::kUnknownFrame;
    KnownLine line;
    line.key = key;
    line.kind = kind_of(frame);
    line.is_null = frame.address == 0 && is_unknown && !frame.is_inlined;
    const bool is_place = is_unknown && frame.has_file_offset;  // it may get a name later
    if (!is_place) {
      StringId text = is_unknown ? name_of_module(frame.module) : builder_.intern(frame.name);
      line.function = builder_.function({.name = text, .system_name = text});
    }
    if (!frame.is_inlined) line.location = location_of(frame, line, is_place);
    add(line);
    return is_place ? std::nullopt : std::optional(line);
  }

  profile::LocationId location_of(const TextFrame& frame, const KnownLine& line, bool is_place) {
    profile::Location location;
    if (frame.has_file_offset) location.mapping = mapping_at(frame);
    else if (!frame.module.empty() && frame.module != profile::kUnknownFrame) location.mapping = mapping(frame.module);
    location.address = location.file_address = frame.address;
    if (is_place) {
      location.file_address = frame.file_offset;
      location.is_return_address = !path_.empty() && last_kind_ == line.kind;
    }
    location.function_start = frame.has_offset && frame.offset <= frame.address ? frame.address - frame.offset : 0;
    location.kind = line.kind;
    const size_t inlined = pending_.size();
    if (!is_place) pending_.push_back({line.function});
    const profile::LocationId id =
        frame.has_address ? named(location) : builder_.named_location(location.mapping, location.kind, pending_);
    pending_.resize(inlined);
    return id;
  }

  // Code without a name is called after its module, "[libc.so.6]", as other readers of this text do: the address is
  // that of one process, so it would tell equal code apart.
  StringId name_of_module(std::string_view module) {
    if (module.empty() || module == profile::kUnknownFrame) return builder_.intern(profile::kUnknownFrame);
    std::string_view base = profile::base_name(module);
    return builder_.intern(base.starts_with('[') ? std::string(base) : fmt::format("[{}]", base));
  }

  // Frames of JIT code keep one address under several names over time: the lines are part of the identity.
  profile::LocationId named(const profile::Location& location) {
    using profile::hash_join;
    uint64_t hash = hash_join(hash_join(profile::hash_seed(), location.mapping.value), location.address);
    hash = hash_join(hash, static_cast<uint64_t>(location.kind) << 1 | location.is_return_address);
    for (const profile::Line& line : pending_) hash = hash_join(hash_join(hash, line.function.value), line.line);
    auto equal = [&](uint32_t row) {
      const profile::Profile& p = builder_.profile();
      const profile::Location& l = p.locations[row];
      return l.mapping == location.mapping && l.address == location.address && l.kind == location.kind &&
             l.is_return_address == location.is_return_address &&
             std::ranges::equal(p.lines_of(profile::LocationId(row)), pending_,
                                [](const profile::Line& x, const profile::Line& y) { return x.function == y.function && x.line == y.line; });
    };
    return profile::LocationId(locations_.find_or_add(hash, equal, [&] { return builder_.add_location(location, pending_).value; }));
  }

  void finish_sample() {
    if (!in_sample_) return;
    if (!pending_.empty()) {  // inlined lines whose frame did not come
      path_.push_back(named({}));
      pending_.clear();
    }
    if (is_no_stack_) path_.clear();
    std::reverse(path_.begin(), path_.end());
    sample_.site = builder_.stack(path_);
    builder_.add_sample(sample_);
    path_.clear();
    in_sample_ = is_no_stack_ = false;
  }

  static FrameKind kind_of(const TextFrame& frame) {
    if (frame.address >= kFirstKernelAddress) return FrameKind::kKernel;
    if (frame.module.empty() || frame.module == profile::kUnknownFrame)
      return frame.name == profile::kUnknownFrame ? FrameKind::kUnknown : FrameKind::kUser;
    return kind_of_module(frame.module);
  }

  profile::MappingId mapping(std::string_view path) {
    StringId text = builder_.intern(path);
    return builder_.mapping({.path = text});
  }

  // The part of the file that frames were in so far, where this process has it.
  profile::MappingId mapping_at(const TextFrame& frame) {
    constexpr uint64_t kPage = 4096;
    const uint64_t start = frame.address / kPage * kPage;
    auto [it, is_new] = mappings_.try_emplace({std::string(frame.module), frame.address - frame.file_offset});
    auto& rows = builder_.profile().mappings;
    if (is_new) {
      rows.push_back({.path = builder_.intern(frame.module), .start = start, .end = start + kPage,
                      .file_offset = frame.file_offset / kPage * kPage, .load_bias = frame.address - frame.file_offset});
      it->second = profile::MappingId(rows.size() - 1);
    }
    profile::Mapping& row = rows[it->second.index()];
    row.start = std::min(row.start, start);
    row.end = std::max(row.end, start + kPage);
    row.file_offset = row.start - row.load_bias;
    return it->second;
  }

  profile::MetricId metric(std::string_view event) {
    if (event == last_event_ && last_metric_.valid()) return last_metric_;
    auto [it, is_new] = metrics_.try_emplace(std::string(event));
    if (is_new)
      it->second = builder_.add_metric(
          event, is_clock(event) || event == profile::kOffCpuMetric ? "nanoseconds" : "count", 0, is_clock(event));
    last_event_ = event;
    return last_metric_ = it->second;
  }

  // perf names the thread; the process is named after its main thread, or the first thread seen.
  profile::ThreadId thread(const TextHeader& header) {
    const int32_t tid = std::max(header.tid, 0);
    const int32_t pid = header.pid >= 0 ? header.pid : tid;
    if (last_thread_.valid() && pid == last_pid_ && header.tid == last_tid_ && header.comm == last_comm_) return last_thread_;
    // Without ids the comm is all that tells threads apart.
    auto key = std::tuple(pid, tid, header.tid >= 0 ? std::string() : std::string(header.comm));
    auto [it, is_new] = threads_.try_emplace(key);
    if (is_new) {
      auto [process, is_new_process] = processes_.try_emplace({pid, std::get<2>(key)});
      if (is_new_process) process->second = builder_.add_process(pid, header.comm);
      it->second = builder_.add_thread(process->second, tid, header.comm);
    }
    profile::Thread& row = builder_.profile().threads[it->second.index()];
    row.name = builder_.intern(header.comm);
    if (pid == tid) builder_.profile().processes[row.process.index()].name = row.name;
    last_comm_ = header.comm;
    last_pid_ = pid;
    last_tid_ = header.tid;
    return last_thread_ = it->second;
  }

  void make_untimed(profile::Profile& profile) {
    for (const profile::Sample& sample : profile.samples)
      builder_.add_aggregate(
          {.site = sample.site, .metric = sample.metric, .value = sample.weight, .thread = sample.thread});
    profile.samples.clear();
  }

  static void set_run(profile::Profile& profile) {
    profile.run.start_ns = profile.samples.front().time_ns;
    for (const profile::Sample& sample : profile.samples) {
      profile.run.start_ns = std::min(profile.run.start_ns, sample.time_ns);
      profile.run.end_ns = std::max(profile.run.end_ns, sample.time_ns);
    }
  }

  std::string no_samples() const {
    if (malformed_)
      return fmt::format("{}: no samples: line {} is not a header like \"comm pid/tid [cpu] seconds: event:\"",
                         lines_.name(), first_malformed_);
    return fmt::format("{}: no samples", lines_.name());
  }

  LineReader lines_;
  ProfileBuilder builder_;
  profile::Sample sample_;
  FrameKind last_kind_ = FrameKind::kUser;  // of the frame before, in the same sample
  bool in_sample_ = false, any_time_ = false;
  bool is_bare_ = false;                   // the sample's frames have no addresses
  bool is_no_stack_ = false;               // the only frame so far is how a sample without a stack is written
  std::vector<profile::LocationId> path_;  // leaf first
  std::vector<profile::Line> pending_;     // of the frame to come, innermost first
  TextHasher hasher_;
  std::vector<KnownLine> known_;
  profile::RowIndex known_index_;
  uint32_t last_known_ = profile::RowIndex::kNone;  // the line before, when it is one of known_
  TextHash pending_key_;  // of the inlined lines so far
  profile::RowIndex locations_;
  std::map<std::pair<profile::LocationId, std::string>, profile::LocationId> with_source_;  // by frame and line below it
  std::unordered_map<std::string, profile::MetricId> metrics_;
  std::string last_event_;
  profile::MetricId last_metric_;
  std::string last_comm_;
  profile::ThreadId last_thread_;
  int32_t last_pid_ = -1, last_tid_ = -1;
  std::map<std::pair<std::string, uint64_t>, profile::MappingId> mappings_;  // by path and where its offset 0 would be
  std::map<std::tuple<int32_t, int32_t, std::string>, profile::ThreadId> threads_;
  std::map<std::pair<int32_t, std::string>, profile::ProcessId> processes_;
  uint64_t malformed_ = 0, first_malformed_ = 0;
};

}  // namespace

// A header, then a frame, an empty line, the next header or the end.
bool sniff_text(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.find('\0') != text.npos) return false;
  bool seen_header = false, is_full_header = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    bool is_blank = line.find_first_not_of(" \t") == line.npos;
    if (!seen_header && (is_blank || line.starts_with('#'))) continue;
    if (seen_header) return is_blank || parse_frame(line) || parse_header(line) || (is_full_header && parse_bare_frame(line));
    auto header = parse_header(line);
    if (!header || (header->tid < 0 && header->event.empty())) return false;
    seen_header = true;
    is_full_header = header->tid >= 0 && !header->event.empty();
  }
  return seen_header;
}

Result<profile::Profile> read_text(Input input, const ReadOptions& options) {
  auto stream = TRY(InputStream::open(std::move(input), options));
  return TextReader(LineReader(std::move(stream))).read();
}

}  // namespace cprof::format
