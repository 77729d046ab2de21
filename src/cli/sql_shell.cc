#include "cli/sql_shell.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>

#include "base/own_folder.h"
#include "cli/line_editor.h"
#include "cli/text_layout.h"
#include "cli/verb.h"
#include "store/schema.h"

namespace cprof::cli {
namespace {

std::atomic<store::QuerySession*> g_session = nullptr;
static_assert(std::atomic<store::QuerySession*>::is_always_lock_free);

void on_interrupt(int) {
  if (store::QuerySession* session = g_session.load()) session->interrupt();
}

// While it lives, Ctrl-C ends a statement, or the line that is typed, not the program.
class InterruptScope {
 public:
  explicit InterruptScope(store::QuerySession& session) {
    g_session = &session;
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // without SA_RESTART: the editor's read returns
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptScope() {
    sigaction(SIGINT, &before_, nullptr);
    g_session = nullptr;
  }

 private:
  struct sigaction before_ = {};
};

std::string history_path() {
  const std::string folder = state_folder();
  return folder.empty() ? "" : folder + "/sql_history";
}

constexpr std::string_view kShellHelp =
    R"(Statements end with ';' and may go over several lines. Tab completes names, Ctrl-C stops.
  .tables               what can be asked
  .schema [NAME]        columns of a table or view
  .mode table|csv|json  how rows are shown
  .limit N              rows of a statement; 0: all
  .timeout SECONDS      time of a statement; 0: no limit
  .quit                 leave (also Ctrl-D)
Try: SELECT name, self, total FROM top_functions LIMIT 10;
)";

class Shell {
 public:
  Shell(store::QuerySession& session, SqlSettings settings)
      : session_(session), settings_(settings), editor_(history_path(), words()) {}

  int run() {
    InterruptScope interrupts(session_);
    fmt::print("cprof sql: .help tells the commands, .tables what can be asked\n");
    while (!is_done_) {
      LineEditor::Line line = editor_.read(script_.empty() ? "cprof> " : "  ...> ");
      if (line.end == LineEditor::End::kEndOfInput) break;
      if (line.end == LineEditor::End::kInterrupted) {
        script_.clear();
        fmt::print("\n");
        continue;
      }
      take(line.text);
    }
    return kDone;
  }

 private:
  std::vector<std::string> words() const {
    std::vector<std::string> all = session_.names();
    for (const char* word :
         {"SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "INCLUDE PERFETTO MODULE", ".help",
          ".tables", ".schema", ".mode", ".limit", ".timeout", ".quit"})
      all.emplace_back(word);
    return all;
  }

  void take(const std::string& line) {
    if (script_.empty() && line.starts_with(".")) {
      const std::string command = line.substr(0, line.find_last_not_of(" \t\r\n") + 1);
      editor_.remember(command);
      return obey(command);
    }
    script_ += line;
    const auto parts = store::split_statements(script_);
    if (parts.statements.empty() && parts.is_complete) return script_.clear();
    if (!parts.is_complete) return;
    editor_.remember(script_);
    query(script_);
    script_.clear();
  }

  void query(const std::string& script) {
    auto output = make_sql_output(settings_.format, stdout, terminal_columns());
    auto done = session_.run(script, settings_.limits, *output);
    fflush(stdout);
    if (!done) say(sql_error_text("", script, done.error()));
    editor_.set_words(words());
  }

  void obey(const std::string& command) {
    const size_t space = command.find(' ');
    const std::string verb = command.substr(0, space);
    const std::string argument =
        space == std::string::npos ? "" : command.substr(command.find_first_not_of(' ', space));
    if (verb == ".help")
      fmt::print("{}", kShellHelp);
    else if (verb == ".quit" || verb == ".exit")
      is_done_ = true;
    else if (verb == ".tables")
      list_tables();
    else if (verb == ".schema")
      show_schema(argument);
    else if (verb == ".mode")
      set_mode(argument);
    else if (verb == ".limit")
      set_number(argument, settings_.limits.rows);
    else if (verb == ".timeout")
      set_number(argument, settings_.limits.seconds);
    else
      say(fmt::format("no command {}; .help lists them", printable(verb)));
    fflush(stdout);
  }

  void set_mode(const std::string& name) {
    if (auto format = sql_format_from(name))
      settings_.format = *format;
    else
      say(".mode takes table, csv or json");
  }

  template <typename Number>
  void set_number(const std::string& text, Number& number) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0)
      say("a number of 0 or more is needed");
    else
      number = value;
  }

  void list_tables() {
    std::vector<std::string> names = session_.tables();
    size_t width = 0;
    for (const std::string& name : names) width = std::max(width, name.size());
    for (const std::string& name : names) {
      const store::TableDef* table = store::find_table(name);
      fmt::print("{}  {}\n", padded(printable(name), width), table ? table->meaning : "");
    }
  }

  void show_schema(const std::string& name) {
    bool is_known = false;
    for (const std::string& table : session_.tables()) {
      if (!name.empty() && table != name) continue;
      is_known = true;
      const store::TableDef* documented = store::find_table(table);
      fmt::print("{}\n", printable(table));
      for (const auto& [column, type] : session_.columns(table)) {
        std::string_view meaning;
        if (documented)
          for (const store::Column& c : documented->columns)
            if (c.name == column) meaning = c.meaning;
        fmt::print("  {} {} {}\n", padded(printable(column), 24), padded(printable(type), 8), meaning);
      }
    }
    if (!is_known) say(fmt::format("no table or view {}; .tables lists them", printable(name)));
  }

  store::QuerySession& session_;
  SqlSettings settings_;
  LineEditor editor_;
  std::string script_;  // what was typed of a statement that goes on
  bool is_done_ = false;
};

}  // namespace

std::string sql_error_text(std::string_view where, std::string_view script, const store::SqlError& error) {
  const store::TextPosition at = store::position_at(script, error.offset);
  return fmt::format("cprof: {}{}line {}, column {}: {}", where, where.empty() ? "" : ": ", at.line, at.column,
                     printable(error.message));
}

size_t terminal_columns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int run_sql_shell(store::QuerySession& session, SqlSettings settings) { return Shell(session, settings).run(); }

}  // namespace cprof::cli
