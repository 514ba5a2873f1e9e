// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which input row groups make one output row group. A window takes whole row groups until every file that gets rows has
// enough for a good row group; the windows are of nearly equal size. The plan depends on the data alone, never on
// memory or threads. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "parquet_input.hpp"

namespace earmark::detail {

// Rows that fill an output row group: 122,880, or fewer where rows are so wide that they make 64 MiB of Arrow before;
// with `row_group_bytes`, as many as make that.
[[nodiscard]] std::int64_t rows_of_full_row_group(ParquetInput const& input,
                                                  std::optional<std::int64_t> row_group_bytes);

class WindowPlanner {
 public:
  // `goal_rows`: rows of a full output row group.
  WindowPlanner(std::span<RowGroupRef const> groups, std::int64_t total_rows, std::int64_t partitions,
                std::int64_t goal_rows);

  [[nodiscard]] bool done() const noexcept { return next_ == groups_.size(); }
  // Returns: the row groups that the next window begins with.
  [[nodiscard]] std::span<RowGroupRef const> begin_window();
  // Returns: the row groups to add, given the rows that each file has so far; none when the window is complete.
  [[nodiscard]] std::span<RowGroupRef const> extend_window(std::span<std::int64_t const> counts);
  // Returns: rows of the current window.
  [[nodiscard]] std::int64_t window_rows() const noexcept { return window_rows_; }
  // Returns: the most rows that a window can come to.
  [[nodiscard]] std::int64_t most_window_rows() const noexcept;

 private:
  [[nodiscard]] std::span<RowGroupRef const> take(std::int64_t rows);

  std::span<RowGroupRef const> groups_;
  std::int64_t goal_rows_;
  std::int64_t least_rows_;  // of a window
  std::int64_t most_rows_;   // beyond which it is not extended
  std::size_t next_{0};
  std::int64_t rows_left_;
  std::int64_t window_rows_{0};
};

}  // namespace earmark::detail
