// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spillable_buffer.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/testing/manual_clock.hpp"
#include "earmark/testing/manual_executor.hpp"
#include "tier/tiers.hpp"

namespace earmark {
namespace {

using State = SpillableBuffer::State;
using testing::SpillOperation;

constexpr std::size_t bytes = 3 * Tiers::block + 100;

class SpillableBufferTest : public ::testing::Test {
 protected:
  std::shared_ptr<SpillableBuffer> make(MemoryType type, std::uint64_t seed,
                                        SpillableBufferOptions const& options = {}) {
    HostMemoryReservation host = tiers.host.reserve(bytes);
    Buffer buffer = tiers.buffers.allocate(bytes, tiers.stream, host);
    fill({buffer.data(), bytes}, seed);
    if (type == MemoryType::Device) {
      MemoryReservation device = tiers.device.reserve(bytes);
      buffer = tiers.buffers.move(std::move(buffer), tiers.stream, device);
    }
    return SpillableBuffer::make(tiers.buffers, std::move(buffer), tiers.stream, options);
  }
  bool has(SpillableBuffer& buffer, std::uint64_t seed, Access access = Access::Read) {
    HostMemoryReservation room = tiers.host.reserve(bytes);
    auto const use = buffer.use(access, tiers.stream, room);
    std::vector<std::byte> expected(bytes);
    fill(expected, seed);
    return std::memcmp(use.data(), expected.data(), bytes) == 0;
  }

  Tiers tiers;
  std::int64_t const host_before = tiers.host.committed();  // bounce buffers
};

TEST_F(SpillableBufferTest, GoesToTheDiskAndComesBack) {
  auto const buffer = make(MemoryType::Host, 1);
  EXPECT_EQ(buffer->spillable_bytes(MemoryType::Host), tiers.host.charge(bytes));
  EXPECT_EQ(buffer->spillable_bytes(MemoryType::Disk), 0);
  EXPECT_EQ(buffer->spill(MemoryType::Host), tiers.host.charge(bytes));
  EXPECT_EQ(buffer->state(), State::Spilled);
  EXPECT_EQ(buffer->memory_type(), MemoryType::Disk);
  EXPECT_EQ(tiers.host.committed(), host_before);
  EXPECT_EQ(buffer->spill(MemoryType::Host), 0);
  EXPECT_FALSE(buffer->try_use(Access::Read));
  EXPECT_TRUE(has(*buffer, 1));
  EXPECT_EQ(buffer->state(), State::Resident);
  EXPECT_TRUE(buffer->try_use(Access::Read));
}

TEST_F(SpillableBufferTest, StaysWhileItIsUsed) {
  auto const buffer = make(MemoryType::Host, 1);
  HostMemoryReservation none = tiers.host.reserve(0);
  {
    auto const use = buffer->use(Access::Write, tiers.stream, none);
    auto const second = buffer->try_use(Access::Read);
    EXPECT_EQ(buffer->spillable_bytes(MemoryType::Host), 0);
    EXPECT_EQ(buffer->spill(MemoryType::Host), 0);
    EXPECT_EQ(use.size(), bytes);
  }
  EXPECT_GT(buffer->spill(MemoryType::Host), 0);
}

TEST_F(SpillableBufferTest, GoesDownTierByTierAsTheLedgersHaveRoom) {
  auto const a = make(MemoryType::Device, 1);
  auto const b = make(MemoryType::Device, 2);
  auto const c = make(MemoryType::Device, 3);
  EXPECT_GT(a->spill(MemoryType::Device), 0);
  EXPECT_EQ(a->memory_type(), MemoryType::Pinned);
  PinnedMemoryReservation const no_pinned = tiers.pinned.reserve_up_to(Tiers::limit, 0);
  EXPECT_GT(b->spill(MemoryType::Device), 0);
  EXPECT_EQ(b->memory_type(), MemoryType::Host);
  std::optional<HostMemoryReservation> no_host{tiers.host.reserve_up_to(Tiers::limit, 0)};
  EXPECT_GT(c->spill(MemoryType::Device), 0);
  EXPECT_EQ(c->memory_type(), MemoryType::Disk);
  EXPECT_EQ(tiers.device.committed(), 0);
  // And further down, when those tiers are short.
  EXPECT_GT(a->spill(MemoryType::Pinned), 0);
  EXPECT_EQ(b->spillable_bytes(MemoryType::Host), tiers.host.charge(bytes));
  EXPECT_GT(b->spill(MemoryType::Host), 0);
  EXPECT_EQ(a->memory_type(), MemoryType::Disk);
  EXPECT_EQ(b->memory_type(), MemoryType::Disk);
  no_host.reset();
  MemoryReservation device = tiers.device.reserve(3 * bytes + 1024);
  for (auto const& [buffer, seed] : {std::pair{a, 1U}, {b, 2U}, {c, 3U}}) {
    { auto const use = buffer->use(Access::Read, tiers.stream, device); }
    EXPECT_EQ(buffer->memory_type(), MemoryType::Device);
    std::vector<std::byte> expected(bytes);
    fill(expected, seed);
    EXPECT_EQ(std::memcmp(buffer->try_use(Access::Read)->data(), expected.data(), bytes), 0);
  }
}

TEST_F(SpillableBufferTest, KeepsItsCopyUntilItIsWrittenTo) {
  auto const buffer = make(MemoryType::Host, 1);
  buffer->spill(MemoryType::Host);
  EXPECT_TRUE(has(*buffer, 1));
  std::int64_t const writes = tiers.disk.count(SpillOperation::Write);
  EXPECT_GT(buffer->spill(MemoryType::Host), 0);
  EXPECT_EQ(tiers.disk.count(SpillOperation::Write), writes);  // it was there already
  EXPECT_TRUE(has(*buffer, 1, Access::Write));
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);
  buffer->spill(MemoryType::Host);
  EXPECT_GT(tiers.disk.count(SpillOperation::Write), writes);
}

TEST_F(SpillableBufferTest, GivesUpItsCopyWhenTheRoomIsWanted) {
  auto const buffer = make(MemoryType::Host, 1);
  EXPECT_EQ(buffer->drop_copy(), 0);
  buffer->spill(MemoryType::Host);
  EXPECT_EQ(buffer->drop_copy(), 0);  // the only one there is
  EXPECT_TRUE(has(*buffer, 1));
  EXPECT_EQ(buffer->drop_copy(), tiers.disk_tier.adaptor().charge(bytes));
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);

