#include "uprobe/caller_names.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "symbolize/sandbox.h"

namespace cprof::uprobe {
namespace {

// A place in a file, or, without a file, in a process.
struct Place {
  std::optional<uint32_t> file;
  uint64_t address = 0;
  auto operator<=>(const Place&) const = default;
};

class Places {
 public:
  Places(TargetFiles& files, Diagnostics& diagnostics) : files_(files), diagnostics_(diagnostics) {}

  Place of(const uprobe_caller_key& key, const uprobe_caller& caller) {
    auto file = find(caller);
    if (!file && caller.inode != 0 && asked_.insert(key.pid).second) {
      (void)files_.add_process(static_cast<int32_t>(key.pid));  // it may have ended: then its addresses have no names
      file = find(caller);
    }
    if (!file) return {std::nullopt, key.address};
    if (auto opened = files_.open(*file); !opened) {
      diagnostics_.add("caller_files_unreadable", Severity::kNotice, "files of callers that could not be read", 1, opened.error().message);
      return {std::nullopt, key.address};
    }
    const auto address = files_.all()[*file].elf->file_offset_to_svma(caller.file_offset);
    return address ? Place{file, *address} : Place{std::nullopt, key.address};
  }

 private:
  std::optional<uint32_t> find(const uprobe_caller& caller) const {
    if (caller.inode == 0) return std::nullopt;
    for (uint32_t i = 0; i < files_.all().size(); i++) {
      const object::FileIdentity& identity = files_.all()[i].identity;
      if (identity.inode == caller.inode && (identity.major << 20 | identity.minor) == caller.device) return i;
    }
    return std::nullopt;
  }

  TargetFiles& files_;
  Diagnostics& diagnostics_;
  std::set<uint32_t> asked_;
};

// The names of addresses of one file, each a return address.
std::map<uint64_t, std::string> names_in(const TargetFile& file, const std::set<uint64_t>& addresses, symbolize::Demangler& demangler,
                                         Diagnostics& diagnostics) {
  symbolize::ModuleSymbols symbols(file.elf, file.debug, demangler);
  std::vector<uint64_t> calls;
  for (uint64_t address : addresses) calls.push_back(address - 1);
  std::map<uint64_t, std::string> names;
  auto note = [&](uint64_t call, const symbolize::Symbolized& found) {
    if (!found.lines.empty()) names[call + 1] = found.lines.front().name;
  };
  if (!symbolize::needs_sandbox(file.elf.get(), file.debug.get())) {
    for (uint64_t call : calls) note(call, symbols.find(call, diagnostics));
    return names;
  }
  const auto batch = symbolize::find_in_sandbox(symbols, calls, diagnostics);
  if (!batch) diagnostics.add("caller_files_unreadable", Severity::kNotice, "files of callers that could not be read", 1, batch.error().message);
  for (size_t i = 0; batch && i < calls.size(); i++) note(calls[i], batch->results[i]);
  return names;
}

}  // namespace

std::map<uint32_t, std::vector<Caller>> name_callers(const NotedCallers& noted, TargetFiles& files, symbolize::DemangleStyle style,
                                                     Diagnostics& diagnostics) {
  Places places(files, diagnostics);
  std::map<std::pair<uint32_t, Place>, uint64_t> counts;  // by function and place
  std::map<uint32_t, std::set<uint64_t>> asked;           // by file
  for (const auto& [key, caller] : noted) {
    const Place place = places.of(key, caller);
    counts[{key.function, place}] += caller.calls;
    if (place.file) asked[*place.file].insert(place.address);
  }
  symbolize::Demangler demangler(style);
  std::map<uint32_t, std::map<uint64_t, std::string>> names;
  for (const auto& [file, addresses] : asked) names[file] = names_in(files.all()[file], addresses, demangler, diagnostics);

  std::map<uint32_t, std::map<std::pair<std::string, std::string>, Caller>> joined;  // places of one function are one caller
  for (const auto& [which, calls] : counts) {
    const Place& place = which.second;
    Caller caller{.name = {}, .module = place.file ? files.all()[*place.file].module() : "", .address = place.address, .calls = 0};
    if (place.file) caller.name = names[*place.file][place.address];
    const std::string key = caller.name.empty() ? std::to_string(place.address) : caller.name;
    joined[which.first].try_emplace({caller.module, key}, caller).first->second.calls += calls;
  }
  std::map<uint32_t, std::vector<Caller>> result;
  for (auto& [function, callers] : joined) {
    for (auto& [key, caller] : callers) result[function].push_back(std::move(caller));
    std::ranges::stable_sort(result[function], std::ranges::greater(), &Caller::calls);
  }
  return result;
}

}  // namespace cprof::uprobe
