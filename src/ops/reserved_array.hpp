// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// An array of trivial values whose memory comes from the job's pool, and so from its reservation: working space that
// counts against the limit. Contents are undefined after growing unless kept. Ownership: frees its memory; the pool
// must outlive it. Thread safety: one thread at a time.
#pragma once

#include <arrow/memory_pool.h>
#include <arrow/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace earmark::detail {

template <class T>
class ReservedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ReservedArray(::arrow::MemoryPool* pool, std::size_t size = 0) : pool_(pool) {
    if (size > 0) { allocate(size); }
  }
  ReservedArray(ReservedArray&& other) noexcept
      : pool_(other.pool_), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ReservedArray& operator=(ReservedArray&& other) noexcept {
    std::swap(pool_, other.pool_);
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

  // Makes room for `size` values; what was there is lost if the array has to grow. Throws: std::bad_alloc when the
  // budget refuses.
  void make_room(std::size_t size) {
    if (size <= size_) { return; }
    release();
    allocate(size);
  }
  // Makes room for `size` values and keeps the first `kept`.
  void grow(std::size_t size, std::size_t kept) {
    if (size <= size_) { return; }
    if (kept == 0) { return make_room(std::max(size, size_ + size_ / 2)); }
    ReservedArray larger(pool_, std::max(size, size_ + size_ / 2));
    if (kept > 0) { std::memcpy(larger.data_, data_, kept * sizeof(T)); }
    *this = std::move(larger);
  }
  void release() noexcept {
    if (data_ != nullptr) { pool_->Free(reinterpret_cast<std::uint8_t*>(data_), bytes_of(size_), alignment); }
    data_ = nullptr;
    size_ = 0;
  }

 private:
  static constexpr std::int64_t alignment = 64;

  [[nodiscard]] static std::int64_t bytes_of(std::size_t size) noexcept {
    return static_cast<std::int64_t>(size * sizeof(T));
  }
  void allocate(std::size_t size) {
    if (size > static_cast<std::size_t>(INT64_MAX) / sizeof(T)) { throw std::bad_alloc(); }
    std::uint8_t* data = nullptr;
    if (!pool_->Allocate(bytes_of(size), alignment, &data).ok()) { throw std::bad_alloc(); }
    data_ = reinterpret_cast<T*>(data);
    size_ = size;
  }

  ::arrow::MemoryPool* pool_;
  T* data_{nullptr};
  std::size_t size_{0};
};

}  // namespace earmark::detail
