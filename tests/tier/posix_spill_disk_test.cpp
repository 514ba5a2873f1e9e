// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/posix_spill_disk.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <latch>
#include <memory>
#include <set>
#include <vector>

#include "core/temporary_folder.hpp"
#include "earmark/core/bytes.hpp"
#include "earmark/core/file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "tier/pages.hpp"
#include "tier/posix_spill_file.hpp"
#include "tier/rings.hpp"

namespace earmark {
namespace {

int descriptor_of(SpillFile& file) { return static_cast<detail::PosixSpillFile&>(file).descriptor(); }

// Every way of doing transfers, and of making files, on the file system of temporary files.
class PosixSpillDiskTest : public ::testing::TestWithParam<PosixSpillDiskOptions> {
 protected:
  SpillTransfer transfer(SpillDirection direction, Pages const& pages, std::size_t bytes, std::int64_t offset,
                         std::uint64_t tag = 0) {
    return {direction, file.get(), pages.data(), bytes, offset, tag};
  }
  int move(SpillDirection direction, Pages const& pages, std::int64_t offset) {
    queue->submit(transfer(direction, pages, pages.size(), offset));
    return queue->wait().error_number;
  }

  TemporaryFolder folder{std::filesystem::current_path()};
  ThreadPool pool{2};
  PosixSpillDisk disk{pool, GetParam()};
  std::unique_ptr<SpillFile> file = disk.create_unnamed(folder.path());
  std::unique_ptr<SpillQueue> queue = disk.open_queue(4);
};

std::vector<PosixSpillDiskOptions> ways() {
  std::vector<PosixSpillDiskOptions> all;
  for (UseIoUring ring : {UseIoUring::WherePossible, UseIoUring::Never}) {
    for (UseDirect direct : {UseDirect::WherePossible, UseDirect::Never}) { all.push_back({ring, direct, {}}); }
  }
  all.push_back({UseIoUring::WherePossible, UseDirect::WherePossible, UseUnnamed::Never});
  return all;
}
std::string name_of(::testing::TestParamInfo<PosixSpillDiskOptions> const& way) {
  return std::string{way.param.io_uring == UseIoUring::Never ? "Workers" : "Ring"} +
         (way.param.direct == UseDirect::Never ? "Cached" : "Direct") +
         (way.param.unnamed == UseUnnamed::Never ? "Unlinked" : "");
}
INSTANTIATE_TEST_SUITE_P(Ways, PosixSpillDiskTest, ::testing::ValuesIn(ways()), name_of);

TEST_P(PosixSpillDiskTest, FilesHaveNoNameAndAreTheirOwnersAlone) {
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  struct stat status{};
  ASSERT_EQ(::fstat(descriptor_of(*file), &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(file->folder(), folder.path());
}

TEST_P(PosixSpillDiskTest, ReadsWhatItWrote) {
  Pages written{64_KiB};
  Pages read{64_KiB};
  fill(written.span(), 1);
  EXPECT_EQ(move(SpillDirection::Write, written, 8192), 0);
  EXPECT_EQ(move(SpillDirection::Read, read, 8192), 0);
  EXPECT_TRUE(written == read);
}

TEST_P(PosixSpillDiskTest, HasAsManyTransfersInFlightAsItsDepth) {
  Pages written{64_KiB};
  Pages read{64_KiB};
  fill(written.span(), 2);
  for (SpillDirection direction : {SpillDirection::Write, SpillDirection::Read}) {
    Pages& pages = direction == SpillDirection::Write ? written : read;
    std::set<std::uint64_t> ended;
    for (std::uint64_t i = 0; i < 4; ++i) {
      queue->submit(
          {direction, file.get(), pages.data() + i * 16_KiB, 16_KiB, static_cast<std::int64_t>(i * 16_KiB), i});
    }
    for (int i = 0; i < 4; ++i) {
      SpillOutcome const outcome = queue->wait();
      EXPECT_EQ(outcome.error_number, 0);
      ended.insert(outcome.tag);
    }
    EXPECT_EQ(ended, (std::set<std::uint64_t>{0, 1, 2, 3}));
  }
  EXPECT_TRUE(written == read);
}

TEST_P(PosixSpillDiskTest, WaitsForWhatIsInFlightWhenAQueueGoes) {
  Pages written{64_KiB};
  Pages read{64_KiB};
  fill(written.span(), 3);
  {
    std::unique_ptr<SpillQueue> const other = disk.open_queue(2);
    other->submit(transfer(SpillDirection::Write, written, written.size(), 0));
  }
  EXPECT_EQ(move(SpillDirection::Read, read, 0), 0);
  EXPECT_TRUE(written == read);
}

TEST_P(PosixSpillDiskTest, ReportsAReadBeyondTheEnd) {
  Pages pages{16_KiB};
  EXPECT_EQ(move(SpillDirection::Write, pages, 0), 0);
  EXPECT_EQ(move(SpillDirection::Read, pages, 8192), EIO);
  EXPECT_EQ(move(SpillDirection::Read, pages, 0), 0);
}

// No threads yet: they do not come with a fork.
class PosixSpillDiskInAChild : public ::testing::TestWithParam<PosixSpillDiskOptions> {
 protected:
  TemporaryFolder folder{std::filesystem::current_path()};
};
INSTANTIATE_TEST_SUITE_P(Ways, PosixSpillDiskInAChild, ::testing::ValuesIn(ways()), name_of);

// The system writes the part below the limit and refuses the rest: a short write, and then an error.
TEST_P(PosixSpillDiskInAChild, GoesOnAfterAShortWriteAndReportsWhyItEnded) {
  pid_t const child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit const limit{16_KiB, 16_KiB};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) { ::_exit(2); }
    ThreadPool pool{1};
    PosixSpillDisk disk{pool, GetParam()};
    auto const file = disk.create_unnamed(folder.path());
    auto const queue = disk.open_queue(1);
    Pages pages{32_KiB};
    queue->submit({SpillDirection::Write, file.get(), pages.data(), pages.size(), 0, 0});
    bool const refused = queue->wait().error_number == EFBIG;
    queue->submit({SpillDirection::Read, file.get(), pages.data(), 16_KiB, 0, 0});
    bool const first_part_is_there = queue->wait().error_number == 0;
    ::_exit(refused && first_part_is_there ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(PosixSpillDiskTest, GivesSpaceBackWhereItWasReleased) {
  Pages written{1_MiB};
  fill(written.span(), 4);
  EXPECT_EQ(file->place_bytes(0, 1_MiB), 0);
  EXPECT_EQ(move(SpillDirection::Write, written, 0), 0);
  auto const blocks = [&] {
    struct stat status{};
    EXPECT_EQ(::fstat(descriptor_of(*file), &status), 0);
    return status.st_blocks * 512;
  };
  EXPECT_GE(blocks(), static_cast<std::int64_t>(1_MiB));
  file->release_bytes(0, 1_MiB);
  EXPECT_LT(blocks(), static_cast<std::int64_t>(64_KiB));
}

TEST_P(PosixSpillDiskTest, SaysWhyItCannotMakeAFile) {
  try {
    (void)disk.create_unnamed(folder / "missing");
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_EQ(error.error_number(), ENOENT);
    EXPECT_EQ(error.path(), folder / "missing");
  }
  EXPECT_THROW((void)disk.look_at(folder / "missing"), FileSystemError);
}

TEST(PosixSpillDisk, KnowsFileSystemsThatAreMemory) {
  ThreadPool pool{1};
  PosixSpillDisk disk{pool};
  EXPECT_EQ(disk.look_at("/proc").file_system.view().find_first_not_of("0123456789"), std::string_view::npos);
  EXPECT_FALSE(disk.look_at("/proc").held_in_memory);
  if (disk.look_at("/dev/shm").file_system.view() != "tmpfs") { GTEST_SKIP() << "/dev/shm is no tmpfs here"; }
  EXPECT_TRUE(disk.look_at("/dev/shm").held_in_memory);
  EXPECT_GT(disk.look_at("/dev/shm").free_bytes, 0);
}

// A ring that the kernel takes nothing from any more: what is in flight ends well all the same, and the queue says so.
TEST(PosixSpillDisk, EndsTransfersWithoutTheRingOnceThatIsBroken) {
  TemporaryFolder folder{std::filesystem::current_path()};
  ThreadPool pool{1};
  PosixSpillDisk disk{pool};
  if (disk.method() != SpillMethod::IoUring) { GTEST_SKIP() << "no rings here"; }
  auto const file = disk.create_unnamed(folder.path());
  ASSERT_TRUE(rings().empty());
  auto const queue = disk.open_queue(4);
  ASSERT_EQ(rings().size(), 1U);
  EXPECT_TRUE(queue->usable());
  Pages written{64_KiB};
  Pages read{64_KiB};
  fill(written.span(), 3);
  auto const part = [&](SpillDirection direction, Pages const& pages, std::size_t number) {
    std::size_t const skip = number * 16_KiB;
    queue->submit({direction, file.get(), pages.data() + skip, 16_KiB, static_cast<std::int64_t>(skip), number});
  };
  part(SpillDirection::Write, written, 0);
  part(SpillDirection::Write, written, 1);  // these two have left the ring
  int const null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  int const ring = rings().front();
  ASSERT_EQ(::dup2(null, ring), ring);
  part(SpillDirection::Write, written, 2);
  part(SpillDirection::Write, written, 3);  // and these never will
  std::set<std::uint64_t> ended;
  for (int i = 0; i < 4; ++i) {
    SpillOutcome const outcome = queue->wait();
    EXPECT_EQ(outcome.error_number, 0);
    ended.insert(outcome.tag);
  }
  EXPECT_EQ(ended.size(), 4U);
  EXPECT_FALSE(queue->usable());
  for (std::size_t number = 0; number < 4; ++number) { part(SpillDirection::Read, read, number); }
  for (int i = 0; i < 4; ++i) { EXPECT_EQ(queue->wait().error_number, 0); }
  EXPECT_TRUE(written == read);
  ::close(null);
}

// The file of a setting refuses such a write with EINVAL, as some file systems do past the cache.
TEST(PosixSpillDisk, FindsOutThatBlocksAreRefused) {
  TemporaryFolder folder{std::filesystem::current_path()};
  ThreadPool pool{1};
  PosixSpillDisk disk{pool};
  auto const file = disk.create_unnamed(folder.path());
  struct stat status{};
  ASSERT_EQ(::fstat(descriptor_of(*file), &status), 0);
  EXPECT_EQ(status.st_size, 0);  // finding out leaves nothing
  EXPECT_TRUE(detail::takes_single_blocks(descriptor_of(*file)));
  int const setting = ::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (setting < 0) { GTEST_SKIP() << "no such setting here"; }
  EXPECT_FALSE(detail::takes_single_blocks(setting));
  ::close(setting);
}

TEST(PosixSpillDisk, DoesTransfersItselfWhileAllThreadsAreBusy) {
  TemporaryFolder folder{std::filesystem::current_path()};
  std::latch end{1};
  ThreadPool pool{1};
  pool.post([&] { end.wait(); });
  PosixSpillDisk disk{pool, {.io_uring = UseIoUring::Never}};
  EXPECT_EQ(disk.method(), SpillMethod::Workers);
  auto const file = disk.create_unnamed(folder.path());
  Pages pages{8_KiB};
  auto const queue = disk.open_queue(2);
  queue->submit({SpillDirection::Write, file.get(), pages.data(), 4_KiB, 0, 1});
  queue->submit({SpillDirection::Write, file.get(), pages.data(), 4_KiB, 4096, 2});
  EXPECT_EQ(queue->wait().error_number + queue->wait().error_number, 0);
  end.count_down();
}

}  // namespace
}  // namespace earmark
