// Our unwinder against elfutils' libdwfl on the same snapshots, frame by frame.
//
// Every test program and a few real ones run under a small perf collector; then both unwinders get the same registers,
// stack bytes and files. A sample counts as good when both give the same addresses, or when ours goes on where libdwfl
// stopped and every further frame follows a call. Samples with a frame in code without CFI are judged apart: there each
// side guesses, so it is enough that 98 % agree and that none of our frames is impossible. Prints a table, every
// disagreement (up to a bound) and the CPU time per sample of both.
//
// verifies: A2o
//
// Requires: perf_event_open with user stacks (root or CAP_PERFMON). Exit status: 0 good, 1 not, 77 cannot run here.

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "call_site.h"
#include "capture.h"
#include "image_files.h"
#include "reference.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::oracle {
namespace {

constexpr size_t kMaxDepth = 1024;
constexpr int kPrintedDisagreements = 5;

struct Options {
  std::string programs;  // folder of the test programs
  size_t per_program = 230;
  bool verbose = false;
  std::string only;
};

struct Workload {
  std::string name;
  std::vector<std::string> command;
};

struct Tally {
  uint64_t equal = 0, longer = 0, differing = 0, shorter = 0;
  uint64_t total() const { return equal + longer + differing + shorter; }
  uint64_t good() const { return equal + longer; }
  void add(const Tally& other) {
    equal += other.equal;
    longer += other.longer;
    differing += other.differing;
    shorter += other.shorter;
  }
};

struct Outcome {
  Tally with_cfi, without_cfi;
  uint64_t complete = 0, wrong_frames = 0, lost = 0, frames = 0, eh_returns = 0;
  std::map<unwind::StopReason, uint64_t> stops;  // of incomplete stacks
  double our_ns = 0, reference_ns = 0;  // CPU time of a warm pass over all samples
  uint64_t samples() const { return with_cfi.total() + without_cfi.total(); }
  void add(const Outcome& other) {
    with_cfi.add(other.with_cfi);
    without_cfi.add(other.without_cfi);
    complete += other.complete;
    wrong_frames += other.wrong_frames;
    lost += other.lost;
    frames += other.frames;
    eh_returns += other.eh_returns;
    our_ns += other.our_ns;
    reference_ns += other.reference_ns;
    for (auto [reason, count] : other.stops) stops[reason] += count;
  }
};

double cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

bool is_executable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string first_executable(std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    if (is_executable(path)) return path;
  }
  return "";
}

// A C++ file that keeps the compiler busy for about a second.
std::string write_cxx_input() {
  char path[] = "/tmp/cprof-oracle-XXXXXX.cc";
  int fd = mkstemps(path, 3);
  std::string text = "#include <regex>\n#include <map>\n#include <functional>\n#include <iostream>\n"
                     "int main(int n, char** v) { std::map<std::string, std::regex> m; m[v[0]] = std::regex(\"a*\");"
                     " std::cout << std::regex_match(v[n - 1], m[v[0]]); }\n";
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return "";
  close(fd);
  return path;
}

std::vector<Workload> test_programs(const Options& options) {
  std::vector<Workload> list;
  for (const char* name : {"shares", "threads8", "nofp_gcc", "nofp_clang", "nofp_static", "nofp_static_pie", "nofp_lld",
                           "nofp_mold", "plt_lazy", "altstack", "vdso_loop", "exceptions", "drap", "nest200", "debug_frame",
                           "nocfi", "vfork_loop", "dlopen_late", "exec_chain", "fork_tree", "short_threads", "two_busy"}) {
    std::string path = options.programs + "/" + name;
    if (is_executable(path)) list.push_back({name, {path, "60"}});
    else fmt::print("{}: left out, not built\n", name);
  }
  // These change what they are half-way: they must get there while we look.
  std::string short_run = fmt::format("{:.3f}", 0.8 * static_cast<double>(options.per_program) / CaptureOptions().frequency_hz);
  for (Workload& workload : list) {
    if (workload.name == "dlopen_late" || workload.name == "exec_chain") workload.command[1] = short_run;
    if (workload.name == "threads8") workload.command = {workload.command[0], "60", "equal"};
  }
  return list;
}

