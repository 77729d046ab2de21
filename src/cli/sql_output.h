// How rows of SQL are shown: an aligned table for people, CSV (RFC 4180) or JSON for programs. Each writes to a stdio
// stream as the rows come; the table holds back its first rows to find widths.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "store/query_session.h"

namespace cprof::cli {

enum class SqlFormat : uint8_t { kTable, kCsv, kJson };

std::optional<SqlFormat> sql_format_from(std::string_view name);  // "table", "csv", "json"

// columns: how wide a table may be; 0: as wide as it needs.
std::unique_ptr<store::RowSink> make_sql_output(SqlFormat format, FILE* to, size_t columns);

}  // namespace cprof::cli
