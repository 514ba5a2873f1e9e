// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/faulty_file_system.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <thread>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"

namespace earmark::testing {
namespace {

template <class Operation>
int error_of(Operation operation) {
  try {
    operation();
  }
  catch (FileSystemError const& error) {
    return error.error_number();
  }
  return 0;
}

using Paths = std::vector<std::string>;

class FaultyDisk : public ::testing::Test {
 protected:
  void write(std::string const& path, std::size_t size) {
    auto const file = disk_.create(path, 0644);
    file->write_at(std::vector<std::byte>(size, std::byte{'x'}), 0);
    file->close();
  }
  std::size_t read(std::string const& path, std::size_t size) {
    std::vector<std::byte> bytes(size);
    return disk_.open_for_reading(path)->read_at(bytes, 0);
  }

  TemporaryFolder folder_;
  PosixFileSystem real_;
  FaultyFileSystem disk_{real_};
};

TEST_F(FaultyDisk, PassesEverythingOnAndCounts) {
  disk_.create_directories(folder_ / "a/b", 0755);
  disk_.create_directory(folder_ / "a/c", 0755);
  write(folder_ / "a/b/x", 100);
  EXPECT_EQ(read(folder_ / "a/b/x", 200), 100U);
  EXPECT_EQ(disk_.list(folder_ / "a").size(), 2U);
  EXPECT_EQ(disk_.status(folder_ / "a/b/x")->size, 100);
  EXPECT_EQ(disk_.canonical(folder_ / "a/../a"), real_.canonical(folder_ / "a"));
  disk_.rename(folder_ / "a/b", folder_ / "a/d", IfTargetExists::Fail);
  disk_.exchange(folder_ / "a/c", folder_ / "a/d");
  {
    auto const file = disk_.open_for_writing(folder_ / "a/c/x");
    file->truncate(50);
    EXPECT_EQ(file->size(), 50);
    EXPECT_EQ(disk_.open_handles(), 1);
  }
  disk_.remove(folder_ / "a/c/x");
  {
    auto const lock = disk_.try_lock(folder_ / "a");
    EXPECT_TRUE(lock);
    EXPECT_FALSE(disk_.try_lock(folder_ / "a"));
    EXPECT_EQ(disk_.open_handles(), 1);
  }
  disk_.remove_all(folder_ / "a");
  EXPECT_TRUE(real_.list(folder_.path()).empty());
  EXPECT_EQ(disk_.count(FileOperation::Create | FileOperation::Write | FileOperation::Close), 3);
  EXPECT_EQ(disk_.count(FileOperation::Lock), 2);
  EXPECT_EQ(disk_.count(every_file_operation), 19);
  EXPECT_EQ(disk_.written_bytes(), 100);
  EXPECT_EQ(disk_.faults(), 0);
  EXPECT_EQ(disk_.open_handles(), 0);
  EXPECT_EQ(disk_.left_behind(), Paths{});
}

TEST_F(FaultyDisk, FailsTheNthMatchingOperationOnce) {
  disk_.fail({.operations = FileOperation::Create, .path_contains = "part", .after = 1, .error_number = EMFILE});
  write(folder_ / "other", 1);
  write(folder_ / "part-0", 1);
  EXPECT_EQ(error_of([&] { write(folder_ / "part-1", 1); }), EMFILE);
  write(folder_ / "part-1", 1);
  EXPECT_EQ(disk_.faults(), 1);
}

TEST_F(FaultyDisk, FailsForEverWhenAsked) {
  disk_.fail({.operations = FileOperation::Create | FileOperation::List, .repeat = FaultRepeat::Forever});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(error_of([&] { write(folder_ / "a", 1); }), EIO);
    EXPECT_EQ(error_of([&] { (void)disk_.list(folder_.path()); }), EIO);
  }
  EXPECT_EQ(disk_.faults(), 6);
  disk_.heal();
  write(folder_ / "a", 1);
}

TEST_F(FaultyDisk, FailsEveryKindOfOperation) {
  real_.create_directory(folder_ / "d", 0755);
  write_text(folder_ / "f", "text");
  auto const file = disk_.create(folder_ / "open", 0644);
  std::array<std::byte, 4> buffer{};
  disk_.fail({.repeat = FaultRepeat::Forever, .error_number = EPERM});
  auto const f = folder_ / "f";
  auto const d = folder_ / "d";
  for (auto const& operation : std::vector<std::function<void()>>{
           [&] { (void)disk_.open_for_reading(f); },
           [&] { (void)disk_.open_for_writing(f); },
           [&] { (void)disk_.create(folder_ / "n", 0644); },
           [&] { disk_.create_directory(folder_ / "n", 0755); },
           [&] { disk_.create_directories(folder_ / "n", 0755); },
           [&] { (void)disk_.list(d); },
           [&] { (void)disk_.status(f); },
           [&] { (void)disk_.canonical(f); },
           [&] { disk_.rename(f, folder_ / "n", IfTargetExists::Fail); },
           [&] { disk_.exchange(f, d); },
           [&] { disk_.remove(f); },
           [&] { disk_.remove_all(d); },
           [&] { (void)disk_.try_lock(d); },
           [&] { (void)file->read_at(buffer, 0); },
           [&] { file->write_at(buffer, 0); },
           [&] { (void)file->size(); },
           [&] { file->truncate(0); },
           [&] { file->close(); },
       }) {
    EXPECT_EQ(error_of(operation), EPERM);
  }
  EXPECT_EQ(disk_.faults(), 18);
  EXPECT_EQ(disk_.open_handles(), 0);
  EXPECT_EQ(read_text(f), "text");
  EXPECT_EQ(real_.list(folder_.path()).size(), 3U);
}

TEST_F(FaultyDisk, MatchesEitherPathOfARename) {
  write(folder_ / "a", 1);
  disk_.fail({.operations = FileOperation::Rename, .path_contains = "/a"});
  EXPECT_EQ(error_of([&] { disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Fail); }), EIO);
  disk_.fail({.operations = FileOperation::Rename, .path_contains = "/b"});
  EXPECT_EQ(error_of([&] { disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Fail); }), EIO);
}