void add_real_programs(std::vector<Workload>& list, const std::string& cxx_input) {
  std::string python = first_executable({"/usr/bin/python3", "/usr/local/bin/python3"});
  if (!python.empty()) {
    list.push_back({"python3", {python, "-c", "import json, re\nwhile True:\n  d = {str(i): [i] * 5 for i in range(2000)}\n"
                                              "  json.loads(json.dumps(d)); re.findall('[0-9]+', repr(d)); sorted(d, key=len)"}});
  }
  std::string node = first_executable({"/usr/bin/node", "/usr/local/bin/node"});
  if (!node.empty()) {
    list.push_back({"node", {node, "-e", "for (;;) { const a = []; for (let i = 0; i < 5000; ++i) a.push({k: 'x' + i});"
                                         " a.sort((x, y) => x.k < y.k ? -1 : 1); JSON.parse(JSON.stringify(a)); }"}});
  }
  std::string gxx = first_executable({"/usr/bin/g++"});
  if (!gxx.empty() && !cxx_input.empty()) list.push_back({"g++", {gxx, "-O2", "-c", cxx_input, "-o", "/dev/null"}});
  std::string sqlite = first_executable({"/usr/bin/sqlite3"});
  if (!sqlite.empty()) {
    list.push_back({"sqlite3", {sqlite, ":memory:", "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c"
                                                    " WHERE x < 4000000) INSERT INTO t SELECT x, hex(x * 7 % 1009) FROM c;"
                                                    " CREATE INDEX i ON t(b, a); SELECT sum(a) FROM t GROUP BY b ORDER BY 1;"}});
  }
}

constexpr const char* kStopNames[] = {"undefined-return", "null-return", "truncated-snapshot", "max-depth", "no-mapping",
                                      "no-unwind-info", "bad-unwind-info", "unreadable-memory", "no-progress", "unsupported-abi"};

class Comparison {
 public:
  Comparison(const Workload& workload, const Options& options, ImageFiles& files)
      : workload_(workload), options_(options), files_(files), unwinder_(unwind::Machine::kX86_64) {}

  Outcome run(const Capture& captured) {
    outcome_.lost = captured.lost;
    for (const Snapshot& snapshot : captured.snapshots) judge(snapshot);
    measure(captured);
    return outcome_;
  }

 private:
  static unwind::RegisterSet registers_of(const Snapshot& snapshot) {
    unwind::RegisterSet set;
    for (int i = 0; i < 17; ++i) set.value[i] = snapshot.registers[i];
    set.valid = (1u << 17) - 1;
    return set;
  }

  SpaceModules& modules_of(const Snapshot& snapshot) {
    if (space_ != snapshot.space) {
      modules_ = std::make_unique<SpaceModules>(*snapshot.space, files_);
      space_ = snapshot.space;
    }
    return *modules_;
  }

  const unwind::Stack& unwind_ours(const Snapshot& snapshot) {
    SnapshotMemory memory(snapshot, files_);
    return unwinder_.unwind(registers_of(snapshot), memory, modules_of(snapshot), kMaxDepth);
  }

  // The sampled pc, an address after a call, an interrupted pc above a signal frame, or JIT code (not judged).
  bool is_plausible(const Snapshot& snapshot, const unwind::Stack& stack, size_t index) {
    const unwind::Frame& frame = stack.frames[index];
    const Mapping* mapping = find_mapping(*snapshot.space, frame.is_return_address ? frame.pc - 1 : frame.pc);
    if (!mapping) return false;
    if (!frame.is_return_address || (!mapping->is_file() && !mapping->is_vdso())) return true;
    if (follows_call(snapshot, *mapping, frame.pc)) return true;
    if (is_signal_return_stub(files_.code(*snapshot.space, frame.pc, 9))) return true;
    return false;
  }

