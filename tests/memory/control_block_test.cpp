// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What reservations themselves need: how much memory, and what happens when there is none. Operator new of this program
// counts, and fails on demand.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/resident_memory.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

namespace {

// Bytes and pieces that this program has from operator new.
std::atomic<std::int64_t> bytes_out{0};
std::atomic<std::int64_t> pieces_out{0};
// How many more allocations of this thread succeed before one fails; negative: all do.
thread_local int successes_left = -1;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (successes_left == 0) {
    successes_left = -1;
    throw std::bad_alloc{};
  }
  if (successes_left > 0) { --successes_left; }
  // The size lies before what is handed out.
  std::size_t const before = alignment > 16 ? alignment : 16;
  std::size_t const whole = (bytes + before + before - 1) / before * before;
  void* const base = std::aligned_alloc(before, whole);
  if (base == nullptr) { throw std::bad_alloc{}; }
  std::memcpy(base, &whole, sizeof(whole));
  bytes_out.fetch_add(static_cast<std::int64_t>(whole));
  pieces_out.fetch_add(1);
  return static_cast<std::byte*>(base) + before;
}

void deallocate(void* pointer, std::size_t alignment) noexcept {
  if (pointer == nullptr) { return; }
  std::size_t const before = alignment > 16 ? alignment : 16;
  void* const base = static_cast<std::byte*>(pointer) - before;
  std::size_t whole = 0;
  std::memcpy(&whole, base, sizeof(whole));
  bytes_out.fetch_sub(static_cast<std::int64_t>(whole));
  pieces_out.fetch_sub(1);
  std::free(base);
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 16); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* pointer) noexcept { deallocate(pointer, 16); }
void operator delete[](void* pointer) noexcept { deallocate(pointer, 16); }
void operator delete(void* pointer, std::size_t) noexcept { deallocate(pointer, 16); }
void operator delete[](void* pointer, std::size_t) noexcept { deallocate(pointer, 16); }
void operator delete(void* pointer, std::align_val_t alignment) noexcept {
  deallocate(pointer, static_cast<std::size_t>(alignment));
}
void operator delete[](void* pointer, std::align_val_t alignment) noexcept {
  deallocate(pointer, static_cast<std::size_t>(alignment));
}
void operator delete(void* pointer, std::size_t, std::align_val_t alignment) noexcept {
  deallocate(pointer, static_cast<std::size_t>(alignment));
}
void operator delete[](void* pointer, std::size_t, std::align_val_t alignment) noexcept {
  deallocate(pointer, static_cast<std::size_t>(alignment));
}

namespace earmark {
namespace {

constexpr int many = 1'000'000;

// -- how much --------------------------------------------------------------------------------------------------------

TEST(ControlBlocks, OfAMillionOpenReservationsNeed128BytesEach) {
  HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, std::size_t{1} << 40};
  std::vector<HostMemoryReservation> open(many);  // touched before anything is measured
  (void)adaptor.reserve(64);
  std::int64_t const before = bytes_out;
  ProcResidentMemory resident;
  std::int64_t const resident_before = resident.current_bytes();
  for (HostMemoryReservation& one : open) { one = adaptor.reserve(64); }
  double const each = static_cast<double>(bytes_out - before) / many;
  double const resident_each = static_cast<double>(resident.current_bytes() - resident_before) / many;
  EXPECT_LT(each, 128 * 1.03) << "with what keeps the pieces together";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_each, 128 * 1.01) << "what was never taken was never touched";
#endif
  RecordProperty("bytes", std::to_string(each));
  RecordProperty("resident_bytes", std::to_string(resident_each));
  EXPECT_EQ(adaptor.snapshot().open_reservations, many);
  open.clear();
  EXPECT_EQ(adaptor.committed(), 0);
}

