// Labels as a JSON object: the arguments of events, the data of markers. Used by the writers of JSON formats; one thread.
#pragma once

#include "format/json/json_writer.h"
#include "profile/profile.h"

namespace cprof::format {

// null without a set.
inline void write_labels(JsonWriter& json, const profile::Profile& profile, profile::LabelSetId id) {
  if (!id.valid()) return json.null();
  json.begin_object();
  for (const profile::Label& label : profile.labels_of(id)) {
    if (label.is_number)
      json.number(profile.text(label.key), label.number);
    else
      json.text(profile.text(label.key), profile.text(label.text));
  }
  json.end_object();
}

}  // namespace cprof::format
