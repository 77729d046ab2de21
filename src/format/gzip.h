// gzip as streams: Inflater for readers, PackedOutput for writers. One thread each. Neither holds more than its window;
// who calls bounds the sizes (format/input.h does).
#pragma once

#include <zlib.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace cprof::format {

bool is_gzip(std::span<const std::byte> head);

// The unpacked beginning of a gzip stream of which only the first bytes are known; empty when it is damaged.
std::vector<std::byte> unpack_head(std::span<const std::byte> head, size_t max_bytes);

// One or more gzip members in a row.
class Inflater {
 public:
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
    bool member_ended = false;  // what follows is another member or the end
  };

  static Result<Inflater> create();
  // Unpacks from `packed` into `out`; the error is zlib's own word for the damage.
  Result<Step> step(std::span<const std::byte> packed, std::span<std::byte> out);

 private:
  struct End {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };
  std::unique_ptr<z_stream, End> stream_;
};

// Bytes on their way to an OutputFile, through gzip or as they are. The header carries no time, so equal input gives
// equal bytes. finish() must be called; commit() of the file stays with the caller.
class PackedOutput {
 public:
  static Result<PackedOutput> create(OutputFile& out, bool gzip);

  Result<void> write(std::string_view bytes);
  Result<void> finish();

 private:
  struct End {
    void operator()(z_stream* stream) const {
      deflateEnd(stream);
      delete stream;
    }
  };

  explicit PackedOutput(OutputFile& out) : out_(&out) {}
  Result<void> deflate_into_file(int flush);

  OutputFile* out_;
  std::unique_ptr<z_stream, End> stream_;  // null: not packed
  std::vector<std::byte> buffer_;
};

}  // namespace cprof::format
