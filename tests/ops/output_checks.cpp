// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "output_checks.hpp"

#include <arrow/api.h>
#include <arrow/compute/api_vector.h>
#include <arrow/util/decimal.h>
#include <gtest/gtest.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <parquet/statistics.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "earmark/table/partition.hpp"
#include "parquet_files.hpp"

namespace earmark {
namespace {

// ---------------------------------------------------------------------------------------------- Partition of a row

template <class Type, class Hash>
std::uint32_t hash_as(arrow::Array const& array, std::int64_t i, Hash hash) {
  return hash(static_cast<typename arrow::TypeTraits<Type>::ArrayType const&>(array).Value(i));
}

template <class Type>
std::uint32_t hash_number(arrow::Array const& array, std::int64_t i) {
  return hash_as<Type>(array, i, [](auto value) { return hash_value(value); });
}

// Hashes the low bytes of a little-endian number.
std::uint32_t hash_decimal_bytes(arrow::Array const& array, std::int64_t i) {
  auto const& values = static_cast<arrow::FixedSizeBinaryArray const&>(array);
  int const precision = static_cast<arrow::DecimalType const&>(*array.type()).precision();
  std::size_t const width = precision <= 9 ? 4 : precision <= 18 ? 8 : precision <= 38 ? 16 : 32;
  auto const own = static_cast<std::size_t>(values.byte_width());
  std::vector<std::byte> bytes(
      width, std::byte{(values.GetValue(i)[own - 1] & 0x80) != 0 ? std::uint8_t{0xff} : std::uint8_t{0}});
  std::memcpy(bytes.data(), values.GetValue(i), std::min(width, own));
  return murmur3_x86_32(bytes);
}

std::uint32_t hash_of(arrow::Array const& array, std::int64_t i) {
  if (array.IsNull(i)) { return null_hash; }
  using Id = arrow::Type;
  switch (array.type_id()) {
    case Id::BOOL: return hash_number<arrow::BooleanType>(array, i);
    case Id::INT8: return hash_number<arrow::Int8Type>(array, i);
    case Id::INT16: return hash_number<arrow::Int16Type>(array, i);
    case Id::INT32: return hash_number<arrow::Int32Type>(array, i);
    case Id::INT64: return hash_number<arrow::Int64Type>(array, i);
    case Id::UINT8: return hash_number<arrow::UInt8Type>(array, i);
    case Id::UINT16: return hash_number<arrow::UInt16Type>(array, i);
    case Id::UINT32: return hash_number<arrow::UInt32Type>(array, i);
    case Id::UINT64: return hash_number<arrow::UInt64Type>(array, i);
    case Id::FLOAT: return hash_number<arrow::FloatType>(array, i);
    case Id::DOUBLE: return hash_number<arrow::DoubleType>(array, i);
    case Id::HALF_FLOAT:
      return hash_as<arrow::HalfFloatType>(array, i,
                                           [](std::uint16_t half) { return hash_value(half_to_float(half)); });
    case Id::DATE32: return hash_number<arrow::Date32Type>(array, i);
    case Id::DATE64:
      return hash_as<arrow::Date64Type>(
          array, i, [](std::int64_t ms) { return hash_value(static_cast<std::int32_t>(ms / 86'400'000)); });
    case Id::TIME32: {
      // Parquet has no seconds: they are stored as milliseconds.
      int const scale =
          static_cast<arrow::Time32Type const&>(*array.type()).unit() == arrow::TimeUnit::SECOND ? 1000 : 1;
      return hash_as<arrow::Time32Type>(array, i, [&](std::int32_t time) { return hash_value(time * scale); });
    }
    case Id::TIME64: return hash_number<arrow::Time64Type>(array, i);
    case Id::DURATION: return hash_number<arrow::DurationType>(array, i);
    case Id::TIMESTAMP: {
      int const scale =
          static_cast<arrow::TimestampType const&>(*array.type()).unit() == arrow::TimeUnit::SECOND ? 1000 : 1;
      return hash_as<arrow::TimestampType>(array, i, [&](std::int64_t time) { return hash_value(time * scale); });
    }
    case Id::STRING:
    case Id::BINARY: return hash_bytes(static_cast<arrow::BinaryArray const&>(array).GetView(i));
    case Id::LARGE_STRING:
    case Id::LARGE_BINARY: return hash_bytes(static_cast<arrow::LargeBinaryArray const&>(array).GetView(i));
    case Id::STRING_VIEW:
    case Id::BINARY_VIEW: return hash_bytes(static_cast<arrow::BinaryViewArray const&>(array).GetView(i));
    case Id::FIXED_SIZE_BINARY: return hash_bytes(static_cast<arrow::FixedSizeBinaryArray const&>(array).GetView(i));
    case Id::DECIMAL32:
    case Id::DECIMAL64:
    case Id::DECIMAL128:
    case Id::DECIMAL256: return hash_decimal_bytes(array, i);
    case Id::DICTIONARY: {
      auto const& dictionary = static_cast<arrow::DictionaryArray const&>(array);
      return hash_of(*dictionary.dictionary(), dictionary.GetValueIndex(i));
    }
    default: throw std::logic_error("no such key: " + array.type()->ToString());
  }
}

std::vector<std::uint32_t> hashes_of(arrow::ChunkedArray const& column) {
  std::vector<std::uint32_t> hashes;
  for (auto const& chunk : column.chunks()) {
    for (std::int64_t i = 0; i < chunk->length(); ++i) { hashes.push_back(hash_of(*chunk, i)); }
  }
  return hashes;
}

std::shared_ptr<arrow::Table> rows_of(arrow::Table const& table, std::vector<std::int64_t> const& rows) {
  // Plain slices rather than a kernel: they take every type.
  std::vector<std::shared_ptr<arrow::ChunkedArray>> columns;
  for (auto const& column : table.columns()) {
    std::vector<std::shared_ptr<arrow::Array>> slices;
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i + 1;
      while (end < rows.size() && rows[end] == rows[end - 1] + 1) { ++end; }
      auto const slice = column->Slice(rows[i], static_cast<std::int64_t>(end - i));
      slices.insert(slices.end(), slice->chunks().begin(), slice->chunks().end());
      i = end;
    }
    columns.push_back(std::make_shared<arrow::ChunkedArray>(slices, column->type()));
  }
  return arrow::Table::Make(table.schema(), columns, static_cast<std::int64_t>(rows.size()));
}

// Dictionaries may differ between files: what counts is the value.
bool same_values(arrow::ChunkedArray const& a, arrow::ChunkedArray const& b) {
  auto const options = arrow::EqualOptions::Defaults().nans_equal(true).signed_zeros_equal(false);
  if (a.type()->id() != arrow::Type::DICTIONARY) { return a.Equals(b, options); }
  if (a.length() != b.length()) { return false; }
  for (std::int64_t i = 0; i < a.length(); ++i) {
    auto const value = [&](arrow::ChunkedArray const& column) {
      auto const scalar = column.GetScalar(i).ValueOrDie();
      return static_cast<arrow::DictionaryScalar const&>(*scalar).GetEncodedValue().ValueOrDie();
    };
    if (!value(a)->Equals(*value(b), options)) { return false; }
  }
  return true;
}

// -------------------------------------------------------------------------------------------------------- Contents

// All of one chunk: levels, and values in plain encoding (byte arrays without their length).
struct Contents {
  std::vector<std::int16_t> definition;
  std::vector<std::int16_t> repetition;
  std::vector<std::string> values;
};

template <class Type>
std::string plain(typename Type::c_type const& value, int type_length) {
  if constexpr (std::is_same_v<Type, parquet::ByteArrayType>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::is_same_v<Type, parquet::FLBAType>) {
    return {reinterpret_cast<char const*>(value.ptr), static_cast<std::size_t>(type_length)};
  } else {
    return {reinterpret_cast<char const*>(&value), sizeof value};
  }
}

template <class Type>
Contents contents_of(parquet::ColumnReader& any) {
  auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(any);
  auto const& descriptor = *reader.descr();
  constexpr std::int64_t batch = 1024;
  Contents all;
  std::vector<std::int16_t> definition(batch);
  std::vector<std::int16_t> repetition(batch);
  auto const values = std::make_unique<typename Type::c_type[]>(batch);
  while (reader.HasNext()) {
    std::int64_t read = 0;
    std::int64_t const entries = reader.ReadBatch(batch, definition.data(), repetition.data(), values.get(), &read);
    for (std::int64_t i = 0; i < entries; ++i) {
      all.definition.push_back(descriptor.max_definition_level() > 0 ? definition[static_cast<std::size_t>(i)]
                                                                     : std::int16_t{0});
      all.repetition.push_back(descriptor.max_repetition_level() > 0 ? repetition[static_cast<std::size_t>(i)]
                                                                     : std::int16_t{0});
    }
    for (std::int64_t i = 0; i < read; ++i) {
      all.values.push_back(plain<Type>(values[static_cast<std::size_t>(i)], descriptor.type_length()));
    }
  }
  return all;
}

Contents contents_of(parquet::ColumnReader& reader) {
  switch (reader.type()) {
    case parquet::Type::BOOLEAN: return contents_of<parquet::BooleanType>(reader);
    case parquet::Type::INT32: return contents_of<parquet::Int32Type>(reader);
    case parquet::Type::INT64: return contents_of<parquet::Int64Type>(reader);
    case parquet::Type::INT96: return contents_of<parquet::Int96Type>(reader);
    case parquet::Type::FLOAT: return contents_of<parquet::FloatType>(reader);
    case parquet::Type::DOUBLE: return contents_of<parquet::DoubleType>(reader);
    case parquet::Type::BYTE_ARRAY: return contents_of<parquet::ByteArrayType>(reader);
    default: return contents_of<parquet::FLBAType>(reader);
  }
}

// ------------------------------------------------------------------------------------------------------ Statistics

template <class T>
T number_of(std::string const& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// How a column's values compare, written down from the format's document.
class Order {
 public:
  explicit Order(parquet::ColumnDescriptor const& column) : column_(column) {
    auto const& logical = column.logical_type();
    is_decimal_ = logical && logical->is_decimal();
    is_half_ = logical && logical->is_float16();
    is_unsigned_ = column.sort_order() == parquet::SortOrder::UNSIGNED;
  }
  bool exists() const { return column_.sort_order() != parquet::SortOrder::UNKNOWN; }

  bool is_nan(std::string const& value) const {
    if (column_.physical_type() == parquet::Type::FLOAT) { return std::isnan(number_of<float>(value)); }
    if (column_.physical_type() == parquet::Type::DOUBLE) { return std::isnan(number_of<double>(value)); }
    return is_half_ && std::isnan(half_to_float(number_of<std::uint16_t>(value)));
  }
  bool less(std::string const& a, std::string const& b) const {
    switch (column_.physical_type()) {
      case parquet::Type::BOOLEAN: return number_of<bool>(a) < number_of<bool>(b);
      case parquet::Type::INT32: return is_unsigned_ ? less_as<std::uint32_t>(a, b) : less_as<std::int32_t>(a, b);
      case parquet::Type::INT64: return is_unsigned_ ? less_as<std::uint64_t>(a, b) : less_as<std::int64_t>(a, b);
      case parquet::Type::FLOAT: return less_as<float>(a, b);
      case parquet::Type::DOUBLE: return less_as<double>(a, b);
      default: break;
    }
    if (is_half_) { return half_to_float(number_of<std::uint16_t>(a)) < half_to_float(number_of<std::uint16_t>(b)); }
    if (!is_decimal_) { return a < b; }
    return padded(a) < padded(b);
  }
  // A zero minimum is written as -0.0, a zero maximum as +0.0.
  bool same(std::string const& a, std::string const& b) const { return !less(a, b) && !less(b, a); }

 private:
  template <class T>
  static bool less_as(std::string const& a, std::string const& b) {
    return number_of<T>(a) < number_of<T>(b);
  }
  // Signed big-endian of any length, to something that compares as bytes.
  static std::string padded(std::string const& value) {
    bool const negative = !value.empty() && (value[0] & 0x80) != 0;
    std::string wide(64 - value.size(), negative ? '\xff' : '\0');
    wide += value;
    wide[0] = static_cast<char>(wide[0] ^ 0x80);
    return wide;
  }
  parquet::ColumnDescriptor const& column_;
  bool is_decimal_{false};
  bool is_half_{false};
  bool is_unsigned_{false};
};

struct Extremes {
  std::optional<std::string> smallest;
  std::optional<std::string> largest;
};

Extremes extremes_of(Order const& order, std::vector<std::string> const& values, std::size_t begin, std::size_t end) {
  Extremes extremes;
  if (!order.exists()) { return extremes; }
  for (std::size_t i = begin; i < end; ++i) {
    if (order.is_nan(values[i])) { continue; }
    if (!extremes.smallest || order.less(values[i], *extremes.smallest)) { extremes.smallest = values[i]; }
    if (!extremes.largest || order.less(*extremes.largest, values[i])) { extremes.largest = values[i]; }
  }
  return extremes;
}

constexpr std::size_t longest_statistic = 4096;

bool can_be_said(std::optional<std::string> const& value) { return value && value->size() <= longest_statistic; }

void expect_true_page_index(parquet::OffsetIndex const& offsets, parquet::ColumnIndex const* index,
                            Contents const& contents, parquet::ColumnDescriptor const& column, std::int64_t rows) {
  auto const& pages = offsets.page_locations();
  if (index != nullptr) {
    ASSERT_EQ(index->null_pages().size(), pages.size());
    ASSERT_TRUE(index->has_null_counts());
  }
  Order const order(column);
  std::size_t entry = 0;
  std::size_t value = 0;
  std::int64_t row = -1;
  bool all_can_be_said = true;
  for (std::size_t page = 0; page < pages.size(); ++page) {
    std::int64_t const end_row = page + 1 < pages.size() ? pages[page + 1].first_row_index : rows;
    ASSERT_EQ(pages[page].first_row_index, row + 1);
    ASSERT_LT(pages[page].first_row_index, end_row);
    std::size_t const first_value = value;
    std::int64_t nulls = 0;
    for (; entry < contents.definition.size(); ++entry) {
      if (contents.repetition[entry] == 0) {
        if (row + 1 == end_row) { break; }
        ++row;
      }
      bool const defined = contents.definition[entry] == column.max_definition_level();
      value += defined ? 1 : 0;
      nulls += defined ? 0 : 1;
    }
    auto const expected = extremes_of(order, contents.values, first_value, value);
    bool const is_null_page = value == first_value;
    all_can_be_said =
        all_can_be_said && (is_null_page || (can_be_said(expected.smallest) && can_be_said(expected.largest)));
    if (index == nullptr) { continue; }
    EXPECT_EQ(index->null_pages()[page], is_null_page);
    EXPECT_EQ(index->null_counts()[page], nulls);
    if (is_null_page) { continue; }
    ASSERT_TRUE(expected.smallest && expected.largest);
    EXPECT_TRUE(order.same(index->encoded_min_values()[page], *expected.smallest)) << "page " << page;
    EXPECT_TRUE(order.same(index->encoded_max_values()[page], *expected.largest)) << "page " << page;
  }
  EXPECT_EQ(entry, contents.definition.size());
  EXPECT_EQ(index != nullptr, all_can_be_said) << "the column index is missing, or there where it cannot be true";
}

void expect_true_chunk(parquet::ColumnChunkMetaData const& chunk, Contents const& contents,
                       parquet::ColumnDescriptor const& column) {
  auto const entries = static_cast<std::int64_t>(contents.definition.size());
  auto const values = static_cast<std::int64_t>(contents.values.size());
  EXPECT_EQ(chunk.num_values(), entries);
  auto const statistics = chunk.statistics();
  ASSERT_TRUE(statistics != nullptr);
  ASSERT_TRUE(statistics->HasNullCount());
  EXPECT_EQ(statistics->null_count(), entries - values);
  Order const order(column);
  auto const expected = extremes_of(order, contents.values, 0, contents.values.size());
  auto const encoded = chunk.encoded_statistics();
  ASSERT_TRUE(encoded != nullptr);
  ASSERT_EQ(encoded->has_min, can_be_said(expected.smallest));
  ASSERT_EQ(encoded->has_max, can_be_said(expected.largest));
  if (encoded->has_min) { EXPECT_TRUE(order.same(encoded->min(), *expected.smallest)); }
  if (encoded->has_max) { EXPECT_TRUE(order.same(encoded->max(), *expected.largest)); }
}

}  // namespace

std::vector<std::uint32_t> partitions_of_rows(arrow::Table const& table, std::vector<std::string> const& by,
                                              std::int64_t partitions) {
  std::vector<std::uint32_t> rows;
  for (std::string const& key : by) {
    auto const hashes = hashes_of(*table.GetColumnByName(key));
    if (rows.empty()) {
      rows = hashes;
    } else {
      for (std::size_t i = 0; i < rows.size(); ++i) { rows[i] = combine_hashes(rows[i], hashes[i]); }
    }
  }
  for (std::uint32_t& row : rows) { row %= static_cast<std::uint32_t>(partitions); }
  return rows;
}

void expect_partitioned(std::vector<std::string> const& inputs, std::vector<std::string> const& by,
                        std::int64_t partitions, std::string const& folder) {
  std::vector<std::shared_ptr<arrow::Table>> tables;
  for (std::string const& input : inputs) {
    tables.push_back(read_parquet(input));
    ASSERT_EQ(tables.back()->ValidateFull().ToString(), "OK");
  }
  auto const whole = arrow::ConcatenateTables(tables, arrow::ConcatenateTablesOptions::Defaults()).ValueOrDie();
  std::vector<std::vector<std::int64_t>> expected(static_cast<std::size_t>(partitions));
  std::int64_t row = 0;
  for (std::uint32_t const partition : partitions_of_rows(*whole, by, partitions)) {
    expected[partition].push_back(row++);
  }

  std::set<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) { names.insert(entry.path().string()); }
  ASSERT_EQ(static_cast<std::int64_t>(names.size()), partitions);
  auto const first = parquet::ParquetFileReader::OpenFile(inputs.front())->metadata();
  for (std::int64_t p = 0; p < partitions; ++p) {
    std::string const path = part_path(folder, p);
    SCOPED_TRACE(path);
    ASSERT_TRUE(names.contains(path));
    auto const want = rows_of(*whole, expected[static_cast<std::size_t>(p)]);
    auto const got = read_parquet(path);
    ASSERT_TRUE(got->schema()->Equals(*tables.front()->schema(), true))
        << got->schema()->ToString(true) << "\ninstead of\n"
        << tables.front()->schema()->ToString(true);
    ASSERT_EQ(got->num_rows(), want->num_rows());
    ASSERT_EQ(got->ValidateFull().ToString(), "OK");
    for (int column = 0; column < got->num_columns(); ++column) {
      ASSERT_TRUE(same_values(*got->column(column), *want->column(column)))
          << got->field(column)->ToString() << '\n'
          << got->column(column)->ToString() << "\ninstead of\n"
          << want->column(column)->ToString();
    }
    auto const footer = parquet::ParquetFileReader::OpenFile(path)->metadata();
    ASSERT_EQ(footer->key_value_metadata() == nullptr, first->key_value_metadata() == nullptr);
    if (first->key_value_metadata()) {
      EXPECT_TRUE(footer->key_value_metadata()->Equals(*first->key_value_metadata()));
    }
  }
}

