// Puts a profile into a database: all of it at once, or, while a recording goes on, what has come since the last time.
// Used by the .cprof format, by the recording's own .part file and by the SQL shell. One thread. Never ends or begins a
// transaction: that is the caller's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"
#include "store/database.h"
#include "store/sample_chunks.h"

namespace cprof::store {

// Tables, views and all rows. The database must be empty.
Result<void> write_profile(Database& database, const profile::Profile& profile);

class Writer {
 public:
  // Tables and views, without rows. The database must be empty and stay until the writer is gone.
  static Result<Writer> create(Database& database);
  Writer(Writer&&) = default;
  Writer& operator=(Writer&&) = default;

  // The rows that are new since the last call, and those that were changed in place: of processes, threads, mappings,
  // aggregates, tracks, and all that is known of the run. Rows must keep their numbers from call to call. losses: in
  // place of the profile's own.
  Result<void> append(const profile::Profile& profile, const Diagnostics& losses);
  Result<void> append(const profile::Profile& profile) { return append(profile, profile.diagnostics); }
  // Takes all rows out: for a profile whose rows have other numbers now.
  Result<void> clear();

 private:
  explicit Writer(Database& database) : database_(&database) {}

  Result<Statement*> insert(std::string_view table);
  template <typename Row, typename Put>
  Result<void> put_new(std::string_view table, const std::vector<Row>& rows, Put&& put);
  template <typename Row, typename Put>
  Result<void> put_changed(std::string_view table, const std::vector<Row>& rows, std::vector<Row>& written, Put&& put);

  Result<void> put_enums();
  Result<void> put_strings(const profile::Profile& profile);
  Result<void> put_run(const profile::Profile& profile);
  Result<void> put_stats(const Diagnostics& losses);
  Result<void> put_tasks(const profile::Profile& profile);
  Result<void> put_code(const profile::Profile& profile);
  Result<void> put_labels(const profile::Profile& profile);
  Result<void> put_aggregates(const profile::Profile& profile);
  Result<void> put_samples(const profile::Profile& profile);
  Result<void> put_switches(const profile::Profile& profile);
  Result<void> put_tracks(const profile::Profile& profile);
  Result<void> put_slices(const profile::Profile& profile);
  Result<void> put_unknown();
  Result<void> put_unmapped();

  Database* database_;
  std::map<std::string, Statement, std::less<>> inserts_;  // by table
  std::map<std::string, size_t, std::less<>> counts_;      // rows written, by table
  SampleContexts contexts_;
  std::vector<profile::Process> processes_;
  std::vector<profile::Thread> threads_;
  std::vector<profile::Mapping> mappings_;
  std::vector<profile::Aggregate> aggregates_;
  std::vector<profile::Track> tracks_;
  bool has_unknown_ = false, has_unmapped_ = false;
};

}  // namespace cprof::store
