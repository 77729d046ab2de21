// The child's answer is one stream of bytes: for each address a fixed header, then its lines, each with three texts; then
// what it counted as lost. The parent decodes it with bounds, since the child may have been taken over by what it read.
#include "symbolize/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "base/byte_reader.h"
#include "base/file.h"

namespace cprof::symbolize {
namespace {

constexpr uint64_t kMaxMemoryBytes = uint64_t{6} << 30;
constexpr unsigned kMaxCpuSeconds = 120;
constexpr size_t kMaxAnswerBytes = size_t{1} << 30;
constexpr size_t kMaxTextBytes = 1 << 20;
constexpr uint32_t kMaxLosses = 256;

#if defined(__x86_64__)
constexpr uint32_t kAuditArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
#endif

// Reading open files, memory, writing the answer and leaving. Everything else is refused with EPERM.
constexpr int kAllowed[] = {SYS_read,   SYS_pread64, SYS_write,      SYS_lseek,        SYS_fstat,  SYS_mmap,          SYS_munmap,
                            SYS_mremap, SYS_madvise, SYS_brk,        SYS_futex,        SYS_exit,   SYS_exit_group,    SYS_close,
                            SYS_getpid, SYS_gettid,  SYS_rt_sigreturn, SYS_clock_gettime, SYS_getrandom, SYS_rt_sigprocmask};

// And with one value of an argument only: an ElfFile owns a double of its descriptor, and asks with fstat(), which is
// newfstatat() in glibc, how large it is. (That call could ask so of a path as well; it gives no contents.)
struct AllowedCall {
  int number;
  size_t argument;
  uint32_t value;
};
constexpr AllowedCall kAllowedWith[] = {{SYS_fcntl, 1, F_DUPFD_CLOEXEC}, {SYS_newfstatat, 3, AT_EMPTY_PATH}};

bool enter_seccomp() {
  std::vector<sock_filter> program;
  auto load = [&](size_t offset) { program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset))); };
  load(offsetof(seccomp_data, arch));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAuditArch, 1, 0));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  load(offsetof(seccomp_data, nr));
  for (const AllowedCall& call : kAllowedWith) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, 4));
    load(offsetof(seccomp_data, args) + call.argument * sizeof(uint64_t));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.value, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  for (int number : kAllowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void limit(int resource, uint64_t value) {
  rlimit bound = {value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &bound);
}

class AnswerWriter {
 public:
  explicit AnswerWriter(int fd) : fd_(fd) {}

  template <typename T>
  void number(T value) {
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    buffer_.insert(buffer_.end(), p, p + sizeof value);
  }
  void text(std::string_view text) {
    text = text.substr(0, kMaxTextBytes);
    number(static_cast<uint32_t>(text.size()));
    auto bytes = std::as_bytes(std::span(text));
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  bool flush(size_t keep_below) {
    if (buffer_.size() < keep_below) return true;
    bool ok = write_fully(fd_, buffer_, "sandbox").has_value();
    buffer_.clear();
    return ok;
  }

 private:
  int fd_;
  std::vector<std::byte> buffer_;
};

[[noreturn]] void answer(ModuleSymbols& symbols, std::span<const uint64_t> svmas, int fd) {
  limit(RLIMIT_AS, kMaxMemoryBytes);
  limit(RLIMIT_CPU, kMaxCpuSeconds);
  limit(RLIMIT_CORE, 0);
  if (!enter_seccomp()) _exit(2);
  AnswerWriter out(fd);
  Diagnostics losses;
  for (uint64_t svma : svmas) {
    const Symbolized& found = symbols.find(svma, losses);
    out.number(found.function_start);
    out.number(static_cast<uint8_t>(found.miss));
    out.number(static_cast<uint32_t>(found.lines.size()));
    for (const SourceLine& line : found.lines) {
      out.text(line.name);
      out.text(line.system_name);
      out.text(line.file);
      out.number(line.line);
      out.number(line.column);
      out.number(line.start_line);
    }
    if (!out.flush(1 << 16)) _exit(3);
  }
  out.number(static_cast<uint32_t>(losses.entries().size()));
  for (const auto& [name, entry] : losses.entries()) {
    out.text(name);
    out.number(static_cast<uint8_t>(entry.severity));
    out.number(entry.count);
    out.text(entry.description);
    out.text(entry.example);
  }
  _exit(out.flush(0) ? 0 : 3);
}

std::string_view read_text(ByteReader& reader) {
  auto bytes = reader.bytes(reader.u32());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Names become keys of tables: only such as ours are taken.
bool is_loss_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool decode_losses(ByteReader& reader, Diagnostics& diagnostics) {
  const uint32_t count = reader.u32();
  if (count > kMaxLosses) return false;
  for (uint32_t i = 0; i < count && reader.ok(); i++) {
    const std::string_view name = read_text(reader);
    const auto severity = std::min<uint8_t>(reader.u8(), static_cast<uint8_t>(Severity::kDataLoss));
    const uint64_t times = reader.u64();
    const std::string_view description = read_text(reader), example = read_text(reader);
    if (!reader.ok() || !is_loss_name(name)) return false;
    diagnostics.add(name, static_cast<Severity>(severity), description, times, example);
  }
  return reader.ok();
}

Result<void> decode(Batch& batch, size_t count, Diagnostics& diagnostics) {
  ByteReader reader(batch.bytes);
  for (size_t i = 0; i < count && reader.ok(); i++) {
    Symbolized& result = batch.results.emplace_back();
    result.function_start = reader.u64();
    uint8_t miss = reader.u8();
    result.miss = miss <= static_cast<uint8_t>(Miss::kNoMapping) ? static_cast<Miss>(miss) : Miss::kBadDebugInfo;
    uint32_t lines = reader.u32();
    for (uint32_t n = 0; n < lines && reader.ok(); n++) {
      SourceLine& line = result.lines.emplace_back();
      line.name = read_text(reader);
      line.system_name = read_text(reader);
      line.file = read_text(reader);
      line.line = reader.u32();
      line.column = reader.u32();
      line.start_line = reader.u32();
    }
  }
  if (!reader.ok() || !decode_losses(reader, diagnostics)) return fail("the symbol reader's answer is broken");
  return {};
}

bool is_strangers(const object::ElfFile* file) {
  if (!file || file->is_foreign()) return file != nullptr;
  if (file->fd() < 0) return false;
  uid_t owner = file->stat().st_uid;
  return owner != 0 && owner != geteuid();
}

}  // namespace

bool needs_sandbox(const object::ElfFile* file, const object::ElfFile* debug) {
  return is_strangers(file) || is_strangers(debug);
}

Result<Batch> find_in_sandbox(ModuleSymbols& symbols, std::span<const uint64_t> svmas, Diagnostics& diagnostics) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  pid_t child = fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) answer(symbols, svmas, write_end.get());
  write_end.reset();

  Batch batch;
  auto bytes = read_all(read_end.get(), kMaxAnswerBytes, "the symbol reader's answer");
  if (!bytes) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  batch.bytes = TRY(bytes);
  if (WIFSIGNALED(status)) return fail(std::string("the symbol reader died: ") + strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 2) return fail("the kernel has no seccomp filters, so a stranger's file is not read");
  if (WEXITSTATUS(status) != 0) return fail("the symbol reader failed");
  TRY(decode(batch, svmas.size(), diagnostics));
  return batch;
}

}  // namespace cprof::symbolize
