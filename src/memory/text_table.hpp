// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain text tables, and numbers as reports print them. Thread safety: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace earmark::detail {

// Rows of cells whose columns line up: each as wide as its widest cell, counted in characters of UTF-8 text.
class TextTable {
 public:
  enum Side : std::uint8_t { Left, Right };

  // `columns`: on which side each column's cells are.
  explicit TextTable(std::vector<Side> columns) : columns_(std::move(columns)) {}

  // Requires: a cell for each column. Control characters are printed as '?', so that a label cannot break a row.
  void add(std::vector<std::string> row);
  // Returns: each row indented by two spaces, without spaces at its end, with a line end.
  [[nodiscard]] std::string to_text() const;

 private:
  std::vector<Side> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Returns: bytes plain and for people: "1536 B (1.5 KiB)"; below 1 KiB just "17 B".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

// Returns: "0 s", "17 ns", "1.5 ms", "12.35 s", "90 s": the largest unit up to seconds, with up to two decimals.
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace earmark::detail
