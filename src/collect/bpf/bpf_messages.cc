#include "collect/bpf/bpf_messages.h"

#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "collect/bpf/support.h"

namespace cprof::collect {
namespace {

constexpr size_t kMostMessages = 64 * 1024;

thread_local BpfMessages* current = nullptr;

int take(libbpf_print_level level, const char* format, va_list arguments) {
  if (!current || level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) return 0;
  std::string line(static_cast<size_t>(length) + 1, '\0');
  vsnprintf(line.data(), line.size(), format, arguments);
  line.pop_back();
  current->add(line);
  return 0;
}

bool is_frame(std::string_view line) {
  return line.empty() || line.find("LOG --") != line.npos || line.starts_with("processed ") ||
         line.find("failed to load") != line.npos || line.starts_with("verification time") || line.starts_with(";") ||
         line.starts_with("stack depth");
}

}  // namespace

BpfMessages::BpfMessages() : before_(current) {
  current = this;
  libbpf_set_print(&take);
}

BpfMessages::~BpfMessages() { current = before_; }

void BpfMessages::add(std::string_view text) {
  if (text_.size() <= kMostMessages) text_ += text;
}

std::string BpfMessages::last_line() const {
  std::string_view text = text_, best;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_frame(line)) best = line;
  }
  return std::string(best.substr(0, 300));
}

std::unexpected<Error> bpf_failure(const std::string& what, int error_number, const BpfMessages* messages) {
  std::string said = messages ? messages->last_line() : "";
  std::string why = explain_bpf_refusal(error_number, read_bpf_machine()).text();
  return fail(fmt::format("bpf: {}: {}{}", what, why, said.empty() ? "" : " (" + said + ")"), error_number);
}

}  // namespace cprof::collect
