// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Many threads on one adaptor, doing all that reservations can do, with an upstream that fails now and then. For
// ThreadSanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/errors.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

// A block of memory with the resource that it came from, as a buffer keeps it.
struct Buffer {
  HostMemoryReservation::Resource resource;
  void* pointer;
  std::size_t bytes;
  void free() { resource.deallocate_sync(pointer, bytes, 64); }
};

// Buffers that one thread leaves for another to free.
class Mailbox {
 public:
  void leave(Buffer buffer) EARMARK_EXCLUDES(mutex_) {
    MutexLock lock{mutex_};
    buffers_.push_back(std::move(buffer));
  }
  // Frees all that is there.
  void empty() EARMARK_EXCLUDES(mutex_) {
    std::vector<Buffer> taken;
    {
      MutexLock lock{mutex_};
      taken.swap(buffers_);
    }
    for (Buffer& buffer : taken) { buffer.free(); }
  }

 private:
  Mutex mutex_;
  std::vector<Buffer> buffers_ EARMARK_GUARDED_BY(mutex_);
};

class Worker {
 public:
  Worker(HostReservationAwareResourceAdaptor adaptor, Mailbox& mailbox, std::uint32_t seed)
      : adaptor_(std::move(adaptor)), mailbox_(mailbox), random_(seed) {}

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      try {
        one_round();
      }
      catch (std::bad_alloc const&) {
        // Refused, exhausted, closed or the upstream failed: all expected here. What was held is given back.
      }
      if (pick(4) == 0) { mailbox_.empty(); }
    }
  }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  std::size_t size() { return 1 + pick(6000); }

  void one_round() {
    static constexpr ExhaustedPolicy policies[] = {ExhaustedPolicy::Refuse, ExhaustedPolicy::GrowOrRefuse};
    HostMemoryReservation reservation =
        adaptor_.reserve(size(), {.label = pick(2) == 0 ? "even" : "odd", .exhausted = policies[pick(2)]});
    allocate_and_leave(reservation);
    switch (pick(6)) {
      case 0: {
        HostMemoryReservation part = reservation.split(reservation.balance() > 0 ? pick(64) : 0);
        allocate_and_leave(part);
        reservation.merge(std::move(part));
        break;
      }
      case 1: reservation.grow(size()); break;
      case 2: reservation.shrink_to_fit(); break;
      case 3: {
        HostReservationAwareResourceAdaptor nested{reservation, 4096};
        HostMemoryReservation const inner = nested.reserve_up_to(2048, 0);
        allocate_and_leave(inner);
        break;
      }
      case 4: {
        HostMemoryReservation other = adaptor_.reserve(size());
        allocate_and_leave(other);
        if (pick(2) == 0) { other.close(); }
        reservation.merge(std::move(other));
        break;
      }
      default: (void)adaptor_.snapshot(); break;
    }
    allocate_and_leave(reservation);
  }

  void allocate_and_leave(HostMemoryReservation const& reservation) {
    auto resource = reservation.resource();
    std::size_t const bytes = size() / 2 + 1;
    Buffer buffer{resource, resource.allocate_sync(bytes, 64), bytes};
    if (pick(2) == 0) {
      buffer.free();
    } else {
      mailbox_.leave(std::move(buffer));
    }
  }

  HostReservationAwareResourceAdaptor adaptor_;
  Mailbox& mailbox_;
  std::mt19937 random_;
};

TEST(MemoryStress, StaysBelowTheLimitAndEndsAtZeroWhateverThreadsDo) {
  constexpr std::size_t limit = 40'000;
  WatchedHost host{limit};
  Mailbox mailbox;
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> most_seen{0};
  std::thread watcher{[&] {
    for (std::int64_t n = 0; !stop; ++n) {
      AdaptorSnapshot const now = host.adaptor.snapshot();
      most_seen = std::max(most_seen.load(), now.committed);
      if (n % 8 == 0) { host.faults.fail_allocation(n % 50, testing::Fails::Once); }
      std::this_thread::yield();
    }
  }};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { Worker{host.adaptor, mailbox, t + 1}.run(4000); });
  }
  for (std::thread& thread : threads) { thread.join(); }
  stop = true;
  watcher.join();
  mailbox.empty();

  EXPECT_LE(most_seen, static_cast<std::int64_t>(limit));
  EXPECT_LE(host.adaptor.peak_committed(), static_cast<std::int64_t>(limit));
  EXPECT_LE(host.faults.peak_live_bytes(), static_cast<std::int64_t>(limit));
  EXPECT_EQ(host.adaptor.committed(), 0);
  EXPECT_EQ(host.adaptor.current_allocated(), 0);
  EXPECT_TRUE(host.adaptor.outstanding().empty());
  EXPECT_EQ(host.adaptor.allocation_count(), host.faults.allocations());
  EXPECT_EQ(host.faults.live_bytes(), 0);
  EXPECT_EQ(host.faults.wrong_deallocations(), 0);
  EXPECT_GT(host.faults.failures(), 0);
}

TEST(MemoryStress, SharesOneReservationAmongThreadsExactly) {
  WatchedHost host{1_MiB};
  HostMemoryReservation reservation = host.adaptor.reserve(10'000, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([resource = reservation.resource(), t]() mutable {
      for (std::size_t i = 0; i < 5000; ++i) {
        std::size_t const bytes = 1 + (i * 37 + t * 101) % 5000;
        void* const pointer = resource.allocate_sync(bytes, 64);
        resource.deallocate_sync(pointer, bytes, 64);
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(reservation.spent(), 0);
  EXPECT_LE(reservation.granted(), 10'048 + 4 * 5056) << "grew by more than was ever missing at once";
  EXPECT_EQ(host.adaptor.allocation_count(), 20'000);
  reservation.close();
  EXPECT_EQ(host.adaptor.committed(), 0);
}

TEST(MemoryStress, ClosesWhileOthersAllocate) {
  for (int round = 0; round < 200; ++round) {
    WatchedHost host{1_MiB};
    HostMemoryReservation reservation = host.adaptor.reserve(4_KiB, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
    std::thread allocator{[resource = reservation.resource()]() mutable {
      try {
        for (;;) {
          void* const pointer = resource.allocate_sync(3000, 64);
          resource.deallocate_sync(pointer, 3000, 64);
        }
      }
      catch (ReservationClosed const&) {
        // the end that was waited for
      }
    }};
    reservation.close();
    allocator.join();
    EXPECT_EQ(host.adaptor.committed(), 0);
  }
}

}  // namespace
}  // namespace earmark
