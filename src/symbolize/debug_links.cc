#include "symbolize/debug_links.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/file.h"
#include "symbolize/dwarf_package.h"

namespace cprof::symbolize {
namespace {

constexpr size_t kMaxSplitFile = size_t{1} << 30;

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::vector<std::string> split_candidates(const Unit& skeleton, const std::string& beside) {
  std::string name(skeleton.dwo_name);
  std::vector<std::string> paths;
  if (name.starts_with('/')) paths.push_back(name);
  else if (!skeleton.comp_dir.empty()) paths.push_back(std::string(skeleton.comp_dir) + "/" + name);
  if (!name.starts_with('/')) paths.push_back(beside + "/" + name);
  paths.push_back(beside + "/" + base_name(name));
  return paths;
}

bool holds_unit(DwarfFile& file, uint64_t dwo_id) {
  for (Unit& unit : file.units()) {
    if (file.read_root(unit) && unit.dwo_id == dwo_id) return true;
  }
  return false;
}

std::vector<std::string> supplementary_candidates(const std::string& link, const std::string& hex, const std::string& beside) {
  std::vector<std::string> paths;
  if (link.starts_with('/')) paths.push_back(link);
  else paths.push_back(beside + "/" + link);
  if (hex.size() > 2) paths.push_back("/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
  paths.push_back("/usr/lib/debug/.dwz/" + base_name(link));
  return paths;
}

}  // namespace

// A .dwo, a package or dwz's shared file is a linked file in all but its type: an object file, but without
// relocations.
Result<std::shared_ptr<object::ElfFile>> open_object_file(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0) return fail_errno(path);
  if (!S_ISREG(status.st_mode)) return fail(path + ": not a regular file");
  auto bytes = TRY(read_all(fd.get(), kMaxSplitFile, path));
  constexpr size_t kTypeAt = offsetof(Elf64_Ehdr, e_type);
  const Elf64_Half from = ET_REL, to = ET_DYN;
  if (bytes.size() > sizeof(Elf64_Ehdr) && memcmp(bytes.data() + kTypeAt, &from, sizeof from) == 0) {
    memcpy(bytes.data() + kTypeAt, &to, sizeof to);
  }
  return object::ElfFile::from_memory(std::move(bytes), path);
}

std::unique_ptr<DwarfFile> open_split_file(const Unit& skeleton, const DwarfFile& main, const DwarfPackage* package,
                                           Diagnostics& diagnostics) {
  if (auto file = package ? package->unit(skeleton.dwo_id) : nullptr) {
    file->adopt_skeleton(skeleton, main.sections());
    if (holds_unit(*file, skeleton.dwo_id)) return file;
  }
  for (const std::string& path : split_candidates(skeleton, directory_of(main.name()))) {
    auto elf = open_object_file(path);
    if (!elf) continue;
    auto file = DwarfFile::load(*elf, ".dwo", diagnostics);
    if (!file) continue;
    file->adopt_skeleton(skeleton, main.sections());
    if (holds_unit(*file, skeleton.dwo_id)) return file;
    diagnostics.add("dwo_mismatch", Severity::kNotice, "a .dwo file belongs to another build and was not used", 1, path);
  }
  diagnostics.add("dwo_missing", Severity::kNotice,
                  "a .dwo file was not found; its code has lines but no inlined frames", 1, skeleton.dwo_name);
  return nullptr;
}

std::unique_ptr<DwarfFile> open_supplementary_file(object::ElfFile& file, Diagnostics& diagnostics) {
  auto section = file.section_data(".gnu_debugaltlink");
  if (!section || section->empty()) return nullptr;
  ByteReader reader(*section);
  std::string link(reader.cstring());
  auto id = reader.bytes(reader.remaining());
  if (!reader.ok() || link.empty()) return nullptr;
  for (const std::string& path : supplementary_candidates(link, object::to_hex(id), directory_of(file.name()))) {
    auto elf = open_object_file(path);
    if (!elf || !std::ranges::equal((*elf)->build_id(), id)) continue;
    if (auto result = DwarfFile::load(*elf, "", diagnostics)) return result;
  }
  diagnostics.add("dwz_file_missing", Severity::kNotice,
                  "the shared debug file that dwz made was not found; some names are missing", 1, link);
  return nullptr;
}

}  // namespace cprof::symbolize