  auto const keeps_none = make(MemoryType::Host, 2, {.clean_copies = CleanCopies::Drop});
  keeps_none->spill(MemoryType::Host);
  EXPECT_TRUE(has(*keeps_none, 2));
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);
}

TEST_F(SpillableBufferTest, FreesACopyInATierThatIsShort) {
  auto const buffer = make(MemoryType::Device, 1);
  PinnedMemoryReservation const no_pinned = tiers.pinned.reserve_up_to(Tiers::limit, 0);
  buffer->spill(MemoryType::Device);
  MemoryReservation device = tiers.device.reserve(bytes + 1024);
  { auto const use = buffer->use(Access::Read, tiers.stream, device); }
  EXPECT_EQ(buffer->spill(MemoryType::Host), tiers.host.charge(bytes));
  EXPECT_EQ(tiers.host.committed(), host_before);
  EXPECT_EQ(buffer->memory_type(), MemoryType::Device);
}

TEST_F(SpillableBufferTest, IsWaitedForWhileItSpillsAndNobodyElseIs) {
  auto const a = make(MemoryType::Host, 1);
  auto const b = make(MemoryType::Host, 2);
  tiers.disk.hold();
  std::thread spiller{[&] { EXPECT_GT(a->spill(MemoryType::Host), 0); }};
  tiers.disk.wait_until_held();
  EXPECT_EQ(a->state(), State::Spilling);
  EXPECT_FALSE(a->try_use(Access::Read));
  EXPECT_EQ(a->spillable_bytes(MemoryType::Host), 0);
  EXPECT_EQ(a->spill(MemoryType::Host), 0);
  EXPECT_EQ(a->drop_copy(), 0);
  EXPECT_TRUE(has(*b, 2));
  std::thread user{[&] { EXPECT_TRUE(has(*a, 1)); }};
  tiers.disk.let_go();
  user.join();
  spiller.join();
  EXPECT_EQ(a->state(), State::Resident);
}

