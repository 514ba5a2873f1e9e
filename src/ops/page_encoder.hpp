// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// From staged blocks to Parquet data pages (version 1): levels, values in the column's output encoding, statistics.
// One encoder per worker and column; the statistics of a partition's chunk live in its `ChunkTotals`.
// Thread safety: an encoder belongs to one worker; a `ChunkTotals` is used by one worker at a time.
#pragma once

#include <parquet/column_page.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "column_staging.hpp"
#include "dictionary.hpp"
#include "leaf_column.hpp"
#include "reserved_array.hpp"

namespace earmark::detail {

// The part of a block that belongs to one partition.
struct Run {
  Block const* block{nullptr};
  std::uint32_t entry_begin{0};
  std::uint32_t entry_end{0};
  std::uint32_t value_begin{0};
  std::uint32_t value_end{0};
  std::size_t byte_begin{0};
  std::size_t byte_end{0};
};

// What one partition's column chunk has seen so far.
struct ChunkTotals {
  std::shared_ptr<::parquet::Statistics> statistics;  // without a dictionary
  std::uint32_t smallest_index{UINT32_MAX};           // with one: ranks
  std::uint32_t largest_index{0};
  bool has_index{false};
  std::int64_t entries{0};
  std::int64_t values{0};
  std::int64_t rows{0};
  // Byte arrays: minimum and maximum, when `has_bytes`.
  std::string smallest_bytes;
  std::string largest_bytes;
  bool has_bytes{false};
};

// An encoded page, before compression. `body` lives until the encoder's next page.
struct EncodedPage {
  std::span<std::byte const> body;
  std::int32_t entries{0};
  std::int64_t rows{0};
  ::parquet::Encoding::type encoding{};
  ::parquet::EncodedStatistics statistics;
};

class PageEncoder {
 public:
  virtual ~PageEncoder() = default;
  // Encodes the runs, in order, as one page and adds them to `totals`.
  virtual EncodedPage encode(std::span<Run const> runs, ChunkTotals& totals) = 0;
  // Gives back what a page of unusual size took; the page that was encoded last goes with it.
  virtual void drop_large_scratch() noexcept = 0;
  // Prepares the totals of a new chunk.
  virtual ChunkTotals begin_chunk() const = 0;
  // Returns: the statistics of a chunk.
  [[nodiscard]] virtual ::parquet::EncodedStatistics chunk_statistics(ChunkTotals const& totals) const = 0;
};

// `dictionary` is null for a column without one; it must outlive the encoder.
[[nodiscard]] std::unique_ptr<PageEncoder> make_page_encoder(LeafColumn const& leaf,
                                                             ::parquet::ColumnDescriptor const& output, ValueForm form,
                                                             Dictionary const* dictionary, ::arrow::MemoryPool* pool);

// Returns: the part of `block` that belongs to `partition`.
[[nodiscard]] Run run_of(Block const& block, std::size_t partition, ValueForm form, int type_length) noexcept;

}  // namespace earmark::detail
