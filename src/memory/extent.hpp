// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The pieces that a carved block is cut into, live ones and holes, as host-side records in the order of their
// addresses; a pool of such records; and an index from addresses to the live ones. Offsets and lengths count granules.
// Thread safety: none; the carved block's lock guards all of it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

namespace earmark::detail {

using SlotNumber = std::uint16_t;  // see stream_slots.hpp

struct Extent;

// A place in a list of holes of like size, which is a ring with its head: nothing is null, so that nothing is asked.
struct HoleLink {
  HoleLink* before;
  HoleLink* after;
};

// 64: what one piece costs is one cache line, loaded once.
struct alignas(64) Extent : HoleLink {
  static constexpr SlotNumber no_slot = 0xffff;

  [[nodiscard]] std::uint64_t end() const noexcept { return offset + length; }
  [[nodiscard]] bool is_hole() const noexcept { return slot != no_slot; }

  std::uint64_t offset;
  std::uint64_t length;
  Extent* previous;    // neighbours by address, in a ring
  Extent* next;        //
  Extent* chain;       // a live one: its bucket of the index; an unused one: the pool
  SlotNumber slot;     // of a hole: the stream that freed it; none for all others
  SlotNumber behind;   // the same of a piece that was freed and is not a hole yet, or no more
  std::uint16_t list;  // of a hole: which one it is in
};
static_assert(sizeof(Extent) == 64);

// `a` if `condition`, else `b`, without a branch: for what cannot be foretold.
template <class T>
[[nodiscard]] T* choose(bool condition, T* a, T* b) noexcept {
  auto const bits_of_a = reinterpret_cast<std::uintptr_t>(a);
  auto const bits_of_b = reinterpret_cast<std::uintptr_t>(b);
  return reinterpret_cast<T*>(bits_of_b ^ ((bits_of_a ^ bits_of_b) & -std::uintptr_t{condition}));
}

// Records in slabs that stay where they are. Nothing is given back before the pool goes.
class ExtentPool {
 public:
  explicit ExtentPool(std::pmr::memory_resource& metadata) : metadata_(metadata), slabs_(&metadata) {
    last_.chain = &last_;
  }
  ExtentPool(ExtentPool const&) = delete;
  ExtentPool& operator=(ExtentPool const&) = delete;
  ~ExtentPool() {
    for (auto const slab : slabs_) { metadata_.deallocate(slab.data(), slab.size_bytes(), alignof(Extent)); }
  }

  // Whether two can be taken.
  [[nodiscard]] bool has_two() const noexcept { return spare_->chain != &last_; }
  // Sees to it that two can be taken. Throws: std::bad_alloc; then nothing changed.
  void reserve_two() {
    if (!has_two()) { add_slab(); }
  }
  // Requires: there is one. Returns: a record that is no hole.
  [[nodiscard]] Extent& take(std::uint64_t offset, std::uint64_t length) noexcept {
    Extent& extent = *spare_;
    spare_ = extent.chain;
    extent.offset = offset;
    extent.length = length;
    extent.slot = Extent::no_slot;
    return extent;
  }
  void give_back(Extent& extent) noexcept { give_back_if(true, extent); }
  // Without a branch.
  void give_back_if(bool wanted, Extent& extent) noexcept {
    extent.chain = spare_;
    spare_ = choose(wanted, &extent, spare_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_ * sizeof(Extent); }

 private:
  static constexpr std::size_t first_slab = 64;
  static constexpr std::size_t largest_slab = 4096;

  void add_slab() {
    std::size_t const count = slabs_.empty() ? first_slab : std::min(capacity_, largest_slab);
    slabs_.reserve(slabs_.size() + 1);
    auto* const slab = static_cast<Extent*>(metadata_.allocate(count * sizeof(Extent), alignof(Extent)));
    slabs_.emplace_back(slab, count);
    capacity_ += count;
    for (std::size_t i = count; i-- > 0;) { give_back(*std::construct_at(slab + i)); }
  }

  std::pmr::memory_resource& metadata_;
  std::pmr::vector<std::span<Extent>> slabs_;
  Extent last_{};  // the chain's end, never taken
  Extent* spare_{&last_};
  std::size_t capacity_{0};
};

// Finds live extents by where they begin: chains through the extents themselves, so that only the buckets are its own.
class LiveExtents {
 public:
  explicit LiveExtents(std::pmr::memory_resource& metadata) : buckets_(&metadata) {}

  // Whether chains stay short if one more is inserted.
  [[nodiscard]] bool has_room() const noexcept { return count_ < enough_for_; }
  // Throws: std::bad_alloc; then nothing changed.
  void reserve_one() {
    if (!has_room()) { grow(); }
  }
  void insert(Extent& extent) noexcept {
    put(buckets_, extent);
    ++count_;
  }
  // Where the extent that begins at `offset` hangs in the index; a null pointer hangs there if there is none. Good
  // until the index changes.
  [[nodiscard]] Extent** find(std::uint64_t offset) noexcept {
    if (buckets_.empty()) { return &no_extent_; }
    Extent** link = &buckets_[bucket(offset)];
    while (*link != nullptr && (*link)->offset != offset) { link = &(*link)->chain; }
    return link;
  }
  void remove(Extent** link) noexcept {
    *link = (*link)->chain;
    --count_;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return buckets_.size() * sizeof(Extent*); }

 private:
  using Buckets = std::pmr::vector<Extent*>;
  static constexpr std::size_t first_buckets = 64;

  // Multiplies by 2^64 over the golden ratio: neighbouring offsets land far apart.
  [[nodiscard]] std::size_t bucket(std::uint64_t offset) const noexcept {
    return static_cast<std::size_t>((offset * 0x9e3779b97f4a7c15U) >> shift_);
  }
  void put(Buckets& buckets, Extent& extent) noexcept {
    Extent*& head = buckets[bucket(extent.offset)];
    extent.chain = head;
    head = &extent;
  }
  void grow() {
    Buckets larger(buckets_.empty() ? first_buckets : 2 * buckets_.size(), nullptr, buckets_.get_allocator());
    shift_ = 64 - std::countr_zero(larger.size());
    for (Extent* head : buckets_) {
      while (head != nullptr) {
        Extent& extent = *head;
        head = extent.chain;
        put(larger, extent);
      }
    }
    buckets_.swap(larger);
    enough_for_ = buckets_.size() / 2;
  }

  Buckets buckets_;
  Extent* no_extent_{nullptr};
  int shift_{64};
  std::size_t count_{0};
  std::size_t enough_for_{0};  // with more, chains get long
};

}  // namespace earmark::detail
