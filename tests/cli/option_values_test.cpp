// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/option_values.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "earmark/ops/errors.hpp"

namespace earmark::cli {
namespace {

using Names = std::vector<std::string>;
using enum Compression::Codec;

TEST(ColumnList, IsSplitAtCommas) { EXPECT_EQ(parse_column_list("--by", "a,b,c"), (Names{"a", "b", "c"})); }

TEST(ColumnList, KeepsCommasAndSpacesInsideQuotes) {
  EXPECT_EQ(parse_column_list("--by", R"("a,b", c ,"  d ")"), (Names{"a,b", "c", "  d "}));
}

TEST(ColumnList, ReadsADoubledQuoteAsAQuote) {
  EXPECT_EQ(parse_column_list("--by", R"("say ""hi""",b)"), (Names{R"(say "hi")", "b"}));
}

TEST(ColumnList, TakesAnEmptyNameInQuotesAndAQuoteInsideABareName) {
  EXPECT_EQ(parse_column_list("--by", R"("",a"b)"), (Names{"", R"(a"b)"}));
}

TEST(ColumnList, KeepsBytesThatAreNotAscii) {
  EXPECT_EQ(parse_column_list("--by", "größe,名"), (Names{"größe", "名"}));
}

TEST(ColumnList, RefusesWhatIsIncomplete) {
  for (auto const* const text : {"", " ", "a,", ",a", "a,,b", R"("a)", R"("a"")", R"("a"b)", R"("a" b,c)", "\""}) {
    EXPECT_THROW((void)parse_column_list("--by", text), UsageError) << text;
  }
}

TEST(Size, IsReadInBytes) {
  EXPECT_EQ(parse_size("--memory", "512MiB"), 512 << 20);
  EXPECT_EQ(parse_size("--memory", "1"), 1);
  EXPECT_EQ(parse_size("--memory", "1PiB"), 1LL << 50);
  EXPECT_EQ(parse_size("--row-group-bytes", "1EiB"), 1LL << 60);
}

TEST(Size, RefusesNothingNegativeTooMuchAndNoSizes) {
  for (auto const* const text :
       {"", "0", "0MiB", "-1", "-5MiB", "99999999999TiB", "9223372036854775808", "12 apples", "auto", "80%"}) {
    EXPECT_THROW((void)parse_size("--memory", text), UsageError) << text;
  }
}

TEST(Size, RefusalNamesTheOptionAndTheText) {
  try {
    (void)parse_size("--memory", "12 apples");
    FAIL();
  }
  catch (UsageError const& error) {
    EXPECT_NE(std::string{error.what()}.find("--memory 12 apples"), std::string::npos) << error.what();
  }
}

TEST(Count, IsAWholeNumberWithinItsRange) {
  EXPECT_EQ(parse_count("--partitions", "1", 10), 1);
  EXPECT_EQ(parse_count("--partitions", "10", 10), 10);
  for (auto const* const text : {"", "0", "-1", "11", "1.5", "2x", " 3", "+4", "99999999999999999999"}) {
    EXPECT_THROW((void)parse_count("--partitions", text, 10), UsageError) << text;
  }
}

TEST(CompressionOption, KnowsEveryCodec) {
  EXPECT_EQ(parse_compression("--compression", "snappy").codec, Snappy);
  EXPECT_EQ(parse_compression("--compression", "zstd").codec, Zstd);
  EXPECT_EQ(parse_compression("--compression", "lz4").codec, Lz4);
  EXPECT_EQ(parse_compression("--compression", "gzip").codec, Gzip);
  EXPECT_EQ(parse_compression("--compression", "brotli").codec, Brotli);
  EXPECT_EQ(parse_compression("--compression", "none").codec, None);
  EXPECT_FALSE(parse_compression("--compression", "zstd").level.has_value());
}

TEST(CompressionOption, TakesALevelForZstdOnly) {
  EXPECT_EQ(parse_compression("--compression", "zstd:9").level, 9);
  for (auto const* const text : {"zstd:", "zstd:0", "zstd:23", "zstd:x", "snappy:1", "gzip:6", "lzo", "", "ZSTD"}) {
    EXPECT_THROW((void)parse_compression("--compression", text), UsageError) << text;
  }
}

TEST(CompressionOption, HasAWayBackToItsNames) {
  for (auto const* const name : {"snappy", "zstd", "lz4", "gzip", "brotli", "none"}) {
    EXPECT_EQ(name_of(parse_compression("--compression", name).codec), name);
  }
}

TEST(Switch, TakesTheUsualWordsAndNoOthers) {
  for (auto const* const word : {"1", "true", "yes", "on"}) { EXPECT_TRUE(parse_switch("--verify", word)) << word; }
  for (auto const* const word : {"0", "false", "no", "off"}) { EXPECT_FALSE(parse_switch("--verify", word)) << word; }
  for (auto const* const word : {"", "2", "True", "perhaps", " yes"}) {
    EXPECT_THROW((void)parse_switch("--verify", word), UsageError) << word;
  }
}

}  // namespace
}  // namespace earmark::cli
