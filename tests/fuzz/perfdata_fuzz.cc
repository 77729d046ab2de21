// libFuzzer entry: any bytes as a perf.data, from a seekable input.
#include <sys/mman.h>

#include "base/file.h"
#include "format/perfdata/perfdata.h"

namespace {

struct NullSink final : cprof::event::EventSink {
  cprof::Result<void> begin(const cprof::event::SessionInfo&) override { return {}; }
  cprof::Result<void> on_event(const cprof::event::Event&) override { return {}; }
  cprof::Result<void> finish(uint64_t) override { return {}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cprof::format::Input input;
  input.name = "fuzz";
  input.seekable = true;
  input.fd = cprof::Fd(memfd_create("fuzz", MFD_CLOEXEC));
  if (!cprof::write_fully(input.fd.get(), std::as_bytes(std::span(data, size)), "memfd")) return 0;
  NullSink sink;
  cprof::Diagnostics diagnostics;
  (void)cprof::format::perfdata_format().open_source(std::move(input), {})->run(sink, diagnostics);
  return 0;
}
