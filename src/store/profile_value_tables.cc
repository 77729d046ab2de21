// size-exempt: one table
#include "analyze/weights.h"
#include "store/profile_tables.h"

namespace cprof::store {
namespace {

using profile::Profile;

const profile::Metric& metric(ProfileSource& s, uint32_t row) { return s.profile().metrics[row]; }
Cell text_or(std::string_view text, std::string_view otherwise) { return Cell::of(text.empty() ? otherwise : text); }
Cell label_set(ProfileSource& s, profile::LabelSetId labels) {
  return labels.valid() ? Cell::of(s.bases().label_set + labels.value) : Cell{};
}

ColumnTableDef aggregate_profiles() {
  return {"__intrinsic_aggregate_profile",
          {{"id", "INTEGER"},
           {"scope", "TEXT", [](ProfileSource& s, uint32_t) { return Cell::of(s.scope()); }},
           {"name", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.metric_name(row)); }},
           {"sample_type_type", "TEXT",
            [](ProfileSource& s, uint32_t row) { return text_or(s.profile().text(metric(s, row).name), "unknown"); }},
           {"sample_type_unit", "TEXT",
            [](ProfileSource& s, uint32_t row) { return text_or(s.profile().text(metric(s, row).unit), "count"); }}},
          [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().metrics.size()); }};
}

ColumnTableDef aggregate_samples() {
  return {
      "__intrinsic_aggregate_sample",
      {{"id", "INTEGER"},
       {"aggregate_profile_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().metric + s.aggregates()[row].metric); }},
       {"callsite_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().site + s.aggregates()[row].site); }},
       {"value", "REAL",
        [](ProfileSource& s, uint32_t row) { return Cell::of_real(static_cast<double>(s.aggregates()[row].value)); }},
       {"value_int", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(s.aggregates()[row].value); }},
       {"arg_set_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return label_set(s, s.aggregates()[row].labels); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.aggregates().size()); }};
}

const profile::Sample& sample(ProfileSource& s, uint32_t row) { return s.profile().samples[row]; }

ColumnTableDef samples() {
  return {
      "perf_sample",
      {{"id", "INTEGER"},
       {"ts", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(sample(s, row).time_ns); }},
       {"utid", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().thread + sample(s, row).thread.value); }},
       {"cpu", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{sample(s, row).cpu}); }},
       {"cpu_mode", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::of(sample(s, row).in_kernel ? "kernel" : "user"); }},
       {"callsite_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          return sample(s, row).site.valid() ? Cell::of(s.site_id(sample(s, row).site)) : Cell{};
        }},
       {"unwind_error", "TEXT",
        [](ProfileSource& s, uint32_t row) {
          const profile::StackEnd end = sample(s, row).end;
          return profile::is_incomplete(end) ? Cell::of(profile::name_of(end)) : Cell{};
        }},
       {"metric_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().metric + sample(s, row).metric.value); }},
       {"weight", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(sample(s, row).weight); }},
       {"arg_set_id", "INTEGER", [](ProfileSource& s, uint32_t row) { return label_set(s, sample(s, row).labels); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().samples.size()); }};
}

const profile::Label& label(ProfileSource& s, uint32_t row) { return s.profile().labels[s.arguments()[row].label]; }
Cell key(ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(label(s, row).key)); }
Cell label_text(ProfileSource& s, uint32_t row) {
  return label(s, row).is_number ? Cell{} : Cell::of(s.profile().text(label(s, row).text));
}
Cell label_number(ProfileSource& s, uint32_t row) {
  return label(s, row).is_number ? Cell::of(label(s, row).number) : Cell{};
}

ColumnTableDef arguments() {
  return {
      "args",
      {{"id", "INTEGER"},
       {"arg_set_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().label_set + s.arguments()[row].set); }},
       {"flat_key", "TEXT", key},
       {"key", "TEXT", key},
       {"int_value", "INTEGER", label_number},
       {"string_value", "TEXT", label_text},
       {"real_value", "REAL", [](ProfileSource&, uint32_t) { return Cell{}; }},
       {"value_type", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::of(label(s, row).is_number ? "int" : "string"); }},
       {"display_value", "TEXT",
        [](ProfileSource& s, uint32_t row) {
          return label(s, row).is_number ? Cell::of(std::string_view(s.arguments()[row].number_text))
                                         : label_text(s, row);
        }},
       {"unit", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(label(s, row).unit)); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.arguments().size()); }};
}

ColumnTableDef metrics() {
  return {
      "metric",
      {{"id", "INTEGER"},
       {"scope", "TEXT", [](ProfileSource& s, uint32_t) { return Cell::of(s.scope()); }},
       {"name", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(metric(s, row).name)); }},
       {"unit", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(metric(s, row).unit)); }},
       {"period", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(metric(s, row).period); }},
       {"is_time", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{metric(s, row).is_time}); }},
       {"is_default", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          return Cell::of(int64_t{analyze::default_metric(s.profile()) == profile::MetricId(row)});
        }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.profile().metrics.size()); }};
}

const FactRow& fact(ProfileSource& s, uint32_t row) { return s.facts()[row]; }

ColumnTableDef facts() {
  return {
      "metadata",
      {{"id", "INTEGER"},
       {"name", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(fact(s, row).name); }},
       {"key_type", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(fact(s, row).type); }},
       {"int_value", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return fact(s, row).number ? Cell::of(*fact(s, row).number) : Cell{}; }},
       {"str_value", "TEXT",
        [](ProfileSource& s, uint32_t row) { return fact(s, row).text ? Cell::of(*fact(s, row).text) : Cell{}; }},
       {"scope", "TEXT", [](ProfileSource& s, uint32_t) { return Cell::of(s.scope()); }}},
      [](ProfileSource& s) { return static_cast<uint32_t>(s.facts().size()); }};
}

const Diagnostic& loss(ProfileSource& s, uint32_t row) { return *s.losses()[row].loss; }

std::string_view severity_name(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "notice", "error", "data_loss"};
  return kNames[static_cast<size_t>(severity)];
}

ColumnTableDef losses() {
  auto nothing = [](ProfileSource&, uint32_t) { return Cell{}; };
  return {"stats",
          {{"name", "TEXT", [](ProfileSource& s, uint32_t row) { return Cell::of(s.losses()[row].name); }},
           {"key", "INTEGER", nothing},
           {"idx", "INTEGER", nothing},
           {"severity", "TEXT",
            [](ProfileSource& s, uint32_t row) { return Cell::of(severity_name(loss(s, row).severity)); }},
           {"source", "TEXT", [](ProfileSource&, uint32_t) { return Cell::of("trace"); }},
           {"value", "INTEGER", [](ProfileSource& s, uint32_t row) { return Cell::of_address(loss(s, row).count); }},
           {"description", "TEXT",
            [](ProfileSource& s, uint32_t row) { return Cell::of(std::string_view(loss(s, row).description)); }},
           {"example", "TEXT",
            [](ProfileSource& s, uint32_t row) { return Cell::of(std::string_view(loss(s, row).example)); }},
           {"scope", "TEXT", [](ProfileSource& s, uint32_t) { return Cell::of(s.scope()); }}},
          [](ProfileSource& s) { return static_cast<uint32_t>(s.losses().size()); }};
}

}  // namespace

void add_value_columns(std::vector<ColumnTableDef>& list) {
  list.push_back(aggregate_profiles());
  list.push_back(aggregate_samples());
  list.push_back(samples());
  list.push_back(arguments());
  list.push_back(metrics());
  list.push_back(facts());
  list.push_back(losses());
}

}  // namespace cprof::store
