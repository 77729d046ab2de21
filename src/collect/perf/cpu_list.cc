#include "collect/perf/cpu_list.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"

namespace cprof::collect {
namespace {

constexpr int kMostCpus = 65536;

bool take_number(std::string_view& text, int& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kMostCpus) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "cpu3 ..." of /proc/stat, which has a line for each CPU that is online.
std::vector<int> parse_stat_cpus(std::string_view text) {
  std::vector<int> cpus;
  for (size_t end = 0; text.starts_with("cpu"); text.remove_prefix(end)) {
    end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view number = text.substr(3, end - 3);
    if (int cpu = 0; take_number(number, cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::string whole(text);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<int> cpus;
  while (!text.empty()) {
    int first = 0;
    if (!take_number(text, first)) return fail("not a CPU list: \"" + whole + "\"");
    int last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_number(text, last) || last < first) return fail("not a CPU list: \"" + whole + "\"");
    }
    for (int cpu = first; cpu <= last; cpu++) cpus.push_back(cpu);
    if (text.empty()) break;
    if (!text.starts_with(',') || text.size() == 1) return fail("not a CPU list: \"" + whole + "\"");
    text.remove_prefix(1);
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  if (cpus.empty()) return fail("an empty CPU list");
  return cpus;
}

Result<std::vector<int>> read_online_cpus(const std::string& path, const std::string& stat_path) {
  auto text = read_text_file(path, 64 * 1024);
  if (!text) {
    auto stat = read_text_file(stat_path, 16 << 20);
    auto listed = stat ? parse_stat_cpus(*stat) : std::vector<int>();
    if (listed.empty()) return std::unexpected(text.error());
    return listed;
  }
  auto cpus = parse_cpu_list(*text);
  if (!cpus) return std::unexpected(in_context(path, cpus.error()));
  return cpus;
}

}  // namespace cprof::collect
