// The document as a tree of nodes. Where a table lies in a thread or is shared by all, and what a column is called, changed
// over the versions; all names are taken wherever they come. Members may come in any order, so everything is kept.
#include "format/firefox/firefox_parser.h"

#include "format/firefox/firefox_columns.h"

namespace cprof::format {
namespace {

constexpr unsigned kThousandths = 3;

struct TablesNodes {
  TablesNodes(FirefoxTables& t, profile::ProfileBuilder& builder)
      : stack_frame{t.stacks.frame}, prefix{t.stacks.prefix}, prefix_offset{t.stacks.prefix_offset},
        address{t.frames.address, 0}, frame_func{t.frames.func}, category{t.frames.category}, line{t.frames.line},
        column{t.frames.column}, inline_depth{t.frames.inline_depth}, lib{t.frames.lib}, func_name{t.funcs.name},
        func_resource{t.funcs.resource}, file_name{t.funcs.file_name}, source{t.funcs.source}, func_line{t.funcs.line},
        is_js{t.funcs.is_js}, resource_lib{t.resource_libs},
        strings{[&t, &builder](std::string_view text) { t.strings.push_back(builder.intern(text)); }} {}

  IndexColumnNode stack_frame, prefix, prefix_offset;
  NumberColumnNode address;
  IndexColumnNode frame_func, category, line, column, inline_depth, lib;
  IndexColumnNode func_name, func_resource, file_name, source, func_line, is_js, resource_lib;
  TextColumnNode strings;
  JsonObject stacks{{{"frame", &stack_frame}, {"prefix", &prefix}, {"prefixOffset", &prefix_offset}}};
  JsonObject frames{{{"address", &address}, {"func", &frame_func}, {"category", &category}, {"line", &line},
                     {"column", &column}, {"inlineDepth", &inline_depth}, {"lib", &lib}}};
  JsonObject funcs{{{"name", &func_name}, {"resource", &func_resource}, {"fileName", &file_name}, {"source", &source},
                    {"lineNumber", &func_line}, {"isJS", &is_js}}};
  JsonObject resources{{{"lib", &resource_lib}}};
};

// Where profiles that were not processed tell what stands in their rows.
class SchemaNode : public JsonNode {
 public:
  explicit SchemaNode(bool& is_there) : is_there_(is_there) {}
  Result<void> begin_object() override { return is_there_ = true, Result<void>(); }

 private:
  bool& is_there_;
};

// The samples of a counter; in old versions inside a group or a list of groups.
class CountsNode : public JsonNode {
 public:
  explicit CountsNode(JsonNode* samples) : samples_(samples) {}
  JsonNode* member(std::string_view key) override { return key == "samples" ? samples_ : nullptr; }
  JsonNode* element() override { return this; }
  Result<void> begin_object() override { return {}; }
  Result<void> begin_array() override { return {}; }

 private:
  JsonNode* samples_;
};

struct SamplesNodes {
  SamplesNodes(FirefoxSamples& s, bool& is_raw)
      : schema{is_raw}, stack{s.stack}, time{s.time_ns, kMillisToNanos}, deltas{s.delta_ns, kMillisToNanos}, weight{s.weight, kMillisToNanos},
        cpu{s.cpu_delta, kThousandths}, weight_type{s.weight_type} {}

  SchemaNode schema;
  IndexColumnNode stack;
  NumberColumnNode time, deltas, weight, cpu;
  JsonText weight_type;
  JsonObject object{{{"schema", &schema}, {"stack", &stack}, {"time", &time}, {"timeDeltas", &deltas}, {"weight", &weight},
                     {"weightType", &weight_type}, {"threadCPUDelta", &cpu}}};
};

// The data of markers: an array of objects and nulls. Only plain members are kept.
class MarkerDataNode : public JsonNode {
 public:
  MarkerDataNode(FirefoxMarkers& markers, profile::ProfileBuilder& builder) : row_(markers, builder) {}
  JsonNode* element() override { return &row_; }
  Result<void> begin_array() override { return {}; }

 private:
  class Value : public JsonNode {
   public:
    Value(FirefoxMarkers& markers, profile::ProfileBuilder& builder) : markers_(markers), builder_(builder) {}
    Result<void> begin_object() override { return {}; }
    Result<void> begin_array() override { return {}; }
    Result<void> text(std::string_view value) override { return add(value, false); }
    Result<void> number(std::string_view literal) override { return add(literal, true); }
    Result<void> boolean(bool value) override { return add(value ? "true" : "false", false); }
    StringId key;

