#include "object/byte_source.h"

#include <fmt/format.h>

#include <cstring>

#include "base/file.h"

namespace cprof::object {

Result<ByteSource> ByteSource::from_file(Fd fd, std::string name) {
  ByteSource source;
  if (fstat(fd.get(), &source.stat_) != 0) return fail_errno(name);
  if (!S_ISREG(source.stat_.st_mode)) return fail(name + ": not a regular file", EINVAL);
  source.size_ = static_cast<uint64_t>(source.stat_.st_size);
  source.fd_ = std::move(fd);
  source.name_ = std::move(name);
  return source;
}

ByteSource ByteSource::from_memory(std::vector<std::byte> bytes, std::string name) {
  ByteSource source;
  source.memory_ = std::move(bytes);
  source.size_ = source.memory_.size();
  source.name_ = std::move(name);
  return source;
}

Result<void> ByteSource::read(uint64_t offset, std::span<std::byte> into) const {
  if (!contains(offset, into.size()))
    return fail(fmt::format("{}: ends at byte {}, {} bytes wanted at {}", name_, size_, into.size(), offset));
  if (into.empty()) return {};
  if (!in_memory()) return read_exactly_at(fd_.get(), offset, into, name_);
  memcpy(into.data(), memory_.data() + offset, into.size());
  return {};
}

}  // namespace cprof::object
