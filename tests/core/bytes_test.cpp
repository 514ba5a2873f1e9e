// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/bytes.hpp"

#include <gtest/gtest.h>

#include <random>

namespace earmark {
namespace {

using namespace std::string_literals;

struct SizeText {
  std::string text;
  std::optional<std::int64_t> bytes;
};

TEST(ParseBytes, ReadsWhatPeopleType) {
  for (auto const& [text, bytes] : std::vector<SizeText>{
           {"0", 0},
           {"1", 1},
           {"4096", 4096},
           {"17B", 17},
           {"17 b", 17},
           {"1k", 1024},
           {"1K", 1024},
           {"1Ki", 1024},
           {"1KiB", 1024},
           {"1kib", 1024},
           {"1KB", 1000},
           {"512MiB", 512LL << 20},
           {"512 MiB", 512LL << 20},
           {"512m", 512LL << 20},
           {"1GB", 1'000'000'000},
           {"2g", 2LL << 30},
           {"1.5GiB", 3LL << 29},
           {"0.5k", 512},
           {"1.25KB", 1250},
           {"0.001k", 1},
           {"3T", 3LL << 40},
           {"3TB", 3'000'000'000'000},
           {"1P", 1LL << 50},
           {"1Pi", 1LL << 50},
           {"1PiB", 1LL << 50},
           {"1PB", 1'000'000'000'000'000},
           {"1.5eib", 3LL << 59},
           {"7Ei", 7LL << 60},
           {"9EB", 9'000'000'000'000'000'000},
           {"9.223372036854775807EB", INT64_MAX},
           {"007", 7},
           {"9223372036854775807", INT64_MAX},
           {"8388607TiB", 8388607LL << 40},
           {"1.000000000000000000000000000001k", 1024},
       }) {
    EXPECT_EQ(parse_bytes(text), bytes) << text;
  }
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (auto const& text :
       {""s,     " "s,     "B"s,      "MiB"s, "-1"s,  "+1"s,    "-1MiB"s, "1e9"s, "1,5k"s, "1.5"s,  "1.5B"s,   ".5k"s,
        "1.k"s,  "1..5k"s, "1.5.1k"s, "12x"s, "1kx"s, "1KiBB"s, "1bi"s,   "1iB"s, "1 "s,   " 1"s,   "1  k"s,   "1k "s,
        "0x10"s, "1Z"s,    "inf"s,    "nan"s, "80%"s, "auto"s,  "1\n"s,   "1\0"s, "\0"s,   "1k\0"s, "1 . 5k"s, "١k"s}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseBytes, RefusesWhatDoesNotFitIn63Bits) {
  for (auto const* text : {"9223372036854775808", "18446744073709551616", "99999999999999999999999999", "8388608T",
                           "8388607.9999999999999999999999T9", "9007199254740992k", "9223372036854.775808TB", "8E",
                           "8192PiB", "10EB", "9.223372036854775808EB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_bytes("9223372.036854775807TB"), INT64_MAX);
  EXPECT_EQ(parse_bytes("9223372.036854775808TB"), std::nullopt);
}

TEST(FormatBytes, PrintsForPeople) {
  for (auto const& [text, bytes] : std::vector<SizeText>{
           {"0 B", 0},
           {"17 B", 17},
           {"1023 B", 1023},
           {"1 KiB", 1024},
           {"1.5 KiB", 1536},
           {"1.01 KiB", 1034},
           {"512 MiB", 512LL << 20},
           {"1.25 GiB", 5LL << 28},
           {"1 MiB", (1LL << 20) - 1},
           {"1023.99 KiB", (1LL << 20) - 11},
           {"3 TiB", 3LL << 40},
           {"8388608 TiB", INT64_MAX},
           {"-1 B", -1},
           {"-1.5 KiB", -1536},
           {"-8388608 TiB", INT64_MIN},
       }) {
    EXPECT_EQ(format_bytes(*bytes), text);
  }
}

TEST(FormatBytes, PrintsWhatParseBytesReadsBackToWithinAHundredthOfAUnit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    auto const bytes = static_cast<std::int64_t>(random() >> (2 + random() % 62));
    auto const back = parse_bytes(format_bytes(bytes));
    ASSERT_TRUE(back) << bytes;
    EXPECT_LE(std::abs(*back - bytes), bytes / 200 + 1) << bytes;
  }
}

TEST(CheckedArithmetic, ReportsOverflow) {
  EXPECT_EQ(checked_add(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(checked_add(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_add(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(checked_multiply(1LL << 31, 1LL << 31), 1LL << 62);
  EXPECT_EQ(checked_multiply(1LL << 32, 1LL << 31), std::nullopt);
}

TEST(CheckedRoundUp, RoundsToTheNextMultipleAndReportsOverflow) {
  EXPECT_EQ(checked_round_up(0, 64), 0);
  EXPECT_EQ(checked_round_up(1, 64), 64);
  EXPECT_EQ(checked_round_up(64, 64), 64);
  EXPECT_EQ(checked_round_up(65, 1), 65);
  EXPECT_EQ(checked_round_up(static_cast<std::size_t>(INT64_MAX) - 63, 64), INT64_MAX - 63);
  EXPECT_EQ(checked_round_up(static_cast<std::size_t>(INT64_MAX) - 62, 64), std::nullopt);
  EXPECT_EQ(checked_round_up(SIZE_MAX, 64), std::nullopt);
}

TEST(ByteLiterals, AreBinary) {
  EXPECT_EQ(3_B, 3U);
  EXPECT_EQ(1_KiB, 1024U);
  EXPECT_EQ(1_MiB, 1024_KiB);
  EXPECT_EQ(1_GiB, 1024_MiB);
}

}  // namespace
}  // namespace earmark
