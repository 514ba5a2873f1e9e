// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of staging: values and levels of one batch, grouped by partition. A loop reads its input in order and
// writes each value at its partition's cursor, so the order within a partition is the input's. Thread safety: pure
// functions on the caller's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace earmark::detail {

// Adds to `counts[p]` how often partition p occurs. Several counts of the same partition in a row would wait for each
// other's store, so odd and even rows count apart; `counts` has room for two sets, the second one is folded in and
// zeroed.
template <class Id>
void count_partitions(std::span<Id const> ids, std::uint32_t* counts, std::size_t partitions) noexcept {
  std::uint32_t* const second = counts + partitions;
  std::size_t i = 0;
  for (; i + 2 <= ids.size(); i += 2) {
    ++counts[ids[i]];
    ++second[ids[i + 1]];
  }
  if (i < ids.size()) { ++counts[ids[i]]; }
  for (std::size_t p = 0; p < partitions; ++p) {
    counts[p] += second[p];
    second[p] = 0;
  }
}

// Turns counts into ends: `ends[p]` = values of partitions 0..p. `cursors[p]` gets where partition p begins.
inline void prefix_ends(std::uint32_t const* counts, std::uint32_t* ends, std::uint32_t* cursors,
                        std::size_t partitions) noexcept {
  std::uint32_t sum = 0;
  for (std::size_t p = 0; p < partitions; ++p) {
    cursors[p] = sum;
    sum += counts[p];
    ends[p] = sum;
  }
}

template <class Id, class T>
void scatter_values(std::span<Id const> ids, T const* values, T* out, std::uint32_t* cursors) noexcept {
  for (std::size_t i = 0; i < ids.size(); ++i) { out[cursors[ids[i]]++] = values[i]; }
}

// Levels are kept as bytes.
template <class Id>
void scatter_levels(std::span<Id const> ids, std::int16_t const* levels, std::uint8_t* out,
                    std::uint32_t* cursors) noexcept {
  for (std::size_t i = 0; i < ids.size(); ++i) { out[cursors[ids[i]]++] = static_cast<std::uint8_t>(levels[i]); }
}

template <class Id, class Code>
void scatter_remapped(std::span<Id const> ids, std::int32_t const* indices, std::uint16_t const* remap, Code* out,
                      std::uint32_t* cursors) noexcept {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out[cursors[ids[i]]++] = static_cast<Code>(remap[static_cast<std::uint32_t>(indices[i])]);
  }
}

// `pointers` are fixed-length byte arrays of `width` bytes.
template <class Id, class Pointer>
void scatter_fixed_bytes(std::span<Id const> ids, Pointer const* pointers, std::size_t width, std::byte* out,
                         std::uint32_t* cursors) noexcept {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::memcpy(out + static_cast<std::size_t>(cursors[ids[i]]++) * width, pointers[i].ptr, width);
  }
}

// Reads a big-endian two's complement number of `width` bytes (at least 1).
// Returns: false when it does not fit in T; then `value` is undefined.
template <class T>
bool read_decimal(std::uint8_t const* bytes, std::size_t width, T& value) noexcept {
  std::uint8_t const sign = (bytes[0] & 0x80U) != 0 ? 0xff : 0x00;
  while (width > sizeof(T)) {
    if (*bytes != sign) { return false; }
    ++bytes;
    --width;
  }
  std::uint64_t bits = sign == 0 ? 0 : ~std::uint64_t{0};
  for (std::size_t i = 0; i < width; ++i) { bits = (bits << 8) | bytes[i]; }
  value = static_cast<T>(bits);
  return (value < 0) == (sign != 0);
}

// Returns: false when a value does not fit in T.
template <class Id, class Pointer, class T>
bool scatter_decimals(std::span<Id const> ids, Pointer const* pointers, std::size_t width, T* out,
                      std::uint32_t* cursors) noexcept {
  bool fits = true;
  for (std::size_t i = 0; i < ids.size(); ++i) { fits &= read_decimal(pointers[i].ptr, width, out[cursors[ids[i]]++]); }
  return fits;
}

// Short strings are most strings: copied by two moves that overlap, without calling memcpy.
inline void copy_bytes(std::byte* to, void const* from, std::size_t size) noexcept {
  auto const move = [&]<class Word>(Word) {
    Word head;
    Word tail;
    std::memcpy(&head, from, sizeof head);
    std::memcpy(&tail, static_cast<char const*>(from) + size - sizeof tail, sizeof tail);
    std::memcpy(to, &head, sizeof head);
    std::memcpy(to + size - sizeof tail, &tail, sizeof tail);
  };
  if (size > 32) {
    std::memcpy(to, from, size);
  } else if (size >= 16) {
    move(static_cast<unsigned __int128>(0));
  } else if (size >= 8) {
    move(std::uint64_t{});
  } else if (size >= 4) {
    move(std::uint32_t{});
  } else if (size > 0) {
    to[0] = static_cast<std::byte const*>(from)[0];
    to[size / 2] = static_cast<std::byte const*>(from)[size / 2];
    to[size - 1] = static_cast<std::byte const*>(from)[size - 1];
  }
}

// Byte arrays become 4-byte length and bytes; cursors count bytes.
template <class Id, class ByteArray>
void scatter_bytes(std::span<Id const> ids, ByteArray const* values, std::byte* out, std::uint32_t* cursors) noexcept {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::uint32_t const length = values[i].len;
    std::byte* const to = out + cursors[ids[i]];
    cursors[ids[i]] += length + static_cast<std::uint32_t>(sizeof length);
    std::memcpy(to, &length, sizeof length);
    copy_bytes(to + sizeof length, values[i].ptr, length);
  }
}

}  // namespace earmark::detail
