// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Inputs that must be refused by name: unknown codecs, encryption, contradicting levels, files that change, durations
// of different units.
#include "ops/parquet_input.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <parquet/column_writer.h>
#include <parquet/encryption/encryption.h>
#include <parquet/exception.h>
#include <parquet/file_writer.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/ops/errors.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"

namespace earmark::detail {
namespace {

using arrow::field;
using parquet::Repetition;
using parquet::schema::GroupNode;
using parquet::schema::Int64;
using parquet::schema::NodePtr;

// Levels of the column `l`, a list that may be null of numbers that may be null.
struct Levels {
  std::vector<std::int16_t> definition;
  std::vector<std::int16_t> repetition;
};

class ParquetInputs : public ::testing::Test {
 protected:
  static std::shared_ptr<arrow::Table> table(std::shared_ptr<arrow::DataType> const& type = arrow::int64()) {
    auto const values = arrow::MakeArrayFromScalar(*arrow::MakeScalar(std::int64_t{5}), 10).ValueOrDie();
    return arrow::Table::Make(arrow::schema({field("key", arrow::int64()), field("x", type)}),
                              {values, values->View(type).ValueOrDie()});
  }
  [[nodiscard]] ParquetInput open(std::vector<std::string> const& paths) {
    return {disk_, arrow::default_memory_pool(), expand_inputs(disk_, paths)};
  }
  // Expects that the job refuses the files and leaves nothing. Returns: the message.
  std::string refusal(std::vector<std::string> const& paths) {
    std::string message;
    try {
      run(plenty_of_memory(paths, {"key"}, 2, folder_ / "out"));
      ADD_FAILURE() << "nothing is refused";
    }
    catch (InputError const& error) {
      message = error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
    return message;
  }
  static void expect_in(std::string const& part, std::string const& text) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  void write_levels(Levels const& levels) const {
    auto const list = GroupNode::Make("list", Repetition::REPEATED, {Int64("element", Repetition::OPTIONAL)});
    auto const root =
        GroupNode::Make("schema", Repetition::REQUIRED,
                        {Int64("key", Repetition::REQUIRED),
                         GroupNode::Make("l", Repetition::OPTIONAL, {list}, parquet::LogicalType::List())});
    std::shared_ptr<arrow::io::FileOutputStream> sink;
    PARQUET_ASSIGN_OR_THROW(sink, arrow::io::FileOutputStream::Open(in_));
    auto const file = parquet::ParquetFileWriter::Open(sink, std::static_pointer_cast<GroupNode>(root));
    auto* const group = file->AppendRowGroup();
    auto const entries = static_cast<std::int64_t>(levels.definition.size());
    auto const rows = std::count(levels.repetition.begin(), levels.repetition.end(), 0);
    std::vector<std::int64_t> const values(levels.definition.size() + 1, 7);
    static_cast<parquet::Int64Writer*>(group->NextColumn())->WriteBatch(rows, nullptr, nullptr, values.data());
    static_cast<parquet::Int64Writer*>(group->NextColumn())
        ->WriteBatch(entries, levels.definition.data(), levels.repetition.data(), values.data());
    file->Close();
    PARQUET_THROW_NOT_OK(sink->Close());
  }

  void write_encrypted(std::function<void(parquet::FileEncryptionProperties::Builder&)> const& set) const {
    parquet::FileEncryptionProperties::Builder encryption(arrow::util::SecureString("0123456789abcdef"));
    set(encryption);
    parquet::WriterProperties::Builder properties;
    properties.encryption(encryption.build());
    write_parquet(*table(), in_, {.properties = properties.build()});
  }

  TemporaryFolder folder_;
  std::string in_{folder_ / "in.parquet"};
  PosixFileSystem disk_;
};

TEST_F(ParquetInputs, ACodecThatIsUnknownOrMissingIsRefused) {
  parquet::WriterProperties::Builder properties;
  properties.compression(arrow::Compression::SNAPPY);
  write_parquet(*table(), in_, {.store_schema = false, .properties = properties.build()});
  std::string const good = read_text(in_);
  // In the footer: the end of the path ("x" in a list of one text), then the codec as field 4, zigzag coded.
  std::string const before("\x19\x18\x01x\x15", 5);
  auto const at = good.rfind(before) + before.size();
  ASSERT_LT(at, good.size());
  ASSERT_EQ(good[at], 2);            // Snappy
  for (int const codec : {3, 20}) {  // LZO, and one that does not exist
    std::string bytes = good;
    bytes[at] = static_cast<char>(2 * codec);
    std::ofstream(in_, std::ios::binary | std::ios::trunc) << bytes;
    auto const message = refusal({in_});
    expect_in("cannot read column 'x' in row group 0 of '" + in_ + "': ", message);
    expect_in("codec", message);
    EXPECT_THROW((void)open({in_}).chunk({0, 0, 10}, 1), InputError);
  }
}

TEST_F(ParquetInputs, AListThatIsNullOrEmptyCannotGoOn) {
  for (Levels const& levels : {Levels{{3, 0, 3}, {0, 0, 1}}, Levels{{3, 1, 2}, {0, 0, 1}}, Levels{{3, 3, 1}, {0, 1, 1}},
                               Levels{{3, 0, 3}, {0, 1, 0}}}) {
    write_levels(levels);
    expect_in("cannot read column 'l.list.element' in row group 0 of '" + in_ + "': its levels contradict each other",
              refusal({in_}));
  }
}

TEST_F(ParquetInputs, ListsOfNullsGoOn) {
  write_levels({{3, 2, 3, 0, 1, 2, 2, 3}, {0, 1, 1, 0, 0, 0, 1, 0}});
  EXPECT_EQ(run(plenty_of_memory({in_}, {"key"}, 1, folder_ / "out")).rows, 5);
  EXPECT_TRUE(read_parquet(part_path(folder_ / "out", 0))->ValidateFull().ok());
}

TEST_F(ParquetInputs, AFileThatIsReplacedIsNotMixedWithItsSuccessor) {
  write_parquet(*table(), in_);
  auto const input = open({in_});
  auto const reader = input.open_chunk({0, 0, 10}, 0, ReadAs::Values, 4096);
  std::filesystem::copy_file(in_, folder_ / "other");
  std::filesystem::last_write_time(folder_ / "other", std::filesystem::last_write_time(in_));
  std::filesystem::rename(folder_ / "other", in_);
  auto const read_all = [&] {
    std::int64_t values[10];
    std::int16_t definition[10];
    while (reader->read(10, definition, nullptr, values).entries > 0) {}
  };
  EXPECT_THROW(read_all(), InputError);
  try {
    (void)input.open_chunk({0, 0, 10}, 1, ReadAs::Values, 4096);
    ADD_FAILURE() << "it is opened";
  }
  catch (InputError const& error) {
    EXPECT_EQ(error.what(), "'" + in_ + "' changed while it was read");
  }
}

TEST_F(ParquetInputs, AFileThatIsWrittenToWhileItIsReadIsRefused) {
  write_parquet(*table(), in_);
  auto const listed = expand_inputs(disk_, {in_});
  std::filesystem::last_write_time(in_, std::filesystem::last_write_time(in_) + std::chrono::seconds(1));
  EXPECT_THROW(ParquetInput(disk_, arrow::default_memory_pool(), listed), InputError);
}

TEST_F(ParquetInputs, CausesEndWithoutANewline) {
  write_parquet(*table(), in_);
  std::string bytes = read_text(in_);
  std::fill(bytes.end() - 60, bytes.end() - 8, '\xff');
  std::ofstream(in_, std::ios::binary | std::ios::trunc) << bytes;
  auto const message = refusal({in_});
  ASSERT_FALSE(message.empty());
  EXPECT_NE(message.back(), '\n');
}

TEST_F(ParquetInputs, EncryptedFilesAreRefusedAsSuch) {
  std::string const expected = "cannot read '" + in_ + "': it is encrypted, which is not supported";
  write_encrypted([](auto&) {});
  EXPECT_EQ(refusal({in_}), expected);
  write_encrypted([](auto& encryption) { encryption.set_plaintext_footer(); });
  EXPECT_EQ(refusal({in_}), expected);
}

TEST_F(ParquetInputs, DurationsOfDifferentUnitsAreRefused) {
  std::string const other = folder_ / "other.parquet";
  auto const seconds = arrow::duration(arrow::TimeUnit::SECOND);
  auto const milliseconds = arrow::duration(arrow::TimeUnit::MILLI);
  write_parquet(*table(seconds), in_);
  for (auto const& type : {milliseconds, arrow::int64()}) {
    write_parquet(*table(type), other);
    expect_in("the schema of '" + other + "' differs from that of '" + in_ + "': column 'x': Arrow type is " +
                  type->ToString() + " instead of duration[s]",
              refusal({in_, other}));
    expect_in("instead of " + type->ToString(), refusal({other, in_}));
  }
}

TEST_F(ParquetInputs, ArrowTypesOfOneMeaningAreAccepted) {
  std::string const other = folder_ / "other.parquet";
  auto const file_of = [](auto&& builder, std::string const& path) {
    EXPECT_TRUE(builder.Append("a").ok());
    auto const array = builder.Finish().ValueOrDie();
    write_parquet(*arrow::Table::Make(arrow::schema({field("key", array->type())}), {array}), path);
  };
  file_of(arrow::StringBuilder(), in_);
  file_of(arrow::LargeStringBuilder(), other);
  EXPECT_EQ(run(plenty_of_memory({in_, other}, {"key"}, 1, folder_ / "out")).rows, 2);
}

}  // namespace
}  // namespace earmark::detail
