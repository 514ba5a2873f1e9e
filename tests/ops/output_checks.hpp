// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What every output of the job must satisfy, checked against the input with Arrow alone. Each function reports through
// GoogleTest. Thread safety: none.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <string>
#include <vector>

namespace earmark {

// Every row of the inputs (in the order of the files) is in the file that the documented function names, in input
// order; schema and metadata are those of the inputs; there are exactly `partitions` files, and nothing else in the
// folder.
void expect_partitioned(std::vector<std::string> const& inputs, std::vector<std::string> const& by,
                        std::int64_t partitions, std::string const& folder);

// Counts, statistics and page index of a file say what is in its pages, and are there wherever they can be.
void expect_true_statistics(std::string const& path);

// Returns: the partition of each row of `table`, by `earmark/table/partition.hpp`.
std::vector<std::uint32_t> partitions_of_rows(arrow::Table const& table, std::vector<std::string> const& by,
                                              std::int64_t partitions);

// Returns: rows of each row group of a file.
std::vector<std::int64_t> row_group_rows(std::string const& path);

}  // namespace earmark
