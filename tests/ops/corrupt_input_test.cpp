// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Damaged files: the job says what is wrong with which file, or reads what can still be read; it never crashes, hangs,
// or publishes something after an error. EARMARK_SEED makes other damages, EARMARK_ROUNDS so many times more of them.
#include <arrow/api.h>
#include <gtest/gtest.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <typeinfo>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/ops/errors.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"
#include "random_arrays.hpp"

namespace earmark {
namespace {

using arrow::field;

class CorruptInput : public ::testing::TestWithParam<int> {
 protected:
  static constexpr std::int64_t rows = 300;

  CorruptInput()
      : in_(folder_ / "in.parquet"),
        out_(folder_ / "out"),
        random_(static_cast<std::uint64_t>(GetParam() + 4 * number_from("EARMARK_SEED", 0))) {
    RandomArrays arrays(51);
    auto const schema =
        arrow::schema({field("key", arrow::int64()), field("s", arrow::utf8()), field("d", arrow::decimal128(12, 2)),
                       field("f", arrow::float64(), false), field("l", arrow::list(field("element", arrow::utf8()))),
                       field("b", arrow::boolean())});
    parquet::WriterProperties::Builder builder;
    builder.compression(arrow::Compression::SNAPPY);
    if (GetParam() % 2 == 1) {
      builder.data_page_version(parquet::ParquetDataPageVersion::V2)
          ->disable_dictionary()
          ->compression(arrow::Compression::UNCOMPRESSED);
    }
    write_parquet(*arrays.table(schema, rows), in_,
                  {.row_group_rows = 120, .store_schema = false, .properties = builder.build()});
    good_ = read_text(in_);
  }

  static int number_from(char const* variable, int otherwise) {
    char const* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atoi(text);
  }

  // Runs the job over `bytes`; the result is checked for shape, a failure for its kind and for what it leaves.
  void expect_handled(std::string const& bytes) {
    std::ofstream(in_, std::ios::binary | std::ios::trunc) << bytes;
    std::filesystem::remove_all(out_);
    auto options = plenty_of_memory({in_}, {"key"}, 3, out_);
    options.threads = 1 + random_() % 2;
    try {
      auto const result = repartition(options, {pool_, clock_, disk_});
      std::int64_t rows_out = 0;
      for (std::int64_t p = 0; p < 3; ++p) {
        rows_out += parquet::ParquetFileReader::OpenFile(part_path(out_, p))->metadata()->num_rows();
      }
      EXPECT_EQ(rows_out, result.rows);
      ++harmless_;
    }
    catch (InputError const& error) {
      EXPECT_NE(std::string(error.what()).find(in_), std::string::npos) << error.what();
      ++refused_;
      EXPECT_FALSE(std::filesystem::exists(out_));
    }
    for (auto const& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
    }
  }

  TemporaryFolder folder_;
  std::string in_;
  std::string out_;
  std::string good_;
  std::mt19937_64 random_;
  PosixFileSystem disk_;
  SteadyClock clock_;
  ThreadPool pool_{2};
  int rounds_{number_from("EARMARK_ROUNDS", 1)};
  int harmless_{0};
  int refused_{0};
};

TEST_P(CorruptInput, OneByteChanged) {
  for (int i = 0; i < 250 * rounds_; ++i) {
    std::string bytes = good_;
    // Half of the changes hit the footer, where each byte means something.
    std::size_t const footer = bytes.size() / 2;
    std::size_t const at = i % 2 == 0 ? footer + random_() % (bytes.size() - footer) : random_() % bytes.size();
    auto const change = static_cast<char>(i % 3 == 0 ? 1 << (random_() % 8) : 1 + random_() % 255);
    bytes[at] = static_cast<char>(bytes[at] ^ change);
    SCOPED_TRACE("byte " + std::to_string(at) + " xor " + std::to_string(static_cast<unsigned char>(change)));
    try {
      expect_handled(bytes);
    }
    catch (std::exception const& error) {
      ADD_FAILURE() << typeid(error).name() << ": " << error.what();
    }
  }
  EXPECT_GT(refused_, 20);
}

TEST_P(CorruptInput, SeveralBytesChanged) {
  for (int i = 0; i < 60 * rounds_; ++i) {
    std::string bytes = good_;
    std::size_t const at = random_() % bytes.size();
    for (std::size_t k = at; k < std::min(bytes.size(), at + 8); ++k) { bytes[k] = static_cast<char>(random_()); }
    SCOPED_TRACE("bytes from " + std::to_string(at));
    try {
      expect_handled(bytes);
    }
    catch (std::exception const& error) {
      ADD_FAILURE() << typeid(error).name() << ": " << error.what();
    }
  }
}

TEST_P(CorruptInput, CutAnywhere) {
  for (int i = 0; i < 60; ++i) {
    std::size_t const size = i < 14 ? static_cast<std::size_t>(i) : random_() % good_.size();
    SCOPED_TRACE("cut to " + std::to_string(size));
    expect_handled(good_.substr(0, size));
  }
  EXPECT_EQ(harmless_, 0);
}

// The middle is gone and the footer is whole, as after a write that was lost.
TEST_P(CorruptInput, ZerosInTheMiddle) {
  for (int i = 0; i < 40; ++i) {
    std::string bytes = good_;
    std::size_t const at = 4 + random_() % (bytes.size() / 2);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min<std::size_t>(200, bytes.size() / 2), '\0');
    SCOPED_TRACE("zeros at " + std::to_string(at));
    try {
      expect_handled(bytes);
    }
    catch (std::exception const& error) {
      ADD_FAILURE() << typeid(error).name() << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Repartition, CorruptInput, ::testing::Range(0, 4));

}  // namespace
}  // namespace earmark
