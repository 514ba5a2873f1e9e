// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "row_router.hpp"

#include <fmt/format.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "column_names.hpp"
#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

using ::parquet::LogicalType;
using ::parquet::Type;

constexpr std::size_t batch_rows = 8192;
constexpr int max_key_digits = 76;  // what a decimal of 256 bits holds

int decimal_precision(LogicalType const& type) {
  return static_cast<::parquet::DecimalLogicalType const&>(type).precision();
}

KeyKind kind_of_int32(LogicalType const* type) {
  if (type == nullptr) { return KeyKind::Int32; }
  if (type->is_null()) { return KeyKind::Null; }
  if (type->is_decimal()) { return KeyKind::DecimalInt32; }
  if (type->is_int()) {
    int const bits = static_cast<::parquet::IntLogicalType const&>(*type).bit_width();
    return bits == 8 ? KeyKind::Int8 : bits == 16 ? KeyKind::Int16 : KeyKind::Int32;
  }
  return KeyKind::Int32;
}

KeyKind kind_of(::parquet::ColumnDescriptor const& column) {
  LogicalType const* const type = column.logical_type().get();
  if (type != nullptr && type->is_null()) { return KeyKind::Null; }
  bool const is_decimal = type != nullptr && type->is_decimal();
  switch (column.physical_type()) {
    case Type::BOOLEAN: return KeyKind::Boolean;
    case Type::INT32: return kind_of_int32(type);
    case Type::INT64: return is_decimal ? KeyKind::DecimalInt64 : KeyKind::Int64;
    case Type::INT96: return KeyKind::Int96;
    case Type::FLOAT: return KeyKind::Float;
    case Type::DOUBLE: return KeyKind::Double;
    case Type::BYTE_ARRAY: return is_decimal ? KeyKind::DecimalBytes : KeyKind::Bytes;
    default:
      if (is_decimal) { return KeyKind::DecimalFixedBytes; }
      return type != nullptr && type->is_float16() ? KeyKind::Half : KeyKind::FixedBytes;
  }
}

std::int64_t nanoseconds(::parquet::Int96 const& value) {
  constexpr std::uint64_t julian_day_of_epoch = 2'440'588;
  constexpr std::uint64_t nanoseconds_a_day = 86'400'000'000'000;
  std::uint64_t of_day = 0;
  std::memcpy(&of_day, value.value.data(), sizeof of_day);
  // Days outside the range of int64 nanoseconds wrap, as every reader's do.
  return static_cast<std::int64_t>((std::uint64_t{value.value[2]} - julian_day_of_epoch) * nanoseconds_a_day + of_day);
}

int id_width_for(std::int64_t partitions) { return partitions <= 1 << 8 ? 1 : partitions <= 1 << 16 ? 2 : 4; }

}  // namespace

std::vector<int> find_key_columns(ParquetInput const& input, std::vector<std::string> const& names) {
  constexpr std::string_view role = "key column";
  if (names.empty()) { throw UsageError("name at least one key column"); }
  ::parquet::schema::GroupNode const& root = *input.schema().group_node();
  std::string const& file = input.path(0);
  std::vector<int> columns;
  for (std::string const& name : names) {
    auto const field = find_top_level_column(input, name, role);
    ::parquet::schema::Node const* const found = field ? root.field(*field).get() : nullptr;
    if (found != nullptr && (found->is_group() || found->is_repeated())) {
      throw InputError(fmt::format("the key column '{}' of '{}' is nested: a key must be a flat column", name, file),
                       file, name);
    }
    int column = -1;
    for (int i = 0; i < input.schema().num_columns(); ++i) {
      if (found != nullptr && input.schema().Column(i)->schema_node().get() == found) { column = i; }
      if (found == nullptr && input.schema().Column(i)->path()->ToDotString() == name) {
        throw InputError(
            fmt::format("the key column '{}' of '{}' is nested: a key must be a top-level column", name, file), file,
            name);
      }
    }
    if (column < 0) { fail_for_unknown_column(input, name, role); }
    auto const& type = input.schema().Column(column)->logical_type();
    if (type && type->is_decimal() && decimal_precision(*type) > max_key_digits) {
      throw InputError(fmt::format("the key column '{}' of '{}' has decimals of {} digits: a key has at most {}", name,
                                   file, decimal_precision(*type), max_key_digits),
                       file, name);
    }
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
      throw UsageError(fmt::format("the key column '{}' is named twice", name));
    }
    columns.push_back(column);
  }
  return columns;
}

