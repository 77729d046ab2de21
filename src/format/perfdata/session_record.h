// SessionInfo as the payload of our own record, so that the replay of a capture begins as the recording did.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "event/event.h"

namespace cprof::format::perfdata {

// The command line is cut when all would not fit one record.
std::vector<std::byte> encode_session(const event::SessionInfo& info);
// Nothing when the payload is damaged or of a later version.
std::optional<event::SessionInfo> decode_session(std::span<const std::byte> payload);

}  // namespace cprof::format::perfdata
