// Prints docs/schema.md, or with --ddl the statements that make an empty recording.
#include <cstdio>
#include <string_view>

#include "store/schema.h"

int main(int count, char** arguments) {
  const bool as_ddl = count > 1 && std::string_view(arguments[1]) == "--ddl";
  const std::string text = as_ddl ? cprof::store::schema_ddl() : cprof::store::schema_page();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
