// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/input_paths.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/ops/errors.hpp"
#include "earmark/testing/faulty_file_system.hpp"

namespace earmark::detail {
namespace {

using Names = std::vector<std::string>;

class InputPaths : public ::testing::Test {
 protected:
  void make(Names const& names) {
    for (std::string const& name : names) {
      std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
      write_text(folder_ / name, name);
    }
  }
  // Returns: what the inputs (below the test's folder) stand for, below the test's folder.
  Names expand(Names inputs) {
    for (std::string& input : inputs) { input = folder_ / input; }
    Names found;
    for (InputPath const& path : expand_inputs(disk_, inputs)) {
      EXPECT_EQ(path.status.kind, FileKind::Regular);
      EXPECT_EQ(path.status.size, static_cast<std::int64_t>(std::filesystem::file_size(path.path)));
      found.push_back(path.path.substr(folder_.path().size() + 1));
    }
    return found;
  }
  void expect_refused(std::string const& input) {
    try {
      (void)expand_inputs(disk_, {folder_ / input});
      ADD_FAILURE() << input;
    }
    catch (InputError const& error) {
      EXPECT_NE(std::string(error.what()).find(input), std::string::npos) << error.what();
    }
  }

  TemporaryFolder folder_;
  PosixFileSystem disk_;
};

TEST_F(InputPaths, AFileStandsForItselfWhateverItsName) {
  make({"a.parquet", ".hidden", "_x.dat"});
  EXPECT_EQ(expand({"_x.dat", "a.parquet", ".hidden"}), (Names{"_x.dat", "a.parquet", ".hidden"}));
}

TEST_F(InputPaths, AFileNamedTwiceIsListedTwice) {
  make({"a.parquet"});
  EXPECT_EQ(expand({"a.parquet", "a.parquet"}), (Names{"a.parquet", "a.parquet"}));
}

TEST_F(InputPaths, AFolderStandsForTheParquetFilesBelowItSorted) {
  make({"in/b.parquet", "in/a.parquet", "in/c.txt", "in/sub/z.parquet", "in/aa/z.parquet", "in/.h.parquet",
        "in/_m.parquet", "in/_tmp/x.parquet", "in/.git/x.parquet"});
  EXPECT_EQ(expand({"in"}), (Names{"in/a.parquet", "in/aa/z.parquet", "in/b.parquet", "in/sub/z.parquet"}));
  EXPECT_EQ(expand({"in/"}), expand({"in"}));
}

TEST_F(InputPaths, PatternsMatchWithinAName) {
  make({"in/a1.parquet", "in/a2.parquet", "in/b1.parquet", "in/a10.parquet", "in/.a3.parquet", "in/x/a4.parquet"});
  EXPECT_EQ(expand({"in/a?.parquet"}), (Names{"in/a1.parquet", "in/a2.parquet"}));
  EXPECT_EQ(expand({"in/[ab]1.parquet"}), (Names{"in/a1.parquet", "in/b1.parquet"}));
  EXPECT_EQ(expand({"in/[!a]*.parquet"}), (Names{"in/b1.parquet"}));
  EXPECT_EQ(expand({"in/a*.parquet"}), (Names{"in/a1.parquet", "in/a10.parquet", "in/a2.parquet"}));
  EXPECT_EQ(expand({"in/*/a4.parquet"}), (Names{"in/x/a4.parquet"}));
  EXPECT_EQ(expand({"i?/a1.parquet"}), (Names{"in/a1.parquet"}));
  EXPECT_EQ(expand({"in/.a*.parquet"}), (Names{"in/.a3.parquet"}));
}

TEST_F(InputPaths, TwoStarsMatchAnyDepthAndEachFileOnce) {
  make({"in/a.parquet", "in/x/a.parquet", "in/x/y/a.parquet", "in/x/y/b.parquet", "in/_t/a.parquet"});
  Names const everywhere{"in/a.parquet", "in/x/a.parquet", "in/x/y/a.parquet"};
  EXPECT_EQ(expand({"in/**/a.parquet"}), everywhere);
  EXPECT_EQ(expand({"in/**/**/a.parquet"}), everywhere);
  EXPECT_EQ(expand({"in/**/y/*.parquet"}), (Names{"in/x/y/a.parquet", "in/x/y/b.parquet"}));
  EXPECT_EQ(expand({"in/**"}), (Names{"in/a.parquet", "in/x/a.parquet", "in/x/y/a.parquet", "in/x/y/b.parquet"}));
  EXPECT_EQ(expand({"in/**/*.parquet"}), expand({"in/**"}));
}

TEST_F(InputPaths, ANameWithPatternCharactersThatExistsIsTakenLiterally) {
  make({"in/a[1].parquet", "in/a1.parquet", "in/b*.parquet", "in/bb.parquet"});
  EXPECT_EQ(expand({"in/a[1].parquet"}), (Names{"in/a[1].parquet"}));
  EXPECT_EQ(expand({"in/b*.parquet"}), (Names{"in/b*.parquet"}));
}

TEST_F(InputPaths, LinksAreFollowed) {
  make({"real/a.parquet"});
  std::filesystem::create_directory(folder_ / "in");
  std::filesystem::create_symlink(folder_ / "real/a.parquet", folder_ / "in/link.parquet");
  std::filesystem::create_directory_symlink(folder_ / "real", folder_ / "in/folder");
  EXPECT_EQ(expand({"in"}), (Names{"in/folder/a.parquet", "in/link.parquet"}));
}

TEST_F(InputPaths, ALinkBackToItsFolderIsRefusedRatherThanListedAgain) {
  make({"in/a.parquet"});
  std::filesystem::create_directory_symlink(folder_ / "in", folder_ / "in/loop");
  EXPECT_THROW((void)expand_inputs(disk_, {folder_ / "in"}), InputError);
  EXPECT_THROW((void)expand_inputs(disk_, {folder_ / "in/**/*.parquet"}), InputError);
}

TEST_F(InputPaths, WhatIsMissingOrMatchesNothingIsRefusedByName) {
  make({"in/a.txt", "empty/sub/x.txt"});
  expect_refused("missing.parquet");
  expect_refused("missing/a.parquet");
  expect_refused("in/*.parquet");
  expect_refused("nowhere/*.parquet");
  expect_refused("in/**/b.parquet");
  expect_refused("empty");
  expect_refused("in/a.txt/b.parquet");
  EXPECT_THROW((void)expand_inputs(disk_, {""}), InputError);
}

TEST_F(InputPaths, APipeIsRefused) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.parquet").c_str(), 0600), 0);
  expect_refused("pipe.parquet");
  make({"in/a.parquet"});
  ASSERT_EQ(::mkfifo((folder_ / "in/pipe.parquet").c_str(), 0600), 0);
  EXPECT_THROW((void)expand_inputs(disk_, {folder_ / "in"}), InputError);  // opening it would block
  EXPECT_EQ(expand({"in/*"}), (Names{"in/a.parquet"}));
}

TEST_F(InputPaths, ADiskThatFailsIsTheInputsFault) {
  make({"in/a.parquet", "in/x/b.parquet"});
  for (std::int64_t n = 0;; ++n) {
    testing::FaultyFileSystem disk(disk_);
    disk.fail({.after = n});
    bool failed = false;
    try {
      (void)expand_inputs(disk, {folder_ / "in/**/*.parquet", folder_ / "in"});
    }
    catch (InputError const&) {
      failed = true;
    }
    EXPECT_EQ(failed, disk.faults() > 0);
    if (disk.faults() == 0) { break; }
  }
}

}  // namespace
}  // namespace earmark::detail
