// What signal handlers need to give the terminal back lies in one static block, and they use async-signal-safe calls only:
// write, tcsetattr, sigaction, raise (signal-safety(7)).
#include "term/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace cprof::term {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";         // the alternate screen, no cursor
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";
constexpr std::string_view kBeginUpdate = "\x1b[?2026h", kEndUpdate = "\x1b[?2026l";
constexpr int kSequenceMs = 25;  // the rest of a key's sequence comes at once

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kDeaths[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr size_t kSignals = 64;

struct State {
  termios before, raw;
  struct sigaction old[kSignals];
  volatile std::sig_atomic_t is_open, stop, resized;
};
State state;

void write_now(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

void enter_screen() {
  tcsetattr(STDIN_FILENO, TCSANOW, &state.raw);
  write_now(kEnter);
  state.is_open = 1;
}

void leave_screen() {
  if (!state.is_open) return;
  state.is_open = 0;
  write_now(kLeave);
  // Keys that were typed ahead are not for the shell.
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &state.before);
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

// As if nothing here had caught it.
void die_of(int number) {
  leave_screen();
  set_handler(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(number);
}

void on_stop(int number) {
  const int error = errno;
  if (state.stop) die_of(number);
  state.stop = 1;
  const struct sigaction& old = state.old[number];
  if (!(old.sa_flags & SA_SIGINFO) && old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) old.sa_handler(number);
  errno = error;
}

void on_death(int number) { die_of(number); }

void on_resize(int) { state.resized = 1; }

void on_suspend(int number) {
  const int error = errno;
  die_of(number);  // comes back when the program goes on
  set_handler(number, on_suspend);
  enter_screen();
  state.resized = 1;
  errno = error;
}

void install() {
  auto take = [](int number, void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(number, &action, &state.old[number]);
  };
  for (int number : kStops) take(number, on_stop);
  for (int number : kDeaths) take(number, on_death);
  take(SIGTSTP, on_suspend);
  take(SIGWINCH, on_resize);
}

void uninstall() {
  auto give_back = [](int number) { sigaction(number, &state.old[number], nullptr); };
  for (int number : kStops) give_back(number);
  for (int number : kDeaths) give_back(number);
  give_back(SIGTSTP);
  give_back(SIGWINCH);
}

bool is_dumb() {
  const char* name = getenv("TERM");
  return !name || !*name || strcmp(name, "dumb") == 0;
}

struct Sequence {
  std::string_view text;  // after ESC
  Key key;
};
constexpr Sequence kSequences[] = {
    {"[A", Key::kUp},      {"[B", Key::kDown},      {"[C", Key::kRight}, {"[D", Key::kLeft}, {"OA", Key::kUp},
    {"OB", Key::kDown},    {"OC", Key::kRight},     {"OD", Key::kLeft},  {"[H", Key::kHome}, {"[F", Key::kEnd},
    {"OH", Key::kHome},    {"OF", Key::kEnd},       {"[1~", Key::kHome}, {"[4~", Key::kEnd}, {"[5~", Key::kPageUp},
    {"[6~", Key::kPageDown}, {"[7~", Key::kHome},   {"[8~", Key::kEnd},
};

// How many bytes the sequence after ESC has; 0: more are to come.
size_t sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] != '[' && text[0] != 'O') return 1;
  for (size_t i = 1; i < text.size(); i++)
    if (text[i] >= 0x40 && text[i] <= 0x7e) return i + 1;
  return text.size() > 16 ? text.size() : 0;
}

}  // namespace

bool wants_colour(int fd) {
  const char* no = getenv("NO_COLOR");
  return isatty(fd) && !is_dumb() && (!no || !*no);
}

bool can_be_live() { return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && !is_dumb(); }

Result<std::unique_ptr<Terminal>> Terminal::open() {
  if (state.is_open) return fail("the terminal is in use");
  if (!can_be_live()) return fail("stdin and stdout are not a terminal that can be drawn on");
  if (tcgetattr(STDIN_FILENO, &state.before) != 0) return fail_errno("the terminal's settings");
  state.raw = state.before;
  state.raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
  state.raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  state.raw.c_cc[VMIN] = 0;
  state.raw.c_cc[VTIME] = 0;
  state.stop = 0;
  state.resized = 0;
  install();
  enter_screen();
  return std::unique_ptr<Terminal>(new Terminal());
}

Terminal::~Terminal() {
  leave_screen();
  uninstall();
}

Size Terminal::size() const {
  winsize found{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0) return {};
  return {found.ws_col, found.ws_row};
}

bool Terminal::stop_requested() const { return state.stop != 0; }

Event Terminal::read_key() {
  const char first = input_[0];
  if (first == '\x1b') return read_sequence();
  input_.erase(0, 1);
  if (first == '\r' || first == '\n') return {Key::kEnter};
  if (first == '\x7f' || first == '\b') return {Key::kBackspace};
  if (first == '\x04') return {Key::kClosed};
  if (first == '\x0c') {  // Ctrl-L
    is_whole_due_ = true;
    return {Key::kResize};
  }
  if ((first >= 0x20 && first < 0x7f) || first == '\t') return {Key::kCharacter, first};
  return {};
}

Event Terminal::read_sequence() {
  size_t length = 0;
  while ((length = sequence_length(std::string_view(input_).substr(1))) == 0) {
    pollfd in = {STDIN_FILENO, POLLIN, 0};
    char bytes[32];
    const ssize_t count = poll(&in, 1, kSequenceMs) > 0 ? read(STDIN_FILENO, bytes, sizeof bytes) : 0;
    if (count <= 0) break;
    input_.append(bytes, static_cast<size_t>(count));
  }
  const std::string text = input_.substr(1, length);
  // What follows the key ESC at once is a key of its own.
  const bool is_alone = length == 0 || (length == 1 && text[0] != '[' && text[0] != 'O');
  input_.erase(0, is_alone ? 1 : 1 + length);
  if (is_alone) return {Key::kEscape};
  const auto* found = std::ranges::find(kSequences, std::string_view(text), &Sequence::text);
  return {found == std::end(kSequences) ? Key::kNone : found->key};
}

Event Terminal::wait(int timeout_ms) {
  if (input_.empty()) {
    pollfd in = {STDIN_FILENO, POLLIN, 0};
    const int ready = is_closed_ ? poll(nullptr, 0, timeout_ms) : poll(&in, 1, timeout_ms);
    if (ready > 0) {
      char bytes[256];
      const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
      if (count > 0) input_.assign(bytes, static_cast<size_t>(count));
      is_closed_ = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
      if (is_closed_) return {Key::kClosed};
    }
  }
  if (state.resized) {
    state.resized = 0;
    is_whole_due_ = true;
    return {Key::kResize};
  }
  return input_.empty() ? Event{} : read_key();
}

void Terminal::draw(std::vector<std::string> lines) {
  const bool is_whole = is_whole_due_ || lines.size() < shown_.size();
  std::string out(kBeginUpdate);
  if (is_whole) out += "\x1b[0m\x1b[2J";
  for (size_t i = 0; i < lines.size(); i++) {
    if (!is_whole && i < shown_.size() && shown_[i] == lines[i]) continue;
    out += "\x1b[" + std::to_string(i + 1) + ";1H" + lines[i] + "\x1b[0m\x1b[K";
  }
  out += kEndUpdate;
  write_now(out);
  shown_ = std::move(lines);
  is_whole_due_ = false;
}

}  // namespace cprof::term
