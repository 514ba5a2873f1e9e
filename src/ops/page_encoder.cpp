// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "page_encoder.hpp"

#include <arrow/buffer.h>
#include <parquet/encoding.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "byte_extremes.hpp"
#include "rle_bit_packing.hpp"

namespace earmark::detail {
namespace {

using ::parquet::EncodedStatistics;
using ::parquet::Encoding;

// A longer minimum or maximum is left out, as Parquet writers do by default.
constexpr std::size_t max_statistic_bytes = 4096;

// Appends to a growing page body.
class PageBody {
 public:
  explicit PageBody(::arrow::MemoryPool* pool) : bytes_(pool) {}

  void clear() noexcept { size_ = 0; }
  void drop_if_large() noexcept {
    if (bytes_.size() > most_kept_bytes) { bytes_.release(); }
    size_ = 0;
  }
  // Returns: where to write up to `room` bytes; `commit` says how many were.
  std::byte* reserve(std::size_t room) {
    bytes_.grow(size_ + room, size_);
    return bytes_.data() + size_;
  }
  void commit(std::size_t bytes) noexcept { size_ += bytes; }
  void append(void const* from, std::size_t bytes) {
    if (bytes == 0) { return; }
    std::memcpy(reserve(bytes), from, bytes);
    commit(bytes);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::byte* at(std::size_t offset) noexcept { return bytes_.data() + offset; }
  [[nodiscard]] std::span<std::byte const> view() const noexcept { return {bytes_.data(), size_}; }

 private:
  static constexpr std::size_t most_kept_bytes = 2 << 20;

  ReservedArray<std::byte> bytes_;
  std::size_t size_{0};
};

// What all encoders share: levels, counts, and the frame of a page.
class LevelledPageEncoder : public PageEncoder {
 public:
  LevelledPageEncoder(LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output, ::arrow::MemoryPool* pool)
      : leaf_(leaf), output_(output), body_(pool), levels_(pool) {}

  EncodedPage encode(std::span<Run const> runs, ChunkTotals& totals) final {
    body_.clear();
    EncodedPage page;
    std::int64_t values = 0;
    for (Run const& run : runs) {
      page.entries += static_cast<std::int32_t>(run.entry_end - run.entry_begin);
      values += run.value_end - run.value_begin;
    }
    page.rows = page.entries;
    if (leaf_.max_repetition > 0) {
      page.rows = put_levels(runs, &Block::repetition, leaf_.max_repetition, page.entries);
    }
    if (leaf_.max_definition > 0) { put_levels(runs, &Block::definition, leaf_.max_definition, page.entries); }
    page.encoding = put_values(runs, values, page.statistics, totals);
    page.statistics.set_null_count(page.entries - values);
    page.statistics.all_null_value = values == 0;
    page.body = body_.view();
    totals.entries += page.entries;
    totals.values += values;
    totals.rows += page.rows;
    return page;
  }

  EncodedStatistics chunk_statistics(ChunkTotals const& totals) const final {
    EncodedStatistics statistics = extremes(totals);
    statistics.set_null_count(totals.entries - totals.values);
    statistics.all_null_value = totals.values == 0;
    return statistics;
  }

  ChunkTotals begin_chunk() const override { return {}; }

  void drop_large_scratch() noexcept final { body_.drop_if_large(); }

 protected:
  // Appends the values to `body_` and sets minimum and maximum.
  virtual Encoding::type put_values(std::span<Run const> runs, std::int64_t values, EncodedStatistics& statistics,
                                    ChunkTotals& totals) = 0;
  // Returns: minimum and maximum of a chunk.
  [[nodiscard]] virtual EncodedStatistics extremes(ChunkTotals const& totals) const = 0;

  LeafColumn const& leaf_;
  ::parquet::ColumnDescriptor const& output_;
  PageBody body_;