RoutingWorker::RoutingWorker(::arrow::MemoryPool* pool)
    : definition(pool, batch_rows),
      values(pool, batch_rows * sizeof(::parquet::ByteArray)),
      value_hashes(pool, batch_rows),
      column_hashes(pool, batch_rows),
      row_hashes(pool, batch_rows),
      ids(pool, batch_rows * sizeof(PartitionId)) {}

RowRouter::RowRouter(ParquetInput const& input, std::vector<int> const& key_columns, std::int64_t partitions)
    : input_(input), function_(static_cast<std::uint32_t>(partitions)), id_width_(id_width_for(partitions)) {
  for (int const column : key_columns) {
    auto const& descriptor = *input.schema().Column(column);
    Key key;
    key.column = column;
    key.kind = kind_of(descriptor);
    key.width = static_cast<std::size_t>(std::max(descriptor.type_length(), 0));
    key.nullable = descriptor.max_definition_level() > 0;
    if (descriptor.logical_type() && descriptor.logical_type()->is_decimal()) {
      key.precision = decimal_precision(*descriptor.logical_type());
    }
    keys_.push_back(key);
  }
}

void RowRouter::route(RowGroupRef const& group, std::byte* ids, std::span<std::int64_t> counts, RoutingWorker& worker,
                      std::int64_t buffer_bytes, std::function<void()> const& check_stop) const {
  std::vector<std::unique_ptr<ChunkReader>> readers;
  if (group.rows > 0) {
    for (Key const& key : keys_) {
      readers.push_back(input_.open_chunk(group, key.column, ReadAs::Values, buffer_bytes));
    }
  }
  for (std::int64_t row = 0; row < group.rows;) {
    check_stop();
    auto const rows = static_cast<std::size_t>(std::min<std::int64_t>(batch_rows, group.rows - row));
    std::span<std::uint32_t> const hashes = worker.row_hashes.first(rows);
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      hash_rows(keys_[k], *readers[k], group, rows, worker);
      std::span<std::uint32_t> const column = worker.column_hashes.first(rows);
      if (k == 0) {
        std::copy(column.begin(), column.end(), hashes.begin());
      } else {
        combine_hashes(hashes, column);
      }
    }
    std::byte* const out =
        ids == nullptr ? worker.ids.data() : ids + static_cast<std::size_t>(row) * static_cast<std::size_t>(id_width_);
    switch (id_width_) {
      case 1: assign<std::uint8_t>(hashes, out, counts); break;
      case 2: assign<std::uint16_t>(hashes, out, counts); break;
      default: assign<std::uint32_t>(hashes, out, counts); break;
    }
    row += static_cast<std::int64_t>(rows);
  }
}

template <class Id>
void RowRouter::assign(std::span<std::uint32_t const> hashes, std::byte* ids, std::span<std::int64_t> counts) const {
  std::span<Id> const out(reinterpret_cast<Id*>(ids), hashes.size());
  assign_partitions(function_, hashes, out);
  for (Id const id : out) { ++counts[id]; }
}

