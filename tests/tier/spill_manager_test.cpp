// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spill_manager.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/core/file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/testing/manual_clock.hpp"
#include "earmark/testing/manual_executor.hpp"
#include "tier/spill_victims.hpp"

namespace earmark {
namespace {

using detail::choose_victims;
using detail::SpillCandidate;

std::vector<std::int64_t> sizes(std::vector<SpillCandidate> const& victims) {
  std::vector<std::int64_t> all;
  for (SpillCandidate const& each : victims) { all.push_back(each.bytes); }
  return all;
}
std::vector<std::size_t> indices(std::vector<SpillCandidate> const& victims) {
  std::vector<std::size_t> all;
  for (SpillCandidate const& each : victims) { all.push_back(each.index); }
  return all;
}

TEST(SpillVictims, AreTheSmallestThatCoverWhatIsMissing) {
  std::vector<SpillCandidate> const items{{0, 10}, {1, 0}, {2, 20}, {3, 0}, {4, 40}, {5, 80}, {6, 0}};
  EXPECT_EQ(sizes(choose_victims(items, 25)), (std::vector<std::int64_t>{40}));
  EXPECT_EQ(sizes(choose_victims(items, 90)), (std::vector<std::int64_t>{80, 10}));
  EXPECT_EQ(sizes(choose_victims(items, 150)), (std::vector<std::int64_t>{80, 40, 20, 10}));
  EXPECT_EQ(sizes(choose_victims(items, 1000)), (std::vector<std::int64_t>{80, 40, 20, 10}));
  EXPECT_TRUE(choose_victims(items, 0).empty());
}

TEST(SpillVictims, GoByPriorityThenByRestThenByDistance) {
  std::vector<SpillCandidate> const items{
      {0, 10, {1, 9}}, {1, 10, {0, 1}}, {2, 10, {0, 5}, true}, {3, 10, {0, 3}}, {4, 10, {-1, 0}}};
  EXPECT_EQ(indices(choose_victims(items, 50)), (std::vector<std::size_t>{4, 3, 1, 2, 0}));
  EXPECT_EQ(indices(choose_victims(items, 15)), (std::vector<std::size_t>{4, 3}));
}

TEST(SpillVictims, CoverWhatIsAskedAndLessThanTheLargestMore) {
  std::mt19937 random{1};
  for (int round = 0; round < 2000; ++round) {
    std::vector<SpillCandidate> items;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < random() % 20; ++i) {
      items.push_back({i, static_cast<std::int64_t>(random() % 100), {static_cast<int>(random() % 3), 0}});
      total += items.back().bytes;
    }
    std::int64_t const asked = 1 + random() % 500;
    auto const freed = sizes(choose_victims(items, asked));
    std::int64_t const sum = std::accumulate(freed.begin(), freed.end(), std::int64_t{0});
    if (total < asked) {
      EXPECT_EQ(sum, total);
    } else {
      EXPECT_GE(sum, asked);
      EXPECT_LT(sum, asked + *std::max_element(freed.begin(), freed.end()));
    }
  }
}

// Holds host memory, and lets go of it when asked.
class Item final : public Spillable {
 public:
  Item(BufferResource& buffers, std::size_t bytes, HostMemoryReservation reservation) {
    buffer.emplace(buffers.allocate(bytes, cuda::stream_ref{cudaStream_t{}}, reservation));
  }

  [[nodiscard]] std::int64_t spillable_bytes(MemoryType) const noexcept override {
    ++looks;
    return buffer && !in_use ? static_cast<std::int64_t>(buffer->size()) : 0;
  }
  std::int64_t spill(MemoryType tier) override {
    EXPECT_EQ(tier, MemoryType::Host);
    if (on_spill) { on_spill(); }
    if (in_use || !buffer) { return 0; }
    auto const bytes = static_cast<std::int64_t>(buffer->size());
    buffer.reset();
    return bytes;
  }
  [[nodiscard]] std::int64_t drop_copy() noexcept override { return std::exchange(copy_bytes, 0); }
  [[nodiscard]] std::optional<Clock::time_point> restored_at() const noexcept override { return restored; }
  [[nodiscard]] bool spilled() const { return !buffer; }

