#include "collect/bpf/built_in_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "collect/bpf/bpf_messages.h"

namespace cprof::collect {

Result<bpf_object*> open_built_in(std::span<const std::byte> bytes, const char* name, std::span<const std::byte> settings) {
  BpfMessages messages;
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.object_name = name;
  bpf_object* object = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
  if (!object) return bpf_failure("opening the built-in program", errno, &messages);
  size_t size = 0;
  bpf_map* constants = bpf_object__find_map_by_name(object, ".rodata.settings");
  void* initial = constants ? const_cast<void*>(bpf_map__initial_value(constants, &size)) : nullptr;
  if (!initial || size < settings.size()) {
    bpf_object__close(object);
    return fail("bpf: the built-in program has no settings");
  }
  memcpy(initial, settings.data(), settings.size());
  return object;
}

Result<void> load_built_in(bpf_object* object) {
  BpfMessages messages;
  if (int error = bpf_object__load(object)) return bpf_failure("loading the program", -error, &messages);
  return {};
}

Result<bpf_link*> attach_built_in(bpf_object* object, const char* program) {
  BpfMessages messages;
  bpf_link* link = bpf_program__attach(bpf_object__find_program_by_name(object, program));
  if (!link) return bpf_failure(fmt::format("attaching {}", program), errno, &messages);
  return link;
}

Result<void> run_built_in_iterator(bpf_object* object, const char* program, const char* what) {
  BpfMessages messages;
  bpf_link* link = bpf_program__attach_iter(bpf_object__find_program_by_name(object, program), nullptr);
  if (!link) return bpf_failure(what, errno, &messages);
  Fd iterator(bpf_iter_create(bpf_link__fd(link)));
  const int error_number = errno;
  bpf_link__destroy(link);
  if (!iterator) return bpf_failure(what, error_number, &messages);
  char nothing[64];
  ssize_t count = 0;
  do count = read(iterator.get(), nothing, sizeof nothing);
  while (count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN)));
  return count == 0 ? Result<void>() : fail_errno(fmt::format("bpf: {}", what));
}

}  // namespace cprof::collect
