// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/disk_tier.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/temporary_folder.hpp"
#include "earmark/core/bytes.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/testing/faulty_spill_disk.hpp"
#include "earmark/tier/errors.hpp"
#include "earmark/tier/posix_spill_disk.hpp"
#include "tier/pages.hpp"
#include "tier/rings.hpp"

namespace earmark {
namespace {

using testing::SpillFaultEffect;
using testing::SpillFaultRepeat;
using testing::SpillOperation;

constexpr std::size_t block = 16_KiB;

// Memory that cannot be addressed by the system, as a device's: everything goes through bounce buffers.
class CountingCopier final : public MemoryCopier {
 public:
  void copy(std::byte* to, std::byte const* from, std::size_t bytes, cuda::stream_ref) override {
    if (copies++ == fail_at) { throw std::runtime_error("the device is gone"); }
    std::memcpy(to, from, bytes);
  }
  StreamEvents& events() noexcept override { return events_; }

  int copies{0};
  int fail_at{-1};

 private:
  HostStreamEvents events_;
};

class DiskTierTest : public ::testing::TestWithParam<UseIoUring> {
 protected:
  DiskTierTest() { fill(source.span(), 7); }

  TransferMemory from(std::size_t bytes, std::size_t skip = 0) { return {source.data() + skip, bytes}; }
  TransferMemory to() { return {target.data(), target.size()}; }
  [[nodiscard]] bool same(std::size_t bytes, std::size_t skip = 0) const {
    return std::memcmp(source.data() + skip, target.data(), bytes) == 0;
  }
  void expect_untouched() {
    EXPECT_EQ(reservation.balance(), static_cast<std::int64_t>(1_MiB));
    EXPECT_EQ(tier.adaptor().committed(), static_cast<std::int64_t>(1_MiB));
    EXPECT_EQ(tier.adaptor().current_allocated(), 0);
    EXPECT_TRUE(bounces_are_back());
    for (auto const& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      EXPECT_TRUE(entry.is_directory());
    }
  }
  bool bounces_are_back() {
    auto const a = bounces.try_take();
    auto const b = bounces.try_take();
    return a && b;
  }

