// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "window_planner.hpp"

#include <algorithm>

#include "earmark/core/bytes.hpp"

namespace earmark::detail {
namespace {

constexpr std::int64_t full_group_rows = 122'880;
constexpr std::int64_t full_group_bytes = 64 << 20;
constexpr std::int64_t extension_divisor = 10;  // a window grows by a tenth of its least size at a time
constexpr std::int64_t most_windows = 4;        // a window is at most four times N full row groups

// Returns: about how many bytes a row takes as Arrow: sizes before compression, as the footers tell.
double arrow_bytes_a_row(ParquetInput const& input) {
  double bytes = 0;
  std::int64_t rows = 0;
  for (RowGroupRef const& group : input.row_groups()) {
    for (int column = 0; column < input.schema().num_columns(); ++column) {
      auto const chunk = input.chunk(group, column);
      auto const* const leaf = input.schema().Column(column);
      int const width = ::parquet::GetTypeByteSize(leaf->physical_type());
      double const fixed =
          static_cast<double>(chunk->num_values()) *
          (leaf->physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY ? leaf->type_length() : width);
      bytes += std::max(fixed, static_cast<double>(chunk->total_uncompressed_size()));
    }
    rows += group.rows;
    if (rows >= full_group_rows) { break; }
  }
  return rows == 0 ? 0 : bytes / static_cast<double>(rows);
}

}  // namespace

std::int64_t rows_of_full_row_group(ParquetInput const& input, std::optional<std::int64_t> row_group_bytes) {
  double const a_row = std::max(arrow_bytes_a_row(input), 1.0);
  double const fitting = static_cast<double>(row_group_bytes.value_or(full_group_bytes)) / a_row;
  constexpr double most_rows = 1e15;  // beyond any file, and exact in both types
  auto const rows = static_cast<std::int64_t>(std::min(fitting, most_rows));
  return std::max<std::int64_t>(1, row_group_bytes ? rows : std::min(rows, full_group_rows));
}

WindowPlanner::WindowPlanner(std::span<RowGroupRef const> groups, std::int64_t total_rows, std::int64_t partitions,
                             std::int64_t goal_rows)
    : groups_(groups), goal_rows_(goal_rows), rows_left_(total_rows) {
  // A tenth more than N full row groups, so that hashing's unevenness leaves no file short.
  auto const whole = checked_multiply(partitions, goal_rows);
  least_rows_ = whole ? checked_add(*whole, *whole / 10).value_or(INT64_MAX) : INT64_MAX;
  most_rows_ = whole ? checked_multiply(*whole, most_windows).value_or(INT64_MAX) : INT64_MAX;
}

std::int64_t WindowPlanner::most_window_rows() const noexcept {
  std::int64_t largest_group = 0;
  for (RowGroupRef const& group : groups_) { largest_group = std::max(largest_group, group.rows); }
  std::int64_t const windows = std::max<std::int64_t>(1, rows_left_ / least_rows_);
  std::int64_t const begun = rows_left_ / windows;
  std::int64_t const extended = checked_add(most_rows_, least_rows_ / extension_divisor).value_or(INT64_MAX);
  return std::min(rows_left_, checked_add(std::max(begun, extended), largest_group).value_or(INT64_MAX));
}

std::span<RowGroupRef const> WindowPlanner::begin_window() {
  window_rows_ = 0;
  std::int64_t const windows = std::max<std::int64_t>(1, rows_left_ / least_rows_);
  return windows == 1 ? take(rows_left_) : take(rows_left_ / windows);
}

std::span<RowGroupRef const> WindowPlanner::extend_window(std::span<std::int64_t const> counts) {
  bool const short_file =
      std::any_of(counts.begin(), counts.end(), [&](std::int64_t rows) { return rows > 0 && rows < goal_rows_; });
  if (!short_file || window_rows_ >= most_rows_) { return {}; }
  return take(std::max<std::int64_t>(1, least_rows_ / extension_divisor));
}

std::span<RowGroupRef const> WindowPlanner::take(std::int64_t rows) {
  std::size_t const begin = next_;
  std::int64_t taken = 0;
  while (next_ < groups_.size() && (taken < rows || groups_[next_].rows == 0)) {
    taken += groups_[next_].rows;
    ++next_;
  }
  window_rows_ += taken;
  rows_left_ -= taken;
  return groups_.subspan(begin, next_ - begin);
}

}  // namespace earmark::detail