  bool follows_call(const Snapshot& snapshot, const Mapping& mapping, uint64_t pc) {
    uint64_t count = std::min<uint64_t>(8, pc - mapping.start);
    return ends_with_call(files_.code(*snapshot.space, pc - count, count));
  }

  // libgcc ends __builtin_eh_return by "pop %rcx; jmp *%rcx" to a landing pad. In that epilogue the CFI pairs the landing pad
  // with the stack pointer of the frame before it, for every unwinder alike: such a stack cannot be judged.
  bool is_eh_return(const Snapshot& snapshot, const unwind::Stack& stack) {
    static constexpr uint8_t kJump[] = {0xff, 0xe1};
    const Mapping* callee = find_mapping(*snapshot.space, stack.frames[0].pc);
    if (!callee || callee->path.find("libgcc_s") == std::string::npos) return false;
    std::vector<uint8_t> ahead = files_.code(*snapshot.space, stack.frames[0].pc, 48);
    return std::search(ahead.begin(), ahead.end(), std::begin(kJump), std::end(kJump)) != ahead.end();
  }

  bool has_frame_without_cfi(const std::vector<uint64_t>& reference, const unwind::Stack& ours) {
    for (size_t i = 0; i < ours.frames.size(); ++i) {
      if (reference_.is_without_cfi(ours.frames[i].pc - ours.frames[i].is_return_address)) return true;
    }
    // libdwfl's wrong turns are not our frames: only those that ours share.
    return reference.empty();
  }

  // In code without CFI libdwfl takes RBP for the frame's own and so skips the caller: then ours has all of its frames,
  // and more between them.
  static bool holds(const unwind::Stack& ours, const std::vector<uint64_t>& reference) {
    size_t at = 0;
    for (const unwind::Frame& frame : ours.frames) at += at < reference.size() && frame.pc == reference[at];
    return at == reference.size();
  }

  void judge(const Snapshot& snapshot) {
    reference_.enter(snapshot);
    std::vector<uint64_t> reference = reference_.unwind(snapshot, files_);
    const unwind::Stack& ours = unwind_ours(snapshot);
    // Where a walk ran out of the program (a return address of 0 or rubbish), the last address is not a frame.
    while (!reference.empty() && !find_mapping(*snapshot.space, reference.back() - 1)) reference.pop_back();

    outcome_.complete += ours.is_complete();
    if (!ours.is_complete()) ++outcome_.stops[ours.stop];
    outcome_.frames += ours.frames.size();
    size_t common = 0, least = std::min(reference.size(), ours.frames.size());
    while (common < least && reference[common] == ours.frames[common].pc) ++common;
    uint64_t wrong = 0;
    for (size_t i = 0; i < ours.frames.size(); ++i) wrong += !is_plausible(snapshot, ours, i);
    if (wrong && is_eh_return(snapshot, ours)) {
      ++outcome_.eh_returns;
      wrong = 0;
    }
    outcome_.wrong_frames += wrong;

    bool is_apart = has_frame_without_cfi(reference, ours);
    Tally& tally = is_apart ? outcome_.without_cfi : outcome_.with_cfi;
    const char* verdict = nullptr;
    if (common == reference.size() && common == ours.frames.size()) ++tally.equal;
    else if (wrong == 0 && (common == reference.size() || (is_apart && holds(ours, reference)))) ++tally.longer;
    else if (common == ours.frames.size()) ++tally.shorter, verdict = "shorter";
    else ++tally.differing, verdict = "differs";
    if (!verdict && wrong) verdict = "wrong frame";
    if (!verdict && options_.verbose && !ours.is_complete()) verdict = "incomplete";
    if (verdict) print_disagreement(verdict, is_apart, snapshot, reference, ours);
  }