  mutable std::atomic<int> looks{0};
  std::atomic<bool> in_use{false};
  std::int64_t copy_bytes{0};
  std::function<void()> on_spill;
  std::optional<Clock::time_point> restored;
  std::optional<Buffer> buffer;
};

class KeptLog final : public LogSink {
 public:
  KeptLog() : LogSink(LogLevel::Debug) {}
  std::vector<std::string> lines;

 private:
  void do_write(LogLevel, std::string_view text) noexcept override { lines.emplace_back(text); }
};

class SpillManagerTest : public ::testing::Test {
 protected:
  std::shared_ptr<Item> item(std::size_t bytes) { return std::make_shared<Item>(buffers, bytes, host.reserve(bytes)); }
  bool asks_for(std::size_t bytes) {  // as a function that waits
    bool* const granted = granted_.emplace_back(std::make_unique<bool>(false)).get();
    host.async_reserve(
        bytes, [granted](ReservationResult<HostMemoryReservation> result) { *granted = static_cast<bool>(result); });
    return *granted;
  }

  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, 1000, 1};
  BufferResource buffers{{.host = host}};
  testing::ManualClock clock;
  testing::ManualExecutor executor{clock};
  KeptLog log;
  SpillManager spills{buffers, MemoryType::Host, executor, {.at_once = 1, .clock = &clock, .log = &log}};
  std::vector<std::unique_ptr<bool>> granted_;
};

TEST_F(SpillManagerTest, MakesRoomForWhoeverWaits) {
  auto const a = item(600);
  auto const b = item(300);
  SpillRegistration const ra = spills.add(a);
  SpillRegistration const rb = spills.add(b);
  EXPECT_FALSE(asks_for(350));
  EXPECT_FALSE(a->spilled() || b->spilled());  // not inside somebody's call
  executor.run_ready();
  EXPECT_TRUE(*granted_.back());
  EXPECT_FALSE(a->spilled());
  EXPECT_TRUE(b->spilled());
  EXPECT_EQ(spills.statistics().spills, 1);
  EXPECT_EQ(spills.statistics().bytes, 300);
  EXPECT_EQ(spills.spillable_bytes(), 600);
}

TEST_F(SpillManagerTest, GoesOnUntilNobodyWaitsAnyMore) {
  std::vector<std::shared_ptr<Item>> items;
  std::vector<SpillRegistration> registrations;
  for (int i = 0; i < 10; ++i) { registrations.push_back(spills.add(items.emplace_back(item(100)))); }
  for (int i = 0; i < 3; ++i) { (void)asks_for(150); }
  executor.run_ready();
  for (auto const& granted : granted_) { EXPECT_TRUE(*granted); }
}

TEST_F(SpillManagerTest, LooksAtWhatIsAddedWhileSomebodyWaits) {
  auto const a = item(1000);
  (void)asks_for(500);
  executor.run_ready();
  EXPECT_FALSE(*granted_.back());
  SpillRegistration const registration = spills.add(a);
  executor.run_ready();
  EXPECT_TRUE(*granted_.back());
}

TEST_F(SpillManagerTest, LooksAgainAtWhatIsNoLongerInUse) {
  auto const a = item(1000);
  a->in_use = true;
  SpillRegistration const registration = spills.add(a);
  (void)asks_for(500);
  executor.run_ready();
  EXPECT_FALSE(*granted_.back());
  a->in_use = false;
  spills.waker().wake();
  executor.run_ready();
  EXPECT_TRUE(*granted_.back());
}

TEST_F(SpillManagerTest, DoesNotLookAgainAndAgainWhereNothingCanBeSpilled) {
  auto const a = item(1000);
  a->in_use = true;
  SpillRegistration const registration = spills.add(a);
  int const before = a->looks;
  (void)asks_for(500);
  executor.run_ready();
  EXPECT_LE(a->looks - before, 2);
  EXPECT_EQ(spills.statistics().fell_short, 1);
}

TEST_F(SpillManagerTest, FreesAtLeastWhatIsAskedAndReportsIt) {
  std::vector<std::shared_ptr<Item>> items;
  std::vector<SpillRegistration> registrations;
  for (std::size_t const bytes : {10U, 20U, 40U, 80U}) {
    registrations.push_back(spills.add(items.emplace_back(item(bytes))));
  }
  SpillResult const some = spills.spill(25);
  EXPECT_EQ(some.freed, 40);
  EXPECT_EQ(some.objects, 1);
  SpillResult const rest = spills.spill(1000);
  EXPECT_EQ(rest.freed, 110);
  EXPECT_EQ(spills.spill(1).freed, 0);
  EXPECT_EQ(host.committed(), 0);
}

