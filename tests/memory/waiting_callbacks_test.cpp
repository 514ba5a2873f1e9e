// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Waiting without a thread: where callbacks run, what they may do, and what they keep alive.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/waiting_requests.hpp"

namespace earmark {
namespace {

using namespace std::chrono_literals;

// -- where callbacks run ---------------------------------------------------------------------------------------------

TEST_F(WaitingRequests, AreToldOnTheirExecutor) {
  Asked asked{adaptor, 512, {}, on(executor)};
  all.close();
  EXPECT_EQ(asked.outcome(), Outcome::Waits);
  EXPECT_EQ(adaptor.committed(), 512) << "the bytes are its own already";
  EXPECT_EQ(executor.run_ready(), 1U);
  EXPECT_EQ(asked.outcome(), Outcome::Granted);
}

// Callbacks run outside every lock: they may do anything with the adaptor.
TEST_F(WaitingRequests, MayReserveFreeAndWaitAgainWhenTheyAreTold) {
  std::string steps;
  std::optional<HostMemoryReservation> kept;
  Asked follower{adaptor, 64};
  adaptor.async_reserve(512, [&](ReservationResult<HostMemoryReservation> result) {
    kept = result.take();
    steps += "a";
    HostMemoryReservation const more = adaptor.reserve(64);
    void* const pointer = adaptor.allocate_sync(64, 64);
    adaptor.deallocate_sync(pointer, 64, 64);
    (void)adaptor.report();
    (void)adaptor.label_counters();
    adaptor.set_limit(limit + 64);
    adaptor.async_reserve(1024, [&](ReservationResult<HostMemoryReservation> again) { steps += again ? "b" : "x"; });
    steps += "c";
    kept->close();
    steps += "d";
  });
  EXPECT_EQ(steps, "");
  all.close();
  follower.drop();
  EXPECT_EQ(steps, "acdb");
  adaptor.set_limit(limit);
}

TEST_F(WaitingRequests, MayChainWithoutEnd) {
  int left = 10'000;
  std::function<void(ReservationResult<HostMemoryReservation>)> next;
  next = [&](ReservationResult<HostMemoryReservation> result) {
    if (--left == 0) { return; }
    HostMemoryReservation held = result.take();
    adaptor.async_reserve(limit, std::ref(next), {}, on(executor));
  };
  adaptor.async_reserve(limit, std::ref(next), {}, on(executor));
  all.close();
  executor.run_ready();
  EXPECT_EQ(left, 0);
}

// An executor that takes nothing.
class BrokenExecutor final : public Executor {
 public:
  void post(Task) override { fail(); }
  void post_at(Clock::time_point, Task) override { fail(); }
  [[nodiscard]] std::size_t concurrency() const noexcept override { return 1; }
  bool out_of_memory{true};

