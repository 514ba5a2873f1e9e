// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that a transfer takes, with contents that tell where they are from. Thread safety: as a vector's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "earmark/core/spill_disk.hpp"

namespace earmark {

class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : size_(bytes), data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{spill_alignment}))) {
    std::memset(data_, 0, bytes);
  }
  Pages(Pages const&) = delete;
  Pages& operator=(Pages const&) = delete;
  ~Pages() { ::operator delete(data_, std::align_val_t{spill_alignment}); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_, size_}; }
  [[nodiscard]] friend bool operator==(Pages const& a, Pages const& b) noexcept {
    return a.size_ == b.size_ && std::memcmp(a.data_, b.data_, a.size_) == 0;
  }

 private:
  std::size_t size_;
  std::byte* data_;
};

// Fills with what follows from `seed` alone.
inline void fill(std::span<std::byte> bytes, std::uint64_t seed) noexcept {
  std::uint64_t state = seed * 2 + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::byte>(state >> 56);
  }
}

}  // namespace earmark
