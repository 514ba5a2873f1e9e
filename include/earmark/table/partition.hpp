// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which partition a row goes to. The function is part of Earmark's promise: the same keys go to the same partition in
// every version, on every machine, on CPU and GPU. docs/formats/partitioning.md specifies it for other implementers;
// libcudf 26.10 partitions alike. Each key value is hashed (`hash_value`, `hash_bytes`, `null_hash`), the hashes of
// several key columns are combined from left to right, and the row's hash modulo the number of partitions is the
// answer:
//
//   auto const in_64 = PartitionFunction(64);
//   PartitionId const p = in_64(combine_hashes(hash_value(std::int64_t{42}), hash_bytes("FRANCE")));
//
// A row with one key column has the hash of its value, combined with nothing.
// Hash by logical type, whatever the storage: date, time, timestamp and duration as their integer of 4 or 8 bytes, a
// decimal by `hash_decimal`, half precision by `half_to_float`, dictionaries and views by value, bool as `bool`.
// Thread safety: pure functions and immutable values. Nothing allocates or throws.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace earmark {

using PartitionId = std::uint32_t;

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// A 256-bit integer in two's complement, as Arrow stores decimal256: the lowest 64 bits first.
struct Int256 {
  std::array<std::uint64_t, 4> words{};
};

// The hash of a null of any type.
inline constexpr std::uint32_t null_hash = 0xffff'ffff;

namespace detail {

constexpr std::uint32_t murmur3_scramble(std::uint32_t block) noexcept {
  return std::rotl(block * 0xcc9e'2d51U, 15) * 0x1b87'3593U;
}

constexpr std::uint32_t murmur3_mix(std::uint32_t hash, std::uint32_t block) noexcept {
  return std::rotl(hash ^ murmur3_scramble(block), 13) * 5 + 0xe654'6b64U;
}

// Only the low 32 bits of the size enter the hash.
constexpr std::uint32_t murmur3_finish(std::uint32_t hash, std::size_t size) noexcept {
  hash ^= static_cast<std::uint32_t>(size);
  hash = (hash ^ (hash >> 16)) * 0x85eb'ca6bU;
  hash = (hash ^ (hash >> 13)) * 0xc2b2'ae35U;
  return hash ^ (hash >> 16);
}

// The bytes [0, Count) of `data` as a little-endian number.
template <std::size_t Count, class Byte>
constexpr std::uint32_t little_endian(Byte const* data) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < Count; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(data[i])) << (8 * i);
  }
  return value;
}

template <class Byte>
constexpr std::uint32_t murmur3(Byte const* data, std::size_t size, std::uint32_t seed) noexcept {
  auto hash = seed;
  auto const* const tail = data + (size & ~std::size_t{3});
  for (; data != tail; data += 4) { hash = murmur3_mix(hash, little_endian<4>(data)); }
  switch (size & 3) {
    case 3: hash ^= murmur3_scramble(little_endian<3>(tail)); break;
    case 2: hash ^= murmur3_scramble(little_endian<2>(tail)); break;
    case 1: hash ^= murmur3_scramble(little_endian<1>(tail)); break;
    default: break;
  }
  return murmur3_finish(hash, size);
}

// The hash of a number's little-endian bytes, without writing them down.
template <class Unsigned>
constexpr std::uint32_t murmur3_of_number(Unsigned bits) noexcept {
  std::uint32_t hash = 0;
  if constexpr (sizeof(Unsigned) < 4) {
    hash = murmur3_scramble(bits);
  } else {
    for (std::size_t at = 0; at < sizeof(Unsigned); at += 4) {
      hash = murmur3_mix(hash, static_cast<std::uint32_t>(bits >> (8 * at)));
    }
  }
  return murmur3_finish(hash, sizeof(Unsigned));
}

// NaNs are one key, and so are the two zeros.
template <std::floating_point T>
constexpr T canonical_key(T value) noexcept {
  if (value != value) { return std::numeric_limits<T>::quiet_NaN(); }
  return value == T{0} ? T{0} : value;
}

}  // namespace detail

