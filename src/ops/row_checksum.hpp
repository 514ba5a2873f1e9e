// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Checksums of a column's rows that do not depend on who reads them when: sums, modulo 2^128, of a hash of each value
// together with where it stands, i.e. the number of its row in the file it belongs to, the number of the element in the
// row, and its definition and repetition levels. So equal checksums of every column mean equal rows in equal order,
// with nothing moved from one row to another, while columns, row groups and files may be read one by one, in any order
// and by any thread. Numbers are hashed by their value, whatever Parquet stores them as. Thread safety: `add_chunk` may
// be called from any thread, each with its own worker and places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "leaf_column.hpp"
#include "parquet_input.hpp"
#include "reserved_array.hpp"

namespace earmark::detail {

struct Checksum {
  std::uint64_t low{0};
  std::uint64_t high{0};

  void add(Checksum const& other) noexcept {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
  }
  bool operator==(Checksum const&) const = default;
};

// Working space of one worker.
struct ChecksumWorker {
  static constexpr std::size_t batch_entries = 8192;
  explicit ChecksumWorker(::arrow::MemoryPool* pool);
  ReservedArray<std::int16_t> definition;
  ReservedArray<std::int16_t> repetition;
  ReservedArray<std::byte> values;
};

// Where the rows of a row group belong.
struct RowPlaces {
  std::byte const* ids{nullptr};       // the partition of each row; null: all belong to the first
  int id_width{1};                     // bytes of one of them: 1, 2 or 4
  std::span<std::int64_t> next_row{};  // by partition: the number of the next row in its file; counted on
  std::span<Checksum> sums{};          // by partition: added to
};

// Adds all values of a column chunk. `check_stop` is called for each batch.
// Throws: InputError, also for a chunk that has not exactly the row group's rows; std::bad_alloc; what `check_stop`
// throws.
void add_chunk(ParquetInput const& input, RowGroupRef const& group, LeafColumn const& leaf, RowPlaces const& places,
               ChecksumWorker& worker, std::int64_t buffer_bytes, std::function<void()> const& check_stop);

}  // namespace earmark::detail