 private:
  // Appends one kind of levels with their length. Returns: how many of them are 0.
  std::int64_t put_levels(std::span<Run const> runs, std::uint8_t const* Block::* levels, int max_level,
                          std::int64_t entries) {
    constexpr std::size_t length_bytes = sizeof(std::uint32_t);
    constexpr std::size_t read_slack = 8;
    int const bit_width = bit_width_for(static_cast<std::uint32_t>(max_level));
    auto const count = static_cast<std::size_t>(entries);
    std::size_t const begin = body_.size();
    std::byte* const out = body_.reserve(length_bytes + max_rle_bit_packed_bytes(count, bit_width)) + length_bytes;
    std::size_t written = 0;
    std::int64_t zeros = 0;
    bool const all_defined =
        std::none_of(runs.begin(), runs.end(), [&](Run const& run) { return run.block->*levels != nullptr; });
    if (all_defined) {
      written = encode_rle_run(static_cast<std::uint32_t>(max_level), count, bit_width, out);
    } else {
      levels_.make_room(count + read_slack);
      std::size_t at = 0;
      for (Run const& run : runs) {
        std::size_t const size = run.entry_end - run.entry_begin;
        if (std::uint8_t const* const from = run.block->*levels) {
          std::memcpy(levels_.data() + at, from + run.entry_begin, size);
        } else {
          std::memset(levels_.data() + at, max_level, size);
        }
        at += size;
      }
      zeros = std::count(levels_.data(), levels_.data() + count, std::uint8_t{0});
      written = encode_rle_bit_packed(std::span<std::uint8_t const>(levels_.data(), count), bit_width, out);
    }
    auto const length = static_cast<std::uint32_t>(written);
    std::memcpy(body_.at(begin), &length, sizeof length);
    body_.commit(length_bytes + written);
    return zeros;
  }

  ReservedArray<std::uint8_t> levels_;
};

// Values of a type whose staged form is an array of Parquet's C type: statistics by Arrow; integers as deltas, the rest
// plain.
template <class Type>
class FixedWidthEncoder final : public LevelledPageEncoder {
  using T = typename Type::c_type;
  static constexpr bool is_integer =
      std::is_same_v<Type, ::parquet::Int32Type> || std::is_same_v<Type, ::parquet::Int64Type>;

 public:
  FixedWidthEncoder(LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output, ::arrow::MemoryPool* pool)
      : LevelledPageEncoder(leaf, output, pool), pool_(pool) {
    if constexpr (is_integer) {
      delta_ = ::parquet::MakeTypedEncoder<Type>(Encoding::DELTA_BINARY_PACKED, false, &output, pool);
    }
  }

  ChunkTotals begin_chunk() const override {
    ChunkTotals totals;
    if (has_order()) { totals.statistics = ::parquet::MakeStatistics<Type>(&output_, pool_); }
    return totals;
  }

 protected:
  Encoding::type put_values(std::span<Run const> runs, std::int64_t, EncodedStatistics& statistics,
                            ChunkTotals& totals) override {
    std::shared_ptr<::parquet::TypedStatistics<Type>> page;
    if (has_order()) { page = ::parquet::MakeStatistics<Type>(&output_, pool_); }
    for (Run const& run : runs) {
      auto const* const values = reinterpret_cast<T const*>(run.block->values) + run.value_begin;
      std::size_t const count = run.value_end - run.value_begin;
      if (count == 0) { continue; }
      if (page) { page->Update(values, static_cast<std::int64_t>(count), 0); }
      if constexpr (is_integer) {
        delta_->Put(values, static_cast<int>(count));
      } else if constexpr (std::is_same_v<Type, ::parquet::BooleanType>) {
        bits_.insert(bits_.end(), values, values + count);
      } else {
        body_.append(values, count * sizeof(T));
      }
    }
    if (page) {
      statistics = page->Encode();
      static_cast<::parquet::TypedStatistics<Type>&>(*totals.statistics).Merge(*page);
    }
    if constexpr (is_integer) {
      auto const encoded = delta_->FlushValues();
      body_.append(encoded->data(), static_cast<std::size_t>(encoded->size()));
      return Encoding::DELTA_BINARY_PACKED;
    }
    if constexpr (std::is_same_v<Type, ::parquet::BooleanType>) { put_bits(); }
    return Encoding::PLAIN;
  }

  EncodedStatistics extremes(ChunkTotals const& totals) const override {
    return totals.statistics ? totals.statistics->Encode() : EncodedStatistics();
  }

 private:
  [[nodiscard]] bool has_order() const { return output_.sort_order() != ::parquet::SortOrder::UNKNOWN; }

  void put_bits() {
    std::size_t const bytes = (bits_.size() + 7) / 8;
    std::byte* const out = body_.reserve(bytes);
    std::fill(out, out + bytes, std::byte{0});
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      out[i / 8] |= static_cast<std::byte>((bits_[i] ? 1U : 0U) << (i % 8));
    }
    body_.commit(bytes);
    bits_.clear();
  }