   private:
    Result<void> add(std::string_view text, bool is_number) {
      markers_.fields.push_back({key, builder_.intern(text), is_number});
      return {};
    }
    FirefoxMarkers& markers_;
    profile::ProfileBuilder& builder_;
  };

  class Row : public JsonNode {
   public:
    Row(FirefoxMarkers& markers, profile::ProfileBuilder& builder)
        : markers_(markers), builder_(builder), value_(markers, builder) {}
    JsonNode* member(std::string_view key) override {
      value_.key = builder_.intern(key);
      return &value_;
    }
    Result<void> begin_object() override {
      markers_.data.emplace_back(markers_.fields.size(), 0);
      return {};
    }
    Result<void> end_object() override {
      auto& [first, count] = markers_.data.back();
      count = static_cast<uint32_t>(markers_.fields.size()) - first;
      return {};
    }
    Result<void> null() override { return markers_.data.emplace_back(0, 0), Result<void>(); }

   private:
    FirefoxMarkers& markers_;
    profile::ProfileBuilder& builder_;
    Value value_;
  };

  Row row_;
};

class RootNode : public JsonObject {
 public:
  using JsonObject::JsonObject;

 protected:
  std::string_view expected() const override { return "the object of a Firefox Profiler file"; }
};

class Parser {
 public:
  explicit Parser(profile::ProfileBuilder& builder) : builder_(builder) {}

  Result<FirefoxFile> parse(JsonStream& json) {
    JsonWalker walker(root_);
    TRY(json.parse(walker));
    return std::move(file_);
  }

 private:
  using Unit = Result<void>;

  profile::ProfileBuilder& builder_;
  FirefoxFile file_;
  FirefoxThread thread_;
  FirefoxCounter counter_;
  FirefoxLib lib_;
  std::string category_name_, marker_type_, field_key_, field_format_;

  // meta
  NumberNode version_{file_.version, 0}, interval_{file_.interval_ns, kMillisToNanos}, start_{file_.start_time_ns, kMillisToNanos},
      clock_{file_.clock_ns, 0};
  JsonText product_{file_.product}, time_unit_{file_.time_unit}, cpu_unit_{file_.cpu_unit};
  JsonObject units_{{{"time", &time_unit_}, {"threadCPUDelta", &cpu_unit_}}};
  JsonText category_name_node_{category_name_};
  JsonObject category_{{{"name", &category_name_node_}}, {},
                       [this] { return file_.categories.push_back(std::exchange(category_name_, {})), Unit(); }};
  JsonList categories_{&category_};
  JsonText field_key_node_{field_key_}, field_format_node_{field_format_}, marker_type_node_{marker_type_};
  JsonObject field_{{{"key", &field_key_node_}, {"format", &field_format_node_}},
                    [this] { return field_key_.clear(), field_format_.clear(), Unit(); },
                    [this] { return end_field(); }};
  JsonList fields_{&field_};
  JsonObject marker_schema_{{{"name", &marker_type_node_}, {"fields", &fields_}, {"data", &fields_}},
                            [this] { return marker_type_.clear(), pending_fields_.clear(), Unit(); },
                            [this] { return end_schema(); }};
  JsonList marker_schemas_{&marker_schema_};
  JsonText metric_{file_.metric}, metric_unit_{file_.metric_unit};
  BooleanNode untimed_{file_.is_untimed};
  JsonObject ours_{{{"metric", &metric_}, {"unit", &metric_unit_}, {"untimed", &untimed_}}};
  JsonObject meta_{{{"preprocessedProfileVersion", &version_}, {"interval", &interval_}, {"startTime", &start_},
                    {"startTimeAsClockMonotonicNanosecondsSinceBoot", &clock_}, {"product", &product_},
                    {"sampleUnits", &units_}, {"categories", &categories_}, {"markerSchema", &marker_schemas_},
                    {"cprof", &ours_}}};
  std::vector<std::string> pending_fields_;

  // libs
  JsonText lib_name_{lib_.name}, lib_path_{lib_.path}, lib_code_{lib_.code_id}, lib_breakpad_{lib_.breakpad_id};
  JsonObject lib_node_{{{"name", &lib_name_}, {"path", &lib_path_}, {"codeId", &lib_code_}, {"breakpadId", &lib_breakpad_}},
                       {}, [this] { return file_.libs.push_back(std::exchange(lib_, {})), Unit(); }};
  JsonList libs_{&lib_node_};
  JsonList thread_libs_{&lib_node_, [this] { return thread_.first_lib = static_cast<int32_t>(file_.libs.size()), Unit(); }};

