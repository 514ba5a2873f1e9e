// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Byte counts: literals, parsing what people type ("512MiB"), printing, and arithmetic that cannot wrap. Counts are
// plain integers: `std::size_t` where a caller gives one, `std::int64_t` where Earmark reports one.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earmark {

inline namespace literals {
consteval std::size_t operator""_B(unsigned long long n) { return n; }
consteval std::size_t operator""_KiB(unsigned long long n) { return n << 10; }
consteval std::size_t operator""_MiB(unsigned long long n) { return n << 20; }
consteval std::size_t operator""_GiB(unsigned long long n) { return n << 30; }
}  // namespace literals

// Sums, products and rounding that report overflow instead of wrapping.
// Returns: the value, or nothing when it does not fit in 63 bits.
[[nodiscard]] constexpr std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) { return std::nullopt; }
  return sum;
}
[[nodiscard]] constexpr std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) { return std::nullopt; }
  return product;
}
// Requires: `multiple` is a power of two. Returns: the smallest multiple that is not below `bytes`.
[[nodiscard]] constexpr std::optional<std::int64_t> checked_round_up(std::size_t bytes, std::size_t multiple) noexcept {
  if (bytes > static_cast<std::size_t>(INT64_MAX) - (multiple - 1)) { return std::nullopt; }
  return static_cast<std::int64_t>((bytes + multiple - 1) & ~(multiple - 1));
}

// Reads a size as people write it: "512MiB", "1GB", "2g", "1.5GiB", "4096". Binary units: K, Ki, KiB, M, ..., E;
// decimal units: KB, MB, GB, TB, PB, EB (case is ignored; "B" alone is bytes).
// Returns: bytes, or nothing when the text is no size, is negative, or does not fit in 63 bits.
[[nodiscard]] std::optional<std::int64_t> parse_bytes(std::string_view text);

// Prints bytes for people, in binary units with up to two decimals: "512 MiB", "1.25 GiB", "17 B".
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

}  // namespace earmark
