// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Staging: decoded values of one column, grouped by partition, between the input's row groups and the output's pages.
// A slot holds the blocks of one row group (or of a stretch of it, when the row group is larger than the slot); a block
// holds one decoded batch, partition after partition. All memory is reserved before the column is read.
// Thread safety: different slots may be filled by different workers at once, each with its own `StagingWorker`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "leaf_column.hpp"
#include "parquet_input.hpp"
#include "reserved_array.hpp"

namespace earmark::detail {

// One row group of the current window, with the partition of each of its rows.
struct WindowGroup {
  RowGroupRef group;
  std::byte* ids{nullptr};  // 1, 2 or 4 bytes a row
};

// A decoded batch, grouped by partition. The arrays of ends have one entry a partition: partition p is [ends[p-1],
// ends[p]).
struct Block {
  std::uint32_t const* entry_ends{nullptr};
  std::uint32_t const* value_ends{nullptr};  // the same array where every entry has a value
  std::uint32_t const* byte_ends{nullptr};   // Bytes only
  std::uint8_t const* definition{nullptr};   // null where every entry is defined
  std::uint8_t const* repetition{nullptr};   // null for columns without repetition
  std::byte const* values{nullptr};
};

// How one column is staged during a window.
struct StagingPlan {
  LeafColumn const* leaf{nullptr};
  ValueForm form{};
  int id_width{1};
  std::size_t partitions{0};
  std::int64_t batch_entries{0};
  std::size_t most_block_bytes{SIZE_MAX};  // of values, unless one record is larger
  std::function<std::unique_ptr<ChunkReader>(std::size_t group_in_window)> open_chunk;
  // With a dictionary: the output index of each index that the chunk's reader gives.
  std::function<std::uint16_t const*(std::size_t group_in_window)> remap;
};

// The reader's arrays for one batch, and the position in it.
class DecodedBatch {
 public:
  DecodedBatch(::arrow::MemoryPool* pool, StagingPlan const& plan);

  // Drops what was consumed and reads on until enough whole records are there.
  // Returns: false at the end of the chunk.
  bool refill(ChunkReader& reader);

  [[nodiscard]] std::int64_t ready_entries() const noexcept { return ready_ - entry_; }
  [[nodiscard]] std::int16_t const* definition() const noexcept { return definition_.data() + entry_; }
  [[nodiscard]] std::int16_t const* repetition() const noexcept { return repetition_.data() + entry_; }
  [[nodiscard]] std::byte const* values() const noexcept {
    return values_.data() + static_cast<std::size_t>(value_) * width_;
  }
  void consume(std::int64_t entries, std::int64_t values) noexcept;
  // Makes it ready for another chunk.
  void reset() noexcept;
  [[nodiscard]] std::int64_t total_entries() const noexcept { return total_entries_; }

 private:
  void keep_rest();
  void keep_bytes(std::int64_t first, std::int64_t end);
  [[nodiscard]] std::int64_t bytes_of(std::int64_t first, std::int64_t end) const;
  [[nodiscard]] std::int64_t end_of_whole_records() const;

  StagingPlan const& plan_;
  ::arrow::MemoryPool* pool_;
  std::size_t width_;
  bool has_pointers_;
  ReservedArray<std::int16_t> definition_;
  ReservedArray<std::int16_t> repetition_;
  ReservedArray<std::byte> values_;
  std::deque<ReservedArray<std::byte>> kept_;  // bytes whose page may go before they are consumed
  std::int64_t capacity_{0};
  std::int64_t entries_{0};  // read into the arrays
  std::int64_t values_read_{0};
  std::int64_t ready_{0};  // entries of whole records
  std::int64_t entry_{0};  // consumed
  std::int64_t value_{0};
  std::int64_t total_entries_{0};  // of the chunk so far
  bool ended_{false};
};

// Working space of one worker while it fills slots.
struct StagingWorker {
  StagingWorker(::arrow::MemoryPool* pool, StagingPlan const& plan);
  ReservedArray<std::uint32_t> counts;  // two sets, zero between uses
  ReservedArray<std::uint32_t> cursors;
  ReservedArray<std::byte> entry_ids;  // partition of each entry, where it is not that of a row
  ReservedArray<std::byte> value_ids;
  std::unique_ptr<DecodedBatch> spare_batch;
};

class StagingSlot {
 public:
  explicit StagingSlot(std::span<std::byte> memory) : memory_(memory) {}

  // Points the slot at the next row group.
  void begin(std::size_t group_in_window) noexcept;
  // Decodes into the slot until its row group is complete or its memory is full.
  // Throws: InputError; std::bad_alloc when not even one record fits and the budget has no more.
  void fill(ParquetInput const& input, StagingPlan const& plan, std::span<WindowGroup const> window,
            StagingWorker& worker, ::arrow::MemoryPool* pool);
  // Forgets the blocks after they were written.
  void drop_blocks() noexcept;

  [[nodiscard]] std::vector<Block> const& blocks() const noexcept { return blocks_; }
  [[nodiscard]] bool is_complete() const noexcept { return complete_; }
  [[nodiscard]] bool is_full() const noexcept { return full_; }
  // Rows, entries and values of the row group staged so far.
  [[nodiscard]] std::int64_t rows() const noexcept { return row_; }
  [[nodiscard]] std::int64_t entries() const noexcept { return entries_; }
  [[nodiscard]] std::int64_t values() const noexcept { return values_; }

 private:
  // A stretch of whole records and the bytes that its block takes.
  template <class Id>
  struct BlockShape {
    std::int64_t entries{0};
    std::int64_t rows{0};
    std::span<Id const> entry_ids;
    std::span<Id const> value_ids;
    bool has_nulls{false};
    std::size_t value_bytes{0};
    std::size_t bytes{0};
  };
  template <class Id>
  bool append_block(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group, StagingWorker& worker,
                    ::arrow::MemoryPool* pool);
  template <class Id>
  BlockShape<Id> shape_of(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group,
                          StagingWorker& worker, std::int64_t entries);
  [[nodiscard]] std::int64_t shorter_stretch(StagingPlan const& plan, std::int64_t entries) const;
  template <class Id>
  Block build_block(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group, StagingWorker& worker,
                    BlockShape<Id> const& shape, std::byte* memory);
  template <class Id>
  std::span<Id const> ids_of_entries(StagingPlan const& plan, WindowGroup const& group, StagingWorker& worker,
                                     std::int64_t entries, std::int64_t& rows);
  template <class Id>
  std::span<Id const> ids_of_values(StagingPlan const& plan, StagingWorker& worker, std::span<Id const> entry_ids);
  template <class Id>
  void scatter(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group, std::span<Id const> ids,
               std::byte* out, std::uint32_t* cursors);

  std::span<std::byte> memory_;
  std::size_t used_{0};
  std::vector<Block> blocks_;
  std::vector<ReservedArray<std::byte>> oversize_;  // blocks of one record that is larger than the slot
  std::size_t group_{0};
  std::unique_ptr<ChunkReader> reader_;
  std::unique_ptr<DecodedBatch> batch_;
  std::int64_t row_{0};      // rows of the row group staged so far
  std::int64_t entries_{0};  // of the row group so far
  std::int64_t values_{0};
  bool begun_{false};
  bool complete_{false};
  bool full_{false};
  bool has_large_record_{false};  // in the last block
};

}  // namespace earmark::detail
