// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/ops/repartition.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <parquet/column_writer.h>
#include <parquet/file_reader.h>
#include <parquet/file_writer.h>
#include <parquet/metadata.h>

#include <filesystem>
#include <fstream>

#include "arrow_types.hpp"
#include "core/temporary_folder.hpp"
#include "earmark/ops/errors.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"
#include "random_arrays.hpp"

namespace earmark {
namespace {

using arrow::field;
using parquet::Encoding;

struct Written {
  std::string name;
  WriterSettings settings;
};

void PrintTo(Written const& way, std::ostream* out) { *out << way.name; }

std::vector<Written> ways_to_write() {
  using Builder = parquet::WriterProperties::Builder;
  std::vector<Written> ways;
  ways.push_back({"defaults", {}});
  ways.push_back({"small_groups", {.row_group_rows = 100}});
  ways.push_back(
      {"plain_v1_small_pages", {.properties = properties([](Builder& b) {
                                  b.disable_dictionary()->data_pagesize(200)->write_batch_size(7)->compression(
                                      arrow::Compression::SNAPPY);
                                })}});
  ways.push_back({"v2_small_pages", {.row_group_rows = 700, .properties = properties([](Builder& b) {
                                                              b.data_page_version(parquet::ParquetDataPageVersion::V2)
                                                                  ->data_pagesize(200)
                                                                  ->write_batch_size(7)
                                                                  ->compression(arrow::Compression::ZSTD);
                                                            })}});
  ways.push_back({"dictionary_fallback",
                  {.properties = properties([](Builder& b) {
                     b.dictionary_pagesize_limit(100)->data_pagesize(500)->write_batch_size(16)->compression(
                         arrow::Compression::GZIP);
                   })}});
  ways.push_back(
      {"no_statistics", {.row_group_rows = 900, .store_schema = false, .properties = properties([](Builder& b) {
                                                                         b.disable_statistics()->compression(
                                                                             arrow::Compression::LZ4);
                                                                       })}});
  ways.push_back({"page_index_and_checksums",
                  {.properties = properties([](Builder& b) {
                     b.enable_write_page_index()->enable_page_checksum()->data_pagesize(300)->compression(
                         arrow::Compression::BROTLI);
                   })}});
  ways.push_back(
      {"integer_decimals", {.properties = properties([](Builder& b) { b.enable_store_decimal_as_integer(); })}});
  ways.push_back({"old_format", {.int96 = true, .properties = properties([](Builder& b) {
                                                  b.version(parquet::ParquetVersion::PARQUET_1_0);
                                                })}});
  return ways;
}

class WrittenInEveryWay : public ::testing::TestWithParam<Written> {
 protected:
  void repartition_and_check(arrow::FieldVector fields, std::int64_t rows, std::vector<std::string> const& by,
                             std::int64_t partitions) {
    TemporaryFolder const folder;
    RandomArrays random(static_cast<std::uint64_t>(rows));
    auto const schema = schema_with_key(std::move(fields));
    write_parquet(*random.table(schema, rows), folder / "a.parquet", GetParam().settings);
    write_parquet(*random.table(schema, rows / 3), folder / "b.parquet", GetParam().settings);
    auto const options = plenty_of_memory({folder / "a.parquet", folder / "b.parquet"}, by, partitions, folder / "out");
    auto const result = run(options);
    EXPECT_EQ(result.rows, rows + rows / 3);
    EXPECT_EQ(result.files, partitions);
    expect_partitioned(options.inputs, by, partitions, options.output);
    std::int64_t bytes = 0;
    for (std::int64_t p = 0; p < partitions; ++p) {
      expect_true_statistics(part_path(options.output, p));
      bytes += static_cast<std::int64_t>(std::filesystem::file_size(part_path(options.output, p)));
    }
    EXPECT_EQ(result.bytes_out, bytes);
  }
};

TEST_P(WrittenInEveryWay, FlatColumnsKeepTheirValues) { repartition_and_check(flat_types(), 1500, {"key"}, 3); }
TEST_P(WrittenInEveryWay, DecimalsKeepTheirValues) { repartition_and_check(decimal_types(), 600, {"key"}, 2); }
TEST_P(WrittenInEveryWay, NestedColumnsKeepTheirValues) { repartition_and_check(nested_types(), 1500, {"key"}, 7); }

INSTANTIATE_TEST_SUITE_P(Repartition, WrittenInEveryWay, ::testing::ValuesIn(ways_to_write()),
                         [](auto const& way) { return way.param.name; });

// ------------------------------------------------------------------------------------------------------- Encodings

struct ChosenEncoding {
  Encoding::type encoding;
  std::shared_ptr<arrow::DataType> type;
};

class Encodings : public ::testing::TestWithParam<ChosenEncoding> {};

TEST_P(Encodings, AreRead) {
  TemporaryFolder const folder;
  RandomArrays random(7);
  auto const type = GetParam().type;
  auto const schema = schema_with_key(
      {field("nullable", type), field("required", type, false), field("list", arrow::list(field("element", type)))});
  WriterSettings settings;
  settings.row_group_rows = 800;
  settings.properties = properties([](auto& b) {
    b.disable_dictionary()->data_pagesize(400)->write_batch_size(32);
    for (auto const* column : {"nullable", "required", "list.list.element"}) {
      b.encoding(column, GetParam().encoding);
    }
  });
  write_parquet(*random.table(schema, 2000), folder / "in.parquet", settings);
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"nullable", "required"}, 3, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 3, options.output);
  for (std::int64_t p = 0; p < 3; ++p) { expect_true_statistics(part_path(options.output, p)); }
}

