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
  static constexpr int length_bits = 48;

  [[nodiscard]] std::uint64_t offset() const noexcept { return place >> 16; }
  [[nodiscard]] SlotNumber slot() const noexcept { return static_cast<SlotNumber>(place & 0xffff); }
  [[nodiscard]] std::uint64_t length() const noexcept { return size >> 16; }
  [[nodiscard]] std::uint64_t end() const noexcept { return offset() + length(); }
  [[nodiscard]] bool is_hole() const noexcept { return (size & hole_flag) != 0; }
  [[nodiscard]] bool has_seam() const noexcept { return (size & seam_flag) != 0; }

  void set_offset(std::uint64_t offset) noexcept { place = (offset << 16) | (place & 0xffff); }
  void set_slot(SlotNumber slot) noexcept { place = (place & ~std::uint64_t{0xffff}) | slot; }
  void set_length(std::uint64_t length) noexcept { size = (length << 16) | (size & 0xffff); }
  void set_hole(bool hole) noexcept { size = hole ? size | hole_flag : size & ~hole_flag; }
  void set_seam(bool seam) noexcept { size = seam ? size | seam_flag : size & ~seam_flag; }

  static constexpr std::uint64_t hole_flag = 1;
  static constexpr std::uint64_t seam_flag = 2;

  std::uint64_t place;    // offset and, of a hole, the slot of the stream that freed it
  std::uint64_t size;     // length and flags
  Extent* previous;       // neighbours by address
  Extent* next;           //
  Extent* seam_previous;  // a hole followed by a hole: the list of such
  Extent* chain;          // as seam_previous; a live one: its bucket of the index; an unused one: the pool
};
static_assert(sizeof(Extent) == 64);

// Records in slabs that stay where they are. Nothing is given back before the pool goes.
class ExtentPool {
 public:
  explicit ExtentPool(std::pmr::memory_resource& metadata) : metadata_(metadata), slabs_(&metadata) {}
  ExtentPool(ExtentPool const&) = delete;
  ExtentPool& operator=(ExtentPool const&) = delete;
  ~ExtentPool() {
    for (auto const slab : slabs_) { metadata_.deallocate(slab.data(), slab.size_bytes(), alignof(Extent)); }
  }

  // Sees to it that `count` can be taken. Throws: std::bad_alloc; then nothing changed.
  void reserve(std::size_t count) {
    if (spare_count_ < count) [[unlikely]] { add_slab(); }
  }
  // Requires: it was reserved. Returns: a record that is neither hole nor seam.
  [[nodiscard]] Extent& take(std::uint64_t offset, std::uint64_t length) noexcept {
    Extent& extent = *spare_;
    spare_ = extent.chain;
    --spare_count_;
    extent.place = offset << 16;
    extent.size = length << 16;
    return extent;
  }
  void give_back(Extent& extent) noexcept {
    extent.chain = spare_;
    spare_ = &extent;
    ++spare_count_;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_ * sizeof(Extent); }

 private:
  static constexpr std::size_t first_slab = 64;
  static constexpr std::size_t largest_slab = 4096;

  [[gnu::noinline]] void add_slab() {
    std::size_t const count = slabs_.empty() ? first_slab : std::min(capacity_, largest_slab);
    slabs_.reserve(slabs_.size() + 1);
    auto* const slab = static_cast<Extent*>(metadata_.allocate(count * sizeof(Extent), alignof(Extent)));
    slabs_.emplace_back(slab, count);
    capacity_ += count;
    for (std::size_t i = count; i-- > 0;) { give_back(*std::construct_at(slab + i)); }
  }

  std::pmr::memory_resource& metadata_;
  std::pmr::vector<std::span<Extent>> slabs_;
  Extent* spare_{nullptr};
  std::size_t spare_count_{0};
  std::size_t capacity_{0};
};

// Finds live extents by where they begin: chains through the extents themselves, so that only the buckets are its own.
class LiveExtents {
 public:
  explicit LiveExtents(std::pmr::memory_resource& metadata) : buckets_(&metadata) {}

  // Sees to it that one more can be inserted with short chains. Throws: std::bad_alloc; then nothing changed.
  void reserve_one() {
    if (2 * count_ >= buckets_.size()) [[unlikely]] { grow(); }
  }
  void insert(Extent& extent) noexcept {
    put(buckets_, extent);
    ++count_;
  }
  // Returns: the extent that begins at `offset`, no longer in the index, or null.
  [[nodiscard]] Extent* take(std::uint64_t offset) noexcept {
    if (buckets_.empty()) { return nullptr; }
    for (Extent** link = &buckets_[bucket(offset)]; *link != nullptr; link = &(*link)->chain) {
      if (Extent* const found = *link; found->offset() == offset) {
        *link = found->chain;
        --count_;
        return found;
      }
    }
    return nullptr;
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
    Extent*& head = buckets[bucket(extent.offset())];
    extent.chain = head;
    head = &extent;
  }
  [[gnu::noinline]] void grow() {
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
  }

  Buckets buckets_;
  int shift_{64};
  std::size_t count_{0};
};

}  // namespace earmark::detail