  std::string place(const Snapshot& snapshot, uint64_t pc) {
    const Mapping* mapping = find_mapping(*snapshot.space, pc);
    if (!mapping) return fmt::format("{:#x} unmapped", pc);
    return fmt::format("{:#x} {}+{:#x}", pc, mapping->path, pc - files_.bias_of(*mapping).value_or(0));
  }

  void print_disagreement(const char* verdict, bool is_apart, const Snapshot& snapshot, const std::vector<uint64_t>& reference,
                          const unwind::Stack& ours) {
    if (++printed_ > kPrintedDisagreements && !options_.verbose) return;
    fmt::print("{}: {}{}, ours {} frames ({}), libdwfl {}\n", workload_.name, verdict,
               is_apart ? " (code without CFI)" : "", ours.frames.size(), kStopNames[static_cast<size_t>(ours.stop)], reference.size());
    size_t rows = std::max(reference.size(), ours.frames.size());
    for (size_t i = 0; i < rows; ++i) {
      std::string left = i < ours.frames.size() ? place(snapshot, ours.frames[i].pc) : "-";
      std::string right = i < reference.size() ? place(snapshot, reference[i]) : "-";
      bool is_wrong = i < ours.frames.size() && !is_plausible(snapshot, ours, i);
      if (left != right || is_wrong || i == 0) fmt::print("  {:3} {:60} | {}{}\n", i, left, right, is_wrong ? "   <- impossible" : "");
    }
  }

  // Each side alone over each run of samples with one address space: once to warm up, once for the clock.
  void measure(const Capture& captured) {
    const auto& all = captured.snapshots;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && all[end].space == all[begin].space) ++end;
      std::span run(all.data() + begin, end - begin);
      modules_of(run[0]);
      reference_.enter(run[0]);
      outcome_.our_ns += second_pass_ns(run, [&](const Snapshot& snapshot) { unwind_ours(snapshot); });
      outcome_.reference_ns += second_pass_ns(run, [&](const Snapshot& snapshot) { reference_.unwind(snapshot, files_); });
    }
  }

  template <typename Unwind>
  static double second_pass_ns(std::span<const Snapshot> run, Unwind unwind_one) {
    for (const Snapshot& snapshot : run) unwind_one(snapshot);
    double begin = cpu_ns();
    for (const Snapshot& snapshot : run) unwind_one(snapshot);
    return cpu_ns() - begin;
  }

  const Workload& workload_;
  const Options& options_;
  ImageFiles& files_;
  unwind::SnapshotUnwinder unwinder_;
  Reference reference_;
  std::shared_ptr<const AddressSpace> space_;
  std::unique_ptr<SpaceModules> modules_;
  Outcome outcome_;
  int printed_ = 0;
};

void print_stops(const std::string& name, const Outcome& outcome) {
  if (outcome.stops.empty()) return;
  fmt::print("{}: {} of {} complete;", name, outcome.complete, outcome.samples());
  for (auto [reason, count] : outcome.stops) fmt::print(" {}: {}", kStopNames[static_cast<size_t>(reason)], count);
  fmt::print("\n");
}

void print_row(const std::string& name, const Outcome& o) {
  double samples = std::max<double>(1, static_cast<double>(o.samples()));
  fmt::print("| {} | {} | {} | {} | {} | {} | {}/{} | {} | {:.2f} % | {:.1f} | {:.2f} | {:.2f} | {:.1f} |\n", name, o.samples(),
             o.with_cfi.equal, o.with_cfi.longer, o.with_cfi.differing, o.with_cfi.shorter, o.without_cfi.good(),
             o.without_cfi.total(), o.wrong_frames, 100.0 * static_cast<double>(o.complete) / samples,
             static_cast<double>(o.frames) / samples, o.our_ns / samples / 1e3, o.reference_ns / samples / 1e3,
             o.our_ns > 0 ? o.reference_ns / o.our_ns : 0.0);
}

