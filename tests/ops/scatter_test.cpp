// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace earmark::detail {
namespace {

TEST(Scatter, CopiesBytesOfEverySizeAndAlignmentAndNothingElse) {
  constexpr std::size_t largest = 100;
  constexpr std::byte mark{0x5a};
  for (std::size_t size = 0; size <= largest; ++size) {
    for (std::size_t from_offset = 0; from_offset < 9; ++from_offset) {
      for (std::size_t to_offset = 1; to_offset < 10; ++to_offset) {
        // Exactly as large as what is read, so that a sanitizer sees a byte too many.
        std::vector<std::byte> from(from_offset + size);
        for (std::size_t i = 0; i < from.size(); ++i) { from[i] = static_cast<std::byte>(i * 7 + 1); }
        std::vector<std::byte> to(to_offset + size + 40, mark);
        copy_bytes(to.data() + to_offset, from.data() + from_offset, size);
        for (std::size_t i = 0; i < to.size(); ++i) {
          bool const inside = i >= to_offset && i < to_offset + size;
          ASSERT_EQ(to[i], inside ? from[from_offset + i - to_offset] : mark) << "size " << size << ", byte " << i;
        }
      }
    }
  }
}

// Big-endian two's complement of `width` bytes.
std::vector<std::uint8_t> big_endian(__int128 value, std::size_t width) {
  std::vector<std::uint8_t> bytes(width);
  for (std::size_t i = 0; i < width; ++i) {
    bytes[width - 1 - i] =
        i < 16 ? static_cast<std::uint8_t>(value >> (8 * i)) : static_cast<std::uint8_t>(value < 0 ? 0xff : 0);
  }
  return bytes;
}

template <class T>
void expect_decimals() {
  using Limits = std::numeric_limits<T>;
  __int128 const smallest = Limits::min();
  __int128 const largest = Limits::max();
  std::vector<__int128> values{0,           1,           -1,           127,
                               128,         -128,        -129,         255,
                               32767,       -32768,      65536,        1'000'000,
                               -1'000'000,  smallest,    largest,      smallest - 1,
                               largest + 1, 2 * largest, 3 * smallest, largest * largest};
  for (std::size_t width = 1; width <= 32; ++width) {
    for (__int128 const value : values) {
      if (width < 16) {  // must be sayable in that many bytes
        __int128 const limit = __int128{1} << (8 * width - 1);
        if (value < -limit || value >= limit) { continue; }
      }
      T read{};
      bool const fits = value >= smallest && value <= largest;
      ASSERT_EQ(read_decimal(big_endian(value, width).data(), width, read), fits)
          << "width " << width << ", value " << static_cast<double>(value);
      if (fits) { ASSERT_EQ(read, static_cast<T>(value)) << width; }
    }
  }
}

TEST(Scatter, ReadsDecimalsOfEveryWidthAsInt32) { expect_decimals<std::int32_t>(); }
TEST(Scatter, ReadsDecimalsOfEveryWidthAsInt64) { expect_decimals<std::int64_t>(); }

template <class Id>
struct Scattered {
  std::vector<Id> ids;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> ends;
  std::vector<std::uint32_t> cursors;

