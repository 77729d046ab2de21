#include "store/sample_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "profile/row_index.h"

namespace cprof::store {
namespace {

using profile::Sample;

void append(std::string& text, std::optional<int64_t> value) {
  if (text.empty()) text = "[";
  else text += ',';
  if (!value) {
    text += "null";
    return;
  }
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, *value).ptr);
}

std::optional<int64_t> number_of(profile::CallSiteId site) {
  return site.valid() ? std::optional<int64_t>(site.value) : std::nullopt;
}

}  // namespace

PackedColumn pack(std::span<const std::optional<int64_t>> values) {
  PackedColumn column;
  const bool is_same = std::ranges::all_of(values, [&](auto& value) { return value == values[0]; });
  if (is_same) {
    if (!values.empty()) column.value = values[0];
    return column;
  }
  column.is_array = true;
  for (auto& value : values) append(column.array, value);
  column.array += ']';
  return column;
}

std::string pack_array(std::span<const int64_t> values) {
  std::string text;
  for (int64_t value : values) append(text, value);
  return (text.empty() ? "[" : text) + ']';
}

Result<std::vector<std::optional<int64_t>>> unpack(std::string_view array, size_t most) {
  std::vector<std::optional<int64_t>> values;
  if (!array.starts_with('[') || !array.ends_with(']') || array.size() < 3) return fail("not an array of whole numbers");
  const char* at = array.data() + 1;
  const char* const end = array.data() + array.size() - 1;
  while (true) {
    if (values.size() == most) return fail(fmt::format("an array of more than {} numbers", most));
    if (std::string_view(at, end).starts_with("null")) {
      values.emplace_back();
      at += 4;
    } else {
      int64_t value = 0;
      auto [next, error] = std::from_chars(at, end, value);
      if (error != std::errc()) return fail("not an array of whole numbers");
      values.emplace_back(value);
      at = next;
    }
    if (at == end) return values;
    if (*at++ != ',') return fail("not an array of whole numbers");
  }
}

size_t SampleContexts::Hash::operator()(const Sample& s) const {
  using profile::hash_join;
  uint64_t hash = hash_join(0x9e3779b97f4a7c15ull, uint64_t{s.thread.value} << 32 | s.cpu);
  hash = hash_join(hash, uint64_t{s.metric.value} << 32 | s.labels.value);
  return hash_join(hash, static_cast<uint64_t>(s.end) << 1 | s.in_kernel);
}

bool SampleContexts::Equal::operator()(const Sample& a, const Sample& b) const {
  return a.thread == b.thread && a.cpu == b.cpu && a.metric == b.metric && a.labels == b.labels && a.end == b.end &&
         a.in_kernel == b.in_kernel;
}

uint32_t SampleContexts::find_or_add(const Sample& sample) {
  auto [it, is_new] = index_.try_emplace(sample, static_cast<uint32_t>(rows_.size()));
  if (is_new) rows_.push_back(sample);
  return it->second;
}

// Times are told by how far they are from even ones: the fewer digits the more even the sampling was. The arithmetic
// wraps, so any time comes back as it was.
SampleChunk pack_samples(std::span<const Sample> samples, SampleContexts& contexts) {
  const uint64_t first = samples.front().time_ns, last = samples.back().time_ns;
  SampleChunk chunk;
  chunk.ts = static_cast<int64_t>(first);
  if (samples.size() > 1) chunk.step = static_cast<int64_t>(last - first) / static_cast<int64_t>(samples.size() - 1);
  std::vector<int64_t> jitter;
  std::vector<std::optional<int64_t>> context, callsite, weight;
  uint64_t even = first;
  for (const Sample& sample : samples) {
    jitter.push_back(static_cast<int64_t>(sample.time_ns - even));
    even += static_cast<uint64_t>(chunk.step);
    context.emplace_back(contexts.find_or_add(sample));
    callsite.push_back(number_of(sample.site));
    weight.emplace_back(sample.weight);
  }
  chunk.jitter = pack_array(jitter);
  chunk.context = pack(context);
  chunk.callsite = pack(callsite);
  chunk.weight = pack(weight);
  return chunk;
}

}  // namespace cprof::store
