// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// One dictionary for a column of a window: the union of its row groups' dictionaries, sorted, so that an index is also
// the value's rank and minimum and maximum of a page are those of its indices. Thread safety: built once, then read.
#pragma once

#include <parquet/schema.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "column_staging.hpp"
#include "earmark/core/executor.hpp"
#include "leaf_column.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

class Dictionary {
 public:
  // Returns: the dictionary when every row group of the window is dictionary encoded and the union is small enough to
  // be worth writing to each of `partitions` files; nothing otherwise.
  [[nodiscard]] static std::optional<Dictionary> unify(ParquetInput const& input, LeafColumn const& leaf,
                                                       ::parquet::ColumnDescriptor const& output,
                                                       std::span<WindowGroup const> window, std::size_t partitions,
                                                       Executor& executor, std::size_t workers);

  // Sorted, without length prefixes, in the output's physical type.
  [[nodiscard]] std::vector<std::string> const& values() const noexcept { return values_; }
  // Returns: how many values have a rank; those without (NaNs, types without order) stand behind them.
  [[nodiscard]] std::size_t ranked() const noexcept { return ranked_; }
  // Returns: the body of the dictionary page, plain encoding.
  [[nodiscard]] std::string const& page() const noexcept { return page_; }
  // Returns: the output index of each index that `open_chunk`'s reader gives.
  [[nodiscard]] std::vector<std::uint16_t> const& remap(std::size_t group_in_window) const noexcept {
    return remap_[group_in_window];
  }
  // Returns: a reader of a chunk's indices: those of its own dictionary where Arrow gives them out, else looked up.
  [[nodiscard]] std::unique_ptr<ChunkReader> open_chunk(ParquetInput const& input, LeafColumn const& leaf,
                                                        std::span<WindowGroup const> window,
                                                        std::size_t group_in_window, std::int64_t buffer_bytes,
                                                        ::arrow::MemoryPool* pool) const;

 private:
  std::vector<std::string> values_;
  std::size_t ranked_{0};
  std::string page_;
  std::vector<std::vector<std::uint16_t>> remap_;                // [row group of the window][input index]
  std::vector<DictionaryUse> uses_;                              // of each row group
  std::unordered_map<std::string_view, std::uint16_t> numbers_;  // by input bytes, where some group is looked up
  std::vector<std::string> input_values_;                        // what `numbers_` views
};

}  // namespace earmark::detail
