// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// An array of trivial values whose memory comes from a reservation: working space of the job that counts against its
// limit. Contents are undefined after growing unless kept. Ownership: frees its memory; the reservation's resource
// stays alive as long as the array. Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "earmark/memory/memory_reservation.hpp"

namespace earmark::detail {

using HostResource = HostMemoryReservation::Resource;

template <class T>
class ReservedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ReservedArray(HostResource resource, std::size_t size = 0) : resource_(std::move(resource)) {
    if (size > 0) { allocate(size); }
  }
  ReservedArray(ReservedArray&& other) noexcept
      : resource_(other.resource_), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ReservedArray& operator=(ReservedArray&& other) noexcept {
    std::swap(resource_, other.resource_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ReservedArray() { release(); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] T const* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] T const& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] std::span<T> first(std::size_t count) noexcept { return {data_, count}; }

  // Makes room for `size` values; what was there is lost if the array has to grow. Throws: what the reservation throws.
  void make_room(std::size_t size) {
    if (size <= size_) { return; }
    release();
    allocate(size);
  }
  // Makes room for `size` values and keeps the first `kept`.
  void grow(std::size_t size, std::size_t kept) {
    if (size <= size_) { return; }
    ReservedArray larger(resource_, std::max(size, size_ + size_ / 2));
    if (kept > 0) { std::memcpy(larger.data_, data_, kept * sizeof(T)); }
    *this = std::move(larger);
  }
  void release() noexcept {
    if (data_ != nullptr) { resource_.deallocate_sync(data_, size_ * sizeof(T), alignment); }
    data_ = nullptr;
    size_ = 0;
  }

 private:
  static constexpr std::size_t alignment = 64;

  void allocate(std::size_t size) {
    data_ = static_cast<T*>(resource_.allocate_sync(size * sizeof(T), alignment));
    size_ = size;
  }

  HostResource resource_;
  T* data_{nullptr};
  std::size_t size_{0};
};

}  // namespace earmark::detail
