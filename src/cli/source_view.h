// Code with its weight as text: the source lines of functions (report --list), and a function's instructions between their
// lines (annotate). What is not there, source or binary, is said in one line of `notes` and the rest is shown.
#pragma once

#include <string>
#include <vector>

#include "analyze/code_values.h"
#include "analyze/weights.h"
#include "base/result.h"
#include "profile/profile.h"
#include "source/source_files.h"
#include "symbolize/symbolizer.h"

namespace cprof::cli {

struct SourceView {
  std::string text;
  std::vector<std::string> notes;
};

// Source of the functions that the expression finds, with what each line weighs. No function: empty text.
SourceView render_list(const profile::Profile& profile, const analyze::Weights& weights, const analyze::Pattern& pattern,
                       source::SourceFiles& files, size_t max_functions);

// A function by its whole name, by its name without arguments, or by an expression that finds just one.
Result<std::string> choose_function(const profile::Profile& profile, const std::string& wanted);

struct AnnotateOptions {
  bool show_all = false;  // long runs of instructions that weigh nothing too
  symbolize::DemangleStyle demangle = symbolize::DemangleStyle::kFull;
};
SourceView render_annotated(const profile::Profile& profile, const analyze::Weights& weights, const std::string& function,
                            source::SourceFiles& files, const AnnotateOptions& options);

}  // namespace cprof::cli