  ::arrow::MemoryPool* pool_;
  std::unique_ptr<::parquet::TypedEncoder<Type>> delta_;
  std::vector<std::uint8_t> bits_;  // booleans of the page, one a byte
};

// Fixed-length byte arrays, plain.
class FixedBytesEncoder final : public LevelledPageEncoder {
 public:
  FixedBytesEncoder(LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output, ::arrow::MemoryPool* pool)
      : LevelledPageEncoder(leaf, output, pool), pool_(pool), pointers_(pool) {}

  ChunkTotals begin_chunk() const override {
    ChunkTotals totals;
    if (has_order()) { totals.statistics = ::parquet::MakeStatistics<::parquet::FLBAType>(&output_, pool_); }
    return totals;
  }

 protected:
  Encoding::type put_values(std::span<Run const> runs, std::int64_t, EncodedStatistics& statistics,
                            ChunkTotals& totals) override {
    std::shared_ptr<::parquet::TypedStatistics<::parquet::FLBAType>> page;
    if (has_order()) { page = ::parquet::MakeStatistics<::parquet::FLBAType>(&output_, pool_); }
    auto const width = static_cast<std::size_t>(leaf_.type_length);
    for (Run const& run : runs) {
      std::byte const* const values = run.block->values + run.value_begin * width;
      std::size_t const count = run.value_end - run.value_begin;
      body_.append(values, count * width);
      if (!page || count == 0) { continue; }
      pointers_.make_room(count);
      for (std::size_t i = 0; i < count; ++i) {
        pointers_[i] = ::parquet::FixedLenByteArray(reinterpret_cast<std::uint8_t const*>(values + i * width));
      }
      page->Update(pointers_.data(), static_cast<std::int64_t>(count), 0);
    }
    if (page) {
      statistics = page->Encode();
      static_cast<::parquet::TypedStatistics<::parquet::FLBAType>&>(*totals.statistics).Merge(*page);
    }
    return Encoding::PLAIN;
  }

  EncodedStatistics extremes(ChunkTotals const& totals) const override {
    return totals.statistics ? totals.statistics->Encode() : EncodedStatistics();
  }

 private:
  [[nodiscard]] bool has_order() const { return output_.sort_order() != ::parquet::SortOrder::UNKNOWN; }

  ::arrow::MemoryPool* pool_;
  ReservedArray<::parquet::FixedLenByteArray> pointers_;
};

void set_extremes(EncodedStatistics& statistics, std::string_view smallest, std::string_view largest) {
  if (smallest.size() <= max_statistic_bytes) {
    statistics.set_min(std::string(smallest));
    statistics.is_min_value_exact = true;
  }
  if (largest.size() <= max_statistic_bytes) {
    statistics.set_max(std::string(largest));
    statistics.is_max_value_exact = true;
  }
}

// Byte arrays, plain: the staged form is the page's.
class BytesEncoder final : public LevelledPageEncoder {
 public:
  using LevelledPageEncoder::LevelledPageEncoder;

 protected:
  Encoding::type put_values(std::span<Run const> runs, std::int64_t values, EncodedStatistics& statistics,
                            ChunkTotals& totals) override {
    std::size_t const begin = body_.size();
    std::size_t bytes = 0;
    for (Run const& run : runs) { bytes += run.byte_end - run.byte_begin; }
    body_.reserve(bytes);  // at once: growing would hold it twice
    for (Run const& run : runs) { body_.append(run.block->values + run.byte_begin, run.byte_end - run.byte_begin); }
    if (values == 0) { return Encoding::PLAIN; }
    if (output_.sort_order() == ::parquet::SortOrder::UNSIGNED) {
      put_unsigned_extremes(begin, statistics, totals);
    } else if (output_.sort_order() == ::parquet::SortOrder::SIGNED) {
      put_signed_extremes(begin, statistics, totals);
    }
    return Encoding::PLAIN;
  }

  EncodedStatistics extremes(ChunkTotals const& totals) const override {
    EncodedStatistics statistics;
    if (totals.has_bytes) { set_extremes(statistics, totals.smallest_bytes, totals.largest_bytes); }
    return statistics;
  }