  Pages source{256_KiB};
  Pages target{256_KiB};
  TemporaryFolder folder{std::filesystem::current_path()};
  PosixFileSystem files;
  ThreadPool pool{2};
  PosixSpillDisk real_disk{pool, {.io_uring = GetParam()}};
  testing::FaultySpillDisk disk{real_disk};
  DiskTier tier{
      files,
      disk,
      {.space = {.directory = folder / "spill"}, .limit = 1_MiB, .block_bytes = block, .blocks_in_flight = 3}};
  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, 1_MiB};
  BouncePool bounces{host, {.count = 2, .bytes = block}};
  DiskSpaceReservation reservation = tier.adaptor().reserve(1_MiB);
};

std::string name_of(::testing::TestParamInfo<UseIoUring> const& way) {
  return way.param == UseIoUring::Never ? "Workers" : "Ring";
}
INSTANTIATE_TEST_SUITE_P(Ways, DiskTierTest, ::testing::Values(UseIoUring::WherePossible, UseIoUring::Never), name_of);

TEST_P(DiskTierTest, BringsBackWhatItWroteWhateverItsSizeAndPlace) {
  for (std::size_t const bytes :
       {std::size_t{1}, std::size_t{4095}, 4_KiB, block - 1, block, block + 1, 5 * block, 7 * block + 100, 240_KiB}) {
    for (std::size_t const skip : {std::size_t{0}, std::size_t{8}}) {
      std::memset(target.data(), 0, target.size());
      SpilledBytes const stored = tier.write(from(bytes, skip), reservation, bounces);
      EXPECT_EQ(stored.size(), bytes);
      EXPECT_EQ(tier.adaptor().current_allocated(), *checked_round_up(bytes, 4096));
      tier.read(stored, to(), bounces);
      EXPECT_TRUE(same(bytes, skip)) << bytes << " at " << skip;
    }
  }
  expect_untouched();
}

TEST_P(DiskTierTest, KeepsNothingForNothing) {
  SpilledBytes const stored = tier.write(from(0), reservation, bounces);
  tier.read(stored, to(), bounces);
  EXPECT_EQ(stored.size(), 0U);
  expect_untouched();
}

TEST_P(DiskTierTest, NeedsNoBounceBufferForPagesOfTheHost) {
  auto const a = bounces.try_take();
  auto const b = bounces.try_take();
  SpilledBytes const stored = tier.write(from(5 * block), reservation, bounces);
  tier.read(stored, to(), bounces);
  EXPECT_TRUE(same(5 * block));
}

TEST_P(DiskTierTest, MovesDeviceMemoryThroughOneBounceBuffer) {
  auto const taken = bounces.try_take();
  CountingCopier copier;
  TransferMemory device = from(5 * block);
  device.type = MemoryType::Device;
  device.copier = &copier;
  SpilledBytes const stored = tier.write(device, reservation, bounces);
  EXPECT_EQ(copier.copies, 5);
  TransferMemory back = to();
  back.type = MemoryType::Device;
  back.copier = &copier;
  tier.read(stored, back, bounces);
  EXPECT_EQ(copier.copies, 10);
  EXPECT_TRUE(same(5 * block));
}

TEST_P(DiskTierTest, GoesOnWithFewBounceBuffersForMany) {
  std::vector<DiskSpaceReservation> own;
  for (int i = 0; i < 4; ++i) { own.push_back(reservation.split(64_KiB)); }
  std::latch start{4};
  std::vector<std::thread> threads;
  for (DiskSpaceReservation& mine : own) {
    threads.emplace_back([&] {
      Pages back{64_KiB};
      start.arrive_and_wait();
      for (int round = 0; round < 10; ++round) {
        SpilledBytes const stored = tier.write(from(63_KiB, 8), mine, bounces);
        tier.read(stored, {back.data(), back.size()}, bounces);
        EXPECT_EQ(std::memcmp(back.data(), source.data() + 8, 63_KiB), 0);
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  for (DiskSpaceReservation& mine : own) { reservation.merge(std::move(mine)); }
  expect_untouched();
}

TEST_P(DiskTierTest, SaysWhatWasWrongWithADiskAndChangesNothing) {
  for (int const error : {ENOSPC, EIO, EDQUOT, EACCES, EROFS}) {
    for (SpillOperation const operation : {SpillOperation::Place, SpillOperation::Write, SpillOperation::OpenQueue}) {
      disk.heal();
      // A tier keeps its queues: only the first needs one.
      if (operation == SpillOperation::OpenQueue && error != ENOSPC) { continue; }
      disk.fail({.operations = operation, .after = operation == SpillOperation::Write ? 2 : 0, .error_number = error});
      try {
        (void)tier.write(from(7 * block), reservation, bounces);
        if (operation != SpillOperation::OpenQueue) { FAIL() << error; }
      }
      catch (FileSystemError const& thrown) {
        EXPECT_EQ(thrown.error_number(), error);
        if (operation == SpillOperation::Write) { EXPECT_EQ(thrown.bytes(), static_cast<std::int64_t>(block)); }
        if (operation != SpillOperation::OpenQueue) { EXPECT_TRUE(thrown.path().starts_with(folder.path())); }
      }
      expect_untouched();
    }
  }
  disk.heal();
  SpilledBytes const stored = tier.write(from(7 * block), reservation, bounces);
  tier.read(stored, to(), bounces);
  EXPECT_TRUE(same(7 * block));
}

TEST_P(DiskTierTest, LeavesTheReservationAsItWasWhicheverOperationFails) {
  for (std::int64_t n = 0;; ++n) {
    testing::FaultySpillDisk failing{real_disk};
    {
      DiskTier own{files, failing, {.space = {.directory = folder / "own"}, .block_bytes = block}};
      DiskSpaceReservation own_reservation = own.adaptor().reserve(1_MiB);
      failing.fail({.after = n, .error_number = EIO});
      bool failed = false;
      {
        std::optional<SpilledBytes> stored;
        try {
          stored.emplace(own.write(from(5 * block, 8), own_reservation, bounces));
          own.read(*stored, to(), bounces);
        }
        catch (FileSystemError const&) {
          failed = true;
        }
        failing.heal();
        if (stored) {  // what is on the disk is not the worse for a read that failed
          own.read(*stored, to(), bounces);
          EXPECT_TRUE(same(5 * block, 8));
        }
      }
      EXPECT_EQ(failed, failing.faults() != 0);
      EXPECT_EQ(own_reservation.balance(), static_cast<std::int64_t>(1_MiB));
    }
    EXPECT_EQ(failing.open_handles(), 0);
    if (failing.faults() == 0) { break; }
    ASSERT_LT(n, 100);
  }
  expect_untouched();
}

TEST_P(DiskTierTest, HandsNothingOnThatChangedOnTheDisk) {
  for (SpillFaultEffect const effect : {SpillFaultEffect::FlipBit, SpillFaultEffect::Tear}) {
    disk.fail({.operations = SpillOperation::Write, .after = 2, .effect = effect});
    SpilledBytes const stored = tier.write(from(5 * block), reservation, bounces);
    try {
      tier.read(stored, to(), bounces);
      FAIL();
    }
    catch (SpilledDataCorrupted const& error) {
      EXPECT_EQ(error.fields().requested, static_cast<std::int64_t>(block));
      EXPECT_NE(std::string{error.what()}.find(folder.path()), std::string::npos);
    }
  }
  expect_untouched();
}

TEST_P(DiskTierTest, ReadsAgainWhatWasOnlyReadWrong) {
  SpilledBytes const stored = tier.write(from(5 * block), reservation, bounces);
  disk.fail({.operations = SpillOperation::Read, .after = 1, .effect = SpillFaultEffect::FlipBit});
  EXPECT_THROW(tier.read(stored, to(), bounces), SpilledDataCorrupted);
  tier.read(stored, to(), bounces);
  EXPECT_TRUE(same(5 * block));
}

TEST_P(DiskTierTest, EndsWhatIsInFlightBeforeItReportsADeviceThatFailed) {
  for (int n = 0; n < 5; ++n) {
    CountingCopier copier;
    copier.fail_at = n;
    TransferMemory device = from(5 * block);
    device.type = MemoryType::Device;
    device.copier = &copier;
    EXPECT_THROW((void)tier.write(device, reservation, bounces), std::runtime_error);
    expect_untouched();
  }
}

TEST_P(DiskTierTest, RefusesWhatPassesItsReservationOrQuotaBeforeItWrites) {
  DiskSpaceReservation small = reservation.split(block);
  EXPECT_THROW((void)tier.write(from(block + 1), small, bounces), ReservationExhausted);
  EXPECT_THROW((void)tier.adaptor().reserve(4096), ReservationRefused);
  small.close();
  EXPECT_THROW((void)tier.write(from(1), small, bounces), ReservationClosed);
  EXPECT_EQ(disk.count(SpillOperation::Write | SpillOperation::Place), 0);
}

// A quota of 1000 blocks: 400 are written, twice 600 are refused for different reasons, 500 go well.
TEST_P(DiskTierTest, CountsWhatIsOnTheDiskAndNothingElse) {
  DiskTier own{files, disk, {.space = {.directory = folder / "own"}, .limit = 40_KiB, .block_bytes = block}};
  DiskSpaceAdaptor space = own.adaptor();
  auto const spill = [&](std::size_t bytes) {
    DiskSpaceReservation room = space.reserve(bytes);
    return own.write(from(bytes), room, bounces);
  };
  {
    SpilledBytes const first = spill(16_KiB);
    EXPECT_EQ(space.committed(), static_cast<std::int64_t>(16_KiB));
    EXPECT_THROW((void)spill(28_KiB), ReservationRefused);
    disk.fail({.operations = SpillOperation::Write, .error_number = EBADF});
    EXPECT_THROW((void)spill(20_KiB), FileSystemError);
    EXPECT_EQ(space.committed(), static_cast<std::int64_t>(16_KiB));
    SpilledBytes const second = spill(20_KiB);
    EXPECT_EQ(space.committed(), static_cast<std::int64_t>(36_KiB));
  }
  EXPECT_EQ(space.committed(), 0);
}

TEST_P(DiskTierTest, GoesOnInADirectoryThatWasDeletedOrMadeReadOnly) {
  std::filesystem::permissions(folder / "spill", std::filesystem::perms::owner_read);
  std::filesystem::remove_all(folder / "spill");
  SpilledBytes const stored = tier.write(from(5 * block), reservation, bounces);
  tier.read(stored, to(), bounces);
  EXPECT_TRUE(same(5 * block));
}

TEST_P(DiskTierTest, CopiesFromTheDiskToTheDiskThroughOneBounceBuffer) {
  auto const taken = bounces.try_take();
  for (std::size_t const bytes : {std::size_t{1}, block, 3 * block + 100}) {
    std::optional<SpilledBytes> first{tier.write(from(bytes), reservation, bounces)};
    SpilledBytes const second = tier.copy(*first, reservation, bounces);
    first.reset();
    tier.read(second, to(), bounces);
    EXPECT_TRUE(same(bytes));
  }
  SpilledBytes const stored = tier.write(from(3 * block), reservation, bounces);
  disk.fail({.operations = SpillOperation::Read, .after = 1, .effect = SpillFaultEffect::FlipBit});
  EXPECT_THROW((void)tier.copy(stored, reservation, bounces), SpilledDataCorrupted);
  disk.fail({.operations = SpillOperation::Write, .after = 1, .error_number = ENOSPC});
  EXPECT_THROW((void)tier.copy(stored, reservation, bounces), FileSystemError);
  EXPECT_EQ(tier.adaptor().current_allocated(), static_cast<std::int64_t>(3 * block));
}

TEST_P(DiskTierTest, RefusesReservationsAndBytesOfAnotherDisk) {
  DiskTier other{files, disk, {.space = {.directory = folder / "other"}, .limit = 1_MiB, .block_bytes = block}};
  DiskSpaceReservation others = other.adaptor().reserve(64_KiB);
  EXPECT_THROW((void)tier.write(from(block), others, bounces), ReservationMismatch);
  EXPECT_EQ(others.balance(), static_cast<std::int64_t>(64_KiB));
  {
    SpilledBytes const stored = other.write(from(block), others, bounces);
    EXPECT_THROW(tier.read(stored, to(), bounces), ReservationMismatch);
    EXPECT_THROW((void)tier.copy(stored, reservation, bounces), ReservationMismatch);
    EXPECT_THROW((void)other.copy(stored, reservation, bounces), ReservationMismatch);
    other.read(stored, to(), bounces);
    EXPECT_TRUE(same(block));
  }
  // A quota on this disk is this disk.
  DiskSpaceReservation const part = reservation.split(64_KiB);
  DiskSpaceAdaptor quota{part, 64_KiB, {.granularity = disk_granularity}};
  DiskSpaceReservation nested = quota.reserve(block);
  SpilledBytes const stored = tier.write(from(block), nested, bounces);
  tier.read(stored, to(), bounces);
  EXPECT_TRUE(same(block));
}

TEST_P(DiskTierTest, DropsQueuesThatAreNoLongerUsable) {
  if (real_disk.method() != SpillMethod::IoUring) { GTEST_SKIP() << "no rings here"; }
  std::vector<int> const before = rings();
  { SpilledBytes const stored = tier.write(from(5 * block), reservation, bounces); }
  std::vector<int> const after = rings();
  ASSERT_EQ(after.size(), before.size() + 1);
  int const null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int const ring : after) {
    if (std::find(before.begin(), before.end(), ring) == before.end()) { ASSERT_EQ(::dup2(null, ring), ring); }
  }
  SpilledBytes const stored = tier.write(from(5 * block), reservation, bounces);  // by a ring that is none any more
  EXPECT_EQ(rings().size(), before.size());
  tier.read(stored, to(), bounces);
  EXPECT_TRUE(same(5 * block));
  EXPECT_EQ(rings().size(), before.size() + 1);  // another one
  ::close(null);
}

TEST_P(DiskTierTest, ReportsItselfForPeople) {
  DiskTierReport const report = tier.report();
  EXPECT_TRUE(report.directory.starts_with(folder / "spill"));
  EXPECT_FALSE(report.place.file_system.empty());
  EXPECT_GT(report.place.free_bytes, 0);
  EXPECT_EQ(report.method, real_disk.method());
  EXPECT_EQ(report.limit, static_cast<std::int64_t>(1_MiB));
  EXPECT_EQ(report.committed, static_cast<std::int64_t>(1_MiB));
}

TEST_P(DiskTierTest, RefusesSizesThatItCannotMove) {
  EXPECT_THROW((DiskTier{files, disk, {.space = {.directory = folder / "own"}, .block_bytes = 1000}}),
               std::invalid_argument);
  BouncePool const small_bounces{host, {.count = 1, .bytes = 4_KiB}};
  EXPECT_THROW((void)tier.write(from(1), reservation, const_cast<BouncePool&>(small_bounces)), std::invalid_argument);
}

}  // namespace
}  // namespace earmark
