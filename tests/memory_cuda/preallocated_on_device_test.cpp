// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Preallocated reservations of a device's memory, over everything that gives such memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory_cuda/cuda_stream_events.hpp"
#include "memory_cuda/on_device.hpp"

namespace earmark {
namespace {

using testing::enqueue_compare;
using testing::enqueue_fill;
using testing::Gate;
using testing::kernels_run_behind_the_host;
using testing::Pinned;
using testing::Stream;
using testing::succeed;
using AnyResource = cuda::mr::any_resource<device_accessible>;

constexpr std::size_t integers = 1 << 18;
constexpr std::size_t bytes = integers * sizeof(int);  // 1 MiB
constexpr ReservationOptions at_once{.label = "preallocated", .backing = Backing::Preallocated};

AnyResource plain() { return rmm::mr::cuda_memory_resource{}; }

struct Upstream {
  std::string name;
  std::function<AnyResource()> make;
};
std::ostream& operator<<(std::ostream& out, Upstream const& upstream) { return out << upstream.name; }

// Streams here are made before the reservations that they free pieces of, so that they end after them: see
// `forget_stream`.
class PreallocatedOnDevice : public testing::OnDevice, public ::testing::WithParamInterface<Upstream> {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) { return; }
    statistics_.emplace(GetParam().make());
    adaptor_.emplace(*statistics_, 256_MiB, AdaptorOptions{.events = &events_});
  }

  CudaStreamEvents events_;
  std::optional<rmm::mr::statistics_resource_adaptor> statistics_;
  std::optional<ReservationAwareResourceAdaptor> adaptor_;
};

TEST_P(PreallocatedOnDevice, TakesItsBytesFromTheUpstreamOnce) {
  Stream const stream;
  {
    MemoryReservation reservation = adaptor_->reserve(8 * bytes, at_once);
    EXPECT_GE(statistics_->get_bytes_counter().value, static_cast<std::int64_t>(8 * bytes));
    auto const allocations = statistics_->get_allocations_counter().total;
    for (int i = 0; i < 100; ++i) { rmm::device_buffer const buffer{bytes, stream, reservation}; }
    EXPECT_EQ(statistics_->get_allocations_counter().total, allocations);
    stream.synchronize();
  }
  EXPECT_EQ(statistics_->get_bytes_counter().value, 0);
}

TEST_P(PreallocatedOnDevice, GivesEachBufferBytesOfItsOwn) {
  std::vector<Stream> const streams(4);
  MemoryReservation reservation = adaptor_->reserve(64 * bytes, at_once);
  std::vector<rmm::device_uvector<int>> vectors;
  for (std::size_t i = 0; i < 32; ++i) {
    Stream const& stream = streams[i % streams.size()];
    enqueue_fill(vectors.emplace_back(integers, stream, reservation).data(), integers, static_cast<int>(i),
                 stream.get());
  }
  for (Stream const& stream : streams) { stream.synchronize(); }
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    EXPECT_EQ(count_wrong(vectors[i].data(), integers, static_cast<int>(i), streams[i % streams.size()]), 0U) << i;
  }
}

TEST_P(PreallocatedOnDevice, HandsBytesToAnotherStreamOnlyBehindTheWorkOnThem) {
  if (!kernels_run_behind_the_host()) { GTEST_SKIP() << "kernels are run one at a time here"; }
  Stream const slow;
  Stream const other;
  MemoryReservation reservation = adaptor_->reserve(bytes, at_once);
  Gate gate;
  {
    rmm::device_buffer buffer{bytes, slow, reservation};
    gate.close(slow);
    enqueue_fill(static_cast<int*>(buffer.data()), integers, 1, slow.get());
  }
  // All there is: these are the same bytes. Written behind the gate, or else the slow stream writes them afterwards.
  rmm::device_buffer again{bytes, other, reservation};
  enqueue_fill(static_cast<int*>(again.data()), integers, 2, other.get());
  EXPECT_TRUE(other.busy());
  gate.open();
  slow.synchronize();
  EXPECT_EQ(count_wrong(again.data(), integers, 2, other), 0U);
  EXPECT_FALSE(gate.expired());
}

TEST_P(PreallocatedOnDevice, HandsBytesToTheSameStreamAtOnce) {
  if (!kernels_run_behind_the_host()) { GTEST_SKIP() << "kernels are run one at a time here"; }
  Stream const stream;
  MemoryReservation reservation = adaptor_->reserve(bytes, at_once);
  { rmm::device_buffer const first{bytes, stream, reservation}; }  // behind the stream that the bytes came from
  auto const marks = events_.event_count();
  Gate gate;
  gate.close(stream);
  for (int i = 0; i < 100; ++i) {
    rmm::device_buffer buffer{bytes, stream, reservation};
    enqueue_fill(static_cast<int*>(buffer.data()), integers, i, stream.get());
  }
  EXPECT_TRUE(stream.busy());
  gate.open();
  EXPECT_EQ(events_.event_count(), marks) << "no other was needed";
  EXPECT_FALSE(gate.expired());
}