TEST_F(FaultyDisk, WritesHalfBeforeAWriteFails) {
  disk_.fail({.operations = FileOperation::Write});
  EXPECT_EQ(error_of([&] { write(folder_ / "a", 100); }), EIO);
  EXPECT_EQ(real_.status(folder_ / "a")->size, 50);
}

TEST_F(FaultyDisk, FillsUp) {
  disk_.set_free_bytes(150);
  write(folder_ / "a", 100);
  EXPECT_EQ(error_of([&] { write(folder_ / "b", 100); }), ENOSPC);
  EXPECT_EQ(error_of([&] { write(folder_ / "c", 1); }), ENOSPC);
  EXPECT_EQ(real_.status(folder_ / "b")->size, 50);
  EXPECT_EQ(disk_.written_bytes(), 150);
  EXPECT_EQ(disk_.faults(), 2);
}

TEST_F(FaultyDisk, ShortensReads) {
  write(folder_ / "a", 100);
  disk_.fail({.operations = FileOperation::Read, .effect = FaultEffect::Shorten});
  EXPECT_EQ(read(folder_ / "a", 100), 50U);
  EXPECT_EQ(read(folder_ / "a", 100), 100U);
}

TEST_F(FaultyDisk, CutsFiles) {
  write(folder_ / "a", 100);
  write(folder_ / "b", 100);
  disk_.cut_files("/a", 30);
  EXPECT_EQ(read(folder_ / "a", 100), 30U);
  EXPECT_EQ(disk_.status(folder_ / "a")->size, 30);
  auto const file = disk_.open_for_reading(folder_ / "a");
  EXPECT_EQ(file->size(), 30);
  std::array<std::byte, 10> buffer{};
  EXPECT_EQ(file->read_at(buffer, 25), 5U);
  EXPECT_EQ(file->read_at(buffer, 35), 0U);
  EXPECT_EQ(read(folder_ / "b", 100), 100U);
}