bool require(bool condition, const std::string& what) {
  fmt::print("{}: {}\n", condition ? "ok" : "FAILED", what);
  return condition;
}

constexpr bool is_sanitized() {
#ifdef CPROF_SANITIZED
  return true;
#else
  return false;
#endif
}

bool is_share(uint64_t part, uint64_t whole, double least) { return static_cast<double>(part) >= least * static_cast<double>(whole); }

int judge_total(const Outcome& total) {
  bool good = require(total.samples() > 0, "there are samples");
  good &= require(is_share(total.with_cfi.good(), total.with_cfi.total(), 0.999),
                  fmt::format("equal or soundly longer: {} of {} (at least 99.9 %)", total.with_cfi.good(), total.with_cfi.total()));
  good &= require(is_share(total.without_cfi.good(), total.without_cfi.total(), 0.98),
                  fmt::format("the same in code without CFI: {} of {} (at least 98 %)", total.without_cfi.good(), total.without_cfi.total()));
  good &= require(total.wrong_frames == 0, fmt::format("impossible frames: {}", total.wrong_frames));
  good &= require(is_share(total.samples() - total.eh_returns, total.samples(), 0.999), "nearly all stacks can be judged");
  if (!is_sanitized()) {
    good &= require(total.our_ns * 6 <= total.reference_ns,
                    fmt::format("CPU per sample: libdwfl's is {:.1f} times ours (at least 6)", total.reference_ns / std::max(1.0, total.our_ns)));
  }
  return good ? 0 : 1;
}

int run(const Options& options) {
  if (std::string why = why_capture_is_impossible(); !why.empty()) {
    fmt::print("skipped: needs perf_event_open with user stacks (root or CAP_PERFMON): {}\n", why);
    return 77;
  }
  std::string cxx_input = write_cxx_input();
  std::vector<Workload> workloads = test_programs(options);
  add_real_programs(workloads, cxx_input);
  Outcome total;
  int status = 0;
  ImageFiles files;
  std::vector<std::pair<std::string, Outcome>> rows;
  for (const Workload& workload : workloads) {
    if (!options.only.empty() && workload.name != options.only) continue;
    std::string error;
    Capture captured = capture({.command = workload.command, .max_snapshots = options.per_program}, error);
    if (!error.empty() || captured.snapshots.empty()) {
      fmt::print("FAILED: {}: {}\n", workload.name, error.empty() ? "no samples" : error);
      status = 1;
      continue;
    }
    rows.emplace_back(workload.name, Comparison(workload, options, files).run(captured));
    total.add(rows.back().second);
  }
  if (!cxx_input.empty()) unlink(cxx_input.c_str());
  fmt::print("\n| program | samples | equal | longer | differ | shorter | no-CFI good | impossible | complete | frames | our us | libdwfl us | ratio |\n"
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& [name, outcome] : rows) print_row(name, outcome);
  print_row("all", total);
  fmt::print("\nincomplete:\n");
  for (const auto& [name, outcome] : rows) print_stops(name, outcome);
  fmt::print("\nlost by the oracle's own rings: {}; inside __builtin_eh_return, not judged: {}\n", total.lost, total.eh_returns);
  return std::max(status, judge_total(total));
}

}  // namespace
}  // namespace cprof::oracle

int main(int argc, char** argv) {
  cprof::oracle::Options options;
  if (const char* folder = getenv("CPROF_PROGRAMS")) options.programs = folder;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--full") options.per_program = 1000;
    else if (argument == "--verbose") options.verbose = true;
    else if (argument == "--programs" && i + 1 < argc) options.programs = argv[++i];
    else if (argument == "--only" && i + 1 < argc) options.only = argv[++i];
    else {
      fmt::print(stderr, "usage: cprof_oracle [--full] [--verbose] [--programs FOLDER] [--only PROGRAM]\n");
      return 2;
    }
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return cprof::oracle::run(options);
}
