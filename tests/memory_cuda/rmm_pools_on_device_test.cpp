// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Reservations above and below RMM's pools and adaptors, in RMM's containers, on a device.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>
#include <string>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "memory_cuda/on_device.hpp"

namespace earmark {
namespace {

using testing::enqueue_fill;
using testing::Stream;
using AnyResource = cuda::mr::any_resource<device_accessible>;

constexpr std::size_t integers = 1 << 18;
constexpr std::size_t bytes = integers * sizeof(int);  // 1 MiB

AnyResource plain() { return rmm::mr::cuda_memory_resource{}; }

struct Upstream {
  std::string name;
  std::function<AnyResource()> make;
};
std::ostream& operator<<(std::ostream& out, Upstream const& upstream) { return out << upstream.name; }

std::string name_of(::testing::TestParamInfo<Upstream> const& tested) { return tested.param.name; }

// -- Above ------------------------------------------------------------------------------------------------------------

class ReservationAbove : public testing::OnDevice, public ::testing::WithParamInterface<Upstream> {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) { return; }
    adaptor_.emplace(GetParam().make(), 64_MiB);
    stream_.emplace();
  }
  std::optional<ReservationAwareResourceAdaptor> adaptor_;
  std::optional<Stream> stream_;
};

TEST_P(ReservationAbove, CopiesABufferFromOneReservationToAnother) {
  MemoryReservation from = adaptor_->reserve(bytes);
  MemoryReservation to = adaptor_->reserve(bytes);
  rmm::device_buffer original{bytes, *stream_, from};
  enqueue_fill(static_cast<int*>(original.data()), integers, 3, stream_->get());
  rmm::device_buffer const copy{original, *stream_, to};
  EXPECT_EQ(to.spent(), static_cast<std::int64_t>(bytes));
  original = rmm::device_buffer{};
  EXPECT_EQ(from.spent(), 0);
  EXPECT_EQ(count_wrong(copy.data(), integers, 3, *stream_), 0U);
}

TEST_P(ReservationAbove, CopiesAVectorAndKeepsItsReservationWhenItIsMoved) {
  MemoryReservation reservation = adaptor_->reserve(2 * bytes);
  rmm::device_uvector<int> original{integers, *stream_, reservation};
  enqueue_fill(original.data(), integers, 4, stream_->get());
  rmm::device_uvector<int> copy{original, *stream_, reservation};
  rmm::device_uvector<int> const moved{std::move(copy)};
  EXPECT_EQ(reservation.balance(), 0);
  EXPECT_EQ(count_wrong(moved.data(), integers, 4, *stream_), 0U);
  EXPECT_THROW((rmm::device_uvector<int>{1, *stream_, reservation}), rmm::out_of_memory);
}