 private:
  template <class Visit>
  void visit(std::size_t begin, Visit&& visit) {
    auto const* at = reinterpret_cast<char const*>(body_.at(begin));
    auto const* const end = reinterpret_cast<char const*>(body_.at(0)) + body_.size();
    while (at < end) {
      std::uint32_t size = 0;
      std::memcpy(&size, at, sizeof size);
      visit(at + sizeof size, size);
      at += sizeof size + size;
    }
  }

  void put_unsigned_extremes(std::size_t begin, EncodedStatistics& statistics, ChunkTotals& totals) {
    ByteExtremes page;
    visit(begin, [&](char const* bytes, std::uint32_t size) { page.add(bytes, size); });
    set_extremes(statistics, page.smallest(), page.largest());
    // One byte more than a statistic may have tells that it is too long, and still compares as the whole does.
    std::string_view const smallest = page.smallest().substr(0, max_statistic_bytes + 1);
    std::string_view const largest = page.largest().substr(0, max_statistic_bytes + 1);
    if (!totals.has_bytes || smallest < totals.smallest_bytes) { totals.smallest_bytes = smallest; }
    if (!totals.has_bytes || largest > totals.largest_bytes) { totals.largest_bytes = largest; }
    totals.has_bytes = true;
  }

  // Decimals of variable length: by Parquet's own comparison.
  void put_signed_extremes(std::size_t begin, EncodedStatistics& statistics, ChunkTotals& totals) {
    auto const comparator = ::parquet::MakeComparator<::parquet::ByteArrayType>(&output_);
    ::parquet::ByteArray smallest;
    ::parquet::ByteArray largest;
    bool any = false;
    visit(begin, [&](char const* bytes, std::uint32_t size) {
      ::parquet::ByteArray const value(size, reinterpret_cast<std::uint8_t const*>(bytes));
      if (!any || comparator->Compare(value, smallest)) { smallest = value; }
      if (!any || comparator->Compare(largest, value)) { largest = value; }
      any = true;
    });
    set_extremes(statistics, std::string_view(smallest), std::string_view(largest));
    if (!totals.has_bytes ||
        comparator->Compare(smallest, ::parquet::ByteArray(std::string_view(totals.smallest_bytes)))) {
      totals.smallest_bytes = std::string_view(smallest);
    }
    if (!totals.has_bytes ||
        comparator->Compare(::parquet::ByteArray(std::string_view(totals.largest_bytes)), largest)) {
      totals.largest_bytes = std::string_view(largest);
    }
    totals.has_bytes = true;
  }
};

// Indices into the column's dictionary.
template <class Index>
class IndexEncoder final : public LevelledPageEncoder {
 public:
  IndexEncoder(LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output, Dictionary const& dictionary,
               ::arrow::MemoryPool* pool)
      : LevelledPageEncoder(leaf, output, pool), dictionary_(dictionary), indices_(pool) {
    if (!dictionary.values().empty()) {
      bit_width_ = bit_width_for(static_cast<std::uint32_t>(dictionary.values().size() - 1));
    }
  }

 protected:
  Encoding::type put_values(std::span<Run const> runs, std::int64_t values, EncodedStatistics& statistics,
                            ChunkTotals& totals) override {
    constexpr std::size_t read_slack = 8;
    auto const count = static_cast<std::size_t>(values);
    indices_.make_room(count + read_slack);
    std::size_t at = 0;
    for (Run const& run : runs) {
      std::size_t const size = run.value_end - run.value_begin;
      std::memcpy(indices_.data() + at, reinterpret_cast<Index const*>(run.block->values) + run.value_begin,
                  size * sizeof(Index));
      at += size;
    }
    std::byte* const out = body_.reserve(1 + max_rle_bit_packed_bytes(count, bit_width_));
    *out = static_cast<std::byte>(bit_width_);
    std::span<Index const> const indices(indices_.data(), count);
    body_.commit(1 + encode_rle_bit_packed(indices, bit_width_, out + 1));
    if (count > 0) { put_extremes(indices, statistics, totals); }
    return Encoding::RLE_DICTIONARY;
  }

  EncodedStatistics extremes(ChunkTotals const& totals) const override {
    EncodedStatistics statistics;
    if (totals.has_index) { set_ranks(statistics, totals.smallest_index, totals.largest_index); }
    return statistics;
  }

