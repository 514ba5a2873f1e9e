// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Reservations over a stream-ordered upstream while kernels run.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "memory_cuda/on_device.hpp"

namespace earmark {
namespace {

using testing::enqueue_compare;
using testing::enqueue_fill;
using testing::Gate;
using testing::Pinned;
using testing::Stream;
using StreamsOnDevice = testing::OnDevice;
using StreamsWhileBusy = testing::OnDeviceAtOnce;

constexpr std::size_t integers = 1 << 20;
constexpr std::size_t bytes = integers * sizeof(int);

ReservationAwareResourceAdaptor make_adaptor(std::size_t limit) {
  return {rmm::mr::cuda_async_memory_resource{}, limit};
}

TEST_F(StreamsWhileBusy, CreditsAFreeWhenItIsEnqueuedNotWhenItIsDone) {
  ReservationAwareResourceAdaptor adaptor = make_adaptor(bytes);
  MemoryReservation reservation = adaptor.reserve(bytes);
  Stream const stream;
  Gate gate;
  {
    rmm::device_buffer buffer{bytes, stream, reservation};
    gate.close(stream);
    enqueue_fill(static_cast<int*>(buffer.data()), integers, 1, stream.get());
  }
  EXPECT_EQ(reservation.spent(), 0);
  rmm::device_buffer next{bytes, stream, reservation};
  EXPECT_TRUE(stream.busy());
  enqueue_fill(static_cast<int*>(next.data()), integers, 2, stream.get());
  gate.open();
  EXPECT_EQ(count_wrong(next.data(), integers, 2, stream), 0U);
  EXPECT_FALSE(gate.expired());
}

TEST_F(StreamsWhileBusy, CreditsTheOwnerWhenAnotherStreamFrees) {
  ReservationAwareResourceAdaptor adaptor = make_adaptor(4 * bytes);
  MemoryReservation first = adaptor.reserve(bytes);
  MemoryReservation second = adaptor.reserve(bytes);
  Stream const here;
  Stream const there;
  Gate gate;
  {
    rmm::device_buffer buffer{bytes, here, first};
    gate.close(here);
    enqueue_fill(static_cast<int*>(buffer.data()), integers, 1, here.get());
    there.wait_for(here);
    buffer.set_stream(there);
    EXPECT_EQ(first.spent(), static_cast<std::int64_t>(bytes));
  }
  EXPECT_EQ(first.spent(), 0);
  EXPECT_EQ(second.spent(), 0);
  EXPECT_TRUE(there.busy());
  gate.open();
  there.synchronize();
  EXPECT_FALSE(gate.expired());
}

TEST_F(StreamsOnDevice, GivesBytesBackToTheAdaptorWhenABufferOutlivesItsReservation) {
  ReservationAwareResourceAdaptor adaptor = make_adaptor(bytes);
  Stream const stream;
  {
    auto reservation = std::make_unique<MemoryReservation>(adaptor.reserve(bytes));
    rmm::device_uvector<int> values{integers, stream, *reservation};
    reservation.reset();
    EXPECT_EQ(adaptor.committed(), static_cast<std::int64_t>(bytes));
    enqueue_fill(values.data(), integers, 5, stream.get());
    EXPECT_EQ(count_wrong(values.data(), integers, 5, stream), 0U);
  }
  EXPECT_EQ(adaptor.committed(), 0);
}

TEST_F(StreamsOnDevice, FreesABufferAfterReservationAndAdaptorAreGone) {
  Stream const stream;
  auto const allocate = [&] {
    ReservationAwareResourceAdaptor adaptor = make_adaptor(bytes);
    MemoryReservation const reservation = adaptor.reserve(bytes);
    return rmm::device_buffer{bytes, stream, reservation};
  };
  rmm::device_buffer buffer = allocate();
  enqueue_fill(static_cast<int*>(buffer.data()), integers, 6, stream.get());
  EXPECT_EQ(count_wrong(buffer.data(), integers, 6, stream), 0U);
}

// Each thread fills buffers from a reservation of its own, which other threads check and free on their own streams.
TEST_F(StreamsOnDevice, StaysExactWhenThreadsFreeEachOthersBuffers) {
  constexpr int thread_count = 8;
  constexpr int rounds = 50;
  constexpr std::size_t count = 4096;
  ReservationAwareResourceAdaptor adaptor = make_adaptor(64_MiB);
  Pinned<unsigned long long> wrong;
  {
    std::vector<Stream> streams(thread_count);
    std::vector<MemoryReservation> reservations;
    std::vector<std::vector<rmm::device_buffer>> buffers(thread_count);
    for (int t = 0; t < thread_count; ++t) { reservations.push_back(adaptor.reserve(rounds * count * sizeof(int))); }
    auto const in_parallel = [&](auto const& work) {
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < thread_count; ++t) {
        threads.emplace_back([&work, t] { work(t); });
      }
      for (std::thread& thread : threads) { thread.join(); }
    };
    in_parallel([&](std::size_t t) {
      for (int round = 0; round < rounds; ++round) {
        auto& buffer = buffers[t].emplace_back(count * sizeof(int), streams[t], reservations[t]);
        enqueue_fill(static_cast<int*>(buffer.data()), count, static_cast<int>(t), streams[t].get());
      }
      streams[t].synchronize();
    });
    EXPECT_EQ(adaptor.current_allocated(), static_cast<std::int64_t>(thread_count * rounds * count * sizeof(int)));
    in_parallel([&](std::size_t t) {
      std::size_t const other = (t + 1) % thread_count;
      for (rmm::device_buffer& buffer : buffers[other]) {
        enqueue_compare(static_cast<int const*>(buffer.data()), count, static_cast<int>(other), wrong.data(),
                        streams[t].get());
        buffer.set_stream(streams[t]);
      }
      buffers[other].clear();
      streams[t].synchronize();
    });
    for (MemoryReservation const& reservation : reservations) { EXPECT_EQ(reservation.spent(), 0); }
    EXPECT_EQ(adaptor.current_allocated(), 0);
  }
  EXPECT_EQ(wrong[0], 0U);
  EXPECT_EQ(adaptor.committed(), 0);
}

}  // namespace
}  // namespace earmark
