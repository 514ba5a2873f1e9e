// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Minimum and maximum of byte arrays, for the statistics of pages. Views into what was added: the bytes must stay where
// they are. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace earmark::detail {

// The first eight bytes as a number that sorts as they do.
inline std::uint64_t prefix_of(char const* bytes, std::size_t size) noexcept {
  std::uint64_t prefix = 0;
  std::memcpy(&prefix, bytes, std::min(size, sizeof prefix));
  return __builtin_bswap64(prefix);
}

// Minimum and maximum of byte arrays in unsigned order; most values are told apart by their first eight bytes.
class ByteExtremes {
 public:
  void add(char const* bytes, std::uint32_t size) noexcept {
    std::uint64_t const prefix = prefix_of(bytes, size);
    if (!any_) {
      smallest_ = largest_ = {bytes, size};
      smallest_prefix_ = largest_prefix_ = prefix;
      any_ = true;
      return;
    }
    if (prefix <= smallest_prefix_ && (prefix < smallest_prefix_ || std::string_view(bytes, size) < smallest_)) {
      smallest_ = {bytes, size};
      smallest_prefix_ = prefix;
    }
    if (prefix >= largest_prefix_ && (prefix > largest_prefix_ || std::string_view(bytes, size) > largest_)) {
      largest_ = {bytes, size};
      largest_prefix_ = prefix;
    }
  }
  [[nodiscard]] bool any() const noexcept { return any_; }
  [[nodiscard]] std::string_view smallest() const noexcept { return smallest_; }
  [[nodiscard]] std::string_view largest() const noexcept { return largest_; }

 private:
  std::string_view smallest_;
  std::string_view largest_;
  std::uint64_t smallest_prefix_{0};
  std::uint64_t largest_prefix_{0};
  bool any_{false};
};

}  // namespace earmark::detail
