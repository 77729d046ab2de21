#include "collect/inproc/stack_reader.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/signal_safe/raw_syscall.h"

namespace cprof::inproc {
namespace {

constexpr uint64_t kPage = sizeof PageCopies::bytes[0];

}  // namespace

const unsigned char* StackReader::page(uint64_t address) {
  const uint64_t start = address & ~(kPage - 1);
  for (uint32_t n = 0; n < copies_->used; n++)
    if (copies_->address[n] == start) return copies_->bytes[n];
  if (copies_->used == PageCopies::kCount) return nullptr;
  unsigned char* bytes = copies_->bytes[copies_->used];
  const iovec into = {bytes, kPage}, from = {reinterpret_cast<void*>(start), kPage};
  const long read = cprof_raw_syscall(SYS_process_vm_readv, process_id_, reinterpret_cast<long>(&into), 1,
                                      reinterpret_cast<long>(&from), 1, 0);
  if (read != static_cast<long>(kPage)) return nullptr;
  copies_->address[copies_->used++] = start;
  return bytes;
}

int StackReader::read_elsewhere(uint64_t address, uint64_t* value) {
  unsigned char word[sizeof *value];
  for (uint64_t n = 0; n < sizeof word; n++) {
    const unsigned char* bytes = page(address + n);
    if (!bytes) return 1;
    word[n] = bytes[(address + n) & (kPage - 1)];
  }
  __builtin_memcpy(value, word, sizeof word);
  return 0;
}

}  // namespace cprof::inproc