// The bytes that it gives up are granted on its own thread, to a callback that wants them for this very buffer.
TEST_F(SpillableBufferTest, MayBeUsedByTheCallbackOfAWaiterThatItsBytesGoTo) {
  for (MemoryType const from : {MemoryType::Host, MemoryType::Device}) {
    auto const buffer = make(from, 1);
    if (from == MemoryType::Device) {  // to the host first, so that it is moved on from there
      PinnedMemoryReservation const no_pinned = tiers.pinned.reserve_up_to(Tiers::limit, 0);
      ASSERT_GT(buffer->spill(MemoryType::Device), 0);
      ASSERT_EQ(buffer->memory_type(), MemoryType::Host);
    }
    HostMemoryReservation taken = tiers.host.reserve_up_to(Tiers::limit, 0);
    bool same = false;
    tiers.host.async_reserve(bytes, [&](ReservationResult<HostMemoryReservation> result) {
      HostMemoryReservation room = result.take();
      auto const use = buffer->use(Access::Read, tiers.stream, room);
      std::vector<std::byte> expected(bytes);
      fill(expected, 1);
      same = std::memcmp(use.data(), expected.data(), bytes) == 0;
    });
    EXPECT_GT(buffer->spill(MemoryType::Host), 0);
    EXPECT_TRUE(same);
  }
}

TEST_F(SpillableBufferTest, OrdersUsesBehindTheStreamThatRestoredIt) {
  auto const buffer = make(MemoryType::Device, 1);
  ASSERT_GT(buffer->spill(MemoryType::Device), 0);
  MemoryReservation device = tiers.device.reserve(2 * bytes);
  { auto const use = buffer->use(Access::Read, tiers.stream, device); }
  cuda::stream_ref const other = testing::ManualStreamEvents::stream(2);
  auto const restore = tiers.copier.last;
  EXPECT_FALSE(tiers.events.is_behind(other, restore));
  auto const use = buffer->use(Access::Read, other, device);
  EXPECT_TRUE(tiers.events.is_behind(other, restore));
}

TEST_F(SpillableBufferTest, MayBeDroppedByItsOwnerWhileItSpills) {
  auto buffer = make(MemoryType::Host, 1);
  tiers.disk.hold();
  std::thread spiller{[kept = buffer] { EXPECT_GT(kept->spill(MemoryType::Host), 0); }};
  tiers.disk.wait_until_held();
  buffer.reset();
  tiers.disk.let_go();
  spiller.join();
  EXPECT_EQ(tiers.host.committed(), host_before);
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);
}

TEST_F(SpillableBufferTest, StaysReadableWhereItIsWhicheverOperationFails) {
  for (int const error : {ENOSPC, EIO, EDQUOT, EACCES, EROFS}) {
    for (std::int64_t n = 0;; ++n) {
      auto const buffer = make(MemoryType::Host, 1);
      std::int64_t const faults = tiers.disk.faults();
      tiers.disk.fail({.after = n, .error_number = error});
      bool failed = false;
      State expected = State::Resident;
      try {
        (void)buffer->spill(MemoryType::Host);
        expected = State::Spilled;
        (void)has(*buffer, 1);
      }
      catch (FileSystemError const& thrown) {
        EXPECT_EQ(thrown.error_number(), error);
        EXPECT_EQ(buffer->state(), expected);
        failed = true;
      }
      tiers.disk.heal();
      EXPECT_TRUE(has(*buffer, 1));
      if (tiers.disk.faults() == faults) {
        EXPECT_FALSE(failed);
        break;
      }
    }
  }
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);
  EXPECT_EQ(tiers.host.committed(), host_before);
}

TEST_F(SpillableBufferTest, StaysSpilledWhenThereIsNoRoomToComeBackTo) {
  auto const buffer = make(MemoryType::Host, 1);
  buffer->spill(MemoryType::Host);
  HostMemoryReservation small = tiers.host.reserve(bytes / 2);
  EXPECT_THROW((void)buffer->use(Access::Read, tiers.stream, small), ReservationExhausted);
  EXPECT_EQ(buffer->state(), State::Spilled);
  EXPECT_TRUE(has(*buffer, 1));
}

