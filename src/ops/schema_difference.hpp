// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether two files have one schema: the same names, order, physical and logical types, and nullability.
// Thread safety: pure functions.
#pragma once

#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <optional>
#include <string>

namespace earmark::detail {

// How two schemas differ, in words, and the dotted path of the column where they first do.
struct SchemaDifference {
  std::string text;
  std::string column;
};

// Returns: the first difference, if any. What the files are called inside (the root's name) does not matter.
[[nodiscard]] std::optional<SchemaDifference> schema_difference(::parquet::SchemaDescriptor const& expected,
                                                                ::parquet::SchemaDescriptor const& found);
// As above, and durations must have one unit, of which only the Arrow schema beside Parquet's tells.
// Throws: parquet::ParquetException for an Arrow schema that cannot be read.
[[nodiscard]] std::optional<SchemaDifference> schema_difference(::parquet::FileMetaData const& expected,
                                                                ::parquet::FileMetaData const& found);

}  // namespace earmark::detail
