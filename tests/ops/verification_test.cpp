// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Verification finds whatever is wrong with the output, and passes what is right.
#include "ops/verification.hpp"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

#include "arrow_types.hpp"
#include "core/temporary_folder.hpp"
#include "damaging_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/ops/errors.hpp"
#include "earmark/testing/faulty_file_system.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"
#include "random_arrays.hpp"

namespace earmark {
namespace {

using arrow::field;
using Damage = DamagingFileSystem::Damage;

constexpr std::int64_t marker = 0x1122334455667788;  // a value whose bytes are found in the output
constexpr std::int64_t other_marker = 0x1122334455667789;

class Verification : public ::testing::Test {
 protected:
  // Plain, uncompressed int64 columns, so that a test can find values in the bytes that are written.
  void make_plain_input(std::vector<std::int64_t> const& values) {
    arrow::Int64Builder keys;
    arrow::Int64Builder column;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(keys.Append(static_cast<std::int64_t>(i) % 7).ok());
      EXPECT_TRUE(column.Append(values[i]).ok());
    }
    auto const schema = arrow::schema({field("key", arrow::int64(), false), field("v", arrow::float64(), false)});
    auto const v = column.Finish().ValueOrDie()->View(arrow::float64()).ValueOrDie();  // doubles are written plainly
    write_parquet(*arrow::Table::Make(schema, {keys.Finish().ValueOrDie(), v}), folder_ / "in.parquet",
                  {.properties = parquet::WriterProperties::Builder()
                                     .disable_dictionary()
                                     ->compression(arrow::Compression::UNCOMPRESSED)
                                     ->build()});
    options_ = plenty_of_memory({folder_ / "in.parquet"}, {"key"}, 3, folder_ / "out");
    options_.verify = Verify::Yes;
  }
  RepartitionResult run_on(FileSystem& disk) { return repartition(options_, {pool_, clock_, disk}); }
  // Returns: why the job failed; empty when it did not.
  std::string failure_with(Damage const& damage) {
    DamagingFileSystem disk(damage);
    try {
      EXPECT_EQ(run_on(disk).verified, options_.verify);
      return "";
    }
    catch (InternalError const& error) {
      EXPECT_FALSE(std::filesystem::exists(options_.output));
      return error.what();
    }
  }
  [[nodiscard]] std::size_t names_in_folder() const {
    auto const entries = std::filesystem::directory_iterator(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  TemporaryFolder folder_;
  PosixFileSystem real_;
  RepartitionOptions options_;
  SteadyClock clock_;
  ThreadPool pool_{1};
};

// Replaces a value wherever it is written. Returns: how often.
int replace(std::span<std::byte> bytes, std::int64_t from, std::int64_t to) {
  int count = 0;
  for (std::size_t i = 0; i + sizeof from <= bytes.size(); ++i) {
    if (std::memcmp(bytes.data() + i, &from, sizeof from) != 0) { continue; }
    std::memcpy(bytes.data() + i, &to, sizeof to);
    ++count;
  }
  return count;
}

TEST_F(Verification, IsOffUnlessAskedFor) {
  make_plain_input({1, 2, marker, 4});
  options_.verify = Verify::No;
  EXPECT_EQ(failure_with([](auto const&, auto, auto bytes) { replace(bytes, marker, other_marker); }), "");
}

TEST_F(Verification, PassesASoundOutput) {
  make_plain_input({1, 2, marker, 4, 5, 6, 7, 8});
  EXPECT_EQ(failure_with([](auto const&, auto, auto) {}), "");
  EXPECT_EQ(read_parquet(part_path(options_.output, 0))->num_columns(), 2);
}

// Everywhere it is written, statistics too: no reader that looks at the output alone can tell.
TEST_F(Verification, FindsAValueThatBecameAnother) {
  make_plain_input({1, 2, marker, 4, 5, 6, 7, 8});
  int replaced = 0;
  std::string const failure =
      failure_with([&](auto const&, auto, auto bytes) { replaced += replace(bytes, marker, other_marker); });
  EXPECT_GT(replaced, 0);
  EXPECT_NE(failure.find("'v'"), std::string::npos) << failure;
  EXPECT_NE(failure.find(".parquet'"), std::string::npos) << failure;
  EXPECT_EQ(names_in_folder(), 1U) << "something is left beside the input";
}

TEST_F(Verification, FindsValuesThatChangedPlaces) {
  std::vector<std::int64_t> values(70, 5);
  values[0] = marker;
  values[7] = other_marker;  // of the same key, so in the same file
  make_plain_input(values);
  constexpr std::int64_t neither = 42;
  std::string const failure = failure_with([&](auto const&, auto, auto bytes) {
    replace(bytes, marker, neither);
    replace(bytes, other_marker, marker);
    replace(bytes, neither, other_marker);
  });
  EXPECT_NE(failure.find("'v'"), std::string::npos) << failure;
}

TEST_F(Verification, FindsAFileInPlaceOfAnother) {
  make_plain_input({1, 2, 3, 4, 5, 6, 7, 8, 9});
  testing::FaultyFileSystem watched(real_);
  bool done = false;
  watched.observe([&](testing::FileOperation operation, std::string const& path) {
    // The first look at a finished file.
    if (done || operation != testing::FileOperation::OpenForReading || path.find("part-0000") == path.npos) { return; }
    done = true;
    auto const folder = std::filesystem::path(path).parent_path();
    std::filesystem::rename(folder / "part-00000.parquet", folder / "x");
    std::filesystem::rename(folder / "part-00001.parquet", folder / "part-00000.parquet");
    std::filesystem::rename(folder / "x", folder / "part-00001.parquet");
  });
  EXPECT_THROW(run_on(watched), InternalError);
  EXPECT_TRUE(done);
}

TEST_F(Verification, FindsRowsThatAreMissing) {
  make_plain_input(std::vector<std::int64_t>(50, marker));
  testing::FaultyFileSystem disk(real_);
  disk.cut_files("part-00001", 0);  // reads of it end at once
  EXPECT_THROW(run_on(disk), InternalError);
}

TEST_F(Verification, OfADiskThatFailsIsTheDisksError) {
  make_plain_input(std::vector<std::int64_t>(50, marker));
  testing::FaultyFileSystem disk(real_);
  disk.fail({.operations = testing::FileOperation::Read, .path_contains = "part-", .error_number = EIO});
  EXPECT_THROW(run_on(disk), FileSystemError);
  EXPECT_EQ(disk.open_handles(), 0);
  EXPECT_EQ(names_in_folder(), 1U);
}

TEST_F(Verification, OfAnInputThatIsGoneIsTheInputsError) {
  make_plain_input(std::vector<std::int64_t>(50, marker));
  testing::FaultyFileSystem disk(real_);
  disk.observe([&](testing::FileOperation operation, std::string const& path) {
    if (operation == testing::FileOperation::Close && path.find("part-00002") != path.npos) {
      std::filesystem::remove(folder_ / "in.parquet");
    }
  });
  EXPECT_THROW(run_on(disk), InputError);
}

// What is not found must not matter to a reader.
TEST_F(Verification, FindsAnyFlippedByteThatChangesARow) {
  RandomArrays random(5);
  auto const schema =
      arrow::schema({field("key", arrow::int32()), field("s", arrow::utf8()),
                     field("l", arrow::list(field("element", arrow::int16()))), field("d", arrow::decimal128(12, 3))});
  write_parquet(*random.table(schema, 40), folder_ / "in.parquet");
  options_ = plenty_of_memory({folder_ / "in.parquet"}, {"key"}, 2, folder_ / "out");
  options_.verify = Verify::Yes;
  run(options_);
  auto const sound = read_parquet(part_path(options_.output, 1));
  std::int64_t const size = static_cast<std::int64_t>(std::filesystem::file_size(part_path(options_.output, 1)));
  int found = 0;
  for (std::int64_t at = 0; at < size; at += 3) {
    SCOPED_TRACE(at);
    std::filesystem::remove_all(options_.output);
    std::string const failure = failure_with([at](std::string const& path, std::int64_t offset, auto bytes) {
      if (!path.ends_with("part-00001.parquet") || at < offset || at >= offset + std::ssize(bytes)) { return; }
      bytes[static_cast<std::size_t>(at - offset)] ^= std::byte{0x11};
    });
    found += failure.empty() ? 0 : 1;
    if (!failure.empty()) { continue; }
    EXPECT_TRUE(read_parquet(part_path(options_.output, 1))->Equals(*sound, /*check_metadata=*/true));
    if (HasFailure()) { return; }
  }
  EXPECT_GT(found, 100);
}

struct Columns {
  std::string name;
  arrow::FieldVector fields;
};
void PrintTo(Columns const& columns, std::ostream* out) { *out << columns.name; }

class VerificationOfTypes : public ::testing::TestWithParam<Columns> {};

// With and without the key, in many small row groups, plainly and with dictionaries, decimals as bytes.
TEST_P(VerificationOfTypes, PassesASoundOutput) {
  TemporaryFolder const folder;
  RandomArrays random(11);
  write_parquet(*random.table(schema_with_key(GetParam().fields), 700), folder / "a.parquet", {.row_group_rows = 90});
  write_parquet(*random.table(schema_with_key(GetParam().fields), 70), folder / "b.parquet");
  auto options = plenty_of_memory({folder / "a.parquet", folder / "b.parquet"}, {"key"}, 5, folder / "out");
  options.verify = Verify::Yes;
  EXPECT_EQ(run(options).verified, Verify::Yes);
  options.columns = {GetParam().fields.back()->name(), GetParam().fields.front()->name()};
  options.overwrite = Overwrite::Yes;
  EXPECT_EQ(run(options).verified, Verify::Yes);
}

INSTANTIATE_TEST_SUITE_P(Ops, VerificationOfTypes,
                         ::testing::Values(Columns{"Flat", flat_types()}, Columns{"Decimals", decimal_types()},
                                           Columns{"Nested", nested_types()}),
                         [](auto const& columns) { return columns.param.name; });

}  // namespace
}  // namespace earmark
