// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which reservation a block was drawn from, by the block's address. Entries are made before the allocation that they
// are for, so that noting a block cannot fail; they are taken out before the block is freed, since its address may be
// handed out again the moment it is. Sharded by address: threads meet only where their blocks do.
// Thread safety: any thread. Ownership: an entry keeps its reservation's control block alive.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/memory_reservation.hpp"

namespace earmark::detail {

class OwnerMap {
 public:
  using Owner = MemoryReservation::Resource;
  struct Entry {
    explicit Entry(Owner from) noexcept : owner(std::move(from)) {}
    Owner owner;
    void* block{nullptr};
    std::unique_ptr<Entry> next;
  };

  OwnerMap() = default;
  OwnerMap(OwnerMap const&) = delete;
  OwnerMap& operator=(OwnerMap const&) = delete;
  // What is still live is forgotten; its owners settle it as leaked.
  ~OwnerMap() {
    for (Shard& shard : shards_) {
      MutexLock lock{shard.mutex};
      for (std::unique_ptr<Entry>& head : shard.buckets) {
        while (head != nullptr) { head = std::move(head->next); }  // one by one: a chain must not recurse
      }
    }
  }

  void insert(std::unique_ptr<Entry> entry, void* block) noexcept {
    std::uint64_t const hash = hash_of(block);
    entry->block = block;
    Shard& shard = shard_of(hash);
    MutexLock lock{shard.mutex};
    shard.grow_if_crowded();
    push(shard.bucket_of(hash), std::move(entry));
    shard.live.fetch_add(1, std::memory_order_relaxed);
  }

  // Returns: the block's entry, which is no longer in the map; null if it was drawn on no reservation.
  [[nodiscard]] std::unique_ptr<Entry> take(void* block) noexcept {
    std::uint64_t const hash = hash_of(block);
    Shard& shard = shard_of(hash);
    // Whoever frees a block was given it after it was noted here, so an empty shard cannot hide it.
    if (shard.live.load(std::memory_order_relaxed) == 0) { return nullptr; }
    MutexLock lock{shard.mutex};
    for (std::unique_ptr<Entry>* at = &shard.bucket_of(hash); *at != nullptr; at = &(*at)->next) {
      if ((*at)->block != block) { continue; }
      std::unique_ptr<Entry> found = std::move(*at);
      *at = std::move(found->next);
      shard.live.fetch_sub(1, std::memory_order_relaxed);
      return found;
    }
    return nullptr;
  }

  [[nodiscard]] std::int64_t live() const noexcept {
    std::int64_t sum = 0;
    for (Shard const& shard : shards_) { sum += shard.live.load(std::memory_order_relaxed); }
    return sum;
  }

 private:
  using Buckets = std::vector<std::unique_ptr<Entry>>;
  struct alignas(128) Shard {
    Mutex mutex;
    Buckets buckets EARMARK_GUARDED_BY(mutex) = Buckets(8);
    std::atomic<std::int64_t> live{0};

    [[nodiscard]] std::unique_ptr<Entry>& bucket_of(std::uint64_t hash) noexcept EARMARK_REQUIRES(mutex) {
      return buckets[static_cast<std::size_t>(hash >> 32) & (buckets.size() - 1)];
    }
    // Without memory for a larger table the chains get longer; that is all.
    void grow_if_crowded() noexcept EARMARK_REQUIRES(mutex) {
      if (static_cast<std::size_t>(live.load(std::memory_order_relaxed)) < buckets.size()) { return; }
      try {
        Buckets crowded = std::exchange(buckets, Buckets(2 * buckets.size()));
        for (std::unique_ptr<Entry>& head : crowded) {
          while (head != nullptr) {
            std::unique_ptr<Entry> entry = std::move(head);
            head = std::move(entry->next);
            std::unique_ptr<Entry>& bucket = bucket_of(hash_of(entry->block));
            push(bucket, std::move(entry));
          }
        }
      }
      catch (std::bad_alloc const&) {
      }
    }
  };

  static void push(std::unique_ptr<Entry>& head, std::unique_ptr<Entry> entry) noexcept {
    entry->next = std::move(head);
    head = std::move(entry);
  }
  // Fibonacci hashing of the address without the bits that alignment keeps at zero. The top six bits are the shard,
  // those from the 32nd up the bucket.
  [[nodiscard]] static std::uint64_t hash_of(void* block) noexcept {
    return (reinterpret_cast<std::uintptr_t>(block) >> 6) * 0x9E3779B97F4A7C15ULL;
  }
  [[nodiscard]] Shard& shard_of(std::uint64_t hash) noexcept { return shards_[hash >> 58]; }

  std::array<Shard, 64> shards_;
};

}  // namespace earmark::detail