TEST(ControlBlocks, AreUsedAgainInsteadOfGrowing) {
  HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, std::size_t{1} << 30};
  Consumer const consumer = adaptor.make_consumer("query");
  HostMemoryReservation const lender = adaptor.reserve(4096);
  auto const round = [&] {
    HostMemoryReservation one = adaptor.reserve(1024, {.label = "a"});
    HostMemoryReservation two = adaptor.reserve(1024, {.label = "b", .consumer = &consumer});
    HostMemoryReservation part = one.split(64);
    one.merge(std::move(part));
    HostMemoryReservation arena = adaptor.reserve(1024, {.backing = Backing::Preallocated});
    HostMemoryReservation over = adaptor.reserve(std::size_t{1} << 31, {.overbooking = AllowOverbooking::YES});
    HostReservationAwareResourceAdaptor nested{lender, 4096};
    (void)nested.reserve(64);
    adaptor.async_reserve(64, [](ReservationResult<HostMemoryReservation> const&) {});
    (void)adaptor.on_pressure([](std::int64_t) {});
  };
  for (int i = 0; i < 200; ++i) { round(); }
  std::int64_t const before = pieces_out;
  for (int i = 0; i < 20'000; ++i) { round(); }
  EXPECT_LE(pieces_out - before, 4) << "the last listener, at most";
  EXPECT_EQ(adaptor.committed(), 4096);
}

TEST(ControlBlocks, AreGivenBackWithTheAdaptor) {
  std::int64_t const before = pieces_out;
  {
    HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, std::size_t{1} << 30};
    std::vector<HostMemoryReservation> open;
    for (int i = 0; i < 1000; ++i) { open.push_back(adaptor.reserve(64, {.label = std::to_string(i)})); }
  }
  EXPECT_EQ(pieces_out, before);
}

// -- none ------------------------------------------------------------------------------------------------------------

// An adaptor with everything in use that an operation may meet.
struct Scene {
  HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, 1U << 20U};
  Consumer consumer{adaptor.make_consumer("query")};
  HostMemoryReservation held{adaptor.reserve(4096, {.exhausted = ExhaustedPolicy::GrowOrRefuse})};

  void expect_nothing_kept() {
    EXPECT_EQ(adaptor.committed(), held.granted());
    EXPECT_EQ(consumer.used(), 0);
    EXPECT_EQ(held.spent(), 0);
    EXPECT_EQ(adaptor.outstanding().size(), 1U);
    EXPECT_TRUE(adaptor.report().waiting.empty());
  }
};

// Fails the first, second, ... allocation inside `operation` until it needs no more: nothing is ever kept.
template <class Operation>
void expect_survives_every_failure(char const* what, Operation const& operation) {
  std::int64_t const before = pieces_out;
  bool succeeded = false;
  for (int n = 0; !succeeded && n < 200; ++n) {
    // A scene of its own, so that nothing is pooled that another round left.
    Scene scene;
    successes_left = n;
    try {
      operation(scene);
      succeeded = successes_left >= 0;
      successes_left = -1;
    }
    catch (std::bad_alloc const&) {
      successes_left = -1;
    }
    scene.expect_nothing_kept();
    if (::testing::Test::HasFailure()) { FAIL() << what << " at allocation " << n; }
  }
  EXPECT_TRUE(succeeded) << what;
  EXPECT_EQ(pieces_out, before) << what;
}

TEST(ControlBlockAllocation, MayFailInEveryOperation) {
  expect_survives_every_failure("reserve", [](Scene& s) { (void)s.adaptor.reserve(64, {.label = "new label"}); });
  expect_survives_every_failure("try_reserve", [](Scene& s) { (void)s.adaptor.try_reserve(64, {.label = "x"}); });
  expect_survives_every_failure("reserve_up_to",
                                [](Scene& s) { (void)s.adaptor.reserve_up_to(64, 0, {.label = "x"}); });
  expect_survives_every_failure("reserve_blocking",
                                [](Scene& s) { (void)s.adaptor.reserve_blocking(64, {.label = "x"}); });
  expect_survives_every_failure("reserve, overbooking", [](Scene& s) {
    (void)s.adaptor.reserve(1U << 21U, {.label = "x", .overbooking = AllowOverbooking::YES});
  });
  expect_survives_every_failure("reserve, preallocated", [](Scene& s) {
    (void)s.adaptor.reserve(1024, {.label = "x", .backing = Backing::Preallocated});
  });
  expect_survives_every_failure("reserve for a consumer",
                                [](Scene& s) { (void)s.adaptor.reserve(64, {.label = "x", .consumer = &s.consumer}); });
  expect_survives_every_failure("make_consumer", [](Scene& s) { (void)s.adaptor.make_consumer("another"); });
  expect_survives_every_failure("async_reserve", [](Scene& s) {
    s.adaptor.async_reserve(64, [](ReservationResult<HostMemoryReservation> const&) {},
                            {.label = "a label that is not kept in place", .consumer = &s.consumer});
  });
  expect_survives_every_failure("on_pressure", [](Scene& s) { (void)s.adaptor.on_pressure([](std::int64_t) {}); });
  expect_survives_every_failure("nested adaptor", [](Scene& s) {
    HostReservationAwareResourceAdaptor nested{s.held, 4096};
    Consumer const inner = nested.make_consumer("inner");
    (void)nested.reserve(64, {.consumer = &inner});
  });
  expect_survives_every_failure("report", [](Scene& s) { (void)s.adaptor.report(); });
}

