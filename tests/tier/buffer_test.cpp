// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/buffer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <utility>

#include "tier/tiers.hpp"

namespace earmark {
namespace {

using testing::ManualStreamEvents;

class BufferTest : public ::testing::Test {
 protected:
  Tiers tiers;
  HostMemoryReservation host = tiers.host.reserve(64_KiB);
  MemoryReservation device = tiers.device.reserve(64_KiB);
};

TEST_F(BufferTest, DrawsOnItsReservationAndGivesBackToIt) {
  std::optional<Buffer> buffer{tiers.buffers.allocate(10'000, tiers.stream, host)};
  EXPECT_EQ(buffer->memory_type(), MemoryType::Host);
  EXPECT_EQ(buffer->size(), 10'000U);
  EXPECT_EQ(std::bit_cast<std::uintptr_t>(buffer->data()) % 256, 0U);
  EXPECT_EQ(host.spent(), tiers.host.charge(10'000));
  buffer.reset();
  EXPECT_EQ(host.spent(), 0);
}

TEST_F(BufferTest, OutlivesReservationAndTiers) {
  std::optional<Buffer> buffer;
  HostReservationAwareResourceAdaptor const adaptor = tiers.host;
  {
    BufferResource buffers{{.host = tiers.host}};
    HostMemoryReservation reservation = tiers.host.reserve(64_KiB);
    buffer.emplace(buffers.allocate(64_KiB, tiers.stream, reservation));
  }
  std::int64_t const with = adaptor.committed();
  fill({buffer->data(), buffer->size()}, 1);
  buffer.reset();
  EXPECT_EQ(adaptor.committed(), with - static_cast<std::int64_t>(64_KiB));
}

TEST_F(BufferTest, IsReleasedOnceHoweverItIsMoved) {
  {
    Buffer a = tiers.buffers.allocate(8_KiB, tiers.stream, host);
    Buffer b = tiers.buffers.allocate(4_KiB, tiers.stream, device);
    Buffer c = std::move(a);
    EXPECT_EQ(a.size(), 0U);  // NOLINT: what a moved-from buffer says is part of the contract
    EXPECT_EQ(a.data(), nullptr);
    c = std::move(b);
    EXPECT_EQ(c.memory_type(), MemoryType::Device);
    EXPECT_EQ(host.spent(), 0);
    Buffer& same = c;
    c = std::move(same);
    EXPECT_EQ(c.size(), 4_KiB);
    EXPECT_EQ(device.spent(), static_cast<std::int64_t>(4_KiB));
  }
  EXPECT_EQ(device.spent(), 0);
}

TEST_F(BufferTest, OfNothingCostsNothing) {
  Buffer const buffer = tiers.buffers.allocate(0, tiers.stream, host);
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(host.spent(), 0);
}

TEST_F(BufferTest, OfADeviceIsFreedBehindItsLastUse) {
  cuda::stream_ref const other = ManualStreamEvents::stream(2);
  std::optional<Buffer> buffer{tiers.buffers.allocate(4_KiB, tiers.stream, device)};
  auto const work = tiers.events.enqueue(other);
  buffer->used_on(other);
  EXPECT_FALSE(tiers.events.is_behind(tiers.stream, work));
  buffer.reset();
  EXPECT_TRUE(tiers.events.is_behind(tiers.stream, work));
  EXPECT_FALSE(tiers.events.is_done(work));  // nobody waited
  EXPECT_EQ(tiers.events.marks(), 0);
}

TEST_F(BufferTest, OfTheHostIsFreedWhenItsLastUseIsDone) {
  std::optional<Buffer> buffer{tiers.buffers.allocate(4_KiB, tiers.stream, host)};
  auto const work = tiers.events.enqueue(tiers.stream);
  buffer->used_on(tiers.stream);
  EXPECT_FALSE(tiers.events.is_done(work));
  buffer.reset();
  EXPECT_TRUE(tiers.events.is_done(work));
  EXPECT_EQ(tiers.events.marks(), 0);
}

TEST_F(BufferTest, IsBehindAllItsUsesOnWhateverStreams) {
  cuda::stream_ref const second = ManualStreamEvents::stream(2);
  cuda::stream_ref const third = ManualStreamEvents::stream(3);
  Buffer buffer = tiers.buffers.allocate(4_KiB, tiers.stream, device);
  auto const first_use = tiers.events.enqueue(tiers.stream);
  buffer.used_on(tiers.stream);
  auto const second_use = tiers.events.enqueue(second);
  buffer.used_on(second);
  EXPECT_EQ(tiers.events.marks(), 1);
  buffer.order_after_last_use(third);
  EXPECT_TRUE(tiers.events.is_behind(third, first_use));
  EXPECT_TRUE(tiers.events.is_behind(third, second_use));
}

TEST_F(BufferTest, GoesEvenIfTheDeviceHasFailed) {
  {
    Buffer buffer = tiers.buffers.allocate(4_KiB, tiers.stream, device);
    tiers.events.fail_records(1);
    EXPECT_THROW(buffer.used_on(tiers.stream), std::runtime_error);
    buffer.used_on(tiers.stream);
    tiers.events.fail_waits(1);
  }
  EXPECT_EQ(device.spent(), 0);
  EXPECT_EQ(tiers.events.marks(), 0);
}

}  // namespace
}  // namespace earmark