// Reads `rows` values of one key column and puts their hashes into `worker.column_hashes`.
void RowRouter::hash_rows(Key const& key, ChunkReader& reader, RowGroupRef const& group, std::size_t rows,
                          RoutingWorker& worker) const {
  for (std::size_t row = 0; row < rows;) {
    ChunkReader::Count const count =
        reader.read(static_cast<std::int64_t>(rows - row), key.nullable ? worker.definition.data() : nullptr, nullptr,
                    worker.values.data());
    if (count.entries == 0) { input_.fail(group, key.column, "it has fewer values than the footer says rows"); }
    auto const entries = static_cast<std::size_t>(count.entries);
    std::uint32_t* const out = worker.column_hashes.data() + row;
    if (count.values == count.entries) {
      hash_values_of(key, worker.values.data(), entries, out);
    } else {
      hash_values_of(key, worker.values.data(), static_cast<std::size_t>(count.values), worker.value_hashes.data());
      std::uint32_t const* next = worker.value_hashes.data();
      for (std::size_t i = 0; i < entries; ++i) { out[i] = worker.definition[i] > 0 ? *next++ : null_hash; }
    }
    row += entries;
  }
}

void RowRouter::hash_values_of(Key const& key, std::byte const* values, std::size_t count, std::uint32_t* hashes) {
  auto const each = [&]<class T>(T const* typed, auto&& hash) {
    for (std::size_t i = 0; i < count; ++i) { hashes[i] = hash(typed[i]); }
  };
  auto const* const i32 = reinterpret_cast<std::int32_t const*>(values);
  auto const* const i64 = reinterpret_cast<std::int64_t const*>(values);
  auto const* const bytes = reinterpret_cast<::parquet::ByteArray const*>(values);
  auto const* const fixed = reinterpret_cast<::parquet::FixedLenByteArray const*>(values);
  auto const view = [&](::parquet::FixedLenByteArray const& value) {
    return std::string_view(reinterpret_cast<char const*>(value.ptr), key.width);
  };
  switch (key.kind) {
    case KeyKind::Null: std::fill(hashes, hashes + count, null_hash); break;
    case KeyKind::Boolean: each(reinterpret_cast<bool const*>(values), [](bool v) { return hash_value(v); }); break;
    case KeyKind::Int8: each(i32, [](std::int32_t v) { return hash_value(static_cast<std::int8_t>(v)); }); break;
    case KeyKind::Int16: each(i32, [](std::int32_t v) { return hash_value(static_cast<std::int16_t>(v)); }); break;
    case KeyKind::Int32: each(i32, [](std::int32_t v) { return hash_value(v); }); break;
    case KeyKind::Int64: each(i64, [](std::int64_t v) { return hash_value(v); }); break;
    case KeyKind::Int96:
      each(reinterpret_cast<::parquet::Int96 const*>(values), [](auto const& v) { return hash_value(nanoseconds(v)); });
      break;
    case KeyKind::Float: each(reinterpret_cast<float const*>(values), [](float v) { return hash_value(v); }); break;
    case KeyKind::Double: each(reinterpret_cast<double const*>(values), [](double v) { return hash_value(v); }); break;
    case KeyKind::Half:
      each(fixed, [](auto const& v) {
        std::uint16_t half = 0;
        std::memcpy(&half, v.ptr, sizeof half);
        return hash_value(half_to_float(half));
      });
      break;
    case KeyKind::Bytes: each(bytes, [](auto const& v) { return hash_bytes(std::string_view(v)); }); break;
    case KeyKind::FixedBytes: each(fixed, [&](auto const& v) { return hash_bytes(view(v)); }); break;
    case KeyKind::DecimalInt32: each(i32, [&](std::int32_t v) { return hash_decimal(v, key.precision); }); break;
    case KeyKind::DecimalInt64: each(i64, [&](std::int64_t v) { return hash_decimal(v, key.precision); }); break;
    case KeyKind::DecimalBytes:
      each(bytes, [&](auto const& v) { return hash_decimal(std::string_view(v), key.precision); });
      break;
    case KeyKind::DecimalFixedBytes:
      each(fixed, [&](auto const& v) { return hash_decimal(view(v), key.precision); });
      break;
  }
}

}  // namespace earmark::detail
