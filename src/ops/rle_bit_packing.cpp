// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "rle_bit_packing.hpp"

#include <cstring>

namespace earmark::detail {
namespace {

constexpr std::size_t group_size = 8;      // values are packed in groups of eight
constexpr std::size_t store_slack = 16;    // whole-word stores may run past the last byte that counts
constexpr std::size_t run_threshold = 16;  // a shorter constant stretch is no smaller as a run

std::byte* put_varint(std::byte* out, std::uint64_t value) noexcept {
  while (value >= 0x80) {
    *out++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

template <class Word, class T>
Word load(T const* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Packs eight values by halving the lanes: 8 lanes of 8 bits, 4 of 16, 2 of 32, each step closing the gaps.
std::byte* pack_group(std::uint8_t const* values, int bit_width, std::byte* out) noexcept {
  auto x = load<std::uint64_t>(values);
  int const gap = 8 - bit_width;
  x = (x & 0x00ff00ff00ff00ffU) | ((x & 0xff00ff00ff00ff00U) >> gap);
  x = (x & 0x0000ffff0000ffffU) | ((x & 0xffff0000ffff0000U) >> (2 * gap));
  x = (x & 0xffffffffU) | ((x >> 32) << (4 * bit_width));
  std::memcpy(out, &x, sizeof x);
  return out + bit_width;
}

std::byte* pack_group(std::uint16_t const* values, int bit_width, std::byte* out) noexcept {
  auto const pack_four = [bit_width](std::uint16_t const* from) noexcept {
    auto x = load<std::uint64_t>(from);
    x = (x & 0x0000ffff0000ffffU) | ((x & 0xffff0000ffff0000U) >> (16 - bit_width));
    return (x & 0xffffffffU) | ((x >> 32) << (2 * bit_width));
  };
  auto const both = static_cast<unsigned __int128>(pack_four(values)) |
                    (static_cast<unsigned __int128>(pack_four(values + 4)) << (4 * bit_width));
  std::memcpy(out, &both, sizeof both);
  return out + bit_width;
}

bool is_constant_group(std::uint8_t const* values) noexcept {
  return load<std::uint64_t>(values) == values[0] * 0x0101010101010101U;
}
bool is_constant_group(std::uint16_t const* values) noexcept {
  std::uint64_t const repeated = values[0] * 0x0001000100010001U;
  return load<std::uint64_t>(values) == repeated && load<std::uint64_t>(values + 4) == repeated;
}

// Returns: how many values from `at` on equal the one at `at`.
template <class T>
std::size_t run_length(std::span<T const> values, std::size_t at) noexcept {
  std::size_t end = at + 1;
  while (end < values.size() && values[end] == values[at]) { ++end; }
  return end - at;
}

// Returns: where the next run worth encoding as one begins (a multiple of eight from `at`), and its length.
template <class T>
std::pair<std::size_t, std::size_t> find_run(std::span<T const> values, std::size_t at) noexcept {
  while (at + run_threshold <= values.size()) {
    if (is_constant_group(values.data() + at)) {
      std::size_t const length = run_length(values, at);
      if (length >= run_threshold) { return {at, length}; }
    }
    at += group_size;
  }
  return {values.size(), 0};
}

template <class T>
std::size_t encode(std::span<T const> values, int bit_width, std::byte* const begin) noexcept {
  if (bit_width == 0) { return values.empty() ? 0 : encode_rle_run(0, values.size(), 0, begin); }
  std::byte* out = begin;
  std::size_t at = 0;
  while (at < values.size()) {
    auto [run_begin, length] = find_run(values, at);
    if (run_begin > at) {
      std::size_t const groups = (run_begin - at + group_size - 1) / group_size;
      out = put_varint(out, (static_cast<std::uint64_t>(groups) << 1) | 1);
      std::size_t const whole = (run_begin - at) / group_size;
      for (std::size_t i = 0; i < whole; ++i) { out = pack_group(values.data() + at + i * group_size, bit_width, out); }
      if (whole < groups) {
        T padded[group_size] = {};
        std::memcpy(padded, values.data() + at + whole * group_size, (run_begin - at - whole * group_size) * sizeof(T));
        out = pack_group(padded, bit_width, out);
      }
    }
    at = run_begin;
    if (length == 0) { continue; }
    // All runs but the last cover whole groups, so that what follows stays on the grid of eight.
    if (at + length < values.size()) { length -= length % group_size; }
    out += encode_rle_run(values[at], length, bit_width, out);
    at += length;
  }
  return static_cast<std::size_t>(out - begin);
}

}  // namespace

std::size_t max_rle_bit_packed_bytes(std::size_t count, int bit_width) noexcept {
  std::size_t const groups = count / group_size + 1;
  return groups * (static_cast<std::size_t>(bit_width) + 8) + store_slack;
}

std::size_t encode_rle_run(std::uint32_t value, std::size_t count, int bit_width, std::byte* const begin) noexcept {
  std::byte* out = put_varint(begin, static_cast<std::uint64_t>(count) << 1);
  for (int bits = 0; bits < bit_width; bits += 8) { *out++ = static_cast<std::byte>(value >> bits); }
  return static_cast<std::size_t>(out - begin);
}

std::size_t encode_rle_bit_packed(std::span<std::uint8_t const> values, int bit_width, std::byte* out) noexcept {
  return encode(values, bit_width, out);
}
std::size_t encode_rle_bit_packed(std::span<std::uint16_t const> values, int bit_width, std::byte* out) noexcept {
  return encode(values, bit_width, out);
}

}  // namespace earmark::detail