TEST_F(FaultyDisk, RemembersWhatIsLeftBehindByItsPresentPath) {
  disk_.create_directories(folder_ / "out/hidden", 0755);
  write(folder_ / "out/hidden/a", 1);
  write(folder_ / "out/hidden/b", 1);
  disk_.remove(folder_ / "out/hidden/a");
  disk_.rename(folder_ / "out/hidden", folder_ / "out/final", IfTargetExists::Fail);
  EXPECT_EQ(disk_.left_behind(), (Paths{folder_ / "out", folder_ / "out/final", folder_ / "out/final/b"}));
  disk_.create_directory(folder_ / "out/finality", 0755);
  disk_.create_directory(folder_ / "old", 0755);
  disk_.exchange(folder_ / "out/final", folder_ / "old");
  disk_.remove_all(folder_ / "out/final");
  EXPECT_EQ(disk_.left_behind(),
            (Paths{folder_ / "old", folder_ / "old/b", folder_ / "out", folder_ / "out/finality"}));
  disk_.remove_all(folder_ / "out");
  disk_.remove_all(folder_ / "old");
  EXPECT_EQ(disk_.left_behind(), Paths{});
}

TEST_F(FaultyDisk, LetsAnObserverActBeforeEachOperation) {
  write(folder_ / "a", 10);
  Paths seen;
  disk_.observe([&](FileOperation operation, std::string const& path) {
    seen.push_back(path);
    if (operation == FileOperation::OpenForReading) { real_.remove(path); }
  });
  EXPECT_EQ(error_of([&] { (void)read(folder_ / "a", 1); }), ENOENT);
  EXPECT_EQ(seen, Paths{folder_ / "a"});
  disk_.heal();
  (void)disk_.status(folder_ / "a");
  EXPECT_EQ(seen.size(), 1U);
}

TEST_F(FaultyDisk, WalksThroughEveryFailureOfAJob) {
  // Makes a folder with two files under another name and publishes it; cleans up when that fails.
  auto const job = [&](FileSystem& disk, std::string const& target) {
    auto const hidden = target + ".hidden";
    try {
      disk.create_directory(hidden, 0755);
      for (auto const* name : {"/a", "/b"}) {
        auto const file = disk.create(hidden + name, 0644);
        file->write_at(std::array<std::byte, 10>{}, 0);
        file->close();
      }
      disk.rename(hidden, target, IfTargetExists::Fail);
      return true;
    }
    catch (FileSystemError const&) {
      disk.remove_all(hidden);
      return false;
    }
  };
  std::int64_t failures = 0;
  for (;; ++failures) {
    FaultyFileSystem disk(real_);
    disk.fail({.after = failures});
    bool const done = job(disk, folder_ / "target");
    EXPECT_EQ(disk.open_handles(), 0);
    if (disk.faults() == 0) {
      EXPECT_TRUE(done);
      EXPECT_EQ(disk.left_behind().size(), 3U);
      break;
    }
    EXPECT_FALSE(done);
    EXPECT_EQ(disk.left_behind(), Paths{});
    EXPECT_TRUE(real_.list(folder_.path()).empty());
  }
  EXPECT_EQ(failures, 8);
}

TEST_F(FaultyDisk, CountsOperationsOfManyThreads) {
  disk_.fail({.operations = FileOperation::Status, .after = 500});
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 250; ++k) {
        if (error_of([&] { (void)disk_.status(folder_.path()); }) != 0) { ++failed; }
      }
    });
  }
  for (auto& thread : threads) { thread.join(); }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(disk_.count(FileOperation::Status), 1000);
}

}  // namespace
}  // namespace earmark::testing
