// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/buffer_resource.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/core/resident_memory.hpp"
#include "earmark/testing/manual_clock.hpp"
#include "earmark/tier/errors.hpp"
#include "tier/tiers.hpp"

namespace earmark {
namespace {

constexpr std::array all_tiers{MemoryType::Device, MemoryType::Pinned, MemoryType::Host, MemoryType::Disk};

class BufferResourceTest : public ::testing::Test {
 protected:
  // Copies or moves to the tier's reservation, whichever it is.
  template <class Use>
  Buffer in(MemoryType type, Use const& use) {
    switch (type) {
      case MemoryType::Device: return use(device);
      case MemoryType::Pinned: return use(pinned);
      case MemoryType::Host: return use(host);
      case MemoryType::Disk: break;
    }
    return use(disk);
  }
  Buffer filled(MemoryType type, std::size_t bytes, std::uint64_t seed) {
    Buffer buffer = tiers.buffers.allocate(bytes, tiers.stream, host);
    fill({buffer.data(), bytes}, seed);
    return moved(std::move(buffer), type);
  }
  Buffer moved(Buffer&& buffer, MemoryType type) {
    return in(type, [&](auto& to) { return tiers.buffers.move(std::move(buffer), tiers.stream, to); });
  }
  Buffer copied(Buffer& buffer, MemoryType type) {
    return in(type, [&](auto& to) { return tiers.buffers.copy(buffer, tiers.stream, to); });
  }
  // Whether the buffer has what `fill` made of the seed.
  bool has(Buffer& buffer, std::uint64_t seed) {
    Buffer const here = copied(buffer, MemoryType::Host);
    tiers.events.synchronize_all();
    std::vector<std::byte> expected(buffer.size());
    fill(expected, seed);
    return std::equal(expected.begin(), expected.end(), here.data());
  }
  [[nodiscard]] std::int64_t spent() const { return device.spent() + pinned.spent() + host.spent() + disk.spent(); }

