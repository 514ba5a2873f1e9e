// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Parquet's RLE / bit-packing hybrid for levels and dictionary indices (format: "Encodings.md" of
// apache/parquet-format, encoding RLE = 3). Long constant stretches become runs, the rest is bit-packed in groups of
// eight. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace earmark::detail {

// Returns: room that `encode_rle_bit_packed` needs for `count` values, in bytes.
[[nodiscard]] std::size_t max_rle_bit_packed_bytes(std::size_t count, int bit_width) noexcept;

// Writes `values`, each below 2^bit_width, to `out`. `values` must be readable for 8 values past its end.
// Requires: 0 <= bit_width <= 8 (16 for uint16_t); room as said above. Returns: bytes written.
std::size_t encode_rle_bit_packed(std::span<std::uint8_t const> values, int bit_width, std::byte* out) noexcept;
std::size_t encode_rle_bit_packed(std::span<std::uint16_t const> values, int bit_width, std::byte* out) noexcept;

// Writes `count` copies of one value. Returns: bytes written (at most 14).
std::size_t encode_rle_run(std::uint32_t value, std::size_t count, int bit_width, std::byte* out) noexcept;

// Returns: bits needed for values up to `max_value`.
[[nodiscard]] constexpr int bit_width_for(std::uint32_t max_value) noexcept {
  return max_value == 0 ? 0 : 32 - __builtin_clz(max_value);
}

}  // namespace earmark::detail
