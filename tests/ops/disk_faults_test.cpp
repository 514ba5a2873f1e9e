// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation of the disk fails once: the job throws the right kind of error, the target is as it was, and nothing
// is left beside it.
#include <arrow/api.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <set>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/ops/errors.hpp"
#include "earmark/testing/faulty_file_system.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"
#include "random_arrays.hpp"

namespace earmark {
namespace {

using arrow::field;
using testing::Fault;
using testing::FaultEffect;
using testing::FaultRepeat;
using testing::FaultyFileSystem;
using testing::FileOperation;

enum class Target { Missing, Empty, Filled, BelowMissingParents };

class DiskFaults : public ::testing::TestWithParam<Target> {
 protected:
  DiskFaults() {
    RandomArrays random(61);
    std::filesystem::create_directory(folder_ / "in");
    std::filesystem::create_directory(folder_ / "place");
    auto const schema = arrow::schema({field("key", arrow::int64()), field("s", arrow::utf8()),
                                       field("l", arrow::list(field("element", arrow::int32())))});
    write_parquet(*random.table(schema, 150), folder_ / "in/a.parquet", {.row_group_rows = 80});
    write_parquet(*random.table(schema, 50), folder_ / "in/b.parquet");
    options_ = plenty_of_memory({folder_ / "in"}, {"key"}, 3,
                                folder_ / (GetParam() == Target::BelowMissingParents ? "place/x/y/out" : "place/out"));
    options_.threads = 1;
    if (GetParam() == Target::Filled) { options_.overwrite = Overwrite::Yes; }
  }

  void make_target() {
    std::filesystem::remove_all(folder_ / "place");
    std::filesystem::create_directory(folder_ / "place");
    if (GetParam() == Target::Empty || GetParam() == Target::Filled) {
      std::filesystem::create_directory(options_.output);
    }
    if (GetParam() == Target::Filled) { write_text(options_.output + "/precious", "kept"); }
  }
  // Returns: everything in the place of the output.
  std::set<std::string> contents() const {
    std::set<std::string> names;
    for (auto const& entry : std::filesystem::recursive_directory_iterator(folder_ / "place")) {
      names.insert(entry.path());
    }
    return names;
  }
  void expect_done(FaultyFileSystem const& disk) {
    EXPECT_EQ(disk.open_handles(), 0);
    expect_partitioned({folder_ / "in/a.parquet", folder_ / "in/b.parquet"}, options_.by, 3, options_.output);
  }

  // Fails operation n of `fault`'s kind for n = 0, 1, 2, ... until the job meets none.
  template <class Check>
  void for_every(Fault fault, Check check) {
    for (fault.after = 0;; ++fault.after) {
      SCOPED_TRACE("operation " + std::to_string(fault.after));
      make_target();
      auto const before = contents();
      FaultyFileSystem disk(real_);
      disk.fail(fault);
      bool failed = true;
      try {
        repartition(options_, {pool_, clock_, disk});
        failed = false;
        expect_done(disk);
      }
      catch (std::exception const& error) {
        check(error);
        EXPECT_EQ(contents(), before);
        EXPECT_EQ(disk.open_handles(), 0);
      }
      if (disk.faults() == 0) {
        EXPECT_FALSE(failed);
        return;
      }
      if (HasFailure()) { return; }
      ++struck_;
    }
  }