  Tiers tiers;
  MemoryReservation device = tiers.device.reserve(512_KiB);
  PinnedMemoryReservation pinned = tiers.pinned.reserve(512_KiB);
  HostMemoryReservation host = tiers.host.reserve(512_KiB);
  DiskSpaceReservation disk = tiers.disk_tier.adaptor().reserve(512_KiB);
};

TEST_F(BufferResourceTest, CopiesAndMovesBetweenAnyTwoTiers) {
  for (MemoryType const from : all_tiers) {
    for (MemoryType const to : all_tiers) {
      for (std::size_t const bytes : {std::size_t{0}, std::size_t{1}, 3 * Tiers::block + 100}) {
        Buffer buffer = filled(from, bytes, 1);
        ASSERT_EQ(buffer.memory_type(), from);
        Buffer copy = copied(buffer, to);
        EXPECT_EQ(copy.memory_type(), to);
        EXPECT_TRUE(has(buffer, 1));
        Buffer const moved_there = moved(std::move(buffer), to);
        EXPECT_EQ(moved_there.size(), bytes);
        EXPECT_TRUE(has(copy, 1)) << to_string(from) << " to " << to_string(to);
      }
      EXPECT_EQ(spent(), 0);
    }
  }
  EXPECT_EQ(tiers.events.marks(), 0);
  EXPECT_EQ(tiers.events.misuses(), 0);
}

TEST_F(BufferResourceTest, MovesWithinATierForNothing) {
  for (MemoryType const type : all_tiers) {
    Buffer buffer = filled(type, 10'000, 2);
    std::byte const* const data = buffer.data();
    std::int64_t const before = spent();
    Buffer same = moved(std::move(buffer), type);
    EXPECT_EQ(same.data(), data);
    EXPECT_EQ(spent(), before);
    EXPECT_TRUE(has(same, 2));
  }
}

// A way down and back with room for one buffer in each tier.
TEST_F(BufferResourceTest, GoesDownAndComesBackWithRoomForOneBufferInEachTier) {
  constexpr std::size_t bytes = 5 * Tiers::block;
  device = tiers.device.reserve(bytes);
  pinned = tiers.pinned.reserve(bytes);
  host = tiers.host.reserve(bytes);
  disk = tiers.disk_tier.adaptor().reserve(bytes);
  Buffer buffer = filled(MemoryType::Device, bytes, 3);
  for (MemoryType const next : {MemoryType::Pinned, MemoryType::Host, MemoryType::Disk, MemoryType::Host,
                                MemoryType::Device, MemoryType::Disk, MemoryType::Device}) {
    buffer = moved(std::move(buffer), next);
    EXPECT_EQ(buffer.memory_type(), next);
  }
  EXPECT_EQ(device.balance(), 0);
  EXPECT_EQ(pinned.balance() + host.balance() + disk.balance(), static_cast<std::int64_t>(3 * bytes));
  EXPECT_TRUE(has(buffer, 3));
}

TEST_F(BufferResourceTest, SpillsADeviceToADiskWithoutAnyHostMemoryToSpare) {
  Buffer buffer = filled(MemoryType::Device, 20 * Tiers::block, 4);
  host = {};
  HostMemoryReservation const all = tiers.host.reserve_up_to(Tiers::limit, 0);
  EXPECT_EQ(tiers.host.available(), 0);
  buffer = moved(std::move(buffer), MemoryType::Disk);
  buffer = moved(std::move(buffer), MemoryType::Device);
  std::vector<std::byte> expected(buffer.size());
  fill(expected, 4);
  EXPECT_EQ(std::memcmp(buffer.data(), expected.data(), expected.size()), 0);
}

TEST_F(BufferResourceTest, LeavesABufferWhereItIsWhicheverDiskOperationFails) {
  for (MemoryType const from : all_tiers) {
    for (MemoryType const to : all_tiers) {
      for (std::int64_t n = 0;; ++n) {
        Buffer buffer = filled(from, 3 * Tiers::block + 100, 5);
        std::int64_t const before = spent();
        std::int64_t const faults = tiers.disk.faults();
        tiers.disk.fail({.after = n, .error_number = ENOSPC});
        try {
          Buffer const done = copied(buffer, to);
        }
        catch (FileSystemError const& error) {
          EXPECT_EQ(error.error_number(), ENOSPC);
          EXPECT_EQ(spent(), before);
        }
        tiers.disk.heal();
        EXPECT_TRUE(has(buffer, 5));
        if (tiers.disk.faults() == faults) { break; }
      }
    }
  }
  EXPECT_EQ(spent(), 0);
}

TEST_F(BufferResourceTest, LeavesABufferWhereItIsWhenTheDeviceFails) {
  for (MemoryType const to : {MemoryType::Pinned, MemoryType::Host, MemoryType::Disk}) {
    Buffer buffer = filled(MemoryType::Device, 3 * Tiers::block, 6);
    std::int64_t const before = spent();
    tiers.copier.fail_at = tiers.copier.copies;
    EXPECT_THROW((void)moved(std::move(buffer), to), std::runtime_error);
    tiers.copier.fail_at = -1;
    EXPECT_EQ(buffer.memory_type(), MemoryType::Device);  // NOLINT: a move that failed has taken nothing
    EXPECT_EQ(spent(), before);
    EXPECT_TRUE(has(buffer, 6));
  }
}

TEST_F(BufferResourceTest, LeavesABufferWhereItIsWhenTheTargetHasNoRoom) {
  for (MemoryType const from : all_tiers) {
    Buffer buffer = filled(from, 3 * Tiers::block, 7);
    std::int64_t const before = spent();
    if (from != MemoryType::Disk) {
      DiskSpaceReservation small = disk.split(Tiers::block);
      EXPECT_THROW((void)tiers.buffers.move(std::move(buffer), tiers.stream, small), ReservationExhausted);
    }
    if (from != MemoryType::Host) {
      HostMemoryReservation small = host.split(Tiers::block);
      EXPECT_THROW((void)tiers.buffers.move(std::move(buffer), tiers.stream, small), ReservationExhausted);
    }
    EXPECT_EQ(spent(), before);
    EXPECT_TRUE(has(buffer, 7));
  }
}

TEST_F(BufferResourceTest, ReadsAndFreesBehindTheLastUseOfTheSource) {
  cuda::stream_ref const other = testing::ManualStreamEvents::stream(2);
  Buffer buffer = filled(MemoryType::Device, 1000, 8);
  auto const use = tiers.events.enqueue(other);
  buffer.used_on(other);
  Buffer const copy = copied(buffer, MemoryType::Pinned);
  EXPECT_TRUE(tiers.events.is_behind(tiers.stream, use));
  EXPECT_FALSE(tiers.events.is_done(use));  // ordered, not waited for
  auto const later_use = tiers.events.enqueue(other);
  buffer.used_on(other);
  Buffer const on_disk = moved(std::move(buffer), MemoryType::Disk);
  EXPECT_TRUE(tiers.events.is_done(later_use));
}

// The source of an asynchronous copy lives until the copy has read it.
TEST_F(BufferResourceTest, KeepsAHostSourceUntilItsCopyIsDone) {
  Buffer buffer = filled(MemoryType::Host, 1000, 9);
  Buffer const on_device = moved(std::move(buffer), MemoryType::Device);
  EXPECT_TRUE(tiers.events.is_done(tiers.copier.last));
}

TEST_F(BufferResourceTest, CountsWhatWentFromWhereToWhere) {
  testing::ManualClock clock;
  BufferResource buffers{{.host = tiers.host, .disk = tiers.disk_tier, .bounces = {1, Tiers::block}, .clock = &clock}};
  Buffer buffer = buffers.allocate(5000, tiers.stream, host);
  Buffer const there = buffers.copy(buffer, tiers.stream, disk);
  tiers.disk.fail({.operations = testing::SpillOperation::Write});
  EXPECT_THROW((void)buffers.copy(buffer, tiers.stream, disk), FileSystemError);
  TransferStatistics const down = buffers.statistics(MemoryType::Host, MemoryType::Disk);
  EXPECT_EQ(down.count, 1);
  EXPECT_EQ(down.bytes, 5000);
  EXPECT_EQ(down.failed, 1);
  EXPECT_EQ(buffers.statistics(MemoryType::Disk, MemoryType::Host).count, 0);
}

TEST_F(BufferResourceTest, IsOneOfSeveralOverSharedTiers) {
  BufferResource other{{.host = tiers.host, .disk = tiers.disk_tier, .bounces = {1, Tiers::block}}};
  EXPECT_EQ(other.compute_tier(), MemoryType::Host);
  EXPECT_EQ(tiers.buffers.compute_tier(), MemoryType::Device);
  EXPECT_FALSE(other.has(MemoryType::Device));
  EXPECT_FALSE(other.has(MemoryType::Pinned));
  EXPECT_TRUE(other.has(MemoryType::Host));
  EXPECT_TRUE(other.has(MemoryType::Disk));
  Buffer buffer = filled(MemoryType::Disk, 20'000, 10);
  Buffer back = other.move(std::move(buffer), tiers.stream, host);
  EXPECT_TRUE(has(back, 10));
}

TEST_F(BufferResourceTest, RefusesADeviceThatItCannotCopyFrom) {
  EXPECT_THROW((BufferResource{{.host = tiers.host, .device = tiers.device}}), std::invalid_argument);
  HostReservationAwareResourceAdaptor const small{HostMemoryResource{}, 1000};
  EXPECT_THROW((BufferResource{{.host = small, .disk = tiers.disk_tier}}), ReservationRefused);
}

TEST(BufferResource, LetsTheProcessShrinkToWhatItWas) {
  ProcResidentMemory resident;
  HostReservationAwareResourceAdaptor const host{HostMemoryResource{}, 256_MiB};
  BufferResource buffers{{.host = host}};
  cuda::stream_ref const stream{cudaStream_t{}};
  HostMemoryReservation reservation = buffers.host().reserve(64_MiB);
  { Buffer const warm = buffers.allocate(1_MiB, stream, reservation); }
  std::int64_t const before = resident.current_bytes();
  {
    std::vector<Buffer> all;
    for (int i = 0; i < 32; ++i) {
      all.push_back(buffers.allocate(2_MiB, stream, reservation));
      std::memset(all.back().data(), 1, all.back().size());
    }
    EXPECT_GT(resident.current_bytes(), before + static_cast<std::int64_t>(56_MiB));
  }
  EXPECT_LT(resident.current_bytes(), before + static_cast<std::int64_t>(8_MiB));
}

}  // namespace
}  // namespace earmark