TEST_P(PreallocatedOnDevice, MergesHolesThatDifferentStreamsLeft) {
  std::vector<Stream> const streams(16);
  MemoryReservation reservation = adaptor_->reserve(16 * bytes, at_once);
  {
    std::vector<rmm::device_buffer> buffers;
    for (Stream const& stream : streams) {
      buffers.emplace_back(bytes, stream, reservation);
      enqueue_fill(static_cast<int*>(buffers.back().data()), integers, 1, stream.get());
    }
    buffers.clear();
    rmm::device_buffer whole{16 * bytes, streams[0], reservation};
    enqueue_fill(static_cast<int*>(whole.data()), 16 * integers, 2, streams[0].get());
    for (Stream const& stream : streams) { stream.synchronize(); }
    EXPECT_EQ(count_wrong(whole.data(), 16 * integers, 2, streams[0]), 0U);
  }
  EXPECT_EQ(reservation.spent(), 0);
}

TEST_P(PreallocatedOnDevice, RefusesWhatFitsNoHole) {
  Stream const stream;
  MemoryReservation reservation = adaptor_->reserve(4 * bytes, at_once);
  rmm::device_buffer const buffer{3 * bytes, stream, reservation};
  EXPECT_THROW((rmm::device_buffer{2 * bytes, stream, reservation}), rmm::out_of_memory);
  EXPECT_EQ(reservation.spent(), static_cast<std::int64_t>(3 * bytes));
}

TEST_P(PreallocatedOnDevice, GivesItsBytesBackWhenTheLastBufferGoes) {
  Stream const stream;
  {
    auto reservation = std::make_unique<MemoryReservation>(adaptor_->reserve(4 * bytes, at_once));
    rmm::device_buffer buffer{bytes, stream, *reservation};
    reservation.reset();
    EXPECT_EQ(adaptor_->committed(), static_cast<std::int64_t>(4 * bytes));
    enqueue_fill(static_cast<int*>(buffer.data()), integers, 9, stream.get());
    EXPECT_EQ(count_wrong(buffer.data(), integers, 9, stream), 0U);
  }
  EXPECT_EQ(adaptor_->committed(), 0);
  EXPECT_EQ(statistics_->get_bytes_counter().value, 0);
}

// Threads allocate on their own streams from one reservation, write, hand each block to another stream of theirs, check
// it there and free it there. Any bytes handed out too early are found as wrong values.
TEST_P(PreallocatedOnDevice, StaysRightUnderRandomWorkOnManyStreams) {
  constexpr std::size_t thread_count = 8;
  constexpr int rounds = 300;
  constexpr std::size_t most_integers = 64 << 10;
  MemoryReservation reservation = adaptor_->reserve(thread_count * 16 * most_integers * sizeof(int), at_once);
  Pinned<unsigned long long> wrong;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random{static_cast<std::uint32_t>(t)};
      std::vector<Stream> const streams(3);
      std::vector<std::pair<rmm::device_buffer, int>> live;
      for (int round = 0; round < rounds; ++round) {
        Stream const& writer = streams[random() % 3];
        std::size_t const count = 1 + random() % most_integers;
        int const value = static_cast<int>(t) * rounds + round;
        rmm::device_buffer buffer{count * sizeof(int), writer, reservation};
        enqueue_fill(static_cast<int*>(buffer.data()), count, value, writer.get());
        Stream const& reader = streams[random() % 3];
        reader.wait_for(writer);
        buffer.set_stream(reader);
        live.emplace_back(std::move(buffer), value);
        if (live.size() < 8) { continue; }
        auto const victim = live.begin() + static_cast<std::ptrdiff_t>(random() % live.size());
        auto const& [block, expected] = *victim;
        enqueue_compare(static_cast<int const*>(block.data()), block.size() / sizeof(int), expected, wrong.data(),
                        block.stream().get());
        live.erase(victim);
      }
      live.clear();
      for (Stream const& stream : streams) {
        stream.synchronize();
        reservation.resource().forget_stream(stream);  // it ends before the reservation does
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(wrong[0], 0U);
  EXPECT_EQ(reservation.spent(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Upstreams, PreallocatedOnDevice,
    ::testing::Values(Upstream{"CudaMalloc", plain},  //
                      Upstream{"CudaMallocAsync", [] { return AnyResource{rmm::mr::cuda_async_memory_resource{}}; }},
                      Upstream{"Pool", [] { return AnyResource{rmm::mr::pool_memory_resource{plain(), 512_MiB}}; }},
                      Upstream{"Arena", [] { return AnyResource{rmm::mr::arena_memory_resource{plain(), 512_MiB}}; }}),
    [](::testing::TestParamInfo<Upstream> const& tested) { return tested.param.name; });

}  // namespace
}  // namespace earmark
