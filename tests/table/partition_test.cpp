// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/table/partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace earmark {
namespace {

struct Golden {
  char const* what;
  std::uint32_t computed;
  std::uint32_t promised;
  PartitionId of_7;
  PartitionId of_64;
  PartitionId of_1000;
};

constexpr Golden golden_values[] = {
#include "golden_partitions.inc"
};

TEST(Partitions, AreThePromisedOnes) {
  for (auto const& golden : golden_values) {
    EXPECT_EQ(golden.computed, golden.promised) << golden.what;
    EXPECT_EQ(PartitionFunction(7)(golden.computed), golden.of_7) << golden.what;
    EXPECT_EQ(PartitionFunction(64)(golden.computed), golden.of_64) << golden.what;
    EXPECT_EQ(PartitionFunction(1000)(golden.computed), golden.of_1000) << golden.what;
  }
}

std::uint32_t murmur3(std::string const& bytes, std::uint32_t seed) {
  return murmur3_x86_32(std::as_bytes(std::span(bytes)), seed);
}

TEST(Murmur3, GivesPublishedValues) {
  EXPECT_EQ(murmur3("", 0), 0U);
  EXPECT_EQ(murmur3("", 1), 0x514e'28b7U);
  EXPECT_EQ(murmur3("\x21\x43\x65\x87", 0x5082'edeeU), 0x2362'f9deU);
  EXPECT_EQ(murmur3("\x21\x43\x65", 0), 0x7e4a'8634U);
  EXPECT_EQ(murmur3("Hello, world!", 0x9747'b28cU), 0x2488'4cbaU);
  EXPECT_EQ(murmur3("The quick brown fox jumps over the lazy dog", 0), 0x2e4f'f723U);
}

TEST(Murmur3, GivesTheVerificationCodeOfItsAuthor) {
  std::string key;
  std::string hashes;
  for (std::uint32_t n = 0; n < 256; ++n) {
    auto const hash = murmur3(key, 256 - n);
    for (int shift = 0; shift < 32; shift += 8) { hashes += static_cast<char>(hash >> shift); }
    key += static_cast<char>(n);
  }
  EXPECT_EQ(murmur3(hashes, 0), 0xb0f5'7ee3U);
}

TEST(Murmur3, ReadsFromAnyAddressAndNotBeyondTheEnd) {
  for (std::size_t size = 0; size < 40; ++size) {
    std::string const text(size, 'x');
    for (std::size_t offset = 0; offset < 4; ++offset) {
      // A block of just this size, so that a sanitizer sees a byte too many.
      auto const block = std::make_unique<char[]>(offset + size);
      std::fill_n(block.get() + offset, size, 'x');
      EXPECT_EQ(hash_bytes(std::string_view(block.get() + offset, size)), hash_bytes(text));
    }
  }
}

template <class T>
class IntegerHash : public ::testing::Test {};
using Integers = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                                  std::int64_t, std::uint64_t, long long, char, Int128>;
TYPED_TEST_SUITE(IntegerHash, Integers);

TYPED_TEST(IntegerHash, IsThatOfTheLittleEndianBytes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    auto bits = (static_cast<UInt128>(random()) << 64) | random();
    auto const value = static_cast<TypeParam>(bits);
    std::string bytes;
    for (std::size_t k = 0; k < sizeof(TypeParam); ++k, bits >>= 8) { bytes += static_cast<char>(bits & 0xff); }
    EXPECT_EQ(hash_value(value), hash_bytes(bytes));
  }
}

TEST(HashValue, DependsOnTheWidth) {
  EXPECT_NE(hash_value(std::int32_t{42}), hash_value(std::int64_t{42}));
  EXPECT_NE(hash_value(std::int16_t{42}), hash_value(std::int32_t{42}));
  EXPECT_EQ(hash_value(true), hash_value(std::int8_t{1}));
  EXPECT_EQ(hash_value(std::int32_t{-1}), hash_value(std::uint32_t{0xffff'ffff}));
}

TEST(HashValue, TakesTextAsText) {
  char const* const text = "FRANCE";
  EXPECT_EQ(hash_value(text), hash_bytes("FRANCE"));
  EXPECT_EQ(hash_value(std::string(text)), hash_bytes("FRANCE"));
}

TEST(HashValue, TakesAllNaNsAsOneAndBothZerosAsOne) {
  for (auto const bits : {0x7fc0'0000U, 0xffc0'0000U, 0x7f80'0001U, 0x7fff'ffffU, 0xffff'ffffU}) {
    EXPECT_EQ(hash_value(std::bit_cast<float>(bits)), hash_value(std::uint32_t{0x7fc0'0000U}));
  }
  for (auto const bits : {0x7ff8'0000'0000'0000U, 0xfff8'0000'0000'0000U, 0x7ff0'0000'0000'0001U}) {
    EXPECT_EQ(hash_value(std::bit_cast<double>(bits)), hash_value(std::uint64_t{0x7ff8'0000'0000'0000U}));
  }
  EXPECT_EQ(hash_value(-0.0F), hash_value(std::uint32_t{0}));
  EXPECT_EQ(hash_value(-0.0), hash_value(std::uint64_t{0}));
  EXPECT_NE(hash_value(1.0F), hash_value(1.0));
}

TEST(HalfToFloat, IsExactForEveryHalf) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    auto const value = half_to_float(static_cast<std::uint16_t>(bits));
    auto const exponent = static_cast<int>((bits >> 10) & 0x1f);
    auto const fraction = static_cast<float>(bits & 0x3ff);
    auto const sign = (bits & 0x8000) != 0;
    ASSERT_EQ(std::signbit(value), sign) << bits;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), fraction != 0) << bits;
      ASSERT_EQ(std::isinf(value), fraction == 0) << bits;
    } else {
      auto const magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0F + fraction, exponent - 25);
      ASSERT_EQ(std::fabs(value), magnitude) << bits;
    }
  }
}

TEST(HashDecimal, GoesByPrecisionWhateverTheStorage) {
  for (int precision = 1; precision <= 76; ++precision) {
    for (std::int64_t const unscaled : {0LL, 7LL, -7LL, 127LL, -128LL}) {
      auto const expected = hash_decimal(unscaled, precision);
      for (std::size_t length = 1; length <= 40; ++length) {
        std::string big_endian(length, unscaled < 0 ? '\xff' : '\0');
        big_endian.back() = static_cast<char>(unscaled);
        EXPECT_EQ(hash_decimal(big_endian, precision), expected) << precision << ' ' << unscaled << ' ' << length;
      }
    }
  }
  EXPECT_EQ(hash_decimal(5, 9), hash_value(std::int32_t{5}));
  EXPECT_EQ(hash_decimal(5, 10), hash_value(std::int64_t{5}));
  EXPECT_EQ(hash_decimal(5, 19), hash_value(Int128{5}));
  EXPECT_EQ(hash_decimal(5, 39), hash_value(Int256{{5, 0, 0, 0}}));
  EXPECT_EQ(hash_decimal("", 9), hash_value(std::int32_t{0}));
}

TEST(CombineHashes, DependsOnTheOrderAndChangesTheHash) {
  EXPECT_NE(combine_hashes(1, 2), combine_hashes(2, 1));
  EXPECT_EQ(combine_hashes(0, 0), 0x9e37'79b9U);
  EXPECT_EQ(combine_hashes(0xffff'ffffU, 0xffff'ffffU),
            0xffff'ffffU ^ (0xffff'ffffU + 0x9e37'79b9U + 0xffff'ffc0U + 0x3fff'ffffU));
}

TEST(PartitionFunction, IsTheRemainderForAllNumbersOfPartitionsAndHashes) {
  std::vector<std::uint32_t> numbers{1, 2, 3, 0x7fff'ffffU, 0x7fff'fffeU, 0x4000'0000U, 0x5555'5555U, 65'535, 65'536};
  std::mt19937 random(3);
  for (std::uint32_t n = 1; n <= 1000; ++n) { numbers.push_back(n); }
  for (int bits = 1; bits < 32; ++bits) { numbers.push_back(static_cast<std::uint32_t>(random() >> bits) | 1U); }
  for (auto const n : numbers) {
    PartitionFunction const function(n);
    EXPECT_EQ(function.partitions(), n);
    auto const check = [&](std::uint32_t hash) { ASSERT_EQ(function(hash), hash % n) << hash << " of " << n; };
    // Where a wrong remainder would show: around multiples of n, the smallest, the largest and some between.
    for (std::uint32_t const multiple : {0U, 1U, 2U, 0xffff'ffffU / n / 2, 0xffff'ffffU / n - 1, 0xffff'ffffU / n}) {
      for (std::uint32_t step = 0; step < 3; ++step) {
        check(multiple * n + step);
        check(multiple * n - step);
      }
    }
    for (int i = 0; i < 200; ++i) { check(static_cast<std::uint32_t>(random())); }
    check(0xffff'ffffU);
  }
}

TEST(PartitionFunction, SpreadsConsecutiveKeysEvenly) {
  constexpr std::uint32_t partitions = 64;
  PartitionFunction const function(partitions);
  std::vector<int> counts(partitions);
  for (std::int64_t key = 0; key < 640'000; ++key) { ++counts[function(hash_value(key))]; }
  auto const [least, most] = std::minmax_element(counts.begin(), counts.end());
  EXPECT_GT(*least, 9'500);
  EXPECT_LT(*most, 10'500);
}

template <class T>
void expect_batch_as_single(std::vector<T> const& values) {
  std::vector<std::uint32_t> hashes(values.size());
  hash_values<T>(values, hashes);
  for (std::size_t i = 0; i < values.size(); ++i) { EXPECT_EQ(hashes[i], hash_value(values[i])); }
}

TEST(Batches, HashAsSingleValuesDo) {
  expect_batch_as_single<std::int8_t>({1, -1});
  expect_batch_as_single<std::uint16_t>({1, 0xffff});
  expect_batch_as_single<std::int32_t>({1, 2, 3, 4, 5, -6, 7});
  expect_batch_as_single<std::int64_t>({1, -2, INT64_MAX});
  expect_batch_as_single<float>({0.0F, -0.0F, NAN});
  expect_batch_as_single<double>({0.0, -0.0, NAN, 1e300});
  expect_batch_as_single<Int128>({1, -1});
  expect_batch_as_single<Int256>({Int256{{1, 2, 3, 4}}});
  expect_batch_as_single<std::string_view>({"", "a", "abcde"});
  bool const flags[] = {true, false};
  std::uint32_t hashes[2] = {};
  hash_values<bool>(flags, hashes);
  EXPECT_EQ(hashes[0], hash_value(true));
}

TEST(Batches, CombineColumnsAndAssignPartitions) {
  std::vector<std::int32_t> const first{1, 2, 3};
  std::vector<std::string_view> const second{"x", "y", "z"};
  std::vector<std::uint32_t> rows(3);
  std::vector<std::uint32_t> column(3);
  hash_values<std::int32_t>(first, rows);
  hash_values<std::string_view>(second, column);
  combine_hashes(rows, column);
  std::vector<std::uint8_t> small(3);
  std::vector<std::uint16_t> medium(3);
  std::vector<std::uint32_t> large(3);
  assign_partitions<std::uint8_t>(PartitionFunction(256), rows, small);
  assign_partitions<std::uint16_t>(PartitionFunction(1000), rows, medium);
  assign_partitions<std::uint32_t>(PartitionFunction(100'000), rows, large);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i], combine_hashes(hash_value(first[i]), hash_bytes(second[i])));
    EXPECT_EQ(small[i], rows[i] % 256);
    EXPECT_EQ(medium[i], rows[i] % 1000);
    EXPECT_EQ(large[i], rows[i] % 100'000);
  }
}

}  // namespace
}  // namespace earmark
