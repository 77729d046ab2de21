#include "object/debug_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "object/process_files.h"

namespace cprof::object {
namespace {

constexpr size_t kChecksumPiece = 1 << 20;

// Where a path that cannot hold the file leads: part of any search, and no one's mistake.
bool is_plain_absence(const Error& error) {
  return error.code == ENOENT || error.code == ENOTDIR || error.code == EISDIR || error.code == ELOOP ||
         error.code == EINVAL || error.code == ENAMETOOLONG || error.code == ESRCH;
}

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? std::string() : path.substr(0, slash);
}

}  // namespace

// One find(): what is looked for, and where the losses go.
struct DebugFileFinder::Search {
  DebugFileFinder& finder;
  ElfFile& file;
  Diagnostics& diagnostics;
  std::optional<int32_t> pid;  // whose root; none: `root`
  std::string root = "/";

  void mismatch(const std::string& path, std::string_view why) {
    diagnostics.add("debug_file_mismatch", Severity::kError,
                    "debug files that belong to another build were not used; names come from the symbol table", 1,
                    fmt::format("{} for {}: {}", path, file.name(), why));
  }

  void unreadable(const Error& error) {
    diagnostics.add("debug_file_unreadable", Severity::kError, "debug files could not be read", 1, error.message);
  }

  std::shared_ptr<ElfFile> open(const std::string& path) {
    auto fd = pid ? open_in_root(*pid, path) : open_in_directory_root(root, path);
    if (!fd) {
      if (!is_plain_absence(fd.error())) unreadable(fd.error());
      return nullptr;
    }
    auto candidate = ElfFile::open(std::move(*fd), path);
    if (!candidate) {
      unreadable(candidate.error());
      return nullptr;
    }
    return is_the_file_itself(**candidate) ? nullptr : std::move(*candidate);
  }

  bool is_the_file_itself(const ElfFile& candidate) const {
    return file.fd() >= 0 && candidate.stat().st_dev == file.stat().st_dev && candidate.stat().st_ino == file.stat().st_ino;
  }

  std::shared_ptr<ElfFile> by_build_id() {
    auto id = file.build_id();
    if (id.size() < 2) return nullptr;
    std::string hex = to_hex(id);
    for (const std::string& directory : finder.directories_) {
      std::string path = fmt::format("{}/.build-id/{}/{}.debug", directory, hex.substr(0, 2), hex.substr(2));
      auto candidate = open(path);
      if (!candidate) continue;
      if (std::ranges::equal(candidate->build_id(), id)) return candidate;
      mismatch(path, "other build-id");
    }
    return nullptr;
  }

  // A link's file must have the checksum even when its build-id is right: it may have been changed since.
  std::shared_ptr<ElfFile> by_link(const std::string& path, const DebugLink& link) {
    auto candidate = open(path);
    if (!candidate) return nullptr;
    auto id = file.build_id(), other = candidate->build_id();
    if (!id.empty() && !other.empty() && !std::ranges::equal(id, other)) {
      mismatch(path, "other build-id");
      return nullptr;
    }
    auto crc = finder.checksum(*candidate);
    if (!crc) {
      unreadable(crc.error());
      return nullptr;
    }
    if (*crc == link.crc) return candidate;
    mismatch(path, "other checksum");
    return nullptr;
  }

  // A process's path means nothing in our root, except below the debug directories.
  std::vector<std::string> link_places(const std::string& directory, const DebugLink& link, bool beside) const {
    std::vector<std::string> places;
    if (beside) places = {directory + "/" + link.file_name, directory + "/.debug/" + link.file_name};
    for (const std::string& tree : finder.directories_) places.push_back(tree + directory + "/" + link.file_name);
    return places;
  }
};

DebugFileFinder::DebugFileFinder(const FilePlaces& places) : directories_(places.debug_directories), root_(places.root) {
  directories_.push_back("/usr/lib/debug");
  cache_directories_ = places.debug_directories;
  if (const char* home = getenv("HOME"); home && *home == '/') cache_directories_.push_back(std::string(home) + "/.debug");
}

std::shared_ptr<ElfFile> DebugFileFinder::find_by_build_id(std::span<const std::byte> build_id) const {
  if (build_id.size() < 2) return nullptr;
  std::string hex = to_hex(build_id);
  for (const std::string& directory : cache_directories_) {
    std::string entry = fmt::format("{}/.build-id/{}/{}", directory, hex.substr(0, 2), hex.substr(2));
    for (const std::string& path : {entry, entry + "/elf"}) {
      auto fd = open_in_directory_root("/", path);
      if (!fd) continue;
      auto candidate = ElfFile::open(std::move(*fd), path);
      if (candidate && std::ranges::equal((*candidate)->build_id(), build_id)) return std::move(*candidate);
    }
  }
  return nullptr;
}

Result<uint32_t> DebugFileFinder::checksum(const ElfFile& file) {
  const auto& st = file.stat();
  FileKey key(st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  if (auto known = checksums_.find(key); known != checksums_.end()) return known->second;
  std::vector<std::byte> piece(kChecksumPiece);
  uLong crc = crc32(0, nullptr, 0);
  uint64_t size = static_cast<uint64_t>(st.st_size);
  for (uint64_t at = 0; at < size;) {
    size_t length = std::min<uint64_t>(piece.size(), size - at);
    TRY(read_exactly_at(file.fd(), at, std::span(piece).first(length), file.name()));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(length));
    at += length;
  }
  return checksums_[key] = static_cast<uint32_t>(crc);
}

std::shared_ptr<ElfFile> DebugFileFinder::find(ElfFile& file, const std::string& path, std::optional<int32_t> pid,
                                               Diagnostics& diagnostics) {
  std::vector<Search> searches;
  if (pid) searches.push_back({*this, file, diagnostics, pid});
  if (!root_.empty()) searches.push_back({*this, file, diagnostics, std::nullopt, root_});
  searches.push_back({*this, file, diagnostics, std::nullopt});
  for (Search& search : searches) {
    if (auto found = search.by_build_id()) return found;
  }
  auto link = file.debug_link();
  bool usable = link && path.starts_with('/') && link->file_name.find('/') == std::string::npos;
  if (!usable) return nullptr;
  for (Search& search : searches) {
    bool beside = search.pid == pid || search.root != "/";
    for (const std::string& place : search.link_places(directory_of(path), *link, beside)) {
      if (auto found = search.by_link(place, *link)) return found;
    }
  }
  return nullptr;
}

}  // namespace cprof::object
