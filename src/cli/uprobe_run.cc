#include "cli/uprobe_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/clock.h"

namespace cprof::cli {
namespace {

constexpr uint64_t kLookNs = 50'000'000;  // calls are read, the target's end and signals are noticed after that
constexpr size_t kMostHints = 4;

// A process that has ended is still there until its parent asks: its descriptor tells. Threads have none, and go at once.
bool has_ended(const Fd& process, int32_t task) {
  pollfd wait{process.get(), POLLIN, 0};
  if (process) return poll(&wait, 1, 0) == 1;
  return kill(task, 0) != 0 && errno == ESRCH;
}

}  // namespace

Result<void> UprobeRun::look_in(std::span<const uprobe::FunctionPattern> patterns, bool with_libraries, std::vector<size_t>& matched) {
  std::map<uint32_t, std::vector<size_t>> by_file;  // the patterns that mean a file, by number
  for (size_t i = 0; i < patterns.size(); i++)
    for (uint32_t file : TRY(files_.named_by(patterns[i], with_libraries))) by_file[file].push_back(i);
  for (const auto& [file, numbers] : by_file) {
    const uprobe::TargetFile& target = files_.all()[file];
    std::vector<uprobe::FunctionPattern> wanted;
    for (size_t i : numbers) wanted.push_back(patterns[i]);
    const auto found = TRY(finder_->add(file, *target.elf, target.debug.get(), wanted));
    for (size_t i = 0; i < numbers.size(); i++) matched[numbers[i]] += found[i];
  }
  return {};
}

Error UprobeRun::nothing_matches(const uprobe::FunctionPattern& pattern) const {
  if (std::ranges::find(finder_->chosen_at_run_time(), pattern.name) != finder_->chosen_at_run_time().end())
    return {fmt::format("'{}' is chosen at run time among several functions (IFUNC); name one of them, as '*{}*' with debug symbols",
                        pattern.text, pattern.name)};
  std::set<std::string> looked;
  for (const uprobe::TargetFile& file : files_.all())
    if (file.elf && (pattern.file.empty() || pattern.names_file(file.path)) && looked.size() < kMostHints) looked.insert(file.module());
  if (looked.empty() && !pattern.file.empty())
    return {fmt::format("'{}': {} is no file that the target uses, or none with symbols", pattern.text, pattern.file)};
  if (looked.empty() && options_.trace.target.pids.empty())
    return {fmt::format("'{}': of which file? FILE:{} names one", pattern.text, pattern.name)};
  return {fmt::format("no function matches '{}' (looked in {}); inlined functions have no code of their own, "
                      "and stripped files need their debug file",
                      pattern.text, fmt::join(looked, ", "))};
}

Result<void> UprobeRun::choose_functions() {
  finder_.emplace(uprobe::FunctionFinder::Options{.style = options_.style, .most_functions = options_.most_functions});
  std::vector<size_t> matched(options_.patterns.size());
  TRY(look_in(options_.patterns, false, matched));
  // What the program has not may be in what it uses.
  std::vector<uprobe::FunctionPattern> elsewhere;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < matched.size(); i++)
    if (matched[i] == 0 && options_.patterns[i].file.empty()) {
      elsewhere.push_back(options_.patterns[i]);
      numbers.push_back(i);
    }
  std::vector<size_t> more(elsewhere.size());
  if (!elsewhere.empty()) TRY(look_in(elsewhere, true, more));
  for (size_t i = 0; i < more.size(); i++) matched[numbers[i]] += more[i];
  for (size_t i = 0; i < matched.size(); i++)
    if (matched[i] == 0) return std::unexpected(nothing_matches(options_.patterns[i]));
  for (const std::string& name : finder_->chosen_at_run_time())
    diagnostics_.add("chosen_at_run_time", Severity::kNotice, "names that stand for a choice among several functions at run time (IFUNC) and are not probed", 1, name);
  diagnostics_.merge(finder_->diagnostics());
  if (finder_->functions().empty()) return fail("the functions that match share their code with others: nothing to probe");
  return {};
}

void UprobeRun::set_command(int32_t pid) {
  options_.trace.target.pids = {pid};
  options_.is_command = true;
}

Result<void> UprobeRun::start_stacks() {
  const uprobe::TraceTarget& target = options_.trace.target;
  session::CallStackRecording::Options options;
  options.target = {.command = {}, .pids = target.pids, .tids = target.tids, .all_cpus = target.is_everything(), .cgroup = target.cgroup_path(), .cpus = {}};
  options.runs_already = !options_.is_command;
  options.pipeline.demangle = options_.style;
  options.pipeline.sources.places = options_.places;
  recording_ = TRY(session::CallStackRecording::start(tracer_->object(), options));
  return {};
}

