// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/disk_space.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "core/temporary_folder.hpp"
#include "earmark/core/bytes.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/testing/faulty_spill_disk.hpp"
#include "earmark/tier/posix_spill_disk.hpp"
#include "tier/extent_map.hpp"

namespace earmark {
namespace {

TEST(ExtentMap, TakesTheSmallestHoleThatFits) {
  detail::ExtentMap map{1000};
  std::vector<std::int64_t> at;
  for (std::int64_t bytes : {100, 50, 100, 20, 100}) { at.push_back(*map.take(bytes)); }
  EXPECT_EQ(at, (std::vector<std::int64_t>{0, 100, 150, 250, 270}));
  map.give(100, 50);
  map.give(250, 20);
  EXPECT_EQ(map.take(20), 250);
  EXPECT_EQ(map.take(30), 100);
  EXPECT_EQ(map.take(20), 130);
  EXPECT_EQ(map.take(631), std::nullopt);
  EXPECT_EQ(map.take(630), 370);
}

TEST(ExtentMap, MergesWhatIsGivenBackWithItsNeighbours) {
  for (std::vector<int> const& order : {std::vector{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    detail::ExtentMap map{300};
    for (int i = 0; i < 3; ++i) { EXPECT_EQ(map.take(100), i * 100); }
    EXPECT_EQ(map.hole_count(), 0U);
    for (int const i : order) { map.give(i * 100, 100); }
    EXPECT_EQ(map.hole_count(), 1U);
    EXPECT_EQ(map.take(300), 0);
  }
}

TEST(ExtentMap, NeverGivesAByteTwice) {
  std::mt19937 random{1};
  detail::ExtentMap map{1 << 20};
  std::map<std::int64_t, std::int64_t> live;
  std::int64_t sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || live.empty()) {
      std::int64_t const bytes = 1 + random() % 8192;
      auto const offset = map.take(bytes);
      if (!offset) { continue; }
      auto const [at, fresh] = live.emplace(*offset, bytes);
      ASSERT_TRUE(fresh);
      if (at != live.begin()) { ASSERT_LE(std::prev(at)->first + std::prev(at)->second, *offset); }
      if (std::next(at) != live.end()) { ASSERT_LE(*offset + bytes, std::next(at)->first); }
      sum += bytes;
    } else {
      auto const at = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      map.give(at->first, at->second);
      sum -= at->second;
      live.erase(at);
    }
    ASSERT_EQ(map.live_bytes(), sum);
  }
  for (auto const& [offset, bytes] : live) { map.give(offset, bytes); }
  EXPECT_EQ(map.hole_count(), 1U);
}

class DiskSpace : public ::testing::Test {
 protected:
  TemporaryFolder folder{std::filesystem::current_path()};
  PosixFileSystem files;
  ThreadPool pool{1};
  PosixSpillDisk real_disk{pool};
  testing::FaultySpillDisk disk{real_disk};
};

TEST_F(DiskSpace, IsATierWithALimitAndReservations) {
  DiskSpaceResource const space{files, disk, {.directory = folder.path()}};
  DiskSpaceAdaptor tier{space, 64_KiB, disk_granularity};
  EXPECT_EQ(tier.memory_type(), MemoryType::Disk);
  DiskSpaceReservation reservation = tier.reserve(16_KiB);
  auto resource = reservation.resource();
  void* const extent = resource.allocate_sync(5000);
  EXPECT_EQ(reservation.balance(), static_cast<std::int64_t>(8_KiB));
  EXPECT_EQ(space.live_bytes(), static_cast<std::int64_t>(8_KiB));
  EXPECT_THROW((void)resource.allocate_sync(8_KiB + 1), ReservationExhausted);
  try {
    (void)tier.reserve(60_KiB);
    FAIL();
  }
  catch (ReservationRefused const& refused) {
    EXPECT_EQ(refused.fields().tier.view(), "disk");
    EXPECT_EQ(refused.fields().shortfall, static_cast<std::int64_t>(12_KiB));
  }
  resource.deallocate_sync(extent, 5000);
  EXPECT_EQ(space.live_bytes(), 0);
  EXPECT_EQ(disk.released_bytes(), static_cast<std::int64_t>(8_KiB));
}

TEST_F(DiskSpace, BeginsAFurtherFileWhenOneIsFull) {
  DiskSpaceResource space{files, disk, {.directory = folder.path(), .file_bytes = 16_KiB}};
  std::vector<void*> extents;
  for (int i = 0; i < 6; ++i) { extents.push_back(space.allocate_sync(8_KiB)); }
  EXPECT_EQ(space.file_count(), 3U);
  EXPECT_NE(&space.extent(extents[0]).file, &space.extent(extents[5]).file);
  EXPECT_EQ(space.extent(extents[5]).offset, 8192);
  EXPECT_THROW((void)space.allocate_sync(16_KiB + 1), std::bad_alloc);
  for (void* const extent : extents) { space.deallocate_sync(extent, 8_KiB); }
  EXPECT_EQ(space.live_bytes(), 0);
}

TEST_F(DiskSpace, SaysWhyAFurtherFileCannotBeMadeAndGoesOn) {
  DiskSpaceResource const space{files, disk, {.directory = folder.path(), .file_bytes = 16_KiB}};
  DiskSpaceAdaptor tier{space, 64_KiB, disk_granularity};
  DiskSpaceReservation reservation = tier.reserve(32_KiB);
  auto resource = reservation.resource();
  void* const first = resource.allocate_sync(16_KiB);
  disk.fail({.operations = testing::SpillOperation::CreateFile, .error_number = EMFILE});
  try {
    (void)resource.allocate_sync(16_KiB);
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_EQ(error.error_number(), EMFILE);
    EXPECT_EQ(error.path(), space.directory().path());
  }
  EXPECT_EQ(reservation.balance(), static_cast<std::int64_t>(16_KiB));
  void* const second = resource.allocate_sync(16_KiB);
  resource.deallocate_sync(first, 16_KiB);
  resource.deallocate_sync(second, 16_KiB);
  EXPECT_EQ(reservation.balance(), static_cast<std::int64_t>(32_KiB));
}

TEST_F(DiskSpace, OutlivesItsFirstHandle) {
  void* extent = nullptr;
  std::optional<DiskSpaceReservation::Resource> kept;
  {
    DiskSpaceAdaptor tier{DiskSpaceResource{files, disk, {.directory = folder.path()}}, 64_KiB, disk_granularity};
    DiskSpaceReservation reservation = tier.reserve(8_KiB);
    kept.emplace(reservation.resource());
    extent = kept->allocate_sync(8_KiB);
  }
  EXPECT_EQ(disk.open_handles(), 1);
  kept->deallocate_sync(extent, 8_KiB);
  kept.reset();
  EXPECT_EQ(disk.open_handles(), 0);
}

TEST_F(DiskSpace, ChargesMemoryForWhatLiesInMemory) {
  disk.pretend({{"tmpfs"}, true, 1 << 20});
  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, 16_KiB};
  DiskSpaceOptions options{.directory = folder.path(), .to_memory = SpillToMemory::Allow};
  EXPECT_THROW((DiskSpaceResource{files, disk, options}), std::invalid_argument);
  options.memory = host;
  DiskSpaceResource space{files, disk, options};
  void* const extent = space.allocate_sync(5000);
  EXPECT_EQ(host.committed(), static_cast<std::int64_t>(8_KiB));
  EXPECT_THROW((void)space.allocate_sync(9000), ReservationRefused);
  EXPECT_EQ(space.live_bytes(), static_cast<std::int64_t>(8_KiB));
  space.deallocate_sync(extent, 5000);
  EXPECT_EQ(host.committed(), 0);
}

TEST_F(DiskSpace, RefusesFilesThatHoldNothing) {
  EXPECT_THROW((DiskSpaceResource{files, disk, {.directory = folder.path(), .file_bytes = 100}}),
               std::invalid_argument);
  DiskSpaceResource space{files, disk, {.directory = folder.path()}};
  EXPECT_EQ(space.allocate_sync(0), nullptr);
  space.deallocate_sync(nullptr, 0);
}

}  // namespace
}  // namespace earmark
