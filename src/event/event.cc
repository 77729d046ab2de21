#include "event/event.h"

namespace cprof::event {

uint64_t time_of(const Event& event) {
  return std::visit([](const auto& e) { return e.time_ns; }, event);
}

}  // namespace cprof::event
