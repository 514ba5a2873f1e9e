// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads input and output once more and compares them: schema, number of rows, and a checksum of each column of each
// file (row_checksum.hpp). Nothing that was computed while writing is used: partitions are computed anew from the keys,
// values are decoded plainly where the job passes dictionaries through, and the output is read as any reader would.
// Thread safety: one thread, which works on the executor with others.
#pragma once

#include <arrow/util/key_value_metadata.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "earmark/core/executor.hpp"
#include "earmark/core/file_system.hpp"
#include "leaf_column.hpp"
#include "parquet_input.hpp"
#include "row_checksum.hpp"
#include "row_router.hpp"

namespace earmark::detail {

// What a verification works with.
struct VerificationContext {
  FileSystem& file_system;
  Executor& executor;
  ::arrow::MemoryPool* pool{nullptr};
  std::size_t workers{1};
  std::int64_t partitions{1};
  std::int64_t read_buffer_bytes{0};
  std::int64_t most_rows_at_once{0};  // for whose partition ids there is memory; a row group is taken whole
  // Called after each piece of work, and within long ones, by the worker that does it: looks for a stop and reports
  // progress. `rows`: rows of one column that were read.
  std::function<void(std::size_t worker, double rows)> after_work;
};

// What the output should be.
struct WrittenColumns {
  std::vector<LeafColumn> const& leaves;  // those of the input that were written
  ::parquet::SchemaDescriptor const& schema;
  std::shared_ptr<::arrow::KeyValueMetadata const> metadata;
};

class Verification {
 public:
  // `key_columns`: leaf columns of the input.
  Verification(VerificationContext context, ParquetInput const& input, WrittenColumns const& written,
               std::vector<int> const& key_columns);
  // `paths[p]`: the file of partition p. Throws: InternalError that names the first difference that was found;
  // InputError when the input cannot be read any more; FileSystemError; std::bad_alloc; what `after_work` throws.
  void run(std::vector<std::string> const& paths);

 private:
  void add_input();
  void add_stretch(std::span<RowGroupRef const> groups);
  void check_file(std::size_t worker, std::size_t partition, std::string const& path);
  void check_descriptions(ParquetInput const& output, std::string const& path) const;
  void check_keys(std::size_t worker, std::size_t partition, ParquetInput const& output, std::string const& path);
  // Returns: what looks for a stop within one piece of a worker's work.
  [[nodiscard]] std::function<void()> stop_of(std::size_t worker) const;
  [[nodiscard]] RoutingWorker& routing_worker(std::size_t worker);
  [[nodiscard]] ChecksumWorker& checksum_worker(std::size_t worker);

  VerificationContext context_;
  ParquetInput const& input_;
  std::vector<LeafColumn> const& leaves_;
  ::parquet::SchemaDescriptor const& schema_;
  std::shared_ptr<::arrow::KeyValueMetadata const> metadata_;
  RowRouter router_;
  std::vector<LeafColumn> output_leaves_;
  std::vector<int> output_keys_;         // the key columns in the output; empty unless it has all of them
  ReservedArray<Checksum> sums_;         // [column][partition]
  ReservedArray<std::int64_t> rows_;     // [partition]
  ReservedArray<std::int64_t> scratch_;  // [worker][partition]
  std::vector<std::unique_ptr<RoutingWorker>> routing_workers_;
  std::vector<std::unique_ptr<ChecksumWorker>> checksum_workers_;
};

}  // namespace earmark::detail
