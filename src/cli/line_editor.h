// Lines typed at a terminal, with libedit: history kept in a file of the user's, completion by a given list of words.
// Used by the SQL shell.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cprof::cli {

class LineEditor {
 public:
  // history_path: "" for none.
  LineEditor(std::string history_path, std::vector<std::string> words);
  ~LineEditor();

  enum class End : uint8_t { kLine, kInterrupted, kEndOfInput };
  struct Line {
    End end = End::kEndOfInput;
    std::string text;  // with its line break
  };
  Line read(const std::string& prompt);
  void remember(const std::string& statement);
  void set_words(std::vector<std::string> words);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What the words that begin with `start` have in common beyond it, and which they are; letter case is not looked at.
struct Completion {
  std::string addition;
  std::vector<std::string> candidates;
};
Completion complete(const std::vector<std::string>& words, const std::string& start);

}  // namespace cprof::cli
