#include "cli/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cwchar>

namespace cprof::cli {
namespace {

constexpr int kHistorySize = 1000;

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

}  // namespace

Completion complete(const std::vector<std::string>& words, const std::string& start) {
  Completion result;
  for (const std::string& word : words)
    if (strncasecmp(word.c_str(), start.c_str(), start.size()) == 0) result.candidates.push_back(word);
  if (result.candidates.empty()) return result;
  size_t common = result.candidates.front().size();
  for (const std::string& word : result.candidates) {
    size_t same = 0;
    while (same < std::min(common, word.size()) && word[same] == result.candidates.front()[same]) ++same;
    common = same;
  }
  if (common > start.size()) result.addition = result.candidates.front().substr(start.size(), common - start.size());
  return result;
}

struct LineEditor::Impl {
  EditLine* line = nullptr;
  History* history = nullptr;
  std::string history_path, prompt;
  std::vector<std::string> words;
  sigset_t unblocked = {};  // the signals as they were before a line is read

  static Impl& of(EditLine* line) {
    void* data = nullptr;
    el_get(line, EL_CLIENTDATA, &data);
    return *static_cast<Impl*>(data);
  }

  static char* current_prompt(EditLine* line) { return of(line).prompt.data(); }

  // libedit's own reader takes the first signal for an accident and reads on. SIGINT arrives here or not at all, so that
  // none is lost between two characters.
  static int read_character(EditLine* line, wchar_t* character) {
    mbstate_t state = {};
    for (;;) {
      pollfd input = {STDIN_FILENO, POLLIN, 0};
      if (ppoll(&input, 1, nullptr, &of(line).unblocked) < 0) return -1;
      char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count <= 0) return static_cast<int>(count);
      const size_t used = mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<size_t>(-2)) continue;
      if (used == static_cast<size_t>(-1)) *character = L'?';
      return 1;
    }
  }

  // Tab: what is common to all words that fit, else the list of them.
  static unsigned char on_tab(EditLine* line, int) {
    const LineInfo* info = el_line(line);
    const char* begin = info->cursor;
    while (begin > info->buffer && is_word_byte(begin[-1])) --begin;
    const Completion found = complete(of(line).words, std::string(begin, info->cursor));
    if (found.candidates.empty()) return CC_REFRESH_BEEP;
    if (!found.addition.empty()) return el_insertstr(line, found.addition.c_str()) == 0 ? CC_REFRESH : CC_REFRESH_BEEP;
    if (found.candidates.size() == 1) return CC_NORM;
    std::string list = "\n";
    constexpr size_t kMost = 100;
    for (size_t i = 0; i < std::min(found.candidates.size(), kMost); ++i) list += found.candidates[i] + "  ";
    if (found.candidates.size() > kMost) list += fmt::format("and {} more", found.candidates.size() - kMost);
    fmt::print("{}\n", list);
    fflush(stdout);
    return CC_REDISPLAY;
  }
};

LineEditor::LineEditor(std::string history_path, std::vector<std::string> words) : impl_(std::make_unique<Impl>()) {
  setlocale(LC_CTYPE, "C.UTF-8");  // libedit reads whole characters by it
  impl_->history_path = std::move(history_path);
  impl_->words = std::move(words);
  impl_->line = el_init("cprof", stdin, stdout, stderr);
  impl_->history = history_init();
  HistEvent event;
  history(impl_->history, &event, H_SETSIZE, kHistorySize);
  history(impl_->history, &event, H_SETUNIQUE, 1);
  if (!impl_->history_path.empty()) history(impl_->history, &event, H_LOAD, impl_->history_path.c_str());
  if (!impl_->line) return;
  el_set(impl_->line, EL_CLIENTDATA, impl_.get());
  el_set(impl_->line, EL_PROMPT, Impl::current_prompt);
  el_set(impl_->line, EL_EDITOR, "emacs");
  el_set(impl_->line, EL_GETCFN, Impl::read_character);
  el_set(impl_->line, EL_HIST, history, impl_->history);
  el_set(impl_->line, EL_ADDFN, "cprof-complete", "complete a name", Impl::on_tab);
  el_set(impl_->line, EL_BIND, "^I", "cprof-complete", nullptr);
  el_set(impl_->line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (!impl_->history_path.empty()) {
    const mode_t before = umask(077);
    HistEvent event;
    history(impl_->history, &event, H_SAVE, impl_->history_path.c_str());
    umask(before);
  }
  history_end(impl_->history);
  if (impl_->line) el_end(impl_->line);
}

LineEditor::Line LineEditor::read(const std::string& prompt) {
  if (!impl_->line) return {};
  impl_->prompt = prompt;
  int count = 0;
  errno = 0;
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &impl_->unblocked);
  // libedit leaves the terminal's line mode behind its prompt only: a Ctrl-D before that would be an end of file that
  // nobody reads. So here it is left before the prompt, and stays left while a statement runs.
  el_set(impl_->line, EL_PREP_TERM, 1);
  const char* text = el_gets(impl_->line, &count);
  const int error = errno;
  el_set(impl_->line, EL_PREP_TERM, 1);
  pthread_sigmask(SIG_SETMASK, &impl_->unblocked, nullptr);
  if (text && count > 0) return {End::kLine, std::string(text, static_cast<size_t>(count))};
  if (error != EINTR) return {};
  el_reset(impl_->line);
  return {End::kInterrupted, {}};
}

void LineEditor::remember(const std::string& statement) {
  HistEvent event;
  history(impl_->history, &event, H_ENTER, statement.c_str());
}

void LineEditor::set_words(std::vector<std::string> words) { impl_->words = std::move(words); }

}  // namespace cprof::cli