  Scattered(std::size_t size, std::size_t partitions) : counts(2 * partitions), ends(partitions), cursors(partitions) {
    std::mt19937 random(static_cast<std::uint32_t>(size + partitions));
    for (std::size_t i = 0; i < size; ++i) { ids.push_back(static_cast<Id>(random() % partitions)); }
    count_partitions(std::span<Id const>(ids), counts.data(), partitions);
    prefix_ends(counts.data(), ends.data(), cursors.data(), partitions);
  }
  std::span<Id const> view() const { return ids; }
};

template <class Id>
void expect_stable(std::size_t size, std::size_t partitions) {
  Scattered<Id> s(size, partitions);
  EXPECT_EQ(partitions == 0 ? 0 : s.ends.back(), size);
  for (std::size_t p = 0; p < partitions; ++p) {
    EXPECT_EQ(s.counts[p], static_cast<std::uint32_t>(std::count(s.ids.begin(), s.ids.end(), static_cast<Id>(p))));
    EXPECT_EQ(s.counts[partitions + p], 0U) << "the second set must be zero again";
  }
  std::vector<std::uint32_t> values(size);
  std::iota(values.begin(), values.end(), 0U);
  std::vector<std::uint32_t> out(size);
  scatter_values(s.view(), values.data(), out.data(), s.cursors.data());
  for (std::size_t p = 0; p < partitions; ++p) {
    std::uint32_t const begin = p == 0 ? 0 : s.ends[p - 1];
    for (std::uint32_t i = begin; i < s.ends[p]; ++i) {
      EXPECT_EQ(s.ids[out[i]], p);
      if (i > begin) { EXPECT_LT(out[i - 1], out[i]) << "the order of the input is lost"; }
    }
  }
}

TEST(Scatter, GroupsByPartitionInInputOrder) {
  for (std::size_t const size : {0U, 1U, 2U, 3U, 100U, 1001U}) {
    for (std::size_t const partitions : {1U, 2U, 7U, 200U}) {
      expect_stable<std::uint8_t>(size, partitions);
      expect_stable<std::uint16_t>(size, partitions * 5);
      expect_stable<std::uint32_t>(size, partitions * 5);
    }
  }
}

struct FakeBytes {
  std::uint32_t len;
  std::uint8_t const* ptr;
};

TEST(Scatter, WritesByteArraysWithTheirLengths) {
  constexpr std::size_t size = 500;
  std::vector<std::string> strings;
  std::vector<FakeBytes> values;
  for (std::size_t i = 0; i < size; ++i) { strings.emplace_back(i * 13 % 70, static_cast<char>('a' + i % 26)); }
  for (std::string const& text : strings) {
    values.push_back({static_cast<std::uint32_t>(text.size()), reinterpret_cast<std::uint8_t const*>(text.data())});
  }
  Scattered<std::uint8_t> s(size, 5);
  std::vector<std::string> expected(5);
  for (std::size_t i = 0; i < size; ++i) {
    std::string& part = expected[s.ids[i]];
    part.append(reinterpret_cast<char const*>(&values[i].len), sizeof(std::uint32_t));
    part += strings[i];
  }
  std::vector<std::uint32_t> cursors(5);
  std::size_t bytes = 0;
  for (std::size_t p = 0; p < 5; ++p) {
    cursors[p] = static_cast<std::uint32_t>(bytes);
    bytes += expected[p].size();
  }
  std::vector<std::byte> out(bytes);
  scatter_bytes(s.view(), values.data(), out.data(), cursors.data());
  std::string whole;
  for (auto const& part : expected) { whole += part; }
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), reinterpret_cast<char const*>(out.data())));
}

struct FakePointer {
  std::uint8_t const* ptr;
};

TEST(Scatter, SaysThatADecimalDoesNotFit) {
  auto const fits = big_endian(1234, 9);
  auto const large = big_endian(__int128{1} << 40, 9);
  std::vector<std::uint8_t> const ids{0, 0};
  std::array<std::int32_t, 2> out{};
  std::uint32_t cursor = 0;
  std::array<FakePointer, 2> const good{{{fits.data()}, {fits.data()}}};
  EXPECT_TRUE(scatter_decimals(std::span<std::uint8_t const>(ids), good.data(), 9, out.data(), &cursor));
  EXPECT_EQ(out[1], 1234);
  cursor = 0;
  std::array<FakePointer, 2> const bad{{{large.data()}, {fits.data()}}};
  EXPECT_FALSE(scatter_decimals(std::span<std::uint8_t const>(ids), bad.data(), 9, out.data(), &cursor));
}

}  // namespace
}  // namespace earmark::detail