INSTANTIATE_TEST_SUITE_P(Repartition, Encodings,
                         ::testing::Values(ChosenEncoding{Encoding::DELTA_BINARY_PACKED, arrow::int32()},
                                           ChosenEncoding{Encoding::DELTA_BINARY_PACKED, arrow::int64()},
                                           ChosenEncoding{Encoding::DELTA_LENGTH_BYTE_ARRAY, arrow::utf8()},
                                           ChosenEncoding{Encoding::DELTA_BYTE_ARRAY, arrow::utf8()},
                                           ChosenEncoding{Encoding::DELTA_BYTE_ARRAY, arrow::fixed_size_binary(7)},
                                           ChosenEncoding{Encoding::RLE, arrow::boolean()},
                                           ChosenEncoding{Encoding::BYTE_STREAM_SPLIT, arrow::float32()},
                                           ChosenEncoding{Encoding::BYTE_STREAM_SPLIT, arrow::float64()},
                                           ChosenEncoding{Encoding::BYTE_STREAM_SPLIT, arrow::int32()},
                                           ChosenEncoding{Encoding::BYTE_STREAM_SPLIT, arrow::int64()},
                                           ChosenEncoding{Encoding::BYTE_STREAM_SPLIT, arrow::fixed_size_binary(5)}),
                         [](auto const& chosen) { return std::to_string(chosen.index); });

// -------------------------------------------------------------------------------------------------- Sizes and shapes

class PartitionCounts : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(PartitionCounts, AllGiveTheSameAnswer) {
  auto const [partitions, threads] = GetParam();
  TemporaryFolder const folder;
  RandomArrays random(21);
  auto const schema =
      schema_with_key({field("s", arrow::utf8()), field("l", arrow::list(field("element", arrow::utf8()))),
                       field("d", arrow::decimal128(15, 2)), field("f", arrow::float64())});
  write_parquet(*random.table(schema, 4000), folder / "in.parquet", {.row_group_rows = 900});
  auto options = plenty_of_memory({folder / "in.parquet"}, {"key", "s"}, partitions, folder / "out");
  options.threads = static_cast<std::size_t>(threads);
  run(options);
  expect_partitioned(options.inputs, options.by, partitions, options.output);
  for (std::int64_t p = 0; p < std::min(partitions, 8); ++p) { expect_true_statistics(part_path(options.output, p)); }
}

INSTANTIATE_TEST_SUITE_P(Repartition, PartitionCounts,
                         ::testing::Combine(::testing::Values(1, 2, 3, 7, 64, 300), ::testing::Values(1, 2, 3)));

