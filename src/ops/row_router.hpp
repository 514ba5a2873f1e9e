// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Pass 0: which partition each row goes to, from the key columns alone.
// Thread safety: `route` may be called from any thread, each with its own `RoutingWorker`.
#pragma once

#include <parquet/schema.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "earmark/table/partition.hpp"
#include "parquet_input.hpp"
#include "reserved_array.hpp"

namespace earmark::detail {

// Returns: the leaf columns that `names` mean, in their order. Throws: InputError for a name that is unknown, nested or
// ambiguous; UsageError for none or one named twice.
[[nodiscard]] std::vector<int> find_key_columns(ParquetInput const& input, std::vector<std::string> const& names);

// How the values of a key column are hashed: by logical type, whatever the storage.
enum class KeyKind {
  Null,
  Boolean,
  Int8,
  Int16,
  Int32,
  Int64,
  Int96,
  Float,
  Double,
  Half,
  Bytes,
  FixedBytes,
  DecimalInt32,
  DecimalInt64,
  DecimalBytes,
  DecimalFixedBytes
};

// Working space of one worker.
struct RoutingWorker {
  explicit RoutingWorker(::arrow::MemoryPool* pool);
  ReservedArray<std::int16_t> definition;
  ReservedArray<std::byte> values;
  ReservedArray<std::uint32_t> value_hashes;
  ReservedArray<std::uint32_t> column_hashes;
  ReservedArray<std::uint32_t> row_hashes;
  ReservedArray<std::byte> ids;
};

class RowRouter {
 public:
  RowRouter(ParquetInput const& input, std::vector<int> const& key_columns, std::int64_t partitions);

  // Returns: bytes of one partition id: 1, 2 or 4.
  [[nodiscard]] int id_width() const noexcept { return id_width_; }
  // Writes the partition of each row of `group` to `ids`, unless that is null, and adds to `counts[p]`.
  // `check_stop` is called for each batch. Throws: InputError; std::bad_alloc; what `check_stop` throws.
  void route(RowGroupRef const& group, std::byte* ids, std::span<std::int64_t> counts, RoutingWorker& worker,
             std::int64_t buffer_bytes, std::function<void()> const& check_stop) const;

 private:
  struct Key {
    int column{0};
    KeyKind kind{};
    int precision{0};
    std::size_t width{0};  // of fixed-length byte arrays
    bool nullable{false};
  };
  void hash_rows(Key const& key, ChunkReader& reader, RowGroupRef const& group, std::size_t rows,
                 RoutingWorker& worker) const;
  static void hash_values_of(Key const& key, std::byte const* values, std::size_t count, std::uint32_t* hashes);
  template <class Id>
  void assign(std::span<std::uint32_t const> hashes, std::byte* ids, std::span<std::int64_t> counts) const;

  ParquetInput const& input_;
  std::vector<Key> keys_;
  PartitionFunction function_;
  int id_width_;
};

}  // namespace earmark::detail
