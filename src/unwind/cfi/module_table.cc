#include "unwind/cfi/module_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "unwind/cfi/go_code.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::unwind {
namespace {

constexpr uint64_t kInitCodeLimit = 4096, kStubCodeLimit = 16 << 20;

bool is_text(const object::Segment& segment) { return segment.flags & PF_X; }

uint64_t section_address(const object::ElfFile& file, std::string_view name) {
  const object::Section* section = file.find_section(name);
  return section ? section->vaddr : 0;
}

// A broken or absurd section is as good as none for unwinding: other sections may still help.
bool add_section(object::ElfFile& file, std::string_view name, bool is_eh_frame, std::vector<CfiSource>& sources) {
  const object::Section* section = file.find_section(name);
  if (!section) return false;
  auto size = file.section_data_size(*section);
  if (!size || *size == 0 || *size >= FdeRange::kMaxSectionBytes) return false;
  CfiSource source;
  if (!file.append_section_data(*section, &source.bytes) || source.bytes.empty()) return false;
  source.is_eh_frame = is_eh_frame;
  source.svma = is_eh_frame ? section->vaddr : 0;
  source.text_svma = section_address(file, ".text");
  source.data_svma = section_address(file, ".got");
  sources.push_back(std::move(source));
  return true;
}

const object::Segment* segment_of(const object::ElfFile& file, uint64_t svma) {
  for (const object::Segment& segment : file.segments())
    if (svma >= segment.vaddr && svma - segment.vaddr < segment.file_size) return &segment;
  return nullptr;
}

// .eh_frame of a file without section headers: .eh_frame_hdr (PT_GNU_EH_FRAME) points to it but does not say its size.
void add_from_header(object::ElfFile& file, std::vector<CfiSource>& sources) {
  auto range = file.eh_frame_header_range();
  if (!range) return;
  CfiSource header;
  header.svma = header.data_svma = range->first;
  header.bytes.resize(std::min<uint64_t>(range->second, 16));
  if (header.bytes.size() < 8 || !file.read_at_svma(header.svma, header.bytes)) return;
  ByteReader reader(header.bytes);
  uint8_t version = reader.u8(), pointer_encoding = reader.u8();
  reader.skip(2);  // encodings of the count and of the search table
  auto address = CfiSection::read_pointer(reader, header, pointer_encoding, 8);
  if (version != 1 || !address) return;
  const object::Segment* segment = segment_of(file, *address);
  if (!segment) return;
  uint64_t size = segment->vaddr + segment->file_size - *address;
  CfiSource source;
  source.svma = *address;
  source.ends_at_zero = true;
  source.bytes.resize(std::min<uint64_t>(size, FdeRange::kMaxSectionBytes - 1));
  if (file.read_at_svma(source.svma, source.bytes)) sources.push_back(std::move(source));
}

void add_known_code(object::ElfFile& file, CompileInput& input) {
  for (std::string_view name : {".plt", ".plt.sec", ".plt.got", ".iplt"}) {
    const object::Section* section = file.find_section(name);
    if (!section || section->size > kStubCodeLimit) continue;
    auto code = file.section_data(*section);
    if (!code) continue;
    for (const KnownCode& known : input.machine->plt_code(section->vaddr, *code)) input.known_code.push_back(known);
  }
  for (std::string_view name : {".init", ".fini"}) {
    const object::Section* section = file.find_section(name);
    if (!section || section->size > kInitCodeLimit) continue;
    auto code = file.section_data(*section);
    if (!code) continue;
    for (const KnownCode& known : input.machine->init_code(section->vaddr, *code)) input.known_code.push_back(known);
  }
}

}  // namespace

Result<ModuleInput> read_module_input(object::ElfFile& file, object::ElfFile* debug_file) {
  ModuleInput input;
  input.compile.machine = find_machine_cfi(file.machine());
  if (!input.compile.machine) return fail(fmt::format("{}: no unwinder for ELF machine {}", file.name(), file.machine()));
  for (const object::Segment& segment : file.segments())
    if (is_text(segment) && segment.memory_size <= ~uint64_t{0} - segment.vaddr)
      input.compile.text.emplace_back(segment.vaddr, segment.vaddr + segment.memory_size);
  if (!add_section(file, ".eh_frame", true, input.sources)) add_from_header(file, input.sources);
  const bool has_debug_frame = add_section(file, ".debug_frame", false, input.sources) ||
                               (debug_file && add_section(*debug_file, ".debug_frame", false, input.sources));
  if (!has_debug_frame) input.compile.known_code = go_code(file);
  add_known_code(file, input.compile);
  input.compile.entry = file.entry();
  input.compile.read_text = [&file](uint64_t svma, std::span<std::byte> into) {
    return file.read_at_svma(svma, into).has_value();
  };
  return input;
}

