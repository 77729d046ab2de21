#include "unwind/cfi/module_table.h"

namespace cprof::unwind {
TableCache::TableCache(std::string d) : directory_(std::move(d)) {}
std::string TableCache::default_directory() { return {}; }
Result<std::shared_ptr<const ModuleTable>> TableCache::get(object::ElfFile& f, object::ElfFile* g) { return ModuleTable::compile(f, g); }
}
