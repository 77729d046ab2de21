#include "embed/module_tracker.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "collect/inproc/handler.h"
#include "embed/tick_clock.h"
#include "object/process_files.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::embed {

// What the loader says of one file.
struct ModuleTracker::Seen {
  struct Segment {
    uint64_t start = 0, end = 0, file_offset = 0;
  };
  std::string path;          // "": the program
  std::string build_id;
  uint64_t bias = 0;
  std::vector<Segment> code;
  bool is_vdso = false;
};

namespace {

constexpr uint32_t kMadeCode = UINT32_MAX;
constexpr uint64_t kPageMask = 4095;

std::string build_id_in(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    __builtin_memcpy(&note, notes.data(), sizeof note);
    const size_t name = (note.n_namesz + 3u) & ~size_t{3}, content = (note.n_descsz + 3u) & ~size_t{3};
    notes = notes.subspan(sizeof note);
    if (name > notes.size() || note.n_descsz > notes.size() - name) return "";
    const bool is_gnu = note.n_namesz == 4 && __builtin_memcmp(notes.data(), "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return object::to_hex(notes.subspan(name, note.n_descsz));
    notes = notes.subspan(std::min(notes.size(), name + content));
  }
  return "";
}

}  // namespace

ModuleTracker::~ModuleTracker() = default;

std::vector<ModuleTracker::Seen> ModuleTracker::ask_loader(uint64_t& changes) {
  struct Walk {
    std::vector<Seen> seen;
    uint64_t changes = 0;
  } walk;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Walk& into = *static_cast<Walk*>(data);
        Seen& one = into.seen.emplace_back();
        one.path = info->dlpi_name ? info->dlpi_name : "";
        one.bias = info->dlpi_addr;
        one.is_vdso = one.path.starts_with("linux-vdso") || one.path.starts_with("linux-gate");
        into.changes = info->dlpi_adds + info->dlpi_subs;
        for (const ElfW(Phdr)& header : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
          const uint64_t start = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_LOAD && (header.p_flags & PF_X))
            one.code.push_back({start & ~kPageMask, start + header.p_memsz, header.p_offset & ~kPageMask});
          if (header.p_type == PT_NOTE && one.build_id.empty())
            one.build_id = build_id_in({reinterpret_cast<const std::byte*>(start), header.p_memsz});
        }
        return 0;
      },
      &walk);
  changes = walk.changes;
  return std::move(walk.seen);
}

void ModuleTracker::open(LoadedFile& file, const Seen& seen) {
  auto elf = [&]() -> Result<std::shared_ptr<object::ElfFile>> {
    if (seen.is_vdso) return object::ElfFile::from_memory(TRY(object::read_own_vdso()), "[vdso]");
    return object::ElfFile::open(seen.path.empty() ? "/proc/self/exe" : seen.path);
  }();
  // A file that was replaced since it was loaded would unwind and name other code than what runs.
  if (!elf || object::to_hex((*elf)->build_id()) != seen.build_id) {
    unreadable_++;
    return;
  }
  file.elf = std::move(*elf);
  const auto [known, is_new] = by_content_.try_emplace({file.path, file.build_id}, static_cast<uint32_t>(files_.size()));
  if (!is_new && files_[known->second]->elf) {
    file.elf = files_[known->second]->elf;
    file.table = files_[known->second]->table;
    return;
  }
  const uint64_t start_ns = monotonic_ns();
  if (auto table = unwind::ModuleTable::compile(*file.elf, nullptr)) file.table = std::move(*table);
  file.elf->drop_cached_data();
  builds_++;
  build_ns_ += monotonic_ns() - start_ns;
}

uint32_t ModuleTracker::file_of(const Seen& seen) {
  std::string path = seen.path;
  if (seen.is_vdso) path = "[vdso]";
  if (path.empty()) {
    char own[4096];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own);
    path.assign(own, length > 0 ? static_cast<size_t>(length) : 0);
  }
  const auto [known, is_new] = by_identity_.try_emplace({path, seen.build_id, seen.bias}, static_cast<uint32_t>(files_.size()));
  if (!is_new) return known->second;
  auto file = std::make_unique<LoadedFile>();
  file->path = path;
  file->build_id = seen.build_id;
  file->bias = seen.bias;
  file->start = seen.code.front().start;
  file->end = seen.code.back().end;
  file->file_offset = seen.code.front().file_offset;
  open(*file, seen);
  files_.push_back(std::move(file));
  return known->second;
}

