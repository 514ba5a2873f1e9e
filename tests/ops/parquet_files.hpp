// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing test input and reading output with Arrow, and the job with the settings that tests want: no admission check
// and a limit that does not matter, since the resident size of a test's process says nothing. Thread safety: none.
#pragma once

#include <arrow/type_fwd.h>
#include <parquet/properties.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "earmark/ops/repartition.hpp"

namespace earmark {

// How a test file is written. Encodings and codecs go to `properties`.
struct WriterSettings {
  std::int64_t row_group_rows{1 << 20};
  bool int96{false};
  bool store_schema{true};
  std::shared_ptr<parquet::WriterProperties> properties{parquet::default_writer_properties()};
};

void write_parquet(arrow::Table const& table, std::string const& path, WriterSettings const& settings = {});
// Writes one row group for each of `row_group_rows`, which may be 0.
void write_row_groups(arrow::Table const& table, std::string const& path,
                      std::vector<std::int64_t> const& row_group_rows, WriterSettings const& settings = {});
std::shared_ptr<arrow::Table> read_parquet(std::string const& path);

// Returns: options for a job that has memory in plenty.
RepartitionOptions plenty_of_memory(std::vector<std::string> inputs, std::vector<std::string> by,
                                    std::int64_t partitions, std::string output);
// Runs the job on a pool of three threads and the real disk.
RepartitionResult run(RepartitionOptions const& options);
std::string part_path(std::string const& folder, std::int64_t partition);

}  // namespace earmark
