// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/memory_cuda/cuda_stream_events.hpp"
#include "memory_cuda/on_device.hpp"

namespace earmark {
namespace {

using testing::enqueue_compare;
using testing::enqueue_fill;
using testing::Gate;
using testing::Pinned;
using testing::Stream;
using testing::succeed;
using CudaStreamEventsOnDevice = testing::OnDevice;
using CudaStreamEventsWhileBusy = testing::OnDeviceAtOnce;

TEST_F(CudaStreamEventsWhileBusy, PassesAMarkOnlyWhenTheWorkBeforeItIsDone) {
  CudaStreamEvents events;
  Stream const stream;
  Gate gate;
  gate.close(stream);
  EventHandle const mark = events.record(stream);
  EXPECT_FALSE(events.passed(mark));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "that it is not ready is no error";
  gate.open();
  events.synchronize(mark);
  EXPECT_TRUE(events.passed(mark));
  EXPECT_FALSE(gate.expired());
  events.release(mark);
}

TEST_F(CudaStreamEventsWhileBusy, MakesOtherStreamsWaitForAMark) {
  CudaStreamEvents events;
  Stream const writer;
  Stream const reader;
  Pinned<int> value;
  Pinned<unsigned long long> wrong;
  Gate gate;
  gate.close(writer);
  enqueue_fill(value.data(), 1, 7, writer.get());
  EventHandle const written = events.record(writer);
  events.wait(reader, written);
  events.release(written);  // the reader still waits
  enqueue_compare(value.data(), 1, 7, wrong.data(), reader.get());
  EXPECT_TRUE(reader.busy());
  gate.open();
  events.synchronize(reader);
  EXPECT_EQ(wrong[0], 0U) << "read before it was written";
  EXPECT_FALSE(gate.expired());
}

TEST_F(CudaStreamEventsWhileBusy, MovesAMarkBehindLaterWork) {
  CudaStreamEvents events;
  Stream const stream;
  EventHandle const mark = events.record(stream);
  events.synchronize(mark);
  EXPECT_TRUE(events.passed(mark));
  Gate gate;
  gate.close(stream);
  events.record_again(mark, stream);
  EXPECT_FALSE(events.passed(mark));
  gate.open();
  events.synchronize(mark);
  EXPECT_TRUE(events.passed(mark));
  events.release(mark);
}

TEST_F(CudaStreamEventsOnDevice, UsesItsEventsAgain) {
  CudaStreamEvents events;
  Stream const stream;
  for (int i = 0; i < 1000; ++i) { events.release(events.record(stream)); }
  EXPECT_EQ(events.event_count(), 1U);
  EventHandle const a = events.record(stream);
  EventHandle const b = events.record(stream);
  EXPECT_EQ(events.event_count(), 2U);
  events.release(a);
  events.release(b);
}

TEST_F(CudaStreamEventsOnDevice, KeepsAMarkWhenItsStreamIsDestroyed) {
  CudaStreamEvents events;
  Stream stream;
  EventHandle const mark = events.record(stream);
  stream.destroy();
  events.synchronize(mark);
  EXPECT_TRUE(events.passed(mark));
  events.release(mark);
}

TEST_F(CudaStreamEventsOnDevice, MarksTheDefaultStream) {
  CudaStreamEvents events;
  EventHandle const mark = events.record(cuda::stream_ref{cudaStream_t{}});
  events.synchronize(mark);
  EXPECT_TRUE(events.passed(mark));
  events.release(mark);
}

TEST_F(CudaStreamEventsOnDevice, IsUsedByManyThreadsAtOnce) {
  CudaStreamEvents events;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&events] {
      Stream const mine;
      Stream const other;
      for (int i = 0; i < 500; ++i) {
        EventHandle const mark = events.record(mine);
        events.wait(other, mark);
        (void)events.passed(mark);
        events.release(mark);
      }
      other.synchronize();
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_LE(events.event_count(), 8U);
}

TEST_F(CudaStreamEventsOnDevice, MarksStreamsOfEveryDevice) {
  int devices = 0;
  succeed(cudaGetDeviceCount(&devices));
  if (devices < 2) { GTEST_SKIP() << "one GPU"; }
  CudaStreamEvents events;
  std::vector<Stream> streams;
  for (int device = 0; device < devices; ++device) {
    succeed(cudaSetDevice(device));
    streams.emplace_back();
  }
  succeed(cudaSetDevice(0));
  for (Stream const& from : streams) {
    for (Stream const& to : streams) {
      EventHandle const mark = events.record(from);
      events.wait(to, mark);
      events.synchronize(to);
      EXPECT_TRUE(events.passed(mark));
      events.release(mark);
    }
  }
  int current = -1;
  succeed(cudaGetDevice(&current));
  EXPECT_EQ(current, 0) << "the current device was changed";
  EXPECT_EQ(events.event_count(), static_cast<std::size_t>(devices)) << "one event a device";
}

}  // namespace
}  // namespace earmark