TEST_P(ReservationAbove, PaysForOldAndNewWhileABufferGrows) {
  MemoryReservation reservation = adaptor_->reserve(3 * bytes);
  rmm::device_buffer buffer{bytes, *stream_, reservation};
  enqueue_fill(static_cast<int*>(buffer.data()), integers, 5, stream_->get());
  buffer.resize(2 * bytes, *stream_);
  EXPECT_EQ(reservation.spent(), static_cast<std::int64_t>(2 * bytes));
  EXPECT_THROW(buffer.resize(3 * bytes, *stream_), ReservationExhausted);
  EXPECT_EQ(count_wrong(buffer.data(), integers, 5, *stream_), 0U) << "a refused growth changed the buffer";
  buffer.resize(bytes, *stream_);
  buffer.shrink_to_fit(*stream_);
  EXPECT_EQ(reservation.spent(), static_cast<std::int64_t>(bytes));
  EXPECT_EQ(count_wrong(buffer.data(), integers, 5, *stream_), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Upstreams, ReservationAbove,
    ::testing::Values(Upstream{"CudaMalloc", plain},  //
                      Upstream{"CudaMallocAsync", [] { return AnyResource{rmm::mr::cuda_async_memory_resource{}}; }},
                      Upstream{"Pool", [] { return AnyResource{rmm::mr::pool_memory_resource{plain(), 64_MiB}}; }},
                      Upstream{"Arena", [] { return AnyResource{rmm::mr::arena_memory_resource{plain(), 64_MiB}}; }},
                      Upstream{"Tracking",
                               [] { return AnyResource{rmm::mr::tracking_resource_adaptor{plain(), false}}; }}),
    name_of);

using ReservationAboveALimit = testing::OnDevice;

TEST_F(ReservationAboveALimit, SaysThatTheUpstreamAndNotTheLimitIsExhausted) {
  ReservationAwareResourceAdaptor small{rmm::mr::limiting_resource_adaptor{plain(), bytes}, 64_MiB};
  Stream const stream;
  MemoryReservation reservation = small.reserve(4 * bytes);
  EXPECT_THROW((rmm::device_buffer{2 * bytes, stream, reservation}), UpstreamOutOfMemory);
  EXPECT_EQ(reservation.spent(), 0);
}

// -- Below ------------------------------------------------------------------------------------------------------------

class ReservationBelow : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) { return; }
    adaptor_.emplace(rmm::mr::cuda_memory_resource{}, 64_MiB);
    stream_.emplace();
  }
  // Draws on a resource that draws on `reservation`.
  void fill_and_check(AnyResource const& resource) {
    rmm::device_buffer buffer{bytes, *stream_, resource};
    enqueue_fill(static_cast<int*>(buffer.data()), integers, 8, stream_->get());
    EXPECT_EQ(count_wrong(buffer.data(), integers, 8, *stream_), 0U);
  }
  std::optional<ReservationAwareResourceAdaptor> adaptor_;
  std::optional<Stream> stream_;
};

TEST_F(ReservationBelow, FeedsAPoolThatCannotOutgrowIt) {
  MemoryReservation reservation = adaptor_->reserve(16_MiB);
  {
    rmm::mr::pool_memory_resource pool{AnyResource{reservation}, 4_MiB};
    EXPECT_EQ(reservation.spent(), static_cast<std::int64_t>(4_MiB));
    fill_and_check(AnyResource{pool});
    EXPECT_THROW((rmm::device_buffer{32_MiB, *stream_, pool}), rmm::out_of_memory);
    fill_and_check(AnyResource{pool});
  }
  EXPECT_EQ(reservation.spent(), 0);
}

TEST_F(ReservationBelow, FeedsAnArena) {
  MemoryReservation reservation = adaptor_->reserve(32_MiB);
  {
    rmm::mr::arena_memory_resource arena{AnyResource{reservation}, 16_MiB};
    EXPECT_GE(reservation.spent(), static_cast<std::int64_t>(16_MiB));
    fill_and_check(AnyResource{arena});
  }
  EXPECT_EQ(reservation.spent(), 0);
}

TEST_F(ReservationBelow, FeedsStatisticsThatAgreeWithIt) {
  MemoryReservation reservation = adaptor_->reserve(16_MiB);
  rmm::mr::statistics_resource_adaptor statistics{AnyResource{reservation}};
  {
    rmm::device_buffer const buffer{bytes, *stream_, statistics};
    EXPECT_EQ(statistics.get_bytes_counter().value, reservation.spent());
  }
  fill_and_check(AnyResource{statistics});
  EXPECT_EQ(statistics.get_bytes_counter().value, 0);
  EXPECT_EQ(reservation.spent(), 0);
}

TEST_F(ReservationBelow, SurvivesAPoolThatOutlivesItsHandle) {
  auto reservation = std::make_unique<MemoryReservation>(adaptor_->reserve(16_MiB));
  {
    rmm::mr::pool_memory_resource pool{AnyResource{*reservation}, 4_MiB, 4_MiB};
    reservation.reset();
    EXPECT_EQ(adaptor_->committed(), static_cast<std::int64_t>(4_MiB));
    fill_and_check(AnyResource{pool});
  }
  EXPECT_EQ(adaptor_->committed(), 0);
}

}  // namespace
}  // namespace earmark