 private:
  void put_extremes(std::span<Index const> indices, EncodedStatistics& statistics, ChunkTotals& totals) {
    Index smallest = indices[0];
    Index largest = indices[0];
    for (Index const index : indices) {
      smallest = std::min(smallest, index);
      largest = std::max(largest, index);
    }
    if (largest >= dictionary_.ranked()) {  // NaNs, which have no place in statistics
      if (smallest >= dictionary_.ranked()) { return; }
      largest = smallest;
      for (Index const index : indices) {
        if (index < dictionary_.ranked()) { largest = std::max(largest, index); }
      }
    }
    set_ranks(statistics, smallest, largest);
    totals.smallest_index = std::min<std::uint32_t>(totals.smallest_index, smallest);
    totals.largest_index = std::max<std::uint32_t>(totals.largest_index, largest);
    totals.has_index = true;
  }

  void set_ranks(EncodedStatistics& statistics, std::size_t smallest, std::size_t largest) const {
    set_extremes(statistics, with_zero_sign(dictionary_.values()[smallest], true),
                 with_zero_sign(dictionary_.values()[largest], false));
  }

  // The format wants a minimum of zero to be -0.0 and a maximum of zero to be +0.0.
  [[nodiscard]] std::string with_zero_sign(std::string value, bool negative) const {
    bool const is_float = output_.physical_type() == ::parquet::Type::FLOAT ||
                          output_.physical_type() == ::parquet::Type::DOUBLE ||
                          (output_.logical_type() && output_.logical_type()->is_float16());
    if (!is_float || value.empty()) { return value; }
    char const sign = value.back();
    bool const is_zero = (sign == '\0' || sign == '\x80') &&
                         std::all_of(value.begin(), value.end() - 1, [](char byte) { return byte == '\0'; });
    if (is_zero) { value.back() = negative ? '\x80' : '\0'; }
    return value;
  }

  Dictionary const& dictionary_;
  int bit_width_{0};
  ReservedArray<Index> indices_;
};

}  // namespace

std::unique_ptr<PageEncoder> make_page_encoder(LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output,
                                               ValueForm form, Dictionary const* dictionary,
                                               ::arrow::MemoryPool* pool) {
  using ::parquet::Type;
  if (form == ValueForm::Index1) {
    return std::make_unique<IndexEncoder<std::uint8_t>>(leaf, output, *dictionary, pool);
  }
  if (form == ValueForm::Index2) {
    return std::make_unique<IndexEncoder<std::uint16_t>>(leaf, output, *dictionary, pool);
  }
  switch (output.physical_type()) {
    case Type::BOOLEAN: return std::make_unique<FixedWidthEncoder<::parquet::BooleanType>>(leaf, output, pool);
    case Type::INT32: return std::make_unique<FixedWidthEncoder<::parquet::Int32Type>>(leaf, output, pool);
    case Type::INT64: return std::make_unique<FixedWidthEncoder<::parquet::Int64Type>>(leaf, output, pool);
    case Type::INT96: return std::make_unique<FixedWidthEncoder<::parquet::Int96Type>>(leaf, output, pool);
    case Type::FLOAT: return std::make_unique<FixedWidthEncoder<::parquet::FloatType>>(leaf, output, pool);
    case Type::DOUBLE: return std::make_unique<FixedWidthEncoder<::parquet::DoubleType>>(leaf, output, pool);
    case Type::FIXED_LEN_BYTE_ARRAY: return std::make_unique<FixedBytesEncoder>(leaf, output, pool);
    default: return std::make_unique<BytesEncoder>(leaf, output, pool);
  }
}

Run run_of(Block const& block, std::size_t partition, ValueForm form, int type_length) noexcept {
  auto const begin_of = [partition](std::uint32_t const* ends) { return partition == 0 ? 0U : ends[partition - 1]; };
  Run run;
  run.block = &block;
  run.entry_begin = begin_of(block.entry_ends);
  run.entry_end = block.entry_ends[partition];
  run.value_begin = begin_of(block.value_ends);
  run.value_end = block.value_ends[partition];
  if (form == ValueForm::Bytes) {
    run.byte_begin = begin_of(block.byte_ends);
    run.byte_end = block.byte_ends[partition];
  } else {
    std::size_t const width = LeafColumn::staged_width(form, type_length);
    run.byte_begin = run.value_begin * width;
    run.byte_end = run.value_end * width;
  }
  return run;
}

}  // namespace earmark::detail