  TemporaryFolder folder_;
  RepartitionOptions options_;
  PosixFileSystem real_;
  SteadyClock clock_;
  ThreadPool pool_{1};
  int struck_{0};
};

void expect_disk_error(std::exception const& error, int error_number) {
  auto const* const disk = dynamic_cast<FileSystemError const*>(&error);
  ASSERT_NE(disk, nullptr) << error.what();
  EXPECT_EQ(disk->error_number(), error_number);
}

void expect_input_error(std::exception const& error) {
  EXPECT_NE(dynamic_cast<InputError const*>(&error), nullptr) << error.what();
}

TEST_P(DiskFaults, WritesThatFailEndTheJobWithTheDisksError) {
  for_every({.operations = FileOperation::Write, .error_number = ENOSPC},
            [](auto const& error) { expect_disk_error(error, ENOSPC); });
  EXPECT_GT(struck_, 20);
}

TEST_P(DiskFaults, FilesThatCannotBeMadeOrClosedEndTheJobWithTheDisksError) {
  for (auto const operation : {FileOperation::Create, FileOperation::CreateDirectory, FileOperation::CreateDirectories,
                               FileOperation::Rename, FileOperation::Exchange, FileOperation::Lock}) {
    for_every({.operations = operation, .error_number = EIO}, [](auto const& error) { expect_disk_error(error, EIO); });
  }
  for_every({.operations = FileOperation::Close, .path_contains = "part-", .error_number = EIO},
            [](auto const& error) { expect_disk_error(error, EIO); });
}

TEST_P(DiskFaults, AFullDiskEndsTheJobWhereverItIsFull) {
  for (std::int64_t room = 0;; room += 97) {
    SCOPED_TRACE(room);
    make_target();
    auto const before = contents();
    FaultyFileSystem disk(real_);
    disk.set_free_bytes(room);
    try {
      repartition(options_, {pool_, clock_, disk});
      EXPECT_EQ(disk.faults(), 0);
      expect_done(disk);
      return;
    }
    catch (FileSystemError const& error) {
      EXPECT_EQ(error.error_number(), ENOSPC);
      EXPECT_EQ(contents(), before);
    }
    if (HasFailure()) { return; }
  }
}

TEST_P(DiskFaults, ReadsThatFailAreTheInputsFault) {
  for_every({.operations = FileOperation::Read | FileOperation::OpenForReading, .path_contains = "in/"},
            expect_input_error);
  EXPECT_GT(struck_, 20);
}

TEST_P(DiskFaults, ReadsThatComeShortAreTheInputsFault) {
  for_every({.operations = FileOperation::Read, .path_contains = "in/", .effect = FaultEffect::Shorten},
            expect_input_error);
}

TEST_P(DiskFaults, LooksAtTheDiskThatFailEndTheJob) {
  auto const either = [](std::exception const& error) {
    EXPECT_TRUE(dynamic_cast<InputError const*>(&error) != nullptr ||
                dynamic_cast<FileSystemError const*>(&error) != nullptr)
        << error.what();
  };
  for (auto const operation : {FileOperation::Status, FileOperation::List, FileOperation::Canonical,
                               FileOperation::Size, FileOperation::OpenForWriting}) {
    for_every({.operations = operation, .error_number = EACCES}, either);
  }
}

// What cannot be removed stays, but only the hidden folder and the parents that were made for it.
TEST_P(DiskFaults, ACleanUpThatFailsLeavesOnlyTheHiddenFolder) {
  make_target();
  auto const before = contents();
  FaultyFileSystem disk(real_);
  disk.fail({.operations = FileOperation::Write, .after = 9, .error_number = EIO});
  disk.fail({.operations = FileOperation::Remove | FileOperation::RemoveAll, .repeat = FaultRepeat::Forever});
  EXPECT_THROW(repartition(options_, {pool_, clock_, disk}), FileSystemError);
  for (std::string const& path : contents()) {
    bool const is_parent = GetParam() == Target::BelowMissingParents && !path.ends_with("/out") &&
                           path.find(".earmark-") == std::string::npos;
    EXPECT_TRUE(before.contains(path) || path.find("/.out.earmark-") != std::string::npos || is_parent) << path;
  }
  // The next job with this target removes it.
  FaultyFileSystem healed(real_);
  repartition(options_, {pool_, clock_, healed});
  expect_done(healed);
  for (std::string const& path : contents()) { EXPECT_EQ(path.find(".earmark-"), std::string::npos) << path; }
}

// The result stands; what it replaced could not be removed.
TEST_P(DiskFaults, ARemovalThatFailsAfterPublishingDoesNotHurtTheResult) {
  make_target();
  FaultyFileSystem disk(real_);
  disk.fail({.operations = FileOperation::RemoveAll, .repeat = FaultRepeat::Forever});
  repartition(options_, {pool_, clock_, disk});
  expect_done(disk);
}

TEST_P(DiskFaults, ATargetThatSomeoneFillsMeanwhileStaysTheirs) {
  if (options_.overwrite == Overwrite::Yes) { GTEST_SKIP() << "then it is replaced"; }
  make_target();
  FaultyFileSystem disk(real_);
  disk.observe([&](FileOperation operation, std::string const&) {
    if (operation != FileOperation::Rename) { return; }
    std::filesystem::create_directories(options_.output);
    write_text(options_.output + "/theirs", "theirs");
  });
  EXPECT_THROW(repartition(options_, {pool_, clock_, disk}), OutputError);
  EXPECT_EQ(read_text(options_.output + "/theirs"), "theirs");
  for (std::string const& path : contents()) { EXPECT_EQ(path.find(".earmark-"), std::string::npos) << path; }
}

TEST_P(DiskFaults, AParentThatSomeoneMakesMeanwhileIsUsed) {
  if (GetParam() != Target::BelowMissingParents) { GTEST_SKIP() << "no parent is missing"; }
  make_target();
  FaultyFileSystem disk(real_);
  disk.observe([&](FileOperation operation, std::string const& path) {
    if (operation == FileOperation::CreateDirectory && path.ends_with("place/x")) {
      std::filesystem::create_directory(path);
    }
  });
  repartition(options_, {pool_, clock_, disk});
  expect_done(disk);
}

TEST_P(DiskFaults, AParentThatSomeoneMadeMeanwhileIsLeftToThemAfterAFailure) {
  if (GetParam() != Target::BelowMissingParents) { GTEST_SKIP() << "no parent is missing"; }
  make_target();
  FaultyFileSystem disk(real_);
  disk.observe([&](FileOperation operation, std::string const& path) {
    if (operation == FileOperation::CreateDirectory && path.ends_with("place/x")) {
      std::filesystem::create_directory(path);
    }
  });
  disk.fail({.operations = FileOperation::Write, .after = 3, .repeat = FaultRepeat::Forever});
  EXPECT_THROW(repartition(options_, {pool_, clock_, disk}), FileSystemError);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "place/x"));
}

TEST_P(DiskFaults, WithFewDescriptorsEachFileIsOpenedForEachWrite) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit const few{66, old.rlim_max};
  make_target();
  FaultyFileSystem disk(real_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_NO_THROW(repartition(options_, {pool_, clock_, disk}));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_GT(disk.count(FileOperation::OpenForWriting), 0);
  expect_done(disk);
}

std::string name_of(::testing::TestParamInfo<Target> const& target) {
  static constexpr std::array names{"MissingTarget", "EmptyTarget", "FilledTarget", "MissingParents"};
  return names[static_cast<std::size_t>(target.param)];
}

INSTANTIATE_TEST_SUITE_P(Repartition, DiskFaults,
                         ::testing::Values(Target::Missing, Target::Empty, Target::Filled, Target::BelowMissingParents),
                         name_of);

}  // namespace
}  // namespace earmark
