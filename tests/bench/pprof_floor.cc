// What reading a pprof file into SQL costs at the least, for bench_formats.py: unpacks it at once, walks every field of the
// message, and puts as many rows into an SQLite table in memory as a reader that does the same must put. Knows nothing of
// what it reads: no ids are looked up, no texts kept.
//
//     cprof_pprof_floor FILE CALL_SITES VALUES
//
// Prints the bytes, the samples and the sum of all values.
#include <fmt/format.h>
#include <libdeflate.h>
#include <sqlite3.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <string>

#include "base/file.h"

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr uint32_t kSample = 2, kValue = 2;  // field numbers of Profile and of Sample, in profile.proto

struct Facts {
  uint64_t samples = 0;
  int64_t sum = 0;     // of the samples' values
  uint64_t mixed = 0;  // of all other numbers, so that none is left unread
};

std::optional<std::string> unpacked(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 32;
  const auto fd = cprof::open_read(path);
  if (!fd) return std::nullopt;
  const auto read = cprof::read_all(fd->get(), kMaxBytes, path);
  uint32_t size;
  if (!read || read->size() < sizeof size) return std::nullopt;
  const std::span<const std::byte> packed = *read;
  memcpy(&size, packed.data() + packed.size() - sizeof size, sizeof size);
  std::string out(size, '\0');
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> unpacker(libdeflate_alloc_decompressor(),
                                                                                        libdeflate_free_decompressor);
  const auto result = libdeflate_gzip_decompress(unpacker.get(), packed.data(), packed.size(), out.data(), size, nullptr);
  return result == LIBDEFLATE_SUCCESS ? std::optional(std::move(out)) : std::nullopt;
}

void walk_numbers(pbf_reader& message, Facts& facts, bool is_value) {
  for (uint64_t number : message.get_packed_uint64()) {
    if (is_value) facts.sum += static_cast<int64_t>(number);
    else facts.mixed ^= number;
  }
}

// A message of numbers only: a label, a line.
void walk_flat(pbf_reader message, Facts& facts) {
  while (message.next()) {
    if (message.wire_type() == pbf_wire_type::varint) facts.mixed ^= message.get_uint64();
    else message.skip();
  }
}

void walk_sample(pbf_reader message, Facts& facts) {
  ++facts.samples;
  while (message.next()) {
    if (message.tag() > kValue) walk_flat(message.get_message(), facts);
    else walk_numbers(message, facts, message.tag() == kValue);
  }
}

void walk_table_row(pbf_reader message, Facts& facts) {
  while (message.next()) {
    if (message.wire_type() == pbf_wire_type::length_delimited) walk_flat(message.get_message(), facts);
    else if (message.wire_type() == pbf_wire_type::varint) facts.mixed ^= message.get_uint64();
    else message.skip();
  }
}

Facts walk(const std::string& bytes) {
  constexpr uint32_t kStringTable = 6;
  Facts facts;
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    const bool is_message = reader.wire_type() == pbf_wire_type::length_delimited && reader.tag() != kStringTable;
    if (!is_message) reader.skip();
    else if (reader.tag() == kSample) walk_sample(reader.get_message(), facts);
    else walk_table_row(reader.get_message(), facts);
  }
  return facts;
}

bool insert(sqlite3* db, const char* table, uint64_t rows) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_exec(db, fmt::format("CREATE TABLE {} (id INTEGER PRIMARY KEY, a, b); BEGIN", table).c_str(), nullptr, nullptr, nullptr);
  if (sqlite3_prepare_v2(db, fmt::format("INSERT INTO {} VALUES (?, ?, ?)", table).c_str(), -1, &statement, nullptr) != SQLITE_OK) return false;
  bool is_done = true;
  for (uint64_t i = 0; i < rows && is_done; ++i) {
    for (int column = 1; column <= 3; ++column) sqlite3_bind_int64(statement, column, static_cast<int64_t>(i));
    is_done = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
  }
  sqlite3_finalize(statement);
  return is_done && sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK;
}

bool insert_all(uint64_t call_sites, uint64_t values) {
  sqlite3* db = nullptr;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return false;
  const bool is_done = insert(db, "call_site", call_sites) && insert(db, "value", values);
  sqlite3_close(db);
  return is_done;
}

std::optional<uint64_t> number_of(const char* text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text, text + strlen(text), value);
  return error == std::errc() && *end == '\0' ? std::optional(value) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto call_sites = argc == 4 ? number_of(argv[2]) : std::nullopt, values = argc == 4 ? number_of(argv[3]) : std::nullopt;
  if (!call_sites || !values) return fmt::print(stderr, "usage: cprof_pprof_floor FILE CALL_SITES VALUES\n"), 2;
  const auto bytes = unpacked(argv[1]);
  if (!bytes) return fmt::print(stderr, "{}: not gzip\n", argv[1]), 1;
  const Facts facts = walk(*bytes);
  if (!insert_all(*call_sites, *values)) return fmt::print(stderr, "SQLite failed\n"), 1;
  fmt::print("{} bytes, {} samples, sum {}, all other numbers mixed {:x}\n", bytes->size(), facts.samples, facts.sum, facts.mixed);
  return 0;
} catch (const protozero::exception& error) {
  fmt::print(stderr, "{}: {}\n", argv[1], error.what());
  return 1;
}
