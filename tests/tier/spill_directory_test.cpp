// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spill_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/testing/faulty_file_system.hpp"
#include "earmark/testing/faulty_spill_disk.hpp"
#include "earmark/tier/errors.hpp"
#include "earmark/tier/posix_spill_disk.hpp"
#include "tier/pages.hpp"

namespace earmark {
namespace {

unsigned mode_of(std::string const& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777U;
}

std::size_t entries_in(std::string const& path) {
  std::size_t count = 0;
  for ([[maybe_unused]] auto const& each : std::filesystem::recursive_directory_iterator(path)) { ++count; }
  return count;
}

class SpillDirectoryTest : public ::testing::Test {
 protected:
  TemporaryFolder folder{std::filesystem::current_path()};
  PosixFileSystem real_files;
  testing::FaultyFileSystem files{real_files};
  ThreadPool pool{1};
  PosixSpillDisk real_disk{pool};
  testing::FaultySpillDisk disk{real_disk};
};

TEST_F(SpillDirectoryTest, MakesAllFoldersForItsUserAlone) {
  {
    SpillDirectory const directory{files, disk, folder / "a/b"};
    EXPECT_EQ(mode_of(folder / "a"), 0700U);
    EXPECT_EQ(mode_of(folder / "a/b"), 0700U);
    EXPECT_EQ(mode_of(directory.path()), 0700U);
    EXPECT_TRUE(directory.path().starts_with(folder / "a/b/earmark-spill-"));
    EXPECT_FALSE(directory.place().file_system.empty());
  }
  EXPECT_EQ(entries_in(folder / "a/b"), 0U);
  EXPECT_EQ(files.open_handles(), 0);
}

TEST_F(SpillDirectoryTest, IsOneOfSeveralInAPlace) {
  SpillDirectory const one{files, disk, folder.path()};
  SpillDirectory const two{files, disk, folder.path()};
  EXPECT_NE(one.path(), two.path());
  EXPECT_EQ(two.removed_stale(), 0);
  EXPECT_EQ(entries_in(folder.path()), 2U);
}

TEST_F(SpillDirectoryTest, RefusesAPlaceInMemoryBeforeItMakesAnything) {
  disk.pretend({{"tmpfs"}, true, 1 << 20});
  EXPECT_THROW((SpillDirectory{files, disk, folder / "a/b"}), SpillPlaceRefused);
  EXPECT_EQ(entries_in(folder.path()), 0U);
}

TEST_F(SpillDirectoryTest, TakesAPlaceInMemoryThatTheUserNamed) {
  disk.pretend({{"tmpfs"}, true, 1 << 20});
  SpillDirectory const directory{files, disk, folder / "a", SpillToMemory::Allow};
  EXPECT_TRUE(directory.place().held_in_memory);
}

TEST_F(SpillDirectoryTest, RemovesWhatTheDeadLeftAndNothingElse) {
  std::filesystem::create_directories(folder / "earmark-spill-1-0");
  write_text(folder / "earmark-spill-1-0/spill-aB3xYz", "left by a process that could not make files without names");
  std::filesystem::create_directories(folder / "earmark-spill-1-1");
  std::filesystem::create_directories(folder / "others");
  write_text(folder / "earmark-spill-notes", "a file");
  std::filesystem::create_directory_symlink(folder / "others", folder / "earmark-spill-2-0");
  disk.pretend({{"ext4"}, false, 1 << 20});
  SpillDirectory const directory{files, disk, folder.path()};
  EXPECT_EQ(directory.removed_stale(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "earmark-spill-1-0"));
  EXPECT_FALSE(std::filesystem::exists(folder / "earmark-spill-1-1"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "earmark-spill-2-0"));
  EXPECT_TRUE(std::filesystem::exists(folder / "others"));
  EXPECT_TRUE(std::filesystem::exists(folder / "earmark-spill-notes"));
}

TEST_F(SpillDirectoryTest, LeavesWhatOnlyLooksLikeItsOwn) {
  std::vector<std::string> const names{"earmark-spill-results", "earmark-spill-1",     "earmark-spill-1-",
                                       "earmark-spill--1",      "earmark-spill-1-0-b", "earmark-spill-1-0/kept",
                                       "earmark-spill-1-1"};
  for (std::string const& name : names) { std::filesystem::create_directories(folder / name); }
  write_text(folder / "earmark-spill-results/table", "a user's");
  write_text(folder / "earmark-spill-1-1/spill-abcdef", "");
  write_text(folder / "earmark-spill-1-1/spill-notes.txt", "a user's");
  disk.pretend({{"ext4"}, false, 1 << 20});
  SpillDirectory const directory{files, disk, folder.path()};
  EXPECT_EQ(directory.removed_stale(), 0);
  for (std::string const& name : names) { EXPECT_TRUE(std::filesystem::exists(folder / name)) << name; }
  EXPECT_TRUE(std::filesystem::exists(folder / "earmark-spill-results/table"));
  EXPECT_TRUE(std::filesystem::exists(folder / "earmark-spill-1-1/spill-abcdef"));
}

// A job that was given another's folder to spill into: whoever comes after the other has died removes neither.
TEST_F(SpillDirectoryTest, LeavesFoldersOfTheDeadThatTheLivingAreIn) {
  std::filesystem::create_directories(folder / "earmark-spill-1-0");
  disk.pretend({{"ext4"}, false, 1 << 20});
  SpillDirectory const inner{files, disk, folder / "earmark-spill-1-0"};
  SpillDirectory const next{files, disk, folder.path()};
  EXPECT_EQ(next.removed_stale(), 0);
  EXPECT_TRUE(std::filesystem::exists(inner.path()));
}

TEST_F(SpillDirectoryTest, RemovesNothingWhereALockMayBeUnknown) {
  std::filesystem::create_directories(folder / "earmark-spill-1-0");
  for (std::string_view const file_system : {"nfs", "fuse", "4283649346"}) {
    SpillPlace place;
    place.file_system.assign(file_system);
    disk.pretend(place);
    SpillDirectory const directory{files, disk, folder.path()};
    EXPECT_EQ(directory.removed_stale(), 0);
    EXPECT_TRUE(std::filesystem::exists(folder / "earmark-spill-1-0"));
  }
}

TEST_F(SpillDirectoryTest, StaysItsProcesssWhenAChildOfForkDestroysIt) {
  std::optional<SpillDirectory> directory{std::in_place, files, disk, folder.path()};
  pid_t const child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    directory.reset();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(directory->path()));
}

TEST_F(SpillDirectoryTest, LeavesStaleFoldersThatItMayNotRemove) {
  std::filesystem::create_directories(folder / "earmark-spill-1-0");
  disk.pretend({{"ext4"}, false, 1 << 20});
  files.fail({.operations = testing::FileOperation::Remove, .error_number = EACCES});
  SpillDirectory const directory{files, disk, folder.path()};
  EXPECT_EQ(directory.removed_stale(), 0);
  EXPECT_EQ(files.faults(), 1);
}

// Between making a folder and locking it, another process may take it for a dead one's.
TEST_F(SpillDirectoryTest, MakesAnotherFolderWhenOneIsTakenFromIt) {
  std::unique_ptr<DirectoryLock> other;
  files.observe([&](testing::FileOperation operation, std::string const& path) {
    if (operation == testing::FileOperation::Lock && other == nullptr) { other = real_files.try_lock(path); }
  });
  SpillDirectory const directory{files, disk, folder.path()};
  EXPECT_TRUE(directory.path().ends_with("-1"));
}

TEST_F(SpillDirectoryTest, LeavesNothingWhateverFails) {
  for (std::int64_t n = 0;; ++n) {
    testing::FaultyFileSystem failing{real_files};
    failing.fail({.after = n, .error_number = EROFS});
    std::optional<int> error;
    try {
      SpillDirectory const directory{failing, disk, folder / "a/b"};
    }
    catch (FileSystemError const& thrown) {
      error = thrown.error_number();
    }
    if (failing.faults() == 0) { break; }
    EXPECT_TRUE(!error || *error == EROFS);
    EXPECT_EQ(failing.open_handles(), 0);
    // Where removing itself fails, the empty folder stays until the next start.
    bool const removal_failed = !error;
    if (std::filesystem::exists(folder / "a/b")) { EXPECT_LE(entries_in(folder / "a/b"), removal_failed ? 1U : 0U); }
    std::filesystem::remove_all(folder / "a");
  }
}

TEST_F(SpillDirectoryTest, SaysThatAPlaceIsNoFolder) {
  write_text(folder / "file", "");
  EXPECT_THROW((SpillDirectory{files, disk, folder / "file"}), FileSystemError);
  EXPECT_THROW((SpillDirectory{files, disk, folder / "file/below"}), FileSystemError);
}

// A process that is killed while it has spilled bytes leaves the empty folder, and the next start removes that.
TEST(SpillDirectory, IsEmptyAfterItsProcessWasKilled) {
  TemporaryFolder folder{std::filesystem::current_path()};
  PosixFileSystem files;
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  pid_t const child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ThreadPool pool{1};
    PosixSpillDisk disk{pool};
    SpillDirectory const directory{files, disk, folder.path()};
    auto const file = disk.create_unnamed(directory.path());
    auto const queue = disk.open_queue(1);
    Pages pages{1 << 20};
    queue->submit({SpillDirection::Write, file.get(), pages.data(), pages.size(), 0, 0});
    char const well = queue->wait().error_number == 0 ? 'y' : 'n';
    if (::write(ready[1], &well, 1) != 1) { ::_exit(1); }
    for (;;) { ::pause(); }
  }
  char well = 0;
  ASSERT_EQ(::read(ready[0], &well, 1), 1);
  EXPECT_EQ(well, 'y');
  EXPECT_EQ(entries_in(folder.path()), 1U);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(entries_in(folder.path()), 1U);

  ThreadPool pool{1};
  PosixSpillDisk real_disk{pool};
  testing::FaultySpillDisk disk{real_disk};
  disk.pretend({{"ext4"}, false, 1 << 20});  // whatever the tests run on
  SpillDirectory const directory{files, disk, folder.path()};
  EXPECT_EQ(directory.removed_stale(), 1);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace earmark
