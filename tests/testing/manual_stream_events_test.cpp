// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/manual_stream_events.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace earmark::testing {
namespace {

cuda::stream_ref const a = ManualStreamEvents::stream(1);
cuda::stream_ref const b = ManualStreamEvents::stream(2);
cuda::stream_ref const c = ManualStreamEvents::stream(3);

TEST(ManualStreamEvents, OrdersAStreamBehindAnotherOnlyByAWait) {
  ManualStreamEvents events;
  auto const before = events.enqueue(a);
  EventHandle const mark = events.record(a);
  auto const after = events.enqueue(a);
  EXPECT_TRUE(events.is_behind(a, before));
  EXPECT_FALSE(events.is_behind(b, before));
  events.wait(b, mark);
  EXPECT_TRUE(events.is_behind(b, before));
  EXPECT_FALSE(events.is_behind(b, after));
  events.release(mark);
  EXPECT_TRUE(events.is_behind(b, before)) << "a wait outlasts its mark";
  EXPECT_EQ(events.marks(), 0);
}

TEST(ManualStreamEvents, PassesOrderOnFromStreamToStream) {
  ManualStreamEvents events;
  auto const work = events.enqueue(a);
  events.wait(b, events.record(a));
  events.wait(c, events.record(b));
  EXPECT_TRUE(events.is_behind(c, work));
}

TEST(ManualStreamEvents, FinishesWorkOnlyWhenToldTo) {
  ManualStreamEvents events;
  auto const work = events.enqueue(a);
  EventHandle const mark = events.record(a);
  events.wait(b, mark);
  EXPECT_FALSE(events.passed(mark));
  EXPECT_FALSE(events.is_done(work));
  events.complete(b);
  EXPECT_TRUE(events.passed(mark)) << "what a finished stream waited for is finished";
  EXPECT_TRUE(events.is_done(work));
  EXPECT_TRUE(events.is_behind(c, work));
}

TEST(ManualStreamEvents, FinishesWhatIsSynchronized) {
  ManualStreamEvents events;
  auto const first = events.enqueue(a);
  EventHandle const mark = events.record(a);
  auto const second = events.enqueue(a);
  events.synchronize(mark);
  EXPECT_TRUE(events.is_done(first));
  EXPECT_FALSE(events.is_done(second));
  events.synchronize(a);
  EXPECT_TRUE(events.is_done(second));
  EXPECT_EQ(events.synchronizations(), 2);
}

TEST(ManualStreamEvents, MovesAMarkOfTheSameStream) {
  ManualStreamEvents events;
  EventHandle const mark = events.record(a);
  EXPECT_TRUE(events.passed(mark)) << "there was no work before it";
  auto const work = events.enqueue(a);
  events.record_again(mark, a);
  EXPECT_FALSE(events.passed(mark));
  events.wait(b, mark);
  EXPECT_TRUE(events.is_behind(b, work));
  EXPECT_EQ(events.misuses(), 0);
  events.record_again(mark, b);
  EXPECT_EQ(events.misuses(), 1);
}

TEST(ManualStreamEvents, HoldsThePerThreadStreamToBeAnotherInEachThread) {
  ManualStreamEvents events;
  cuda::stream_ref const mine{cudaStreamPerThread};
  auto const work = events.enqueue(mine);
  EXPECT_TRUE(events.is_behind(mine, work));
  std::thread([&] { EXPECT_FALSE(events.is_behind(mine, work)); }).join();
}

TEST(ManualStreamEvents, CountsMisuses) {
  ManualStreamEvents events;
  EventHandle const mark = events.record(a);
  events.release(mark);
  events.release(mark);
  EXPECT_EQ(events.misuses(), 1);
  events.wait(b, mark);
  EXPECT_EQ(events.misuses(), 2);
  events.destroy(a);
  (void)events.record(a);
  EXPECT_EQ(events.misuses(), 3);
}

TEST(ManualStreamEvents, FailsWhenToldTo) {
  ManualStreamEvents events;
  events.fail_records(1);
  EXPECT_THROW((void)events.record(a), std::runtime_error);
  EventHandle const mark = events.record(a);
  events.fail_waits(1);
  EXPECT_THROW(events.wait(b, mark), std::runtime_error);
  events.wait(b, mark);
  EXPECT_EQ(events.waits(), 1);
  EXPECT_EQ(events.records(), 1);
}

}  // namespace
}  // namespace earmark::testing
