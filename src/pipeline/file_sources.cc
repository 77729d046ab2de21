#include "pipeline/file_sources.h"

#include <algorithm>

#include "base/ascii.h"
#include "object/process_files.h"

namespace cprof::pipeline {
namespace {

Result<std::shared_ptr<object::ElfFile>> open_below(const std::string& root, const WantedFile& wanted, bool trusts_path) {
  if (wanted.build_id.empty() && !trusts_path)
    return fail(wanted.path + ": the recording is from another machine and does not tell this file's build-id");
  Fd fd = TRY(object::open_in_directory_root(root, wanted.path));
  auto file = TRY(object::ElfFile::open(std::move(fd), wanted.path));
  if (!wanted.build_id.empty() && !std::ranges::equal(file->build_id(), wanted.build_id))
    return fail(wanted.path + ": not the recorded file, by its build-id");
  return file;
}

}  // namespace

Result<std::shared_ptr<object::ElfFile>> FileSources::open(const WantedFile& wanted, Diagnostics& diagnostics) const {
  if (wanted.path == "[vdso]") return open_own_vdso(wanted.build_id, false);
  if (!given_.places.root.empty())
    if (auto file = open_below(given_.places.root, wanted, true)) return file;
  auto file = open_below("/", wanted, wanted.trust_path);
  if (file || wanted.build_id.empty()) return file;
  if (auto kept = finder_.find_by_build_id(wanted.build_id)) return kept;
  if (!wanted.may_fetch || !given_.debuginfod) return file;
  using symbolize::DebuginfodKind;
  auto fetched = given_.debuginfod->find(DebuginfodKind::kExecutable, object::to_hex(wanted.build_id), wanted.path, diagnostics);
  if (fetched) return fetched;
  return file;
}

std::shared_ptr<object::ElfFile> FileSources::fetch_debug_file(std::span<const std::byte> build_id, std::string_view path,
                                                               Diagnostics& diagnostics) const {
  if (!given_.debuginfod || build_id.empty()) return nullptr;
  using symbolize::DebuginfodKind;
  return given_.debuginfod->find(DebuginfodKind::kDebugInfo, object::to_hex(build_id), path, diagnostics);
}

Result<std::shared_ptr<object::ElfFile>> open_own_vdso(std::span<const std::byte> build_id, bool same_kernel) {
  auto bytes = TRY(object::read_own_vdso());
  auto vdso = TRY(object::ElfFile::from_memory(std::move(bytes), "[vdso]"));
  bool same = build_id.empty() ? same_kernel : std::ranges::equal(vdso->build_id(), build_id);
  if (!same) return fail("[vdso]: the recording is from another kernel");
  return vdso;
}

bool has_debug_info(const object::ElfFile& file) {
  const object::Section* info = file.find_section(".debug_info");
  return info && info->type != SHT_NOBITS;
}

std::vector<std::byte> build_id_from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  if (hex.size() % 2 != 0) return bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

}  // namespace cprof::pipeline
