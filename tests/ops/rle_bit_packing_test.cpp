// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/rle_bit_packing.hpp"

#include <gtest/gtest.h>
#include <parquet/column_reader.h>

#include <cstring>
#include <random>
#include <vector>

namespace earmark::detail {
namespace {

// The format's definition, read bit by bit.
std::vector<std::uint32_t> decode(std::vector<std::uint8_t> const& bytes, int bit_width, std::size_t count) {
  std::vector<std::uint32_t> values;
  std::size_t at = 0;
  while (values.size() < count) {
    std::uint64_t header = 0;
    for (int shift = 0;; shift += 7) {
      std::uint8_t const byte = bytes.at(at++);
      header |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) { break; }
    }
    if ((header & 1) == 0) {
      std::uint32_t value = 0;
      for (int byte = 0; byte < (bit_width + 7) / 8; ++byte) {
        value |= static_cast<std::uint32_t>(bytes.at(at++)) << (8 * byte);
      }
      values.insert(values.end(), header >> 1, value);
      continue;
    }
    std::size_t const packed = (header >> 1) * 8;
    for (std::size_t i = 0; i < packed; ++i) {
      std::uint32_t value = 0;
      for (std::size_t bit = 0; bit < static_cast<std::size_t>(bit_width); ++bit) {
        std::size_t const position = i * static_cast<std::size_t>(bit_width) + bit;
        value |= static_cast<std::uint32_t>(bytes.at(at + position / 8) >> (position % 8) & 1) << bit;
      }
      values.push_back(value);
    }
    at += packed * static_cast<std::size_t>(bit_width) / 8;
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_LT(values.size() - count, 8U) << "more padding than a group needs";
  values.resize(count);
  return values;
}

template <class T>
std::vector<std::uint8_t> encode(std::vector<T> values, int bit_width) {
  constexpr std::size_t guard = 32;
  constexpr std::byte mark{0xa5};
  std::size_t const count = values.size();
  values.insert(values.end(), 8, static_cast<T>(~T{0}));  // readable, and must not matter
  std::size_t const room = max_rle_bit_packed_bytes(count, bit_width);
  std::vector<std::byte> out(room + guard, mark);
  std::size_t const written = encode_rle_bit_packed(std::span<T const>(values.data(), count), bit_width, out.data());
  EXPECT_LE(written, room);
  for (std::size_t i = room; i < out.size(); ++i) { EXPECT_EQ(out[i], mark) << "wrote past the room"; }
  auto const* const begin = reinterpret_cast<std::uint8_t const*>(out.data());
  return {begin, begin + written};
}

template <class T>
void expect_round_trip(std::vector<T> const& values, int bit_width) {
  auto const bytes = encode(values, bit_width);
  auto const decoded = decode(bytes, bit_width, values.size());
  ASSERT_TRUE(std::equal(values.begin(), values.end(), decoded.begin(), decoded.end()))
      << "width " << bit_width << ", " << values.size() << " values";
  if (bit_width == 0 || bit_width > 14 || values.empty()) { return; }
  // As levels, by Arrow's reader.
  std::vector<std::uint8_t> framed(4);
  auto const size = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(framed.data(), &size, sizeof size);
  framed.insert(framed.end(), bytes.begin(), bytes.end());
  parquet::LevelDecoder decoder;
  int const count = static_cast<int>(values.size());
  decoder.SetData(parquet::Encoding::RLE, static_cast<std::int16_t>((1 << bit_width) - 1), count, framed.data(),
                  static_cast<std::int32_t>(framed.size()));
  std::vector<std::int16_t> levels(values.size());
  ASSERT_EQ(decoder.Decode(count, levels.data()), count);
  ASSERT_TRUE(std::equal(values.begin(), values.end(), levels.begin(),
                         [](T a, std::int16_t b) { return a == static_cast<T>(b); }));
}

enum class Shape { Random, OneRun, Runs, RunAfterNoise, NoiseAfterRun };

template <class T>
std::vector<T> values_of(Shape shape, std::size_t count, int bit_width, std::mt19937& random) {
  auto const draw = [&] { return static_cast<T>(random() & ((1U << bit_width) - 1)); };
  std::vector<T> values(count);
  T const constant = draw();
  T current = draw();
  for (std::size_t i = 0; i < count; ++i) {
    if (random() % 20 == 0) { current = draw(); }
    switch (shape) {
      case Shape::Random: values[i] = draw(); break;
      case Shape::OneRun: values[i] = constant; break;
      case Shape::Runs: values[i] = current; break;
      case Shape::RunAfterNoise: values[i] = i < count / 3 ? draw() : constant; break;
      case Shape::NoiseAfterRun: values[i] = i < count / 2 ? constant : draw(); break;
    }
  }
  return values;
}

constexpr Shape shapes[] = {Shape::Random, Shape::OneRun, Shape::Runs, Shape::RunAfterNoise, Shape::NoiseAfterRun};

TEST(RleBitPacking, BytesOfEveryWidthAndLengthComeBack) {
  std::mt19937 random(1);
  for (int bit_width = 0; bit_width <= 8; ++bit_width) {
    for (std::size_t count = 0; count <= 200; ++count) {
      for (Shape const shape : shapes) {
        expect_round_trip(values_of<std::uint8_t>(shape, count, bit_width, random), bit_width);
      }
      if (HasFailure()) { return; }
    }
  }
}

TEST(RleBitPacking, WordsOfEveryWidthAndLengthComeBack) {
  std::mt19937 random(2);
  for (int bit_width = 0; bit_width <= 16; ++bit_width) {
    for (std::size_t count = 0; count <= 200; ++count) {
      for (Shape const shape : shapes) {
        expect_round_trip(values_of<std::uint16_t>(shape, count, bit_width, random), bit_width);
      }
      if (HasFailure()) { return; }
    }
  }
}

TEST(RleBitPacking, LongInputComesBack) {
  std::mt19937 random(3);
  for (Shape const shape : shapes) {
    expect_round_trip(values_of<std::uint8_t>(shape, 100'003, 3, random), 3);
    expect_round_trip(values_of<std::uint16_t>(shape, 100'003, 13, random), 13);
  }
}

TEST(RleBitPacking, OneValueTakesAFewBytes) { EXPECT_LE(encode(std::vector<std::uint8_t>(60'000, 1), 1).size(), 4U); }

TEST(RleBitPacking, ARunTakesAtMostFourteenBytes) {
  std::byte out[14];
  EXPECT_LE(encode_rle_run(0xffff'ffff, std::size_t{1} << 40, 32, out), sizeof out);
}

TEST(RleBitPacking, TheBitWidthHoldsTheLargestValue) {
  EXPECT_EQ(bit_width_for(0), 0);
  for (int bits = 1; bits <= 31; ++bits) {
    EXPECT_EQ(bit_width_for((1U << bits) - 1), bits);
    EXPECT_EQ(bit_width_for(1U << bits), bits + 1);
  }
}

}  // namespace
}  // namespace earmark::detail
