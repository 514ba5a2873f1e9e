// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Random Arrow data of any type, the same for the same seed. Half of the columns draw from few values, so that writers
// make dictionaries of them. Floating-point columns have NaNs, infinities and both zeros. Thread safety: none.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <random>

namespace earmark {

enum class Variety { FewValues, ManyValues };

class RandomArrays {
 public:
  explicit RandomArrays(std::uint64_t seed) : random_(seed) {}

  // Returns: `length` values of `field`'s type; none is null unless the field is nullable.
  std::shared_ptr<arrow::Array> array(arrow::Field const& field, std::int64_t length, Variety variety);
  // Returns: a table of `rows` rows. Columns alternate between few and many values.
  std::shared_ptr<arrow::Table> table(std::shared_ptr<arrow::Schema> const& schema, std::int64_t rows);
  // Returns: a number in [0, end).
  std::uint64_t below(std::uint64_t end);

 private:
  struct Visitor;
  std::mt19937_64 random_;
};

}  // namespace earmark