TEST(Repartition, AcceptsFilesWithoutRowsOrRowGroups) {
  TemporaryFolder const folder;
  RandomArrays random(22);
  auto const schema = schema_with_key(nested_types());
  auto const table = random.table(schema, 50);
  write_row_groups(*table, folder / "none.parquet", {});
  write_row_groups(*table, folder / "empty_groups.parquet", {0, 0});
  write_row_groups(*table, folder / "mixed.parquet", {0, 20, 0, 1, 29, 0});
  for (std::vector<std::string> const& inputs : std::vector<std::vector<std::string>>{
           {"none.parquet"},
           {"empty_groups.parquet"},
           {"mixed.parquet"},
           {"none.parquet", "mixed.parquet", "empty_groups.parquet", "mixed.parquet"}}) {
    std::filesystem::remove_all(folder / "out");
    std::vector<std::string> paths;
    for (auto const& name : inputs) { paths.push_back(folder / name); }
    auto const options = plenty_of_memory(paths, {"key"}, 4, folder / "out");
    run(options);
    expect_partitioned(paths, options.by, 4, options.output);
    for (std::int64_t p = 0; p < 4; ++p) { expect_true_statistics(part_path(options.output, p)); }
  }
}

TEST(Repartition, AcceptsColumnNamesThatAreThereTwice) {
  TemporaryFolder const folder;
  RandomArrays random(23);
  auto const schema =
      arrow::schema({field("k", arrow::int32()), field("twice", arrow::utf8()), field("twice", arrow::int64(), false),
                     field("twice", arrow::list(field("element", arrow::int8())))});
  write_parquet(*random.table(schema, 2000), folder / "in.parquet", {.row_group_rows = 600});
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 3, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 3, options.output);
}

TEST(Repartition, ColumnsWithOnlyNullsKeepThem) {
  TemporaryFolder const folder;
  arrow::FieldVector fields = flat_types();
  std::vector<std::shared_ptr<arrow::Array>> columns;
  fields.insert(fields.begin(), field("key", arrow::int32(), false));
  std::erase_if(fields, [](auto const& f) { return !f->nullable() && f->name() != "key"; });
  RandomArrays random(24);
  for (auto const& f : fields) {
    columns.push_back(f->name() == "key" ? random.array(*f, 500, Variety::ManyValues)
                                         : arrow::MakeArrayOfNull(f->type(), 500).ValueOrDie());
  }
  write_parquet(*arrow::Table::Make(arrow::schema(fields), columns), folder / "in.parquet", {.row_group_rows = 200});
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"key"}, 3, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 3, options.output);
  for (std::int64_t p = 0; p < 3; ++p) { expect_true_statistics(part_path(options.output, p)); }
}

TEST(Repartition, WritesStatisticsThatAreTrueWithoutADictionary) {
  // So few rows for so many files that no dictionary pays.
  TemporaryFolder const folder;
  arrow::FieldVector fields = flat_types();
  for (auto const& extra : {decimal_types(), nested_types()}) {
    fields.insert(fields.end(), extra.begin(), extra.end());
  }
  RandomArrays random(25);
  write_parquet(*random.table(schema_with_key(fields), 900), folder / "in.parquet",
                {.properties = properties([](auto& b) { b.disable_dictionary(); })});
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"key"}, 5, folder / "out");
  run(options);
  for (std::int64_t p = 0; p < 5; ++p) { expect_true_statistics(part_path(options.output, p)); }
}