void expect_true_statistics(std::string const& path) {
  SCOPED_TRACE(path);
  auto const file = parquet::ParquetFileReader::OpenFile(path);
  auto const footer = file->metadata();
  auto const page_index = file->GetPageIndexReader();
  std::int64_t rows = 0;
  for (int group = 0; group < footer->num_row_groups(); ++group) {
    auto const meta = footer->RowGroup(group);
    EXPECT_GT(meta->num_rows(), 0);
    rows += meta->num_rows();
    auto const reader = file->RowGroup(group);
    auto const indices = page_index ? page_index->RowGroup(group) : nullptr;
    ASSERT_TRUE(indices != nullptr);
    for (int i = 0; i < footer->num_columns(); ++i) {
      auto const& column = *footer->schema()->Column(i);
      SCOPED_TRACE("row group " + std::to_string(group) + ", column " + column.path()->ToDotString());
      Contents const contents = contents_of(*reader->Column(i));
      expect_true_chunk(*meta->ColumnChunk(i), contents, column);
      auto const offsets = indices->GetOffsetIndex(i);
      ASSERT_TRUE(offsets != nullptr);
      expect_true_page_index(*offsets, indices->GetColumnIndex(i).get(), contents, column, meta->num_rows());
      if (::testing::Test::HasFailure()) { return; }
    }
  }
  EXPECT_EQ(footer->num_rows(), rows);
}

std::vector<std::int64_t> row_group_rows(std::string const& path) {
  auto const footer = parquet::ParquetFileReader::OpenFile(path)->metadata();
  std::vector<std::int64_t> rows;
  for (int i = 0; i < footer->num_row_groups(); ++i) { rows.push_back(footer->RowGroup(i)->num_rows()); }
  return rows;
}

}  // namespace earmark
