// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/dictionary.hpp"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "parquet_files.hpp"

namespace earmark::detail {
namespace {

class Dictionaries : public ::testing::Test {
 protected:
  // Writes one file for each array, and unifies the dictionaries of its only column.
  std::optional<Dictionary> unify(std::vector<std::shared_ptr<arrow::Array>> const& arrays,
                                  std::size_t partitions = 1) {
    std::vector<InputPath> paths;
    for (auto const& array : arrays) {
      std::string const path = folder_ / std::to_string(files_++);
      write_parquet(*arrow::Table::Make(arrow::schema({arrow::field("x", array->type())}), {array}), path);
      paths.push_back({path, *disk_.status(path)});
    }
    input_ = std::make_unique<ParquetInput>(disk_, arrow::default_memory_pool(), paths);
    leaves_ = leaf_columns(input_->schema());
    output_ = output_schema(input_->schema());
    std::vector<WindowGroup> window;
    for (RowGroupRef const& group : input_->row_groups()) { window.push_back({group, nullptr}); }
    return Dictionary::unify(*input_, leaves_[0], *output_->Column(0), window, partitions, pool_, 2);
  }
  template <class Builder, class Values>
  static std::shared_ptr<arrow::Array> repeated(Builder&& builder, Values const& values, int times) {
    for (int i = 0; i < times; ++i) {
      for (auto const& value : values) { EXPECT_TRUE(builder.Append(value).ok()); }
    }
    return builder.Finish().ValueOrDie();
  }
  template <class T>
  static std::vector<T> numbers(Dictionary const& dictionary) {
    std::vector<T> all;
    for (std::string const& value : dictionary.values()) {
      EXPECT_EQ(value.size(), sizeof(T));
      std::memcpy(&all.emplace_back(), value.data(), sizeof(T));
    }
    return all;
  }