// While it was on its way up, it could not be asked to go further down.
TEST_F(SpillableBufferTest, TellsTheManagerThatItStayedBelow) {
  testing::ManualClock clock;
  testing::ManualExecutor executor{clock};
  SpillManager spills{tiers.buffers, MemoryType::Host, executor, {.clock = &clock}};
  auto const buffer = make(MemoryType::Host, 1, {.waker = spills.waker()});
  buffer->spill(MemoryType::Host);
  HostMemoryReservation small = tiers.host.reserve(bytes / 2);
  HostMemoryReservation const taken = tiers.host.reserve_up_to(Tiers::limit, 0);
  tiers.host.async_reserve(bytes, [](ReservationResult<HostMemoryReservation> const&) {});
  executor.run_ready();
  std::int64_t const looked = spills.statistics().fell_short;
  EXPECT_THROW((void)buffer->use(Access::Read, tiers.stream, small), ReservationExhausted);
  executor.run_ready();
  EXPECT_EQ(spills.statistics().fell_short, looked + 1);
}

TEST_F(SpillableBufferTest, SaysThatThereIsNowhereToGo) {
  BufferResource only_host{{.host = tiers.host}};
  HostMemoryReservation host = tiers.host.reserve(bytes);
  auto const buffer = SpillableBuffer::make(only_host, only_host.allocate(bytes, tiers.stream, host), tiers.stream);
  EXPECT_THROW((void)buffer->spill(MemoryType::Host), ReservationRefused);
  EXPECT_EQ(buffer->state(), State::Resident);
}

TEST_F(SpillableBufferTest, BeginsSpilledIfItsBytesAreOnADisk) {
  HostMemoryReservation host = tiers.host.reserve(bytes);
  Buffer buffer = tiers.buffers.allocate(bytes, tiers.stream, host);
  fill({buffer.data(), bytes}, 4);
  DiskSpaceReservation disk = tiers.disk_tier.adaptor().reserve(bytes);
  buffer = tiers.buffers.move(std::move(buffer), tiers.stream, disk);
  auto const spilled = SpillableBuffer::make(tiers.buffers, std::move(buffer), tiers.stream);
  EXPECT_EQ(spilled->state(), State::Spilled);
  host = {};
  EXPECT_TRUE(has(*spilled, 4));
}

TEST_F(SpillableBufferTest, RemembersWhenItCameBack) {
  testing::ManualClock clock;
  auto const buffer = make(MemoryType::Host, 1, {.clock = &clock});
  EXPECT_FALSE(buffer->restored_at());
  buffer->spill(MemoryType::Host);
  EXPECT_TRUE(has(*buffer, 1));
  EXPECT_EQ(buffer->restored_at(), clock.now());
}

// Twice as much data as memory, and readers and writers who wait for room: every byte comes back, whoever moved it.
TEST(SpillableBuffers, ServeThreadsThatWaitForMemoryThatOthersHold) {
  constexpr std::size_t size = 20'000;
  constexpr std::size_t count = 24;
  Tiers tiers;
  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, count / 2 * 20'032 + 2 * Tiers::block};
  BufferResource buffers{{.host = host, .disk = tiers.disk_tier, .bounces = {.count = 2, .bytes = Tiers::block}}};
  std::int64_t const before = host.committed();
  {
    SpillManager spills{buffers, MemoryType::Host, tiers.pool, {.at_once = 2}};
    std::vector<std::shared_ptr<SpillableBuffer>> all;
    std::vector<SpillRegistration> registrations;
    for (std::size_t i = 0; i < count; ++i) {
      HostMemoryReservation room = host.reserve_blocking(size);
      Buffer buffer = buffers.allocate(size, tiers.stream, room);
      fill({buffer.data(), size}, i);
      room.close();
      all.push_back(SpillableBuffer::make(buffers, std::move(buffer), tiers.stream, {.waker = spills.waker()}));
      registrations.push_back(spills.add(all.back()));
    }
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random{t};
        std::vector<std::byte> expected(size);
        for (int i = 0; i < 100; ++i) {
          std::size_t const which = random() % (count / 4) * 4 + t;  // each thread writes its own
          HostMemoryReservation room = host.reserve_blocking(size);
          auto const use = all[which]->use(random() % 2 == 0 ? Access::Read : Access::Write, tiers.stream, room);
          fill(expected, which);
          ASSERT_EQ(std::memcmp(use.data(), expected.data(), size), 0);
          room.close();
        }
      });
    }
    for (std::thread& thread : threads) { thread.join(); }
    EXPECT_GT(spills.statistics().spills, static_cast<std::int64_t>(count / 2));
    EXPECT_EQ(spills.statistics().failed, 0);
  }
  EXPECT_EQ(host.committed(), before);
  EXPECT_EQ(host.peak_committed() <= host.limit(), true);
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);
}