// MurmurHash3 by Austin Appleby, variant x86_32.
[[nodiscard]] constexpr std::uint32_t murmur3_x86_32(std::span<std::byte const> bytes,
                                                     std::uint32_t seed = 0) noexcept {
  return detail::murmur3(bytes.data(), bytes.size(), seed);
}

// Returns: the hash of a string, a binary or a fixed-size binary value.
[[nodiscard]] constexpr std::uint32_t hash_bytes(std::string_view bytes) noexcept {
  return detail::murmur3(bytes.data(), bytes.size(), 0);
}

// Returns: the hash of an integer by the bytes of its width (42 as int32 and as int64 hash differently), or of a
// boolean, which is one byte, 1 or 0.
template <std::integral T>
[[nodiscard]] constexpr std::uint32_t hash_value(T value) noexcept {
  if constexpr (std::same_as<T, bool>) {
    return detail::murmur3_of_number(static_cast<std::uint8_t>(value));
  } else {
    return detail::murmur3_of_number(static_cast<std::make_unsigned_t<T>>(value));
  }
}
[[nodiscard]] constexpr std::uint32_t hash_value(Int128 value) noexcept {
  return detail::murmur3_of_number(static_cast<UInt128>(value));
}
[[nodiscard]] constexpr std::uint32_t hash_value(Int256 const& value) noexcept {
  std::uint32_t hash = 0;
  for (auto const word : value.words) {
    hash = detail::murmur3_mix(hash, static_cast<std::uint32_t>(word));
    hash = detail::murmur3_mix(hash, static_cast<std::uint32_t>(word >> 32));
  }
  return detail::murmur3_finish(hash, sizeof(value));
}
// Returns: the hash of a floating-point number; all NaNs have one, and −0.0 has that of 0.0.
[[nodiscard]] constexpr std::uint32_t hash_value(float value) noexcept {
  return detail::murmur3_of_number(std::bit_cast<std::uint32_t>(detail::canonical_key(value)));
}
[[nodiscard]] constexpr std::uint32_t hash_value(double value) noexcept {
  return detail::murmur3_of_number(std::bit_cast<std::uint64_t>(detail::canonical_key(value)));
}
// Returns: the hash of a string, as `hash_bytes`; for code that is generic over the key's type.
[[nodiscard]] constexpr std::uint32_t hash_value(std::string_view value) noexcept { return hash_bytes(value); }