std::unique_ptr<ModuleTable::Impl> compile_module(ModuleInput input) {
  auto impl = std::make_unique<ModuleTable::Impl>();
  CompiledTable compiled = compile_rows(input.compile, input.sources);
  impl->machine = input.compile.machine;
  impl->rows = std::move(compiled.rows);
  impl->fdes = std::move(compiled.fdes);
  impl->stats = compiled.stats;
  impl->sources = std::move(input.sources);
  impl->bind();
  return impl;
}

void ModuleTable::Impl::bind() {
  table.rows = rows.rows.data();
  table.pages = rows.pages.data();
  table.rules = rows.rules.data();
  table.base = rows.base;
  table.page_count = static_cast<uint32_t>(rows.pages.size() - 1);
  table.rule_count = static_cast<uint32_t>(rows.rules.size());
}

const FdeRange* ModuleTable::Impl::find_fde(uint64_t svma) const {
  if (svma < rows.base) return nullptr;
  uint64_t offset = svma - rows.base;
  auto after = std::upper_bound(fdes.begin(), fdes.end(), offset,
                                [](uint64_t value, const FdeRange& fde) { return value < fde.start; });
  if (after == fdes.begin()) return nullptr;
  const FdeRange& fde = *std::prev(after);
  return offset - fde.start < fde.size ? &fde : nullptr;
}

ModuleTable::ModuleTable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModuleTable::~ModuleTable() = default;

std::shared_ptr<const ModuleTable> ModuleTable::adopt(std::unique_ptr<Impl> impl) {
  return std::shared_ptr<const ModuleTable>(new ModuleTable(std::move(impl)));
}

Result<std::shared_ptr<const ModuleTable>> ModuleTable::compile(object::ElfFile& file, object::ElfFile* debug_file) {
  auto input = TRY(read_module_input(file, debug_file));
  return adopt(compile_module(std::move(input)));
}

std::optional<std::pair<uint64_t, uint64_t>> ModuleTable::function_range(uint64_t svma) const {
  const FdeRange* fde = impl_->find_fde(svma);
  if (!fde) return std::nullopt;
  uint64_t start = impl_->rows.base + fde->start;
  return std::pair(start, start + fde->size);
}

bool ModuleTable::is_signal_frame(uint64_t svma) const {
  cp_rule rule = impl_->rule_at(svma);
  if (rule.cfa_kind == CP_CFA_SIGNAL) return true;
  const FdeRange* range = rule.cfa_kind == CP_CFA_COMPLEX ? impl_->find_fde(svma) : nullptr;
  if (!range) return false;
  CfiSection section(impl_->sources[range->source()]);
  auto fde = section.fde_at(range->offset());
  return fde && fde->cie->is_signal_frame;
}

size_t ModuleTable::row_count() const { return impl_->rows.rows.size(); }

size_t ModuleTable::memory_bytes() const {
  const RowSet& rows = impl_->rows;
  size_t bytes = sizeof(Impl) + rows.rows.size() * sizeof(cp_row) + rows.pages.size() * sizeof(uint32_t) +
                 rows.rules.size() * sizeof(cp_rule) + impl_->fdes.size() * sizeof(FdeRange);
  for (const CfiSource& source : impl_->sources) bytes += source.bytes.size();
  return bytes;
}

void ModuleTable::report(Diagnostics& diagnostics) const {
  const CompileStats& stats = impl_->stats;
  if (stats.broken_entries)
    diagnostics.add("unwind_broken_cfi_entries", Severity::kNotice,
                    "entries of .eh_frame or .debug_frame that could not be read; their functions count as code without CFI",
                    stats.broken_entries);
  if (stats.broken_programs)
    diagnostics.add("unwind_broken_cfi_programs", Severity::kNotice,
                    "functions whose CFI instructions are broken; stacks through them end with that reason",
                    stats.broken_programs);
}

}  // namespace cprof::unwind