  // shared
  TablesNodes shared_tables_{file_.shared, builder_};
  IndexColumnNode source_file_{file_.source_files};
  JsonObject sources_{{{"filename", &source_file_}}};
  JsonObject shared_stacks_{{{"frame", &shared_tables_.stack_frame}, {"prefix", &shared_tables_.prefix},
                             {"prefixOffset", &shared_tables_.prefix_offset}},
                            [this] { return file_.has_shared_tables = true, Unit(); }};
  JsonObject shared_{{{"stackTable", &shared_stacks_}, {"frameTable", &shared_tables_.frames},
                      {"funcTable", &shared_tables_.funcs}, {"resourceTable", &shared_tables_.resources},
                      {"stringArray", &shared_tables_.strings}, {"sources", &sources_}}};

  // threads
  TablesNodes tables_{thread_.tables, builder_};
  SamplesNodes samples_{thread_.samples, file_.is_raw}, js_allocations_{thread_.js_allocations, file_.is_raw},
      native_allocations_{thread_.native_allocations, file_.is_raw};
  IndexColumnNode marker_name_{thread_.markers.name}, marker_category_{thread_.markers.category},
      marker_phase_{thread_.markers.phase};
  NumberColumnNode marker_start_{thread_.markers.start_ns, kMillisToNanos}, marker_end_{thread_.markers.end_ns, kMillisToNanos},
      marker_time_{thread_.markers.time_ns, kMillisToNanos};
  MarkerDataNode marker_data_{thread_.markers, builder_};
  JsonObject markers_{{{"name", &marker_name_}, {"category", &marker_category_}, {"phase", &marker_phase_},
                       {"startTime", &marker_start_}, {"endTime", &marker_end_}, {"time", &marker_time_},
                       {"data", &marker_data_}}};
  JsonText thread_name_{thread_.name}, process_name_{thread_.process_name};
  TextOrNumberNode pid_{thread_.pid}, tid_{thread_.tid};
  BooleanNode is_main_{thread_.is_main};
  NumberNode register_{thread_.start_ns, kMillisToNanos}, unregister_{thread_.end_ns, kMillisToNanos};
  JsonObject thread_node_{{{"name", &thread_name_}, {"processName", &process_name_}, {"pid", &pid_}, {"tid", &tid_},
                           {"isMainThread", &is_main_}, {"registerTime", &register_}, {"unregisterTime", &unregister_},
                           {"samples", &samples_.object}, {"jsAllocations", &js_allocations_.object},
                           {"nativeAllocations", &native_allocations_.object}, {"markers", &markers_},
                           {"stackTable", &tables_.stacks}, {"frameTable", &tables_.frames}, {"funcTable", &tables_.funcs},
                           {"resourceTable", &tables_.resources}, {"stringArray", &tables_.strings},
                           {"stringTable", &tables_.strings}, {"libs", &thread_libs_}},
                          {}, [this] { return file_.threads.push_back(std::exchange(thread_, {})), Unit(); }};
  JsonList threads_{&thread_node_};

  // counters
  NumberColumnNode count_time_{counter_.time_ns, kMillisToNanos}, count_deltas_{counter_.delta_ns, kMillisToNanos},
      count_{counter_.count, kThousandths};
  JsonObject counts_{{{"time", &count_time_}, {"timeDeltas", &count_deltas_}, {"count", &count_}}};
  CountsNode groups_{&counts_};
  JsonText counter_name_{counter_.name}, counter_category_{counter_.category}, graph_{counter_.graph};
  TextOrNumberNode counter_pid_{counter_.pid};
  JsonObject display_{{{"graphType", &graph_}}};
  JsonObject counter_node_{{{"name", &counter_name_}, {"category", &counter_category_}, {"pid", &counter_pid_},
                            {"samples", &counts_}, {"sampleGroups", &groups_}, {"display", &display_}},
                           {}, [this] { return file_.counters.push_back(std::exchange(counter_, {})), Unit(); }};
  JsonList counters_{&counter_node_};

  RootNode root_{{{"meta", &meta_}, {"libs", &libs_}, {"shared", &shared_}, {"threads", &threads_},
                    {"counters", &counters_}}};

  // A schema's name may stand behind its fields.
  Unit end_field() {
    if (field_format_ == "unique-string" || field_format_ == "flow-id" || field_format_ == "terminating-flow-id")
      pending_fields_.push_back(field_key_);
    return {};
  }

  Unit end_schema() {
    for (const std::string& key : pending_fields_) file_.text_fields.emplace(marker_type_, key);
    return {};
  }
};

}  // namespace

Result<FirefoxFile> parse_firefox(JsonStream& json, profile::ProfileBuilder& builder) { return Parser(builder).parse(json); }

}  // namespace cprof::format
