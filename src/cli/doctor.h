// What `cprof doctor` finds: one line on one thing that a recording may need, and what mends it. Checks read /proc and /sys,
// open an event or load the BPF programs for a moment; they change nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace cprof::cli {

enum class Level : uint8_t { kGood, kNote, kBad };

struct Finding {
  Level level = Level::kGood;
  std::string subject, text, mend;
};

using DoctorCheck = Finding (*)();

// The number that a file of /proc or /sys holds.
std::optional<long> read_number(const std::string& path);
// As linux/capability.h has them from 5.9 on; older headers lack the later ones.
constexpr int kCapSysPtrace = 19, kCapSysAdmin = 21, kCapSyslog = 34, kCapPerfmon = 38, kCapBpf = 39, kCapCheckpointRestore = 40;

bool has_capability(int number);  // effective

// doctor_system.cc: limits of the system, what off-CPU needs, where names and tables are kept.
std::span<const DoctorCheck> system_checks();

}  // namespace cprof::cli
