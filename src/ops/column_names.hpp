// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// From the names that a user gives to the columns of the input, and what of the input's metadata still holds when only
// some columns are kept. Thread safety: pure functions.
#pragma once

#include <arrow/util/key_value_metadata.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leaf_column.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

// Returns: the index of the top-level column of that name; nothing when there is none. `role`: "key column", "column".
// Throws: InputError when several have the name.
[[nodiscard]] std::optional<int> find_top_level_column(ParquetInput const& input, std::string const& name,
                                                       std::string_view role);
// Throws: InputError that tells which columns there are.
[[noreturn]] void fail_for_unknown_column(ParquetInput const& input, std::string const& name, std::string_view role);

// Returns: the top-level columns of the output in the order of the input: those of `names`, or all when there are none.
// Throws: InputError for a name that is unknown or ambiguous; UsageError for one named twice.
[[nodiscard]] std::vector<int> find_output_columns(ParquetInput const& input,
                                                   std::optional<std::vector<std::string>> const& names);

// Returns: those leaf columns of the input that are, or are below, these top-level columns.
[[nodiscard]] std::vector<LeafColumn> leaf_columns_below(::parquet::SchemaDescriptor const& input,
                                                         std::vector<int> const& top_level_columns);

// Returns: the key-value metadata of a file, for these of its top-level columns. What describes columns one by one and
// would contradict the file is cut to them (Arrow's schema) or left out (Spark's, which its readers believe more than
// the file).
[[nodiscard]] std::shared_ptr<::arrow::KeyValueMetadata const> metadata_for_columns(
    ::parquet::FileMetaData const& footer, std::vector<int> const& top_level_columns);

}  // namespace earmark::detail