TEST(ControlBlockAllocation, MayFailInASplitThatKeepsItsBytes) {
  expect_survives_every_failure("split", [](Scene& s) {
    std::vector<HostMemoryReservation> parts;
    parts.reserve(64);
    for (int i = 0; i < 63; ++i) { parts.push_back(s.held.split(64)); }
    for (HostMemoryReservation& part : parts) { s.held.merge(std::move(part)); }
    // Where it failed, the parts were dropped: what they held went back.
  });
}

TEST(ControlBlockAllocation, MayFailWhereARequestOfANestedAdaptorJoinsTheQueue) {
  for (int n = 0; n < 60; ++n) {
    auto const scene = std::make_unique<Scene>();
    HostMemoryReservation most = scene->adaptor.reserve((1U << 20U) - 4096);
    HostReservationAwareResourceAdaptor middle{scene->held, 1U << 20U};
    HostMemoryReservation inner = middle.reserve(4096, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
    auto nested = std::make_unique<HostReservationAwareResourceAdaptor>(inner, std::size_t{1U << 20U});
    HostMemoryReservation all = nested->reserve(4096);
    int calls = 0;
    int granted = 0;
    bool made = true;
    successes_left = n;
    try {
      nested->async_reserve(8192, [&](ReservationResult<HostMemoryReservation> result) {
        ++calls;
        granted += result ? 1 : 0;
      });
    }
    catch (std::bad_alloc const&) {
      made = false;
    }
    bool const over = successes_left > 0;
    successes_left = -1;
    EXPECT_EQ(nested->report().waiting.size(), made ? 1U : 0U) << n;
    if (!made) {
      nested.reset();
      all = {};
      inner = {};
    }
    most.close();  // wakes whoever is still subscribed
    EXPECT_EQ(calls, made ? 1 : 0) << n;
    EXPECT_EQ(granted, calls) << n;
    if (over) { return; }
  }
  FAIL() << "it never needed no more";
}

TEST(ControlBlockAllocation, MayFailWhenARequestIsServed) {
  for (int n = 0; n < 60; ++n) {
    Scene scene;
    HostMemoryReservation most = scene.adaptor.reserve((1U << 20U) - 4096);
    int calls = 0;
    int granted = 0;
    // Enough to empty the pool at hand.
    std::vector<HostMemoryReservation> others(256);
    for (HostMemoryReservation& other : others) { other = scene.adaptor.reserve(0); }
    for (int i = 0; i < 130; ++i) {
      scene.adaptor.async_reserve(64,
                                  [&](ReservationResult<HostMemoryReservation> const& result) {
                                    ++calls;
                                    granted += result ? 1 : 0;
                                  },
                                  {.label = "a label that was not there before"});
    }
    successes_left = n;
    most.close();
    bool const over = successes_left > 0 || granted == 130;
    successes_left = -1;
    EXPECT_EQ(calls, 130) << n;
    EXPECT_GE(granted, 129) << n;
    others.clear();
    scene.expect_nothing_kept();
    if (over) { return; }
  }
}

}  // namespace
}  // namespace earmark
