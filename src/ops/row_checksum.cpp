// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "row_checksum.hpp"

#include <fmt/format.h>
#include <parquet/types.h>

#include <algorithm>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <arrow/vendored/xxhash.h>

namespace earmark::detail {
namespace {

using ::parquet::Type;

Checksum hash_of(void const* data, std::size_t size, std::uint64_t seed) noexcept {
  XXH128_hash_t const hash = XXH3_128bits_withSeed(data, size, seed);
  return {hash.low64, hash.high64};
}

// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014): one to one, and every bit depends on every other.
std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9U;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebU;
  return x ^ (x >> 31);
}

std::int64_t from_big_endian(std::uint8_t const* bytes, int size) noexcept {
  std::uint64_t value = size > 0 && (bytes[0] & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
  for (int i = std::max(0, size - 8); i < size; ++i) { value = (value << 8) | bytes[i]; }
  return static_cast<std::int64_t>(value);
}

// Walks the entries of a chunk row by row.
class ChunkSum {
 public:
  ChunkSum(ParquetInput const& input, RowGroupRef const& group, LeafColumn const& leaf, RowPlaces const& places,
           ChecksumWorker& worker)
      : input_(input), group_(group), leaf_(leaf), places_(places), worker_(worker) {}

  void add(ChunkReader& reader, std::function<void()> const& check_stop) {
    for (;;) {
      check_stop();
      ChunkReader::Count const count =
          reader.read(static_cast<std::int64_t>(ChecksumWorker::batch_entries),
                      leaf_.max_definition > 0 ? worker_.definition.data() : nullptr,
                      leaf_.max_repetition > 0 ? worker_.repetition.data() : nullptr, worker_.values.data());
      if (count.entries == 0) { break; }
      add_batch(count);
    }
    if (rows_ != group_.rows) { fail(); }
  }

 private:
  [[noreturn]] void fail() const {
    input_.fail(group_, leaf_.index, fmt::format("it does not have the {} rows that its footer says", group_.rows));
  }

  void add_batch(ChunkReader::Count const& count) {
    auto const* const bytes = worker_.values.data();
    auto const integers = [&]<class T>(T const* values) {
      add_entries(count, [values](std::int64_t i, std::uint64_t seed) {
        std::int64_t const value = values[i];
        return hash_of(&value, sizeof value, seed);
      });
    };
    auto const raw = [&](std::size_t width) {
      add_entries(count, [bytes, width](std::int64_t i, std::uint64_t seed) {
        return hash_of(bytes + static_cast<std::size_t>(i) * width, width, seed);
      });
    };
    switch (leaf_.input_type) {
      case Type::BOOLEAN: integers(reinterpret_cast<bool const*>(bytes)); break;
      case Type::INT32: integers(reinterpret_cast<std::int32_t const*>(bytes)); break;
      case Type::INT64: integers(reinterpret_cast<std::int64_t const*>(bytes)); break;
      case Type::FIXED_LEN_BYTE_ARRAY: add_fixed(count); break;
      case Type::BYTE_ARRAY: {
        auto const* const values = reinterpret_cast<::parquet::ByteArray const*>(bytes);
        add_entries(count, [values](std::int64_t i, std::uint64_t seed) {
          return hash_of(values[i].ptr, values[i].len, seed);
        });
        break;
      }
      default: raw(leaf_.read_width()); break;
    }
  }

  void add_fixed(ChunkReader::Count const& count) {
    auto const* const values = reinterpret_cast<::parquet::FixedLenByteArray const*>(worker_.values.data());
    int const size = leaf_.type_length;
    bool const is_number = leaf_.output_type != leaf_.input_type;  // a decimal that is written as an integer
    add_entries(count, [values, size, is_number](std::int64_t i, std::uint64_t seed) {
      if (!is_number) { return hash_of(values[i].ptr, static_cast<std::size_t>(size), seed); }
      std::int64_t const value = from_big_endian(values[i].ptr, size);
      return hash_of(&value, sizeof value, seed);
    });
  }

  // `hash(i, seed)`: of the i-th value of the batch.
  template <class Hash>
  void add_entries(ChunkReader::Count const& count, Hash const& hash) {
    std::int64_t value = 0;
    for (std::int64_t entry = 0; entry < count.entries; ++entry) {
      auto const at = static_cast<std::size_t>(entry);
      int const repetition = leaf_.max_repetition > 0 ? worker_.repetition[at] : 0;
      int const definition = leaf_.max_definition > 0 ? worker_.definition[at] : 0;
      repetition == 0 ? begin_row() : continue_row();
      std::uint64_t const levels =
          static_cast<std::uint64_t>(definition) << 8U | static_cast<std::uint64_t>(repetition);
      std::uint64_t const seed = mixed(row_seed_ + (element_ << 16U | levels));
      bool const is_null = definition < leaf_.max_definition;
      sum_->add(is_null ? hash_of(nullptr, 0, seed) : hash(value, seed));
      value += is_null ? 0 : 1;
    }
  }

  void begin_row() {
    if (rows_ == group_.rows) { fail(); }
    std::size_t const partition = places_.ids == nullptr ? 0 : id_of(static_cast<std::size_t>(rows_));
    row_seed_ = mixed(static_cast<std::uint64_t>(places_.next_row[partition]++));
    sum_ = &places_.sums[partition];
    element_ = 0;
    ++rows_;
  }
  void continue_row() {
    if (sum_ == nullptr) { fail(); }
    ++element_;
  }
  [[nodiscard]] std::size_t id_of(std::size_t row) const noexcept {
    std::uint32_t id = 0;
    auto const width = static_cast<std::size_t>(places_.id_width);
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(&id, places_.ids + row * width, width);
    return id;
  }

  ParquetInput const& input_;
  RowGroupRef const& group_;
  LeafColumn const& leaf_;
  RowPlaces const& places_;
  ChecksumWorker& worker_;
  std::int64_t rows_{0};
  Checksum* sum_{nullptr};
  std::uint64_t row_seed_{0};
  std::uint64_t element_{0};
};

}  // namespace

ChecksumWorker::ChecksumWorker(::arrow::MemoryPool* pool)
    : definition(pool, batch_entries),
      repetition(pool, batch_entries),
      values(pool, batch_entries * sizeof(::parquet::ByteArray)) {}

void add_chunk(ParquetInput const& input, RowGroupRef const& group, LeafColumn const& leaf, RowPlaces const& places,
               ChecksumWorker& worker, std::int64_t buffer_bytes, std::function<void()> const& check_stop) {
  if (group.rows == 0) { return; }
  auto const reader = input.open_chunk(group, leaf.index, ReadAs::Values, buffer_bytes);
  ChunkSum(input, group, leaf, places, worker).add(*reader, check_stop);
}

}  // namespace earmark::detail