// Code that no file holds (a compiler at run time): frame pointers lead through it, and it shows that an address is code.
void ModuleTracker::add_made_code(Generation& into) {
  auto maps = object::read_maps(getpid());
  if (!maps) return;
  for (const object::MapsEntry& entry : *maps) {
    if (!entry.executable || (entry.inode && !entry.path.starts_with("/memfd:")) || entry.path.starts_with('[')) continue;
    into.modules.push_back({entry.start, entry.end, 0, nullptr});
    into.files.push_back(kMadeCode);
  }
}

void ModuleTracker::refresh(bool has_unknown_code) {
  uint64_t changes = 0;
  std::vector<Seen> seen = ask_loader(changes);
  if (current_ && changes == changes_ && !has_unknown_code) return show(current_->list);
  changes_ = changes;
  auto next = std::make_unique<Generation>();
  for (const Seen& one : seen) {
    if (one.code.empty()) continue;
    const uint32_t file = file_of(one);
    const cp_table* table = files_[file]->table ? &files_[file]->table->impl().table : nullptr;
    for (const Seen::Segment& segment : one.code) {
      next->modules.push_back({segment.start, segment.end, one.bias, table});
      next->files.push_back(file);
    }
  }
  if (has_unknown_code) add_made_code(*next);
  publish(std::move(next));
}

void ModuleTracker::publish(std::unique_ptr<Generation> generation) {
  std::vector<uint32_t> order(generation->modules.size());
  for (uint32_t n = 0; n < order.size(); n++) order[n] = n;
  std::ranges::sort(order, {}, [&](uint32_t n) { return generation->modules[n].start; });
  auto sorted = std::make_unique<Generation>();
  for (uint32_t n : order) {
    if (!sorted->modules.empty() && generation->modules[n].start < sorted->modules.back().end) continue;
    sorted->modules.push_back(generation->modules[n]);
    sorted->files.push_back(generation->files[n]);
  }
  if (current_ && std::ranges::equal(sorted->modules, current_->modules, [](const auto& a, const auto& b) {
        return a.start == b.start && a.end == b.end && a.bias == b.bias && a.table == b.table;
      }))
    return show(current_->list);
  sorted->list = {sorted->modules.data(), static_cast<uint32_t>(sorted->modules.size()), ++last_generation_};
  show(sorted->list);
  if (current_) old_.push_back(std::move(current_));
  current_ = std::move(sorted);
}

void ModuleTracker::show(const inproc::ModuleList& list) {
  if (inproc::handler_setting.modules.load(std::memory_order_relaxed) == &list) return;
  inproc::handler_setting.modules.store(&list, std::memory_order_seq_cst);
  inproc::handler_setting.epoch.fetch_add(1, std::memory_order_seq_cst);
}

void ModuleTracker::forget_old() { old_.clear(); }

std::optional<CodePlace> ModuleTracker::resolve(uint32_t generation, uint64_t pc) const {
  const Generation* in = current_ && current_->list.generation == generation ? current_.get() : nullptr;
  for (const auto& old : old_)
    if (old->list.generation == generation) in = old.get();
  const inproc::Module* module = in ? in->list.find(pc) : nullptr;
  if (!module) return std::nullopt;
  const uint32_t file = in->files[static_cast<size_t>(module - in->modules.data())];
  if (file == kMadeCode) return std::nullopt;
  return CodePlace{file, pc - module->bias};
}

void ModuleTracker::report(Diagnostics& diagnostics) const {
  if (unreadable_)
    diagnostics.add("module_not_readable", Severity::kNotice,
                    "loaded files that could not be read, or were replaced since: stacks through them end there", unreadable_);
  for (const auto& file : files_)
    if (file->table) file->table->report(diagnostics);
}

}  // namespace cprof::embed
