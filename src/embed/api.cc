// The C functions of a session, and what happens when the library is loaded and when the program ends.
#include <cprof/cprof.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "embed/control.h"
#include "embed/library.h"
#include "embed/trigger.h"

namespace cprof::embed {
namespace {

constexpr const char* kVariable = "CPROF";
constexpr size_t kErrorLength = 512, kErrors = 8;

// A few in turn, so that a text stays while another thread's is made.
char errors[kErrors][kErrorLength];
std::atomic<uint32_t> newest_error{0};

int result_of(const Result<void>& result) {
  if (result) return 0;
  const uint32_t next = (newest_error.load(std::memory_order_relaxed) + 1) % kErrors;
  strncpy(errors[next], result.error().message.c_str(), kErrorLength - 1);
  newest_error.store(next, std::memory_order_release);
  return -1;
}

Result<void> start_by_environment(const char* text) {
  const Options options = TRY(parse_options(text));
  Library::get().set_by_environment();
  if (options.children == Children::kNo) unsetenv(kVariable);
  TRY(open_control(text));
  if (options.trigger_signal) return install_trigger(options, text);
  if (options.waits) return {};
  return Library::get().start(text);
}

// A program is never stopped by a wrong option: it says so and runs on without a profile.
__attribute__((constructor)) void at_load() {
  const char* text = getenv(kVariable);
  if (!text || !*text) return;
  if (auto started = start_by_environment(text); !started) say(started.error().message);
}

__attribute__((destructor)) void at_unload() {
  if (Library::exists()) Library::get().at_exit();
}

}  // namespace
}  // namespace cprof::embed

using namespace cprof::embed;

extern "C" {

int cprof_start(const char* options) {
  const char* text = options ? options : getenv(kVariable);
  return result_of(Library::get().start(text ? text : ""));
}

int cprof_stop(void) { return result_of(Library::get().stop()); }

int cprof_dump(const char* path) { return result_of(Library::get().dump(path ? path : "")); }

int cprof_allow_control(const char* options) {
  auto known = parse_options(options ? options : "");
  return result_of(known ? open_control(options ? options : "") : std::unexpected(std::move(known.error())));
}

int cprof_limit_scope(const char* name, uint64_t longest_ns) {
  return result_of(name ? Library::get().limit_scope(name, longest_ns) : cprof::fail("a limit without the name of a scope"));
}

const char* cprof_error(void) { return errors[newest_error.load(std::memory_order_acquire)]; }

void cprof_get_status(struct cprof_status* status) { Library::get().fill(*status); }

}  // extern "C"
