// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of carved blocks stand on: a block that nobody may touch, beside a model that knows every granule.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "earmark/memory/carved_block.hpp"
#include "earmark/testing/manual_stream_events.hpp"

namespace earmark::detail {

using testing::ManualStreamEvents;

inline constexpr std::size_t granule = 256;

// Addresses that nobody may touch, as those of device memory.
inline std::span<std::byte> untouchable(std::size_t bytes) {
  return {reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44), bytes};
}

inline cuda::stream_ref stream(std::uintptr_t number) { return ManualStreamEvents::stream(number); }

// A carved block beside a model that knows every granule: whether it is live, and the work behind which it was freed.
class Watched {
 public:
  explicit Watched(std::size_t bytes, std::pmr::memory_resource* metadata = std::pmr::new_delete_resource())
      : carved_(untouchable(bytes), granule, events_, std::nullopt, metadata), granules_(bytes / granule) {}

  // Returns: the offset in granules, or -1 if it was refused; then no run of free granules may fit.
  std::int64_t allocate(std::size_t bytes, cuda::stream_ref stream, std::size_t alignment = granule) {
    void* const pointer = carved_.try_allocate(bytes, alignment, stream);
    return check(pointer, bytes, alignment, [&](auto const& work) { return events_.is_behind(stream, work); });
  }
  std::int64_t allocate_sync(std::size_t bytes) {
    void* const pointer = carved_.try_allocate_sync(bytes, granule);
    return check(pointer, bytes, granule, [&](auto const& work) { return events_.is_done(work); });
  }
  void free(std::int64_t offset, cuda::stream_ref stream) {
    forget(offset, events_.enqueue(stream));
    ASSERT_EQ(carved_.deallocate(address(offset), stream), static_cast<std::size_t>(length_) * granule);
    check_sums();
  }
  void free_sync(std::int64_t offset) {
    forget(offset, {});
    ASSERT_EQ(carved_.deallocate_sync(address(offset)), static_cast<std::size_t>(length_) * granule);
    check_sums();
  }
  void free_all(cuda::stream_ref stream) {
    while (!live_.empty()) { free(live_.begin()->first, stream); }
  }

  [[nodiscard]] ManualStreamEvents& events() { return events_; }
  [[nodiscard]] CarvedBlock& carved() { return carved_; }
  // Live pieces: offset and length in granules.
  [[nodiscard]] std::map<std::int64_t, std::int64_t> const& live() const { return live_; }
  [[nodiscard]] void* address(std::int64_t offset) const {
    return untouchable(1).data() + static_cast<std::size_t>(offset) * granule;
  }
  // In granules: the longest piece that begins at a multiple of `alignment` and is free.
  [[nodiscard]] std::int64_t longest_free(std::int64_t alignment) const {
    std::int64_t longest = 0;
    std::int64_t begin = 0;
    auto const look = [&](std::int64_t end) {
      longest = std::max(longest, end - (begin + alignment - 1) / alignment * alignment);
    };
    for (auto const& [offset, length] : live_) {
      look(offset);
      begin = offset + length;
    }
    look(static_cast<std::int64_t>(granules_.size()));
    return longest;
  }

 private:
  template <class Behind>
  std::int64_t check(void* pointer, std::size_t bytes, std::size_t alignment, Behind const& behind) {
    auto const length = static_cast<std::int64_t>((bytes + granule - 1) / granule);
    if (pointer == nullptr) {
      EXPECT_LT(longest_free(static_cast<std::int64_t>(std::max(alignment, granule) / granule)), length)
          << "refused what fits";
      return -1;
    }
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % alignment, 0U);
    EXPECT_TRUE(carved_.owns(pointer));
    auto const distance = static_cast<std::byte*>(pointer) - untouchable(1).data();
    std::int64_t const offset = distance / static_cast<std::int64_t>(granule);
    EXPECT_LE(offset + length, static_cast<std::int64_t>(granules_.size()));
    auto const next = live_.lower_bound(offset);
    EXPECT_TRUE(next == live_.end() || next->first >= offset + length) << "overlaps the next";
    EXPECT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second <= offset)
        << "overlaps the one before";
    for (std::int64_t i = offset; i < offset + length; ++i) {
      EXPECT_TRUE(behind(granules_[static_cast<std::size_t>(i)])) << "handed out without a wait";
    }
    live_[offset] = length;
    live_granules_ += length;
    check_sums();
    return offset;
  }
  void forget(std::int64_t offset, ManualStreamEvents::Work const& work) {
    length_ = live_.at(offset);
    live_.erase(offset);
    live_granules_ -= length_;
    std::fill_n(granules_.begin() + offset, length_, work);
  }
  void check_sums() {
    auto const counters = carved_.counters();
    EXPECT_EQ(counters.live_blocks, static_cast<std::int64_t>(live_.size()));
    EXPECT_EQ(counters.live_bytes, live_granules_ * static_cast<std::int64_t>(granule));
    EXPECT_EQ(counters.live_bytes + counters.hole_bytes, static_cast<std::int64_t>(granules_.size() * granule));
    EXPECT_EQ(events_.misuses(), 0);
  }

  ManualStreamEvents events_;
  CarvedBlock carved_;
  std::vector<ManualStreamEvents::Work> granules_;  // what freed each
  std::map<std::int64_t, std::int64_t> live_;
  std::int64_t live_granules_{0};
  std::int64_t length_{0};
};

}  // namespace earmark::detail