 private:
  void fail() const {
    if (out_of_memory) { throw std::bad_alloc{}; }
    throw std::runtime_error("stopped");
  }
};

TEST_F(WaitingRequests, AreToldOnTheFreeingThreadWhenTheirExecutorFails) {
  BrokenExecutor broken;
  for (bool const out_of_memory : {true, false}) {
    broken.out_of_memory = out_of_memory;
    Asked asked{adaptor, 512, {}, on(broken)};
    EXPECT_EQ(asked.outcome(), Outcome::Waits);
    HostMemoryReservation part = all.split(512);
    part.close();
    EXPECT_EQ(asked.outcome(), Outcome::Granted);
    all.merge(std::move(asked.reservation()));
  }
}

TEST_F(WaitingRequests, AreNotMadeWhenTheirDeadlineCannotBeKept) {
  BrokenExecutor broken;
  int calls = 0;
  EXPECT_THROW(adaptor.async_reserve(
                   512, [&](ReservationResult<HostMemoryReservation> const&) { ++calls; }, {},
                   on(broken, until(clock.now() + 10s))),
               std::bad_alloc);
  EXPECT_EQ(waiting(adaptor), 0U);
  all.close();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(adaptor.committed(), 0);
}

TEST_F(WaitingRequests, GiveBackWhatTheyWereGrantedWhenTheirExecutorDropsThem) {
  {
    testing::ManualExecutor dropping{clock};
    Asked asked{adaptor, 512, {}, on(dropping)};
    all.close();
    EXPECT_EQ(adaptor.committed(), 512);
  }
  EXPECT_EQ(adaptor.committed(), 0);
}

// -- callbacks that bring memory back --------------------------------------------------------------------------------

// Each lets go of what it got as soon as it is called, and so serves the next.
TEST_F(WaitingRequests, MayAllLetGoWhenTheyAreToldHoweverManyTheyAre) {
  constexpr int many = 100'000;
  int told = 0;
  int deep = 0;
  int deepest = 0;
  for (int i = 0; i < many; ++i) {
    adaptor.async_reserve(limit, [&](ReservationResult<HostMemoryReservation> result) {
      deepest = std::max(deepest, ++deep);
      result.take().close();
      ++told;
      --deep;
    });
  }
  all.close();
  EXPECT_EQ(told, many);
  EXPECT_EQ(deepest, 1) << "one begins when another has returned";
}

TEST_F(WaitingRequests, MayAllLetGoWhenTheirConsumerIsAborted) {
  constexpr int many = 20'000;
  Consumer consumer = adaptor.make_consumer("query");
  int told = 0;
  for (int i = 0; i < many; ++i) {
    adaptor.async_reserve(limit,
                          [&](ReservationResult<HostMemoryReservation> const& result) {
                            EXPECT_FALSE(result);
                            consumer.abort();
                            ++told;
                          },
                          {.consumer = &consumer});
  }
  consumer.abort();
  EXPECT_EQ(told, many);
}

// An executor that has ended drops what it is given, there and then.
class EndedExecutor final : public Executor {
 public:
  void post(Task) override {}
  void post_at(Clock::time_point, Task) override {}
  [[nodiscard]] std::size_t concurrency() const noexcept override { return 1; }
};

TEST_F(WaitingRequests, AreAllDroppedByAnExecutorThatHasEnded) {
  constexpr int many = 20'000;
  EndedExecutor ended;
  int told = 0;
  for (int i = 0; i < many; ++i) {
    adaptor.async_reserve(limit, [&](ReservationResult<HostMemoryReservation> const&) { ++told; }, {}, on(ended));
  }
  all.close();
  EXPECT_EQ(told, 0);
  EXPECT_EQ(adaptor.committed(), 0);
}

TEST_F(WaitingRequests, OfANestedAdaptorMayAllLetGoWhenTheyAreTold) {
  constexpr int many = 20'000;
  HostReservationAwareResourceAdaptor nested{all, limit};
  HostMemoryReservation held = nested.reserve(limit);
  int told = 0;
  for (int i = 0; i < many; ++i) {
    nested.async_reserve(limit, [&](ReservationResult<HostMemoryReservation> result) {
      result.take().close();
      ++told;
    });
  }
  held.close();
  EXPECT_EQ(told, many);
}

// Who waits with a thread is told at once, also by a callback that has not returned.
TEST_F(WaitingRequests, OfAThreadAreServedByACallbackThatGoesOn) {
  std::optional<Blocked> blocked;
  Outcome seen = Outcome::Waits;
  adaptor.async_reserve(limit, [&](ReservationResult<HostMemoryReservation> result) {
    HostMemoryReservation held = result.take();
    blocked.emplace(adaptor, 512);
    await_waiting(adaptor, 1);
    held.close();
    seen = blocked->outcome();
  });
  all.close();
  EXPECT_EQ(seen, Outcome::Granted);
}

// A callback that waits with its thread first lets those be told whom it left to that thread.
TEST_F(WaitingRequests, LeftToAThreadAreToldBeforeItBlocks) {
  bool told = false;
  bool got_it = false;
  adaptor.async_reserve(limit, [&](ReservationResult<HostMemoryReservation> result) {
    result.take().close();  // serves the next, who is told later
    EXPECT_FALSE(told);
    got_it = adaptor.reserve_blocking(limit).granted() == limit;
    EXPECT_TRUE(told);
  });
  adaptor.async_reserve(limit, [&](ReservationResult<HostMemoryReservation> result) {
    result.take().close();
    told = true;
  });
  all.close();
  EXPECT_TRUE(got_it);
}

// -- lifetimes -------------------------------------------------------------------------------------------------------

TEST_F(WaitingRequests, KeepTheLabelAndTheConsumerTheyWereMadeWith) {
  auto label = std::make_unique<std::string>("a label that is long enough to be allocated");
  std::optional<Consumer> consumer{adaptor.make_consumer("query")};
  Asked asked{adaptor, 512, {.label = *label, .consumer = &*consumer}};
  label.reset();
  consumer.reset();
  all.close();
  ASSERT_EQ(asked.outcome(), Outcome::Granted);
  EXPECT_EQ(asked.reservation().label(), "a label that is long enough to be allocated");
  ASSERT_EQ(adaptor.report().consumers.size(), 1U);
  EXPECT_EQ(adaptor.report().consumers[0].used, 512);
  asked.drop();
  EXPECT_TRUE(adaptor.report().consumers.empty());
}

// Whatever goes first, and whoever ends the wait: the rest works, and everything is let go of in the end.
TEST(WaitingRequestsWithoutAnAdaptor, EndWhicheverWayTheyDo) {
  enum class End { Close, Stop, Abort, Deadline };
  for (End const end : {End::Close, End::Stop, End::Abort, End::Deadline}) {
    testing::ManualClock clock;
    testing::ManualExecutor executor{clock};
    std::stop_source stop;
    auto const seen = std::make_shared<Outcome>(Outcome::Waits);
    std::optional<HostMemoryReservation> held;
    std::optional<Consumer> consumer;
    {
      HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, limit, {.clock = &clock}};
      held = adaptor.reserve(limit);
      consumer = adaptor.make_consumer("query");
      WaitOptions wait = stopped_by(stop);
      if (end == End::Deadline) { wait = on(executor, until(clock.now() + 1s)); }
      adaptor.async_reserve(
          512,
          [seen](ReservationResult<HostMemoryReservation> result) {
            std::optional<ErrorFields> fields;
            *seen = outcome_of([&] { HostMemoryReservation const dropped = result.take(); }, fields);
          },
          {.consumer = &*consumer}, wait);
    }
    if (end != End::Close) { held.reset(); }
    if (end == End::Stop || end == End::Deadline) { consumer.reset(); }
    EXPECT_EQ(*seen, end == End::Close ? Outcome::Waits : *seen);
    switch (end) {
      case End::Close: held->close(); break;
      case End::Stop: stop.request_stop(); break;
      case End::Abort: consumer->abort(); break;
      case End::Deadline:
        clock.advance(1s);
        executor.run_ready();
        break;
    }
    EXPECT_EQ(*seen, Outcome::Granted);
  }
}

// What is held by a plain allocation stays when all handles are gone; only the end of the wait lets go of the rest.
TEST(WaitingRequestsWithoutAnAdaptor, CanBeTheLastThatKeepsItWhenTheyAreStopped) {
  std::stop_source stop;
  auto const seen = std::make_shared<Outcome>(Outcome::Waits);
  {
    HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, limit};
    adaptor.async_reserve(
        512,
        [seen](ReservationResult<HostMemoryReservation> result) {
          std::optional<ErrorFields> fields;
          *seen = outcome_of([&] { HostMemoryReservation const dropped = result.take(); }, fields);
        },
        {}, stopped_by(stop));
    // Nothing holds the limit but the limit itself.
    EXPECT_EQ(*seen, Outcome::Granted);
    adaptor.set_limit(512);
    void* const pointer = adaptor.allocate_sync(512, 64);
    *seen = Outcome::Waits;
    adaptor.async_reserve(
        512,
        [seen](ReservationResult<HostMemoryReservation> result) {
          std::optional<ErrorFields> fields;
          *seen = outcome_of([&] { HostMemoryReservation const dropped = result.take(); }, fields);
        },
        {}, stopped_by(stop));
    EXPECT_EQ(*seen, Outcome::Waits);
    HostMemoryResource{}.deallocate_sync(pointer, 512, 64);  // behind the adaptor's back: the charge stays
  }
  stop.request_stop();
  EXPECT_EQ(*seen, Outcome::Aborted);
}

// What the second would give back is what the first one waits for, one adaptor further up.
TEST_F(WaitingRequests, AreToldBeforeACallbackBlocksInANestedAdaptor) {
  std::string steps;
  adaptor.async_reserve(512,
                        [&](ReservationResult<HostMemoryReservation> result) {
                          HostMemoryReservation const lender = result.take();
                          HostReservationAwareResourceAdaptor nested{lender, limit};
                          HostMemoryReservation const held = nested.reserve_blocking(576);
                          steps += "a";
                        },
                        {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  adaptor.async_reserve(512, [&](ReservationResult<HostMemoryReservation> result) {
    EXPECT_TRUE(result);
    steps += "b";
  });
  all.close();
  EXPECT_EQ(steps, "ba");
}

}  // namespace
}  // namespace earmark
