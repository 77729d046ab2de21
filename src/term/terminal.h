// A terminal that shows a table until somebody has seen enough: single keys, the alternate screen, its size, colours.
// However the program ends (a return, Ctrl-C, a fatal signal, an exception that reaches main), the terminal is as it was
// before; Ctrl-Z gives it back until the program goes on. Used by the live views of cli, one at a time, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace cprof::term {

enum class Key : uint8_t {
  kNone,       // the time was over, or a signal came
  kCharacter,  // Event::character
  kEnter,
  kEscape,
  kBackspace,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kResize,  // or the screen was lost: draw again
  kClosed,  // nobody will type here any more
};

struct Event {
  Key key = Key::kNone;
  char character = 0;  // printable ASCII; other keys are not told
};

struct Size {
  size_t columns = 80, rows = 24;
};

// Whether colours belong there: a terminal, and neither NO_COLOR nor TERM=dumb says no.
bool wants_colour(int fd);
// Whether a live view can be shown: stdout is a terminal that can be drawn on, and keys can be read from one.
bool can_be_live();

class Terminal {
 public:
  // Takes stdout as the screen, stdin for keys. SIGINT, SIGTERM and SIGHUP ask to stop, a second one ends the program.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  Size size() const;
  bool stop_requested() const;
  Event wait(int timeout_ms);
  // From the top of the screen; lines below are empty. They are cut to the screen by the caller. Only what changed is sent.
  void draw(std::vector<std::string> lines);

 private:
  Terminal() = default;
  Event read_key();
  Event read_sequence();

  std::vector<std::string> shown_;
  std::string input_;  // bytes that were read and not used yet
  bool is_whole_due_ = true, is_closed_ = false;
};

}  // namespace cprof::term