Result<void> UprobeRun::start(const uprobe::Tracer::OnProgress& on_progress) {
  TRY(choose_functions());
  for (const uprobe::TargetFile& file : files_.all()) modules_.push_back(file.module());
  tracer_ = TRY(uprobe::Tracer::make(options_.trace, finder_->functions(), files_.all()));
  calibration_ = tracer_->calibration();
  if (options_.trace.has_stacks) TRY(start_stacks());
  TRY(tracer_->attach(on_progress));
  probes_ = tracer_->probes();
  open_tasks();
  start_ns_ = picture_ns_ = monotonic_ns();
  calls_before_.assign(functions().size(), 0);
  return {};
}

UprobePicture UprobeRun::picture() {
  const uint64_t now = monotonic_ns();
  const double interval_s = std::max(1e-9, static_cast<double>(now - picture_ns_) / 1e9);
  UprobePicture picture{.seconds = static_cast<double>(now - start_ns_) / 1e9};
  for (uint32_t i = 0; i < functions().size(); i++) {
    const uprobe::ProbedFunction& function = functions()[i];
    picture.rows.push_back(uprobe_row_of(function.name, modules_[function.file], i, tracer_->sums(i, true)));
    UprobeRow& row = picture.rows.back();
    row.calls_per_s = static_cast<double>(row.calls - std::min(row.calls, calls_before_[i])) / interval_s;
    calls_before_[i] = row.calls;
  }
  picture_ns_ = now;
  return picture;
}

void UprobeRun::open_tasks() {
  auto open = [&](int32_t task) { tasks_.emplace_back(Fd(static_cast<int>(syscall(SYS_pidfd_open, task, 0))), task); };
  std::ranges::for_each(options_.trace.target.pids, open);
  std::ranges::for_each(options_.trace.target.tids, open);
}

bool UprobeRun::is_target_gone() const {
  return !tasks_.empty() && std::ranges::all_of(tasks_, [](const auto& task) { return has_ended(task.first, task.second); });
}

Result<void> UprobeRun::watch(const Watch& watch) {
  const uint64_t end_ns = options_.duration_ns ? start_ns_ + options_.duration_ns : ~uint64_t{0};
  uint64_t next_ns = start_ns_ + watch.screen.interval_ns();
  bool wants_more = true;
  while (wants_more && !watch.has_ended() && !is_target_gone()) {
    const uint64_t now = monotonic_ns();
    if (now >= end_ns) break;
    next_ns = std::min(next_ns, now + watch.screen.interval_ns());
    const uint64_t until = std::min({next_ns, end_ns, now + kLookNs});
    wants_more = watch.screen.wait(static_cast<int>((until - now + 999'999) / 1'000'000));
    if (options_.trace.has_calls) tracer_->object().read_calls(watch.on_call);
    if (recording_) TRY(recording_->poll());
    if (monotonic_ns() < next_ns) continue;
    if (watch.screen.wants_pictures()) TRY(watch.screen.show(picture()));
    next_ns = std::max(next_ns + watch.screen.interval_ns(), monotonic_ns());
  }
  return {};
}

Result<void> UprobeRun::stop(const OnCall& on_call) {
  end_ns_ = monotonic_ns();
  tracer_->detach();
  TRY(tracer_->object().tell_open_calls());
  if (options_.trace.has_calls) tracer_->object().read_calls(on_call);
  for (uint32_t i = 0; i < functions().size(); i++) sums_.push_back(tracer_->sums(i, true));
  if (options_.trace.has_callers) noted_ = TRY(tracer_->object().callers());
  if (recording_) stacks_.emplace(TRY(recording_->finish()));
  if (stacks_) diagnostics_.merge(stacks_->profile().diagnostics);
  recording_.reset();
  diagnostics_.merge(tracer_->diagnostics());
  diagnostics_.merge(files_.diagnostics());
  tracer_.reset();
  return {};
}

void UprobeRun::name_callers() {
  if (options_.trace.has_callers) callers_ = uprobe::name_callers(noted_, files_, options_.style, diagnostics_);
}

const std::vector<uprobe::Caller>& UprobeRun::callers(uint32_t function) const {
  static const std::vector<uprobe::Caller> kNone;
  const auto found = callers_.find(function);
  return found == callers_.end() ? kNone : found->second;
}

std::vector<UprobeRow> UprobeRun::summary_rows() const {
  std::vector<UprobeRow> rows;
  for (uint32_t i = 0; i < functions().size(); i++) {
    rows.push_back(uprobe_row_of(functions()[i].name, modules_[functions()[i].file], i, sums_[i]));
    rows.back().calls_per_s = static_cast<double>(rows.back().calls) / std::max(1e-9, seconds());
  }
  return rows;
}

}  // namespace cprof::cli
