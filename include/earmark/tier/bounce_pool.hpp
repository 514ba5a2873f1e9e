// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A fixed number of host buffers through which bytes pass on their way between tiers, so that moving them needs no
// memory that is not there already: all of it is reserved and allocated when the pool is made.
//
//   BouncePool pool{host, {.count = 4, .bytes = 1_MiB}};
//   BouncePool::Buffer const buffer = pool.take();                  // waits until one is free
//
// Whoever holds a buffer takes further ones by `try_take` only: with every holder able to go on with what it has, no
// number of users, however few the buffers, comes to a stop.
// Thread safety: any thread. Ownership: the pool outlives its buffers, which go back when they are dropped.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

namespace earmark {

struct BouncePoolOptions {
  std::size_t count{4};
  std::size_t bytes{std::size_t{1} << 20};  // of each; a multiple of 4096
};

class BouncePool {
 public:
  class Buffer {
   public:
    Buffer(Buffer&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), bytes_(other.bytes_) {}
    Buffer& operator=(Buffer&& other) noexcept {
      Buffer taken{std::move(other)};
      std::swap(pool_, taken.pool_);
      std::swap(bytes_, taken.bytes_);
      return *this;
    }
    ~Buffer() {
      if (pool_ != nullptr) { pool_->give_back(bytes_); }
    }
    // Begins at a page. Of a moved-from one: nothing to be used.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

   private:
    friend class BouncePool;
    Buffer(BouncePool& pool, std::span<std::byte> bytes) noexcept : pool_(&pool), bytes_(bytes) {}
    BouncePool* pool_;
    std::span<std::byte> bytes_;
  };

  // Throws: ReservationRefused, UpstreamOutOfMemory; std::invalid_argument for no buffers, or a size that is no whole
  // number of blocks.
  explicit BouncePool(HostReservationAwareResourceAdaptor host, BouncePoolOptions const& options = {});
  BouncePool(BouncePool const&) = delete;
  BouncePool& operator=(BouncePool const&) = delete;
  // Requires: all buffers were given back.
  ~BouncePool();

  // Blocks: until a buffer is free.
  [[nodiscard]] Buffer take() EARMARK_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Buffer> try_take() noexcept EARMARK_EXCLUDES(mutex_);

  [[nodiscard]] std::size_t count() const noexcept { return options_.count; }
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return options_.bytes; }

 private:
  void give_back(std::span<std::byte> bytes) noexcept EARMARK_EXCLUDES(mutex_);
  void deallocate_free() noexcept;

  BouncePoolOptions options_;
  HostMemoryReservation reservation_;
  HostMemoryReservation::Resource resource_;
  Mutex mutex_;
  ConditionVariable given_back_;
  std::vector<std::byte*> free_ EARMARK_GUARDED_BY(mutex_);
};

}  // namespace earmark