TEST(Repartition, RowGroupsHaveTheSizeAskedFor) {
  TemporaryFolder const folder;
  RandomArrays random(26);
  auto const schema = schema_with_key({field("a", arrow::float64(), false), field("b", arrow::int64(), false)});
  write_parquet(*random.table(schema, 60'000), folder / "in.parquet",
                {.row_group_rows = 500, .properties = properties([](auto& b) { b.disable_dictionary(); })});
  auto options = plenty_of_memory({folder / "in.parquet"}, {"a"}, 4, folder / "out");
  options.row_group_bytes = 24 * 2000;
  run(options);
  expect_partitioned(options.inputs, options.by, 4, options.output);
  for (std::int64_t p = 0; p < 4; ++p) {
    auto const rows = row_group_rows(part_path(options.output, p));
    ASSERT_GT(rows.size(), 3U);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      EXPECT_GE(rows[i], 1900);  // the estimate of a row's bytes is not exact to the byte
      EXPECT_LE(rows[i], 4000);
    }
    expect_true_statistics(part_path(options.output, p));
  }
}

TEST(Repartition, ASkewedKeyDoesNotMakeManySmallRowGroups) {
  TemporaryFolder const folder;
  arrow::Int64Builder keys;
  for (std::int64_t i = 0; i < 60'000; ++i) { ASSERT_TRUE(keys.Append(i % 10 == 0 ? i : 1).ok()); }
  write_parquet(*arrow::Table::Make(arrow::schema({field("k", arrow::int64(), false)}), {keys.Finish().ValueOrDie()}),
                folder / "in.parquet", {.row_group_rows = 400});
  auto options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 4, folder / "out");
  options.row_group_bytes = 8 * 1000;
  run(options);
  expect_partitioned(options.inputs, options.by, 4, options.output);
  for (std::int64_t p = 0; p < 4; ++p) {
    auto const rows = row_group_rows(part_path(options.output, p));
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) { EXPECT_GE(rows[i], 300) << p; }
  }
}

TEST(Repartition, AListOfMillionsOfElementsPasses) {
  TemporaryFolder const folder;
  auto const values = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), values, arrow::list(field("element", arrow::int32())));
  arrow::Int32Builder keys;
  for (int row = 0; row < 5; ++row) {
    ASSERT_TRUE(keys.Append(row).ok());
    ASSERT_TRUE(lists.Append().ok());
    for (int i = 0; i < (row == 2 ? 3'000'000 : 4); ++i) {
      ASSERT_TRUE((i % 5 == 0 ? values->AppendNull() : values->Append(i * 97)).ok());
    }
  }
  auto const schema =
      arrow::schema({field("k", arrow::int32(), false), field("l", arrow::list(field("element", arrow::int32())))});
  write_parquet(*arrow::Table::Make(schema, {keys.Finish().ValueOrDie(), lists.Finish().ValueOrDie()}),
                folder / "in.parquet");
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 3, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 3, options.output);
  for (std::int64_t p = 0; p < 3; ++p) { expect_true_statistics(part_path(options.output, p)); }
}

TEST(Repartition, AStringOfFortyMegabytesPasses) {
  TemporaryFolder const folder;
  arrow::StringBuilder strings;
  arrow::Int32Builder keys;
  for (int row = 0; row < 9; ++row) {
    ASSERT_TRUE(keys.Append(row).ok());
    ASSERT_TRUE(strings.Append(row == 4 ? std::string(40'000'000, 'q') : "short " + std::to_string(row)).ok());
  }
  auto const schema = arrow::schema({field("k", arrow::int32(), false), field("s", arrow::utf8())});
  for (bool const dictionary : {false, true}) {
    std::filesystem::remove_all(folder / "out");
    write_parquet(
        *arrow::Table::Make(schema, {keys.Finish().ValueOrDie(), strings.Finish().ValueOrDie()}), folder / "in.parquet",
        {.properties = properties([&](auto& b) { dictionary ? b.enable_dictionary() : b.disable_dictionary(); })});
    auto const options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 2, folder / "out");
    run(options);
    expect_partitioned(options.inputs, options.by, 2, options.output);
    for (std::int64_t p = 0; p < 2; ++p) { expect_true_statistics(part_path(options.output, p)); }
    break;
  }
}

