// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the job needs to know of one leaf column: how its values come out of Arrow's reader, how they lie in staging,
// and what is written. Also the output schema. Thread safety: values.
#pragma once

#include <parquet/schema.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace earmark::detail {

// How a value goes from the reader's array into staging.
enum class ValueForm {
  Copy1,       // booleans, as bytes
  Copy4,       // int32, float
  Copy8,       // int64, double
  Copy12,      // int96
  FixedBytes,  // fixed-length byte arrays
  Decimal4,    // fixed-length decimals as int32
  Decimal8,    // fixed-length decimals as int64
  Bytes,       // byte arrays: 4-byte length and bytes, which is Parquet's plain encoding
  Index1,      // indices into the output dictionary
  Index2,
};

struct LeafColumn {
  int index{0};
  std::string name;  // dotted path
  ::parquet::Type::type input_type{};
  ::parquet::Type::type output_type{};
  int type_length{0};  // of fixed-length byte arrays
  std::int16_t max_definition{0};
  std::int16_t max_repetition{0};
  // For each repetition level r the least definition level of an entry with an element at list depth r; 0 for r = 0.
  std::vector<std::int16_t> definition_of_repetition;
  ValueForm form{};  // without a dictionary

  // Returns: bytes of one value in the reader's array.
  [[nodiscard]] std::size_t read_width() const noexcept;
  // Returns: bytes of one value in staging; 0 for Bytes.
  [[nodiscard]] static std::size_t staged_width(ValueForm form, int type_length) noexcept;
};

// Returns: the leaf columns of a schema in order. Throws: InputError for nesting beyond 255 levels.
[[nodiscard]] std::vector<LeafColumn> leaf_columns(::parquet::SchemaDescriptor const& input);

// Returns: the input's schema, cut to these top-level columns where they are given, with fixed-length decimals of at
// most 18 digits stored as the integers they are: the same logical type, smaller and faster in every encoding.
[[nodiscard]] std::shared_ptr<::parquet::SchemaDescriptor const> output_schema(
    ::parquet::SchemaDescriptor const& input);
[[nodiscard]] std::shared_ptr<::parquet::SchemaDescriptor const> output_schema(
    ::parquet::SchemaDescriptor const& input, std::vector<int> const& top_level_columns);

}  // namespace earmark::detail
