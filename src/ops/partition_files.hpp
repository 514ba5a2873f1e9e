// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The output files, all open at once, one row group and one column at a time. The only place that uses Parquet's page
// writer and metadata builders, which Arrow marks as internal or experimental.
// Thread safety: pages of different partitions may be written by different workers at once; the rest is for one thread.
#pragma once

#include <arrow/util/key_value_metadata.h>
#include <parquet/schema.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/ops/repartition.hpp"
#include "output_folder.hpp"
#include "page_encoder.hpp"

namespace earmark::detail {

// Returns: the codec that column `column` is written with: the one asked for, or the input's own.
[[nodiscard]] Compression output_compression(ParquetInput const& input, int column,
                                             std::optional<Compression> const& wanted);

class PartitionFiles {
 public:
  // Creates the files. `metadata` goes into every footer; `bytes_written` counts. `check_stop`
  // throws when the job is to stop; it is called within long work.
  PartitionFiles(FileSystem& file_system, OutputFolder const& folder, std::int64_t partitions,
                 std::shared_ptr<::parquet::SchemaDescriptor const> schema,
                 std::vector<Compression> const& column_compression,
                 std::shared_ptr<::arrow::KeyValueMetadata const> metadata, std::size_t workers,
                 ::arrow::MemoryPool* pool, std::atomic<std::int64_t>& bytes_written,
                 std::function<void()> const& check_stop);
  ~PartitionFiles();

  // Starts a row group in every file that gets rows: `rows[p]` of them in file p.
  void begin_row_group(std::vector<std::int64_t> const& rows);
  // `dictionary` is null for a column without one.
  void begin_column(Dictionary const* dictionary);
  // Compresses and appends a page to the current column of a file.
  void write_page(std::size_t worker, std::size_t partition, EncodedPage const& page, std::int64_t first_row);
  // Ends the current column of one file. Any thread, once a partition.
  void end_column(std::size_t partition, ::parquet::EncodedStatistics const& statistics);
  void end_row_group();
  // Writes page indices and footers and closes the files. Any thread, once a partition.
  void finish(std::size_t partition);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace earmark::detail