// A process that spills and restores for ever, and says so after each step. Never returns.
[[noreturn]] void spill_for_ever(std::string const& directory, int told) {
  ThreadPool pool{2};
  PosixFileSystem files;
  PosixSpillDisk real_disk{pool};
  testing::FaultySpillDisk disk{real_disk};
  disk.pretend({{"ext4"}, false, 1 << 30});  // whatever the tests run on: elsewhere nothing stale is removed
  DiskTier const tier{files, disk, {.space = {.directory = directory}, .block_bytes = Tiers::block}};
  HostReservationAwareResourceAdaptor const host{HostMemoryResource{}, 4_MiB};
  BufferResource buffers{{.host = host, .disk = tier, .bounces = {.count = 2, .bytes = Tiers::block}}};
  cuda::stream_ref const stream{cudaStream_t{}};
  HostMemoryReservation room = buffers.host().reserve(2_MiB);
  auto const spillable = SpillableBuffer::make(buffers, buffers.allocate(1_MiB, stream, room), stream);
  for (char step = 0;; ++step) {
    (void)spillable->spill(MemoryType::Host);
    if (::write(told, &step, 1) != 1) { ::_exit(1); }
    auto const use = spillable->use(Access::Write, stream, room);
    if (::write(told, &step, 1) != 1) { ::_exit(1); }
  }
}

TEST(SpillableBuffers, LeaveNoByteBehindWhereverTheirProcessIsKilled) {
  TemporaryFolder folder{std::filesystem::current_path()};
  for (int steps = 1; steps <= 12; ++steps) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    pid_t const child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) { spill_for_ever(folder.path(), pipe[1]); }
    for (int i = 0; i < steps; ++i) {
      char step = 0;
      ASSERT_EQ(::read(pipe[0], &step, 1), 1);
    }
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(pipe[0]);
    ::close(pipe[1]);
    // The next process has removed the folder of the one before.
    std::vector<std::filesystem::path> left;
    for (auto const& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      EXPECT_TRUE(entry.is_directory());
      left.push_back(entry.path());
    }
    EXPECT_EQ(left.size(), 1U);
  }
}

TEST(SpillableBuffers, EndWhereTheyBeganAfterTenThousandCycles) {
  Tiers tiers;
  std::int64_t const host_before = tiers.host.committed();
  std::int64_t const handles_before = tiers.disk.open_handles();
  HostMemoryReservation room = tiers.host.reserve(8_KiB);
  Buffer buffer = tiers.buffers.allocate(5000, tiers.stream, room);
  fill({buffer.data(), 5000}, 1);
  auto spillable = SpillableBuffer::make(tiers.buffers, std::move(buffer), tiers.stream);
  for (int cycle = 0; cycle < 10'000; ++cycle) {
    ASSERT_GT(spillable->spill(MemoryType::Host), 0);
    auto const use = spillable->use(cycle % 2 == 0 ? Access::Write : Access::Read, tiers.stream, room);
  }
  spillable.reset();
  room = {};
  EXPECT_EQ(tiers.host.committed(), host_before);
  EXPECT_EQ(tiers.disk_tier.adaptor().committed(), 0);
  EXPECT_LE(tiers.disk.open_handles(), handles_before + 1);  // a queue is kept
}

}  // namespace
}  // namespace earmark
