// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/bounce_pool.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <latch>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/host_memory_resource.hpp"

namespace earmark {
namespace {

class BouncePoolTest : public ::testing::Test {
 protected:
  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, 1_MiB};
};

TEST_F(BouncePoolTest, TakesAllItsMemoryAtTheStartAndGivesItBackAtTheEnd) {
  {
    BouncePool pool{host, {.count = 3, .bytes = 8_KiB}};
    EXPECT_EQ(host.committed(), static_cast<std::int64_t>(24_KiB));
    EXPECT_EQ(host.current_allocated(), static_cast<std::int64_t>(24_KiB));
    std::set<std::byte*> begins;
    std::vector<BouncePool::Buffer> taken;
    while (auto buffer = pool.try_take()) {
      EXPECT_EQ(buffer->bytes().size(), 8_KiB);
      EXPECT_EQ(std::bit_cast<std::uintptr_t>(buffer->bytes().data()) % 4096, 0U);
      begins.insert(buffer->bytes().data());
      taken.push_back(std::move(*buffer));
    }
    EXPECT_EQ(begins.size(), 3U);
    EXPECT_EQ(host.current_allocated(), static_cast<std::int64_t>(24_KiB));
  }
  EXPECT_EQ(host.committed(), 0);
}

TEST_F(BouncePoolTest, GivesABufferToWhoeverWaitsForIt) {
  BouncePool pool{host, {.count = 1, .bytes = 4_KiB}};
  std::optional<BouncePool::Buffer> first{pool.take()};
  std::byte* const begin = first->bytes().data();
  std::latch started{1};
  std::thread waiter{[&] {
    started.count_down();
    EXPECT_EQ(pool.take().bytes().data(), begin);
  }};
  started.wait();
  first.reset();
  waiter.join();
  EXPECT_TRUE(pool.try_take());
}

TEST_F(BouncePoolTest, IsGivenBackOnceHoweverItIsMoved) {
  BouncePool pool{host, {.count = 2, .bytes = 4_KiB}};
  {
    BouncePool::Buffer a = pool.take();
    BouncePool::Buffer b = pool.take();
    a = std::move(b);
    EXPECT_TRUE(pool.try_take());
    BouncePool::Buffer const c = std::move(a);
  }
  BouncePool::Buffer const a = pool.take();
  BouncePool::Buffer const b = pool.take();
  EXPECT_NE(a.bytes().data(), b.bytes().data());
  EXPECT_FALSE(pool.try_take());
}

TEST_F(BouncePoolTest, RefusesWhatItCannotHave) {
  EXPECT_THROW((BouncePool{host, {.count = 0}}), std::invalid_argument);
  EXPECT_THROW((BouncePool{host, {.count = 1, .bytes = 1000}}), std::invalid_argument);
  EXPECT_THROW((BouncePool{host, {.count = 2, .bytes = 1_MiB}}), ReservationRefused);
  EXPECT_THROW((BouncePool{host, {.count = SIZE_MAX / 4096, .bytes = 8192}}), ReservationRefused);
  EXPECT_EQ(host.committed(), 0);
}

}  // namespace
}  // namespace earmark