// Staging is at least 8 MiB a worker, so that this many values make several rounds for each row group.
TEST(Repartition, RowGroupsLargerThanStagingGoThroughInStretches) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a small limit on the resident size: the thread sanitizer's shadow memory counts in it";
#endif
  TemporaryFolder const folder;
  RandomArrays random(27);
  arrow::StringBuilder strings;
  auto const list_values = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), list_values, arrow::list(field("element", arrow::utf8())));
  arrow::Int64Builder keys;
  for (std::int64_t row = 0; row < 30'000; ++row) {
    ASSERT_TRUE(keys.Append(row * 31).ok());
    ASSERT_TRUE((row % 11 == 0
                     ? strings.AppendNull()
                     : strings.Append(std::string(500 + random.below(600), static_cast<char>('a' + row % 26)) +
                                      std::to_string(row)))
                    .ok());
    if (row % 7 == 0) {
      ASSERT_TRUE(lists.AppendNull().ok());
      continue;
    }
    ASSERT_TRUE(lists.Append().ok());
    for (std::uint64_t i = random.below(5); i > 0; --i) {
      ASSERT_TRUE(list_values->Append(std::string(random.below(400), 'z') + std::to_string(row)).ok());
    }
  }
  auto const schema = arrow::schema({field("k", arrow::int64()), field("s", arrow::utf8()),
                                     field("l", arrow::list(field("element", arrow::utf8())))});
  auto const table = arrow::Table::Make(
      schema, {keys.Finish().ValueOrDie(), strings.Finish().ValueOrDie(), lists.Finish().ValueOrDie()});
  for (std::int64_t const rows : {30'000, 9'000}) {
    std::filesystem::remove_all(folder / "out");
    write_parquet(*table, folder / "in.parquet",
                  {.row_group_rows = rows,
                   .properties = properties([](auto& b) { b.disable_dictionary()->data_pagesize(100'000); })});
    auto options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 3, folder / "out");
    options.threads = 1;
    options.memory_bytes = 1;  // asks for the least staging; set below
    try {
      options.admission_check = AdmissionCheck::Yes;
      run(options);
    }
    catch (NotEnoughMemory const& error) {
      options.memory_bytes = error.least_bytes() + (16 << 20);  // what Arrow holds in this process may move a little
    }
    run(options);
    expect_partitioned(options.inputs, options.by, 3, options.output);
    for (std::int64_t p = 0; p < 3; ++p) { expect_true_statistics(part_path(options.output, p)); }
  }
}

// ---------------------------------------------------------------------------------------------------------- Schemas

TEST(Repartition, FilesOfDifferentSchemasAreRefusedByName) {
  TemporaryFolder const folder;
  RandomArrays random(31);
  auto const write = [&](std::string const& name, arrow::FieldVector fields) {
    write_parquet(*random.table(arrow::schema(std::move(fields)), 10), folder / name);
  };
  write("a.parquet", {field("k", arrow::int32()), field("v", arrow::utf8())});
  std::vector<std::pair<arrow::FieldVector, std::string>> const others{
      {{field("k", arrow::int32()), field("w", arrow::utf8())}, "v"},
      {{field("k", arrow::int64()), field("v", arrow::utf8())}, "k"},
      {{field("k", arrow::int32(), false), field("v", arrow::utf8())}, "k"},
      {{field("k", arrow::int32()), field("v", arrow::binary())}, "v"},
      {{field("v", arrow::utf8()), field("k", arrow::int32())}, "k"},
      {{field("k", arrow::int32())}, "v"},
      {{field("k", arrow::int32()), field("v", arrow::utf8()), field("x", arrow::utf8())}, "x"}};
  for (auto const& [fields, column] : others) {
    write("b.parquet", fields);
    try {
      run(plenty_of_memory({folder / "a.parquet", folder / "b.parquet"}, {"k"}, 2, folder / "out"));
      ADD_FAILURE() << column;
    }
    catch (InputError const& error) {
      EXPECT_EQ(error.file(), folder / "b.parquet");
      EXPECT_NE(std::string(error.what()).find("'" + column + "'"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
}

void write_one_int32(std::string const& path, std::string const& root_name, std::int32_t value, int field_id = -1) {
  auto const node = parquet::schema::PrimitiveNode::Make("k", parquet::Repetition::REQUIRED, parquet::Type::INT32,
                                                         parquet::ConvertedType::NONE, -1, -1, -1, field_id);
  auto const root = std::static_pointer_cast<parquet::schema::GroupNode>(
      parquet::schema::GroupNode::Make(root_name, parquet::Repetition::REQUIRED, {node}));
  auto const sink = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  auto const writer = parquet::ParquetFileWriter::Open(sink, root);
  static_cast<parquet::Int32Writer*>(writer->AppendRowGroup()->NextColumn())->WriteBatch(1, nullptr, nullptr, &value);
  writer->Close();
  ASSERT_TRUE(sink->Close().ok());
}

TEST(Repartition, TheNameOfTheSchemasRootMeansNothing) {
  TemporaryFolder const folder;
  write_one_int32(folder / "a.parquet", "schema", 1);
  write_one_int32(folder / "b.parquet", "root", 2);
  EXPECT_EQ(run(plenty_of_memory({folder / "a.parquet", folder / "b.parquet"}, {"k"}, 2, folder / "out")).rows, 2);
}

TEST(Repartition, FieldIdsStay) {
  TemporaryFolder const folder;
  write_one_int32(folder / "a.parquet", "schema", 1, 17);
  run(plenty_of_memory({folder / "a.parquet"}, {"k"}, 1, folder / "out"));
  auto const footer = parquet::ParquetFileReader::OpenFile(part_path(folder / "out", 0))->metadata();
  EXPECT_EQ(footer->schema()->Column(0)->schema_node()->field_id(), 17);
}

// A writer may list the pages of a chunk in any order.
TEST(Repartition, EncodingStatisticsMayComeInAnyOrder) {
  TemporaryFolder const folder;
  RandomArrays random(32);
  write_parquet(*random.table(arrow::schema({field("k", arrow::int32(), false)}), 5000), folder / "in.parquet");
  std::string bytes = read_text(folder / "in.parquet");
  // One dictionary page in plain encoding, then one data page in dictionary encoding, as the footer has them.
  std::string const dictionary_page{0x15, 0x04, 0x15, 0x00, 0x15, 0x02, 0x00};
  std::string const data_page{0x15, 0x00, 0x15, 0x10, 0x15, 0x02, 0x00};
  auto const at = bytes.rfind(dictionary_page + data_page);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, dictionary_page.size() + data_page.size(), data_page + dictionary_page);
  std::ofstream(folder / "in.parquet", std::ios::binary) << bytes;
  auto const options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 2, folder / "out");
  run(options);
  expect_partitioned(options.inputs, options.by, 2, options.output);
}

// Then each value is looked up. The field is given a number that no reader knows.
TEST(Repartition, AFooterNeedNotTellHowPagesAreEncoded) {
  TemporaryFolder const folder;
  RandomArrays random(34);
  for (auto const& type : {arrow::int32(), arrow::float64(), arrow::utf8(), arrow::fixed_size_binary(3),
                           arrow::decimal128(7, 2), arrow::decimal128(15, 2), arrow::decimal128(30, 2)}) {
    for (bool const falls_back : {false, true}) {
      SCOPED_TRACE(type->ToString() + (falls_back ? ", falls back" : ""));
      std::filesystem::remove_all(folder / "out");
      auto const schema = arrow::schema({field("k", arrow::int64()), field("n", type), field("r", type, false),
                                         field("l", arrow::list(field("element", type)))});
      std::vector<std::shared_ptr<arrow::Array>> columns;
      for (auto const& f : schema->fields()) { columns.push_back(random.array(*f, 4000, Variety::FewValues)); }
      write_parquet(*arrow::Table::Make(schema, columns), folder / "in.parquet",
                    {.row_group_rows = 1500,
                     .store_schema = false,
                     .properties = properties([&](auto& b) {
                       b.data_pagesize(700)->write_batch_size(90)->dictionary_pagesize_limit(falls_back ? 20 : 1 << 20);
                     })});
      std::string bytes = read_text(folder / "in.parquet");
      std::size_t changed = 0;
      for (std::string const header :
           {"\x19\x2c\x15\x04\x15", "\x19\x3c\x15\x04\x15"}) {  // a list of two or three, the first a dictionary page
        for (auto at = bytes.find(header); at != std::string::npos; at = bytes.find(header, at + 1)) {
          bytes[at] = '\xf9';
          ++changed;
        }
      }
      EXPECT_GE(changed, 12U);
      std::ofstream(folder / "in.parquet", std::ios::binary) << bytes;
      auto const footer = parquet::ParquetFileReader::OpenFile(folder / "in.parquet")->metadata();
      ASSERT_TRUE(footer->RowGroup(0)->ColumnChunk(1)->encoding_stats().empty());
      auto const options = plenty_of_memory({folder / "in.parquet"}, {"k"}, 2, folder / "out");
      run(options);
      expect_partitioned(options.inputs, options.by, 2, options.output);
      for (std::int64_t p = 0; p < 2; ++p) { expect_true_statistics(part_path(options.output, p)); }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------- Options

TEST(Repartition, OptionsThatMakeNoSenseAreRefused) {
  TemporaryFolder const folder;
  write_one_int32(folder / "a.parquet", "schema", 1);
  auto const good = plenty_of_memory({folder / "a.parquet"}, {"k"}, 1, folder / "out");
  auto const refused = [&](auto change) {
    auto options = good;
    change(options);
    EXPECT_THROW(run(options), UsageError);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  };
  refused([](auto& o) { o.inputs.clear(); });
  refused([](auto& o) { o.by.clear(); });
  refused([](auto& o) { o.output.clear(); });
  refused([](auto& o) { o.partitions = 0; });
  refused([](auto& o) { o.partitions = -1; });
  refused([](auto& o) { o.partitions = std::int64_t{1} << 31; });
  refused([](auto& o) { o.memory_bytes = 0; });
  refused([](auto& o) { o.memory_bytes = -1; });
  refused([](auto& o) { o.row_group_bytes = 0; });
  refused([](auto& o) { o.compression = Compression{Compression::Codec::Gzip, 100}; });
  refused([](auto& o) { o.compression = Compression{Compression::Codec::Snappy, 3}; });
  refused([](auto& o) { o.compression = Compression{Compression::Codec::Brotli, 99}; });
}

TEST(Repartition, EveryCodecIsWrittenAsAskedAndKeptWhereNoneIsAsked) {
  TemporaryFolder const folder;
  RandomArrays random(33);
  auto const table = random.table(schema_with_key({field("s", arrow::utf8())}), 500);
  using Codec = Compression::Codec;
  std::vector<std::pair<Codec, arrow::Compression::type>> const codecs{
      {Codec::None, arrow::Compression::UNCOMPRESSED}, {Codec::Snappy, arrow::Compression::SNAPPY},
      {Codec::Gzip, arrow::Compression::GZIP},         {Codec::Brotli, arrow::Compression::BROTLI},
      {Codec::Zstd, arrow::Compression::ZSTD},         {Codec::Lz4, arrow::Compression::LZ4}};
  auto const codec_of = [&](std::string const& out, int column) {
    return parquet::ParquetFileReader::OpenFile(part_path(out, 0))
        ->metadata()
        ->RowGroup(0)
        ->ColumnChunk(column)
        ->compression();
  };
  write_parquet(*table, folder / "in.parquet",
                {.properties = properties([](auto& b) { b.compression("s", arrow::Compression::ZSTD); })});
  auto options = plenty_of_memory({folder / "in.parquet"}, {"key"}, 1, folder / "own");
  run(options);
  EXPECT_EQ(codec_of(options.output, 0), arrow::Compression::UNCOMPRESSED);
  EXPECT_EQ(codec_of(options.output, 1), arrow::Compression::ZSTD);
  for (auto const& [asked, written] : codecs) {
    options.compression = Compression{asked, {}};
    options.output = folder / ("out" + std::to_string(static_cast<int>(asked)));
    run(options);
    EXPECT_EQ(codec_of(options.output, 1), written);
    expect_partitioned(options.inputs, options.by, 1, options.output);
  }
}

}  // namespace
}  // namespace earmark