  TemporaryFolder folder_;
  PosixFileSystem disk_;
  ThreadPool pool_{2};
  int files_{0};
  std::unique_ptr<ParquetInput> input_;
  std::vector<LeafColumn> leaves_;
  std::shared_ptr<parquet::SchemaDescriptor const> output_;
};

TEST_F(Dictionaries, AreUnitedAndSorted) {
  auto const dictionary = unify({repeated(arrow::StringBuilder(), std::vector<std::string>{"pear", "fig"}, 100),
                                 repeated(arrow::StringBuilder(), std::vector<std::string>{"kiwi", "pear", ""}, 100)});
  ASSERT_TRUE(dictionary);
  EXPECT_EQ(dictionary->values(), (std::vector<std::string>{"", "fig", "kiwi", "pear"}));
  EXPECT_EQ(dictionary->ranked(), 4U);
  EXPECT_EQ(dictionary->remap(0), (std::vector<std::uint16_t>{3, 1}));
  EXPECT_EQ(dictionary->remap(1), (std::vector<std::uint16_t>{2, 3, 0}));
  EXPECT_EQ(dictionary->page().substr(0, 11), std::string("\0\0\0\0\3\0\0\0fig", 11));
}

TEST_F(Dictionaries, OfNumbersSortAsNumbers) {
  auto const signed_numbers =
      unify({repeated(arrow::Int32Builder(), std::vector<std::int32_t>{5, -7, 1'000'000, 0}, 50)});
  ASSERT_TRUE(signed_numbers);
  EXPECT_EQ(numbers<std::int32_t>(*signed_numbers), (std::vector<std::int32_t>{-7, 0, 5, 1'000'000}));
  auto const unsigned_numbers =
      unify({repeated(arrow::UInt32Builder(), std::vector<std::uint32_t>{5, 0xffff'fff9U, 0}, 50)});
  ASSERT_TRUE(unsigned_numbers);
  EXPECT_EQ(numbers<std::uint32_t>(*unsigned_numbers), (std::vector<std::uint32_t>{0, 5, 0xffff'fff9U}));
}

TEST_F(Dictionaries, PutNansLastAndKeepBothZeros) {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  auto const dictionary = unify({repeated(
      arrow::DoubleBuilder(), std::vector<double>{nan, 0.0, -1.5, -0.0, std::numeric_limits<double>::infinity()}, 50)});
  ASSERT_TRUE(dictionary);
  auto const values = numbers<double>(*dictionary);
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(dictionary->ranked(), 4U);
  EXPECT_EQ(values[0], -1.5);
  EXPECT_NE(std::signbit(values[1]), std::signbit(values[2]));
  EXPECT_TRUE(std::isnan(values[4]));
}

TEST_F(Dictionaries, OfDecimalsHoldTheIntegersThatAreWritten) {
  auto const decimals = [&](int precision) {
    arrow::Decimal128Builder builder(arrow::decimal128(precision, 2));
    return repeated(
        builder, std::vector<arrow::Decimal128>{arrow::Decimal128(700), arrow::Decimal128(-3), arrow::Decimal128(12)},
        50);
  };
  auto const small = unify({decimals(7)});
  ASSERT_TRUE(small);
  EXPECT_EQ(numbers<std::int32_t>(*small), (std::vector<std::int32_t>{-3, 12, 700}));
  auto const large = unify({decimals(15)});
  ASSERT_TRUE(large);
  EXPECT_EQ(numbers<std::int64_t>(*large), (std::vector<std::int64_t>{-3, 12, 700}));
  auto const huge = unify({decimals(30)});
  ASSERT_TRUE(huge);
  EXPECT_EQ(huge->values().front().back(), '\xfd');
}

TEST_F(Dictionaries, AreNotMadeWhereTheyDoNotPay) {
  std::vector<std::int64_t> different(3000);
  for (std::size_t i = 0; i < different.size(); ++i) { different[i] = static_cast<std::int64_t>(i) * 7919; }
  EXPECT_FALSE(unify({repeated(arrow::Int64Builder(), different, 1)}));
  auto const few = repeated(arrow::Int64Builder(), std::vector<std::int64_t>{1, 2, 3}, 100);
  EXPECT_TRUE(unify({few}, 2));
  EXPECT_FALSE(unify({few}, 100'000)) << "one in each file costs more than it saves";
}

TEST_F(Dictionaries, OfTooManyValuesAreNotMade) {
  std::vector<std::int64_t> many(17'000);
  for (std::size_t i = 0; i < many.size(); ++i) { many[i] = static_cast<std::int64_t>(i); }
  EXPECT_FALSE(unify({repeated(arrow::Int64Builder(), many, 20)}));
}

TEST_F(Dictionaries, AreNotMadeWhereTheirIndicesWouldTakeMuchMemory) {
  std::vector<std::string> many(65'000);
  for (std::size_t i = 0; i < many.size(); ++i) { many[i] = std::to_string(100'000 + i); }
  std::vector<std::shared_ptr<arrow::Array>> arrays(16, repeated(arrow::StringBuilder(), many, 1));
  EXPECT_TRUE(unify(arrays));
  arrays.push_back(arrays.front());
  EXPECT_FALSE(unify(arrays)) << "more than a million entries in all";
}

TEST_F(Dictionaries, OfMoreThan256ValuesKeepEveryValueApart) {
  std::vector<std::int32_t> many(5000);
  for (std::size_t i = 0; i < many.size(); ++i) { many[i] = static_cast<std::int32_t>((i * 7919) % many.size()); }
  auto const dictionary = unify({repeated(arrow::Int32Builder(), many, 20), repeated(arrow::Int32Builder(), many, 20)});
  ASSERT_TRUE(dictionary);
  ASSERT_EQ(dictionary->values().size(), many.size());
  for (std::size_t i = 0; i < many.size(); ++i) {
    EXPECT_EQ(dictionary->remap(0)[i], many[i]);
    EXPECT_EQ(dictionary->remap(1)[i], many[i]);
  }
}

TEST_F(Dictionaries, OfNothingButNullsAreEmpty) {
  auto const dictionary = unify({arrow::MakeArrayOfNull(arrow::utf8(), 10).ValueOrDie()});
  if (dictionary) { EXPECT_TRUE(dictionary->values().empty()); }
}

}  // namespace
}  // namespace earmark::detail
