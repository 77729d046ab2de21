#include "format/pftrace/track_event.h"

#include <fmt/format.h>

#include "format/pftrace/pftrace_fields.h"

namespace cprof::format {
namespace {

constexpr size_t kMaxAnnotations = 32;

class EventReader {
 public:
  EventReader(const InternedState& state, profile::ProfileBuilder& builder) : state_(state), builder_(builder) {}

  TrackEvent read(ProtoFields fields) {
    while (fields.next())
      if (!take_name(fields) && !take_value(fields)) take_rest(fields);
    return std::move(event_);
  }

 private:
  StringId interned(uint32_t field, uint64_t iid) {
    const auto text = state_.text(field, iid);
    event_.missing_names += !text;
    return text.value_or(profile::kNoText);
  }

  void take_category(StringId category) {
    if (event_.category == profile::kNoText) event_.category = category;
  }

  bool take_name(ProtoFields& fields) {
    using namespace pft::TrackEvent;
    switch (fields.tag()) {
      case kName: event_.name = builder_.intern(fields.get_text()); return true;
      case kNameIid: event_.name = interned(pft::Interned::kEventNames, fields.get_uint64()); return true;
      case kCategories: take_category(builder_.intern(fields.get_text())); return true;
      case kCategoryIids:
        fields.for_each_uint64([&](uint64_t id) { take_category(interned(pft::Interned::kCategories, id)); });
        return true;
      case kDebugAnnotations: add_label(fields.get_message()); return true;
      default: return false;
    }
  }

  bool take_value(ProtoFields& fields) {
    using namespace pft::TrackEvent;
    switch (fields.tag()) {
      case kCounterValue: event_.value = static_cast<double>(fields.get_int64()); return true;
      case kDoubleValue: event_.value = fields.get_double(); return true;
      case kExtraValues:
        fields.for_each_uint64(
            [&](uint64_t value) { event_.extra_values.push_back(static_cast<double>(static_cast<int64_t>(value))); });
        return true;
      case kExtraDoubles: fields.for_each_double([&](double value) { event_.extra_doubles.push_back(value); }); return true;
      case kExtraTracks: fields.for_each_uint64([&](uint64_t id) { event_.extra_tracks.push_back(id); }); return true;
      case kExtraDoubleTracks:
        fields.for_each_uint64([&](uint64_t id) { event_.extra_double_tracks.push_back(id); });
        return true;
      default: return false;
    }
  }

  void take_rest(ProtoFields& fields) {
    using namespace pft::TrackEvent;
    switch (fields.tag()) {
      case kType: event_.type = fields.get_uint32(); break;
      case kTrackUuid: event_.track = fields.get_uint64(); break;
      case kDeltaUs: event_.delta_us = fields.get_int64(); break;
      case kAbsoluteUs: event_.absolute_us = fields.get_int64(); break;
      case kLegacy: take_legacy(fields.get_message()); break;
      default: fields.skip();
    }
  }

  void take_legacy(ProtoFields fields) {
    using namespace pft::LegacyEvent;
    while (fields.next()) {
      switch (fields.tag()) {
        case kNameIid: event_.name = interned(pft::Interned::kEventNames, fields.get_uint64()); break;
        case kPhase: event_.legacy_phase = static_cast<char>(fields.get_int32()); break;
        case kDurationUs: event_.legacy_duration_us = fields.get_int64(); break;
        case kPidOverride: event_.pid = fields.get_int32(); break;
        case kTidOverride: event_.tid = fields.get_int32(); break;
        default: fields.skip();
      }
    }
  }

  void add_label(ProtoFields fields) {
    using namespace pft::DebugAnnotation;
    profile::Label label;
    bool has_value = false;
    const auto take = [&](StringId text) { label.text = text, has_value = true; };
    const auto take_number = [&](int64_t number) { label.number = number, label.is_number = has_value = true; };
    while (fields.next()) {
      switch (fields.tag()) {
        case kName: label.key = builder_.intern(fields.get_text()); break;
        case kNameIid: label.key = interned(pft::Interned::kAnnotationNames, fields.get_uint64()); break;
        case kBool: take(builder_.intern(fields.get_bool() ? "true" : "false")); break;
        case kInt: take_number(fields.get_int64()); break;
        case kPointer:
        case kUint: take_number(static_cast<int64_t>(fields.get_uint64())); break;
        case kDouble: take(builder_.intern(fmt::format("{}", fields.get_double()))); break;
        case kString: take(builder_.intern(fields.get_text())); break;
        case kStringIid: take(interned(pft::Interned::kAnnotationStrings, fields.get_uint64())); break;
        default: fields.skip();
      }
    }
    if (label.key != profile::kNoText && has_value && event_.labels.size() < kMaxAnnotations) event_.labels.push_back(label);
    else ++event_.annotations_left_out;
  }

  const InternedState& state_;
  profile::ProfileBuilder& builder_;
  TrackEvent event_;
};

}  // namespace

TrackEvent read_track_event(ProtoFields fields, const InternedState& state, profile::ProfileBuilder& builder) {
  return EventReader(state, builder).read(fields);
}

}  // namespace cprof::format