TEST_F(SpillManagerTest, KnowsObjectsWeakly) {
  auto a = item(100);
  auto const b = item(100);
  SpillRegistration const ra = spills.add(a);
  SpillRegistration rb = spills.add(b);
  EXPECT_EQ(a.use_count(), 1);
  a.reset();
  rb.end();
  rb.end();
  rb.set_rank({5, 5});
  EXPECT_EQ(spills.spillable_bytes(), 0);
  EXPECT_EQ(spills.spill(10).freed, 0);
}

TEST_F(SpillManagerTest, RegistrationsOutliveIt) {
  auto const a = item(100);
  std::optional<SpillManager> own;
  own.emplace(buffers, MemoryType::Host, executor);
  SpillRegistration registration = own->add(a);
  SpillWaker const waker = own->waker();
  own.reset();
  waker.wake();
  registration.set_rank({1, 1});
}

TEST_F(SpillManagerTest, EndsWithoutWaitingForATaskThatNobodyRuns) {
  auto const a = item(1000);
  std::optional<SpillManager> own;
  own.emplace(buffers, MemoryType::Host, executor);
  SpillRegistration const registration = own->add(a);
  (void)asks_for(500);
  own.reset();
  executor.run_ready();
  EXPECT_FALSE(a->spilled());
}

TEST_F(SpillManagerTest, LetsObjectsComeGoAllocateAndFreeWhileTheySpill) {
  auto a = item(100);
  auto b = item(100);
  std::shared_ptr<Item> added;
  std::optional<SpillRegistration> ra{spills.add(a)};
  std::optional<SpillRegistration> rb{spills.add(b, {.priority = 1})};
  std::optional<SpillRegistration> rc;
  std::optional<HostMemoryReservation> kept;
  a->on_spill = [&] {
    ra.reset();
    rb.reset();
    b.reset();
    added = item(50);
    rc.emplace(spills.add(added));
    kept.emplace(host.reserve(10));
    EXPECT_EQ(spills.spillable_bytes(), 50);
  };
  EXPECT_EQ(spills.spill(100).freed, 100);
  EXPECT_EQ(spills.spill(100).freed, 50);
  EXPECT_EQ(host.committed(), 10);
}

TEST_F(SpillManagerTest, AsksOthersWhenOneFailsAndSaysSo) {
  auto const a = item(100);
  auto const b = item(100);
  a->on_spill = [] { throw std::runtime_error("the disk is full"); };
  SpillRegistration const ra = spills.add(a, {.priority = -1});
  SpillRegistration const rb = spills.add(b);
  SpillResult const result = spills.spill(50);
  EXPECT_EQ(result.freed, 100);
  EXPECT_EQ(result.failed, 1);
  EXPECT_FALSE(a->spilled());
  EXPECT_TRUE(b->spilled());
  EXPECT_EQ(log.lines, (std::vector<std::string>{"cannot spill from host: the disk is full"}));
  a->on_spill = nullptr;
  EXPECT_EQ(spills.spill(50).freed, 100);
}

TEST_F(SpillManagerTest, GivesUpCopiesWhenThereIsNoRoomBelow) {
  auto const a = item(100);
  auto const b = item(100);
  b->copy_bytes = 100;
  bool room = false;
  a->on_spill = [&] {
    if (b->copy_bytes == 0) { room = true; }
    if (!room) { throw ReservationRefused{ErrorFields{}}; }
  };
  SpillRegistration const ra = spills.add(a, {.priority = -1});
  SpillRegistration const rb = spills.add(b);
  EXPECT_EQ(spills.spill(50).freed, 100);
  EXPECT_TRUE(a->spilled());
  EXPECT_FALSE(b->spilled());
  EXPECT_EQ(spills.statistics().copies_dropped, 100);
  EXPECT_EQ(spills.statistics().failed, 0);
}

