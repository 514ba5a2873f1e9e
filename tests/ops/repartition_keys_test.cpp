// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which rows go where, for every type that a key can have.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <parquet/column_writer.h>
#include <parquet/file_reader.h>
#include <parquet/file_writer.h>

#include <bit>
#include <filesystem>
#include <limits>

#include "arrow_types.hpp"
#include "core/temporary_folder.hpp"
#include "earmark/ops/errors.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"
#include "random_arrays.hpp"

namespace earmark {
namespace {

using arrow::field;

TEST(RepartitionKeys, EveryTypeGoesWhereTheDocumentedFunctionSays) {
  TemporaryFolder const folder;
  arrow::FieldVector fields = flat_types();
  auto const decimals = decimal_types();
  fields.insert(fields.end(), decimals.begin(), decimals.end());
  RandomArrays random(11);
  for (bool const as_integers : {false, true}) {
    WriterSettings settings;
    settings.properties = properties(
        [&](auto& b) { as_integers ? b.enable_store_decimal_as_integer() : b.disable_store_decimal_as_integer(); });
    for (auto const& key : fields) {
      SCOPED_TRACE(key->ToString());
      std::filesystem::remove_all(folder / "out");
      auto const schema = arrow::schema({key, field("row", arrow::int32(), false)});
      write_parquet(*random.table(schema, 400), folder / "in.parquet", settings);
      auto const options = plenty_of_memory({folder / "in.parquet"}, {key->name()}, 5, folder / "out");
      run(options);
      expect_partitioned(options.inputs, options.by, 5, options.output);
      if (HasFailure()) { return; }
    }
  }
}

TEST(RepartitionKeys, Int96IsHashedAsNanoseconds) {
  TemporaryFolder const folder;
  RandomArrays random(12);
  auto const schema =
      arrow::schema({field("at", arrow::timestamp(arrow::TimeUnit::NANO)), field("row", arrow::int32(), false)});
  write_parquet(*random.table(schema, 1000), folder / "in.parquet", {.int96 = true});
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"at"}, 7, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 7, options.output);
}

TEST(RepartitionKeys, SeveralAreCombinedInTheirOrder) {
  TemporaryFolder const folder;
  RandomArrays random(13);
  auto const schema =
      arrow::schema({field("a", arrow::int32()), field("b", arrow::utf8()), field("c", arrow::float64())});
  write_parquet(
      *random.table(schema, 3000), folder / "in.parquet",
      {.row_group_rows = 1000, .properties = properties([](auto& b) { b.data_pagesize(500)->write_batch_size(50); })});
  for (std::vector<std::string> const& by : {std::vector<std::string>{"a", "b", "c"}, {"c", "a"}, {"b", "c"}}) {
    std::filesystem::remove_all(folder / "out");
    auto const options = plenty_of_memory({folder / "in.parquet"}, by, 64, folder / "out");
    run(options);
    expect_partitioned(options.inputs, by, 64, options.output);
  }
}

TEST(RepartitionKeys, NullsNansAndZerosEachStayTogether) {
  TemporaryFolder const folder;
  arrow::DoubleBuilder keys;
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  for (double const value : {nan, -nan, 0.0, -0.0, std::bit_cast<double>(0x7ff8'0000'dead'beefU), 1.0}) {
    ASSERT_TRUE(keys.Append(value).ok());
  }
  ASSERT_TRUE(keys.AppendNulls(2).ok());
  auto const table = arrow::Table::Make(arrow::schema({field("k", arrow::float64())}), {keys.Finish().ValueOrDie()});
  write_parquet(*table, folder / "in.parquet");
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 64, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 64, options.output);
  auto const of_rows = partitions_of_rows(*table, {"k"}, 64);
  EXPECT_EQ(of_rows[0], of_rows[1]);
  EXPECT_EQ(of_rows[0], of_rows[4]);
  EXPECT_EQ(of_rows[2], of_rows[3]);
  EXPECT_EQ(of_rows[6], of_rows[7]);
}

TEST(RepartitionKeys, AreRefusedWhenUnknownNestedOrAmbiguous) {
  TemporaryFolder const folder;
  auto const schema =
      arrow::schema({field("a", arrow::int32()), field("s", arrow::struct_({field("x", arrow::int32())})),
                     field("l", arrow::list(field("element", arrow::int32()))), field("twice", arrow::int32()),
                     field("twice", arrow::int32())});
  RandomArrays random(14);
  write_parquet(*random.table(schema, 10), folder / "in.parquet");
  for (std::string const key : {"b", "s", "s.x", "l", "l.list.element", "twice", ""}) {
    try {
      run(plenty_of_memory({folder / "in.parquet"}, {key}, 2, folder / "out"));
      ADD_FAILURE() << key;
    }
    catch (InputError const& error) {
      EXPECT_EQ(error.column(), key);
      EXPECT_EQ(error.file(), folder / "in.parquet");
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
  EXPECT_THROW(run(plenty_of_memory({folder / "in.parquet"}, {"a", "a"}, 2, folder / "out")), UsageError);
}

TEST(RepartitionKeys, DecimalsOfMoreDigitsThanTheFunctionKnowsAreRefusedAsKeysOnly) {
  TemporaryFolder const folder;
  parquet::schema::NodeVector const nodes{
      parquet::schema::PrimitiveNode::Make("wide", parquet::Repetition::REQUIRED, parquet::LogicalType::Decimal(90, 2),
                                           parquet::Type::FIXED_LEN_BYTE_ARRAY, 40),
      parquet::schema::Int32("id", parquet::Repetition::REQUIRED)};
  auto const root = std::static_pointer_cast<parquet::schema::GroupNode>(
      parquet::schema::GroupNode::Make("schema", parquet::Repetition::REQUIRED, nodes));
  auto const sink = arrow::io::FileOutputStream::Open(folder / "in.parquet").ValueOrDie();
  auto const writer = parquet::ParquetFileWriter::Open(sink, root);
  auto* const group = writer->AppendRowGroup();
  std::string const value(40, '\1');
  parquet::FixedLenByteArray const pointer(reinterpret_cast<std::uint8_t const*>(value.data()));
  static_cast<parquet::FixedLenByteArrayWriter*>(group->NextColumn())->WriteBatch(1, nullptr, nullptr, &pointer);
  std::int32_t const id = 1;
  static_cast<parquet::Int32Writer*>(group->NextColumn())->WriteBatch(1, nullptr, nullptr, &id);
  writer->Close();
  ASSERT_TRUE(sink->Close().ok());
  EXPECT_EQ(run(plenty_of_memory({folder / "in.parquet"}, {"id"}, 2, folder / "out")).rows, 1);
  EXPECT_THROW(run(plenty_of_memory({folder / "in.parquet"}, {"wide"}, 2, folder / "out2")), InputError);
}

}  // namespace
}  // namespace earmark
