// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Carved blocks under random work, beside their model, and by many threads.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "memory/watched_carved_block.hpp"

namespace earmark::detail {
namespace {

// Sizes from one granule to a good part of the block, evenly by their logarithm, so that refusals and joins happen.
std::size_t random_size(std::mt19937& random, double most) {
  return static_cast<std::size_t>(
      std::exp2(8.0 + (std::log2(most) - 8.0) * static_cast<double>(random() % 1000) / 1e3));
}

struct Mix {
  std::uintptr_t streams;
  std::uint32_t seed;
};
class CarvedBlockUnderLoad : public ::testing::TestWithParam<Mix> {};

TEST_P(CarvedBlockUnderLoad, RefusesOnlyWhatNoHoleFitsAndEndsAsOneHole) {
  auto const [streams, seed] = GetParam();
  Watched watched{2048 * granule};
  std::mt19937 random{seed};
  int refused = 0;
  for (int i = 0; i < 12'000 && !HasFailure(); ++i) {
    auto const on = stream(1 + random() % streams);
    if (random() % 100 < 52 || watched.live().empty()) {
      std::size_t const alignment = random() % 8 == 0 ? granule << random() % 6 : granule;
      std::int64_t const offset = random() % 16 == 0 ? watched.allocate_sync(random_size(random, 60'000))
                                                     : watched.allocate(random_size(random, 60'000), on, alignment);
      refused += offset < 0 ? 1 : 0;
    } else {
      auto victim = watched.live().lower_bound(static_cast<std::int64_t>(random() % 2048));
      if (victim == watched.live().end()) { victim = watched.live().begin(); }
      random() % 32 == 0 ? watched.free_sync(victim->first) : watched.free(victim->first, on);
    }
    if (random() % 200 == 0) { watched.events().complete(on); }
    if (random() % 500 == 0) { watched.carved().forget_stream(on); }
    if (random() % 16 == 0) {
      ASSERT_EQ(watched.carved().largest_hole(), static_cast<std::size_t>(watched.longest_free(1)) * granule);
    }
  }
  EXPECT_GT(refused, 50) << "else this proves little";
  watched.free_all(stream(1));
  EXPECT_EQ(watched.carved().largest_hole(), 2048 * granule);
  EXPECT_EQ(watched.allocate(2048 * granule, stream(1)), 0);
}

INSTANTIATE_TEST_SUITE_P(Streams, CarvedBlockUnderLoad,
                         ::testing::Values(Mix{1, 7}, Mix{1, 8}, Mix{2, 9}, Mix{4, 10}, Mix{4, 11}, Mix{40, 12}),
                         [](auto const& mix) {
                           return std::to_string(mix.param.streams) + "Seed" + std::to_string(mix.param.seed);
                         });

// (what, size, stream): shrinks to the shortest sequence that fails.
using Step = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;

RC_GTEST_PROP(CarvedBlock, AgreesWithAModelOfEveryGranule, (std::vector<Step> const& steps)) {
  Watched watched{48 * granule};
  for (auto const& [what, size, number] : steps) {
    auto const on = stream(number % 4U);
    auto const& live = watched.live();
    switch (what % 8) {
      case 0:
      case 1: (void)watched.allocate(1 + size * 16U, on); break;
      case 2: (void)watched.allocate(1 + size * 8U, on, granule << size % 5); break;
      case 3: (void)watched.allocate_sync(1 + size * 16U); break;
      case 4: watched.carved().forget_stream(on); break;
      case 5: watched.events().complete(on); break;
      default:
        if (!live.empty()) { watched.free(std::next(live.begin(), size % static_cast<int>(live.size()))->first, on); }
    }
    RC_ASSERT(!::testing::Test::HasFailure());
  }
}

// Each thread on a stream of its own, in memory that is really written: what is handed out belongs to one at a time.
void write_and_check(CarvedBlock& carved, std::uintptr_t number, std::atomic<int>& spoilt) {
  std::mt19937 random{static_cast<std::uint32_t>(number)};
  std::vector<std::pair<std::byte*, std::size_t>> mine;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 2 == 0 || mine.empty()) {
      std::size_t const bytes = 1 + random() % 4000;
      bool const sync = random() % 8 == 0;
      auto* const piece = static_cast<std::byte*>(sync ? carved.try_allocate_sync(bytes, 64)
                                                       : carved.try_allocate(bytes, 64, stream(number)));
      if (piece == nullptr) { continue; }
      std::memset(piece, static_cast<int>(number), bytes);
      mine.emplace_back(piece, bytes);
    } else {
      std::swap(mine[random() % mine.size()], mine.back());
      auto const [piece, bytes] = mine.back();
      mine.pop_back();
      if (std::any_of(piece, piece + bytes, [&](std::byte b) { return b != static_cast<std::byte>(number); })) {
        ++spoilt;
      }
      random() % 8 == 0 ? carved.deallocate_sync(piece) : carved.deallocate(piece, stream(number));
    }
    if (random() % 256 == 0) { carved.forget_stream(stream(number)); }
  }
  for (auto const& [piece, bytes] : mine) { carved.deallocate(piece, stream(number)); }
}

TEST(CarvedBlock, ServesManyThreadsAtOnce) {
  alignas(64) static std::byte memory[64 * 1024];
  ManualStreamEvents events;
  CarvedBlock carved{memory, 64, events};
  std::atomic<int> spoilt{0};
  std::vector<std::thread> threads;
  for (std::uintptr_t i = 1; i <= 4; ++i) {
    threads.emplace_back([&carved, &spoilt, i] { write_and_check(carved, i, spoilt); });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(spoilt, 0);
  EXPECT_EQ(carved.live_blocks(), 0U);
  EXPECT_EQ(carved.largest_hole(), sizeof memory);
  EXPECT_EQ(events.misuses(), 0);
  EXPECT_NE(carved.try_allocate(sizeof memory, 64, stream(1)), nullptr);
  EXPECT_EQ(events.marks(), 0);
}

}  // namespace
}  // namespace earmark::detail
