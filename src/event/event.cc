#include "event/event.h"

#include <algorithm>
#include <tuple>

namespace cprof::event {
namespace {

template <typename T>
bool same(std::span<const T> a, std::span<const T> b) {
  return std::ranges::equal(a, b);
}

bool same(const std::optional<Snapshot>& a, const std::optional<Snapshot>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  const Registers &x = a->registers, &y = b->registers;
  return x.abi == y.abi && x.mask == y.mask && same(x.values, y.values) && same(a->stack, b->stack) &&
         a->requested_bytes == b->requested_bytes && a->is_full == b->is_full;
}

bool same(const Sample& a, const Sample& b) {
  auto key = [](const Sample& s) {
    return std::tuple(s.time_ns, s.task, s.cpu, s.metric, s.period, s.ip, s.in_kernel, s.stack_id,
                      s.repeats_stack);
  };
  return key(a) == key(b) && same(a.kernel_chain, b.kernel_chain) && same(a.user_chain, b.user_chain) &&
         same(a.snapshot, b.snapshot);
}

bool same(const StackMemory& a, const StackMemory& b) {
  return std::tuple(a.time_ns, a.task, a.address) == std::tuple(b.time_ns, b.task, b.address) && same(a.bytes, b.bytes);
}

bool same(const Mmap& a, const Mmap& b) {
  auto key = [](const Mmap& m) {
    return std::tuple(m.time_ns, m.task, m.start, m.length, m.file_offset, m.protection, m.flags, m.file, m.path);
  };
  return key(a) == key(b) && same(a.build_id, b.build_id);
}

bool same(const Comm& a, const Comm& b) {
  return std::tuple(a.time_ns, a.task, a.name, a.exec) == std::tuple(b.time_ns, b.task, b.name, b.exec);
}
bool same(const Fork& a, const Fork& b) {
  return std::tuple(a.time_ns, a.child, a.parent) == std::tuple(b.time_ns, b.child, b.parent);
}
bool same(const Cgroup& a, const Cgroup& b) {
  return std::tuple(a.time_ns, a.task, a.path) == std::tuple(b.time_ns, b.task, b.path);
}
bool same(const KernelSymbol& a, const KernelSymbol& b) {
  auto key = [](const KernelSymbol& s) { return std::tuple(s.time_ns, s.start, s.length, s.name, s.is_removed); };
  return key(a) == key(b);
}
bool same(const Exit& a, const Exit& b) { return a.time_ns == b.time_ns && a.task == b.task; }
bool same(const SwitchOut& a, const SwitchOut& b) {
  auto key = [](const SwitchOut& s) { return std::tuple(s.time_ns, s.task, s.cpu, s.preempted, s.stack_id, s.uninterruptible); };
  return key(a) == key(b);
}
bool same(const SwitchIn& a, const SwitchIn& b) {
  auto key = [](const SwitchIn& s) { return std::tuple(s.time_ns, s.task, s.cpu, s.woken_ns, s.waker); };
  return key(a) == key(b);
}
bool same(const Lost& a, const Lost& b) {
  return std::tuple(a.time_ns, a.cpu, a.kind, a.count) == std::tuple(b.time_ns, b.cpu, b.kind, b.count);
}
bool same(const Throttle& a, const Throttle& b) {
  return std::tuple(a.time_ns, a.cpu, a.on) == std::tuple(b.time_ns, b.cpu, b.on);
}
bool same(const StackDef& a, const StackDef& b) {
  return std::tuple(a.time_ns, a.task, a.id, a.user_end) == std::tuple(b.time_ns, b.task, b.id, b.user_end) &&
         same(a.kernel_chain, b.kernel_chain) && same(a.user_chain, b.user_chain);
}
bool same(const Count& a, const Count& b) {
  auto key = [](const Count& c) {
    return std::tuple(c.time_ns, c.task, c.metric, c.samples, c.weight, c.stack_id, c.in_kernel);
  };
  return key(a) == key(b);
}
bool same(const Wakeup& a, const Wakeup& b) {
  return std::tuple(a.time_ns, a.task, a.waker) == std::tuple(b.time_ns, b.task, b.waker);
}

}  // namespace

uint64_t time_of(const Event& event) {
  return std::visit([](const auto& e) { return e.time_ns; }, event);
}

bool equal(const Event& a, const Event& b) {
  if (a.index() != b.index()) return false;
  return std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
}

}  // namespace cprof::event
