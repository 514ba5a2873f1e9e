// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/stream_events.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/carved_block.hpp"

namespace earmark {
namespace {

static_assert(!std::is_copy_constructible_v<HostStreamEvents>);
static_assert(noexcept(std::declval<StreamEvents&>().release(EventHandle{})));

TEST(HostStreamEvents, HoldsEverythingToBeDoneAtOnce) {
  HostStreamEvents events;
  cuda::stream_ref const stream{cudaStream_t{}};
  EXPECT_EQ(events.order(), StreamEvents::Order::AtOnce);
  EventHandle const mark = events.record(stream);
  EXPECT_TRUE(events.passed(mark));
  events.record_again(mark, stream);
  events.wait(stream, mark);
  events.synchronize(mark);
  events.synchronize(stream);
  events.release(mark);
}

TEST(HostStreamEvents, LetsMemoryOfAllStreamsBeOneHoleWithoutWaits) {
  HostStreamEvents events;
  std::byte* const base = reinterpret_cast<std::byte*>(1_GiB);
  detail::CarvedBlock carved{{base, 1_MiB}, 64, events};
  cuda::stream_ref const a{reinterpret_cast<cudaStream_t>(16)};
  cuda::stream_ref const b{reinterpret_cast<cudaStream_t>(32)};
  void* const first = carved.try_allocate(1000, 64, a);
  void* const second = carved.try_allocate(1000, 64, a);
  carved.deallocate(first, a);
  carved.deallocate(second, b);
  EXPECT_EQ(carved.try_allocate(1_MiB, 64, b), base);
  EXPECT_EQ(carved.counters().stream_waits, 0);
  EXPECT_EQ(carved.counters().joins, 0);
}

}  // namespace
}  // namespace earmark