TEST_F(SpillManagerTest, GivesUpCopiesWhenTheDiskItselfIsFull) {
  ErrorFields disk;
  disk.tier.assign("disk");
  std::vector<std::function<void()>> const refusals{
      [] { throw FileSystemError{"write", "spill", ENOSPC}; },
      [] { throw FileSystemError{"write", "spill", EDQUOT}; },
      [&] { throw UpstreamOutOfMemory(disk, "no hole is large enough"); },
  };
  for (auto const& refuse : refusals) {
    auto const a = item(100);
    auto const b = item(100);
    b->copy_bytes = 100;
    a->on_spill = [&] {
      if (b->copy_bytes != 0) { refuse(); }
    };
    SpillRegistration const ra = spills.add(a, {.priority = -1});
    SpillRegistration const rb = spills.add(b);
    EXPECT_EQ(spills.spill(50).freed, 100);
    EXPECT_TRUE(a->spilled());
    EXPECT_EQ(b->copy_bytes, 0);
  }
  EXPECT_EQ(spills.statistics().failed, 0);
}

TEST_F(SpillManagerTest, KeepsCopiesWhenADiskIsBroken) {
  auto const a = item(100);
  a->copy_bytes = 100;
  a->on_spill = [] { throw FileSystemError{"write", "spill", EIO}; };
  SpillRegistration const ra = spills.add(a);
  EXPECT_EQ(spills.spill(50).failed, 1);
  EXPECT_EQ(a->copy_bytes, 100);
}

TEST_F(SpillManagerTest, SparesWhatHasJustComeBackAndCountsWhatItCannotSpare) {
  auto const a = item(100);
  auto const b = item(100);
  SpillRegistration const ra = spills.add(a, {.distance = 10});
  SpillRegistration const rb = spills.add(b);
  a->restored = clock.now();
  EXPECT_EQ(spills.spill(50).freed, 100);
  EXPECT_TRUE(b->spilled());
  EXPECT_EQ(spills.statistics().ping_pong, 0);
  EXPECT_EQ(spills.spill(50).freed, 100);
  EXPECT_EQ(spills.statistics().ping_pong, 1);
}

TEST_F(SpillManagerTest, RanksCanChange) {
  auto const a = item(100);
  auto const b = item(100);
  SpillRegistration ra = spills.add(a);
  SpillRegistration const rb = spills.add(b, {.priority = 1});
  ra.set_rank({.priority = 2});
  EXPECT_EQ(spills.spill(50).freed, 100);
  EXPECT_TRUE(b->spilled());
}

TEST_F(SpillManagerTest, SpillsItselfWhatItsExecutorDoesNotTake) {
  class Refusing final : public Executor {
   public:
    void post(Task) override { throw std::bad_alloc{}; }
    void post_at(Clock::time_point, Task) override { throw std::bad_alloc{}; }
    [[nodiscard]] std::size_t concurrency() const noexcept override { return 1; }
  } refusing;
  SpillManager own{buffers, MemoryType::Host, refusing, {.at_once = 4}};
  auto const a = item(100);
  auto const b = item(100);
  SpillRegistration const ra = own.add(a);
  SpillRegistration const rb = own.add(b);
  SpillResult const result = own.spill(200);
  EXPECT_EQ(result.freed, 200);
  EXPECT_EQ(result.objects, 2);
}

TEST_F(SpillManagerTest, RefusesTiersThatItCannotFree) {
  EXPECT_THROW((SpillManager{buffers, MemoryType::Disk, executor}), std::invalid_argument);
  EXPECT_THROW((SpillManager{buffers, MemoryType::Device, executor}), std::invalid_argument);
  EXPECT_THROW((SpillManager{buffers, MemoryType::Host, executor, {.at_once = 0}}), std::invalid_argument);
}

TEST(SpillManager, ServesThreadsThatWaitWhileObjectsComeAndGo) {
  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, 64_KiB};
  BufferResource buffers{{.host = host}};
  ThreadPool pool{2};
  SpillManager spills{buffers, MemoryType::Host, pool};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto const a = std::make_shared<Item>(buffers, 16_KiB, host.reserve_blocking(16_KiB));
        SpillRegistration const registration = spills.add(a);
        HostMemoryReservation const more = host.reserve_blocking(32_KiB);
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(host.committed(), 0);
}

}  // namespace
}  // namespace earmark
