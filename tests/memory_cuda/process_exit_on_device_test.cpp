// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A process may end while buffers live: with what was leaked, and with static objects that are destroyed when the
// driver may have gone already. Each case is a process of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory_cuda/cuda_stream_events.hpp"
#include "memory_cuda/on_device.hpp"

namespace earmark {
namespace {

using testing::enqueue_fill;
using testing::Stream;

class ProcessExitOnDevice : public testing::OnDevice {
 protected:
  void SetUp() override {
    // Starts this program anew for each process: CUDA does not survive a fork.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    OnDevice::SetUp();
  }
};

template <class Resource>
rmm::device_buffer working_buffer(Resource upstream, Stream const& stream) {
  ReservationAwareResourceAdaptor adaptor{std::move(upstream), 16_MiB};
  MemoryReservation reservation = adaptor.reserve(8_MiB);
  rmm::device_buffer buffer{4_MiB, stream, reservation};
  enqueue_fill(static_cast<int*>(buffer.data()), 1_MiB, 1, stream.get());
  return buffer;
}

// What the processes do before they end.

[[noreturn]] void end_with(rmm::device_buffer const& buffer) { std::exit(buffer.size() == 4_MiB ? 0 : 1); }

void leak_a_buffer() {
  auto* const stream = new Stream;
  end_with(*new rmm::device_buffer{working_buffer(rmm::mr::cuda_async_memory_resource{}, *stream)});
}

void make_a_static_buffer() {
  auto* const stream = new Stream;
  static rmm::device_buffer const buffer = working_buffer(rmm::mr::cuda_async_memory_resource{}, *stream);
  end_with(buffer);
}

void make_a_static_buffer_of_a_pool() {
  auto* const stream = new Stream;
  cuda::mr::any_resource<device_accessible> const below{rmm::mr::cuda_memory_resource{}};
  static rmm::device_buffer const buffer = working_buffer(rmm::mr::pool_memory_resource{below, 16_MiB}, *stream);
  end_with(buffer);
}

void make_a_static_reservation() {
  static ReservationAwareResourceAdaptor adaptor{rmm::mr::cuda_async_memory_resource{}, 16_MiB};
  static MemoryReservation const reservation = adaptor.reserve(8_MiB);
  auto* const stream = new Stream;
  static rmm::device_buffer const buffer{4_MiB, *stream, reservation};
  end_with(buffer);
}

// Made before anything of CUDA is, so destroyed after it.
std::optional<rmm::device_buffer> outlives_the_run_time;

void leave_a_buffer_to_the_last() {
  auto* const stream = new Stream;
  outlives_the_run_time.emplace(working_buffer(rmm::mr::cuda_async_memory_resource{}, *stream));
  end_with(*outlives_the_run_time);
}

void leak_marks() {
  auto* const events = new CudaStreamEvents;
  auto* const stream = new Stream;
  EventHandle const mark = events->record(*stream);
  events->synchronize(mark);
  std::exit(events->event_count() == 1 ? 0 : 1);
}

auto const cleanly = ::testing::ExitedWithCode(0);

TEST_F(ProcessExitOnDevice, IsCleanWithALeakedBuffer) { EXPECT_EXIT(leak_a_buffer(), cleanly, ""); }
TEST_F(ProcessExitOnDevice, IsCleanWithAStaticBuffer) { EXPECT_EXIT(make_a_static_buffer(), cleanly, ""); }
TEST_F(ProcessExitOnDevice, IsCleanWithAStaticBufferOfAPool) {
  EXPECT_EXIT(make_a_static_buffer_of_a_pool(), cleanly, "");
}
TEST_F(ProcessExitOnDevice, IsCleanWithAStaticReservation) { EXPECT_EXIT(make_a_static_reservation(), cleanly, ""); }
TEST_F(ProcessExitOnDevice, IsCleanWithABufferThatOutlivesTheRunTime) {
  EXPECT_EXIT(leave_a_buffer_to_the_last(), cleanly, "");
}
TEST_F(ProcessExitOnDevice, IsCleanWithLeakedMarks) { EXPECT_EXIT(leak_marks(), cleanly, ""); }

}  // namespace
}  // namespace earmark