// Returns: the float of the same value, NaN for NaN.
[[nodiscard]] constexpr float half_to_float(std::uint16_t half) noexcept {
  auto const sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  auto const exponent = static_cast<std::uint32_t>(half >> 10) & 0x1fU;
  auto const fraction = static_cast<std::uint32_t>(half) & 0x3ffU;
  if (exponent == 0x1f) { return std::bit_cast<float>(sign | 0x7f80'0000U | (fraction << 13)); }
  if (exponent != 0) { return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13)); }
  // Zero, or subnormal: `fraction` units of 2^-24, all of which a float has as normal numbers.
  auto const magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

// Returns: the bytes of the integer that a decimal is hashed as: 4, 8, 16 or 32.
// Requires: 1 <= precision <= 76.
[[nodiscard]] constexpr std::size_t decimal_key_width(int precision) noexcept {
  assert(precision >= 1 && precision <= 76);
  if (precision <= 9) { return 4; }
  if (precision <= 18) { return 8; }
  return precision <= 38 ? 16 : 32;
}

// Returns: the hash of a decimal that is stored as an integer: the unscaled value, at the width of its precision.
[[nodiscard]] constexpr std::uint32_t hash_decimal(std::int64_t unscaled, int precision) noexcept {
  switch (decimal_key_width(precision)) {
    case 4: return hash_value(static_cast<std::int32_t>(unscaled));
    case 8: return hash_value(unscaled);
    case 16: return hash_value(static_cast<Int128>(unscaled));
    default: {
      auto const sign = unscaled < 0 ? ~std::uint64_t{0} : 0;
      return hash_value(Int256{{static_cast<std::uint64_t>(unscaled), sign, sign, sign}});
    }
  }
}

// Returns: the hash of a decimal that is stored as big-endian two's complement bytes of any length, as Parquet does.
// Bytes beyond the width of the precision can only repeat the sign and are not looked at.
[[nodiscard]] constexpr std::uint32_t hash_decimal(std::string_view big_endian, int precision) noexcept {
  auto const width = decimal_key_width(precision);
  bool const negative = !big_endian.empty() && (static_cast<std::uint8_t>(big_endian.front()) & 0x80U) != 0;
  std::array<char, sizeof(Int256)> little_endian{};
  for (std::size_t i = 0; i < width; ++i) {
    auto const sign = static_cast<char>(negative ? -1 : 0);
    little_endian[i] = i < big_endian.size() ? big_endian[big_endian.size() - 1 - i] : sign;
  }
  return detail::murmur3(little_endian.data(), width, 0);
}

// Returns: the hash of a row so far, `lhs`, and of its next key column, `rhs`. Not symmetric.
[[nodiscard]] constexpr std::uint32_t combine_hashes(std::uint32_t lhs, std::uint32_t rhs) noexcept {
  return lhs ^ (rhs + 0x9e37'79b9U + (lhs << 6) + (lhs >> 2));
}

// Maps row hashes to partitions: the hash modulo their number, without a division.
// Method: "Faster remainder by direct computation" (Lemire, Kaser, Kurz, 2019): with M = ceil(2^64 / N), the fraction
// M * hash mod 2^64 scaled by N is the remainder, exactly, for every 32-bit hash and N.
class PartitionFunction {
 public:
  // Requires: 1 <= partitions < 2^31.
  explicit constexpr PartitionFunction(std::uint32_t partitions) noexcept
      : inverse_(~std::uint64_t{0} / partitions + 1), partitions_(partitions) {
    assert(partitions >= 1 && partitions <= 0x7fff'ffffU);
  }

  [[nodiscard]] constexpr PartitionId operator()(std::uint32_t row_hash) const noexcept {
    return static_cast<PartitionId>((static_cast<UInt128>(inverse_ * row_hash) * partitions_) >> 64);
  }
  [[nodiscard]] constexpr std::uint32_t partitions() const noexcept { return partitions_; }

 private:
  std::uint64_t inverse_;  // wraps to 0 for one partition, which is right: every remainder is 0
  std::uint32_t partitions_;
};

// Batches. Requires, of all: the spans have one length. `T` is a type that `hash_value` takes: an integer of 8 to 64
// bits, bool, float, double, Int128, Int256 or std::string_view.

// hashes[i] = the hash of values[i]: a row hash already when this is the first key column.
template <class T>
void hash_values(std::span<T const> values, std::span<std::uint32_t> hashes) noexcept;

// row_hashes[i] becomes the combination of itself and column_hashes[i], the hash of the row's next key column.
void combine_hashes(std::span<std::uint32_t> row_hashes, std::span<std::uint32_t const> column_hashes) noexcept;

// partitions[i] = the partition of row_hashes[i]. `Id` is an unsigned integer of 8, 16 or 32 bits.
// Requires: `Id` can say every partition's number.
template <class Id>
void assign_partitions(PartitionFunction const& function, std::span<std::uint32_t const> row_hashes,
                       std::span<Id> partitions) noexcept;

static_assert(hash_bytes("") == 0 && hash_bytes("test") == 0xba6b'd213U);
static_assert(hash_value(0.0) == hash_value(-0.0) && hash_value(std::int32_t{1}) != hash_value(std::int64_t{1}));
static_assert(PartitionFunction(7)(0xffff'ffffU) == 0xffff'ffffU % 7 && PartitionFunction(1)(12345) == 0);

}  // namespace earmark
