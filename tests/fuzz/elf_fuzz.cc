// Everything that ElfFile answers, over any bytes.
#include "object/elf_file.h"

using namespace cprof::object;

static void ask_addresses(ElfFile& file) {
  std::byte word[16];
  for (const Segment& segment : file.segments()) {
    (void)file.read_at_svma(segment.vaddr, word);
    (void)file.read_at_svma(segment.vaddr + segment.memory_size - 8, word);
    (void)file.svma_to_file_offset(segment.vaddr + segment.file_size - 1);
    (void)file.file_offset_to_svma(segment.file_offset);
    (void)file.load_bias(0x7f0000000000, segment.file_offset & ~uint64_t{4095});
    (void)file.load_bias(0x7f0000000000, segment.file_offset, false);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* start = reinterpret_cast<const std::byte*>(data);
  auto opened = ElfFile::from_memory({start, start + size}, "fuzz");
  if (!opened) return 0;
  ElfFile& file = **opened;
  ask_addresses(file);
  (void)file.build_id();
  (void)file.debug_link();
  (void)file.eh_frame_header_range();
  if (auto symbols = file.symbols()) {
    file.drop_cached_data();
    size_t bytes = 0;
    for (const Symbol& symbol : *symbols) bytes += symbol.name.size() + static_cast<size_t>(symbol.name.back());
    if (bytes == 1) return 0;  // keeps the reads
  }
  for (const Section& section : file.sections()) {
    auto content = file.section_data(section);
    auto expected = file.section_data_size(section);
    if (content && expected && !content->empty() && content->size() != *expected) __builtin_trap();
  }
  file.drop_cached_data();
  return 0;
}
