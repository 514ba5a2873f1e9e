// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the folder does with the disk in its way is tested with whole jobs in disk_faults_test.cpp.
#include "ops/output_folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

// Says that one folder is on a disk of its own.
class MountedFolder final : public FileSystem {
 public:
  MountedFolder(FileSystem& base, std::string mounted) : base_(base), mounted_(std::move(mounted)) {}
  std::unique_ptr<File> open_for_reading(std::string const& path) override { return base_.open_for_reading(path); }
  std::unique_ptr<File> open_for_writing(std::string const& path) override { return base_.open_for_writing(path); }
  std::unique_ptr<File> create(std::string const& path, unsigned mode) override { return base_.create(path, mode); }
  void create_directory(std::string const& path, unsigned mode) override { base_.create_directory(path, mode); }
  void create_directories(std::string const& path, unsigned mode) override { base_.create_directories(path, mode); }
  std::vector<DirectoryEntry> list(std::string const& path) override { return base_.list(path); }
  std::optional<FileStatus> status(std::string const& path) override {
    auto status = base_.status(path);
    if (status && path.starts_with(mounted_)) { status->device += 1; }
    return status;
  }
  std::string canonical(std::string const& path) override { return base_.canonical(path); }
  void rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) override {
    if (to == mounted_ || from == mounted_) { throw FileSystemError("rename", to, EBUSY); }
    base_.rename(from, to, if_target_exists);
  }
  void exchange(std::string const& a, std::string const& b) override {
    if (a == mounted_ || b == mounted_) { throw FileSystemError("exchange", b, EBUSY); }
    base_.exchange(a, b);
  }
  void remove(std::string const& path) override { base_.remove(path); }
  void remove_all(std::string const& path) override {
    removed_.push_back(path);
    base_.remove_all(path);
  }
  std::unique_ptr<DirectoryLock> try_lock(std::string const& directory) override { return base_.try_lock(directory); }

  [[nodiscard]] std::vector<std::string> const& removed() const { return removed_; }

 private:
  FileSystem& base_;
  std::string mounted_;
  std::vector<std::string> removed_;
};

class OutputFolders : public ::testing::Test {
 protected:
  std::set<std::string> names(std::string const& folder) const {
    std::set<std::string> all;
    for (auto const& entry : std::filesystem::directory_iterator(folder)) { all.insert(entry.path().filename()); }
    return all;
  }
  std::string hidden() const {
    for (std::string const& name : names(folder_.path())) {
      if (name.starts_with(".out.earmark-")) { return folder_ / name; }
    }
    return {};
  }

  TemporaryFolder folder_;
  std::string target_{folder_ / "out"};
  PosixFileSystem disk_;
};

TEST_F(OutputFolders, AppearWhenPublishedAndNotBefore) {
  {
    OutputFolder folder(disk_, target_, Overwrite::No, {}, {});
    write_text(folder.part_path(0), "zero");
    write_text(folder.part_path(100'000), "many");
    EXPECT_FALSE(std::filesystem::exists(target_));
    folder.publish();
    EXPECT_EQ(names(target_), (std::set<std::string>{"part-00000.parquet", "part-100000.parquet"}));
  }
  EXPECT_EQ(names(folder_.path()), std::set<std::string>{"out"});
}

TEST_F(OutputFolders, GoWithoutATraceWhenNotPublished) {
  { OutputFolder const folder(disk_, folder_ / "a/b/out", Overwrite::No, {}, {}); }
  EXPECT_TRUE(names(folder_.path()).empty());
}

TEST_F(OutputFolders, RefuseATargetThatIsNotEmpty) {
  std::filesystem::create_directory(target_);
  write_text(target_ + "/x", "x");
  EXPECT_THROW(OutputFolder(disk_, target_, Overwrite::No, {}, {}), OutputError);
  EXPECT_EQ(names(folder_.path()), std::set<std::string>{"out"});
  {
    OutputFolder folder(disk_, target_, Overwrite::Yes, {}, {});
    folder.publish();
  }
  EXPECT_TRUE(names(target_).empty());
  EXPECT_EQ(names(folder_.path()), std::set<std::string>{"out"});
}

TEST_F(OutputFolders, RefuseATargetThatIsAFileOrBelowOne) {
  write_text(target_, "x");
  EXPECT_THROW(OutputFolder(disk_, target_, Overwrite::Yes, {}, {}), OutputError);
  EXPECT_THROW(OutputFolder(disk_, target_ + "/below", Overwrite::No, {}, {}), FileSystemError);
  EXPECT_THROW(OutputFolder(disk_, "/", Overwrite::Yes, {}, {}), OutputError);
  EXPECT_EQ(read_text(target_), "x");
}

TEST_F(OutputFolders, RefuseATargetThatHoldsAnInputOrIsInsideOne) {
  std::filesystem::create_directories(folder_ / "in/sub");
  write_text(folder_ / "in/sub/a.parquet", "x");
  std::vector<InputPath> const inputs{{folder_ / "in/sub/a.parquet", {}}};
  std::vector<std::string> const named{folder_ / "in"};
  for (std::string const target :
       {"in", "in/sub", "in/new", "in/sub/a.parquet", "in/sub/a.parquet/x", "in/../in/new"}) {
    EXPECT_THROW(OutputFolder::check(disk_, folder_ / target, Overwrite::Yes, inputs, named), OutputError) << target;
  }
  EXPECT_THROW(OutputFolder::check(disk_, folder_.path(), Overwrite::Yes, inputs, named), OutputError);
  EXPECT_NO_THROW(OutputFolder::check(disk_, folder_ / "in2", Overwrite::No, inputs, named));
  std::filesystem::create_directory_symlink(folder_ / "in", folder_ / "link");
  EXPECT_THROW(OutputFolder::check(disk_, folder_ / "link/new", Overwrite::Yes, inputs, named), OutputError);
}

TEST_F(OutputFolders, RemoveWhatADeadMakerLeftAndKeepWhatALiveOneBuilds) {
  std::filesystem::create_directory(folder_ / ".out.earmark-1-0");
  write_text(folder_ / ".out.earmark-1-0/part-00000.parquet", "stale");
  std::filesystem::create_directory(folder_ / ".other.earmark-1-0");
  OutputFolder const living(disk_, target_, Overwrite::No, {}, {});
  std::string const first = hidden();
  write_text(living.part_path(0), "mine");
  { OutputFolder const second(disk_, target_, Overwrite::No, {}, {}); }
  EXPECT_EQ(read_text(living.part_path(0)), "mine");
  EXPECT_EQ(names(folder_.path()),
            (std::set<std::string>{std::filesystem::path(first).filename(), ".other.earmark-1-0"}));
}

TEST_F(OutputFolders, MayHaveNamesAsLongAsTheDiskTakes) {
  for (std::size_t const size : {200U, 201U, 240U, 255U}) {
    std::string const name = std::string(size - 5, 'n') + "ä" + "end";
    {
      OutputFolder folder(disk_, folder_ / name, Overwrite::No, {}, {});
      write_text(folder.part_path(0), "x");
      folder.publish();
    }
    EXPECT_EQ(names(folder_.path()), std::set<std::string>{name});
    EXPECT_EQ(names(folder_ / name), std::set<std::string>{"part-00000.parquet"});
    std::filesystem::remove_all(folder_ / name);
  }
  EXPECT_THROW(OutputFolder(disk_, folder_ / std::string(256, 'n'), Overwrite::No, {}, {}), FileSystemError);
  EXPECT_TRUE(names(folder_.path()).empty());
}

TEST_F(OutputFolders, WithLongNamesRemoveWhatTheirOwnDeadMakersLeftOnly) {
  std::string const one = folder_ / (std::string(240, 'n') + "1");
  std::string const other = folder_ / (std::string(240, 'n') + "2");
  std::string hidden_of_one;
  {
    OutputFolder const folder(disk_, one, Overwrite::No, {}, {});
    hidden_of_one = std::filesystem::path(folder.part_path(0)).parent_path();
  }
  // As if its maker had died.
  std::filesystem::create_directory(hidden_of_one);
  { OutputFolder const folder(disk_, other, Overwrite::No, {}, {}); }
  EXPECT_TRUE(std::filesystem::exists(hidden_of_one));
  { OutputFolder const folder(disk_, one, Overwrite::No, {}, {}); }
  EXPECT_TRUE(names(folder_.path()).empty());
}

TEST_F(OutputFolders, LeaveAFileThatCameWhereTheyWereToAppear) {
  for (Overwrite const overwrite : {Overwrite::Yes, Overwrite::No}) {
    {
      OutputFolder folder(disk_, target_, overwrite, {}, {});
      write_text(folder.part_path(0), "x");
      write_text(target_, "theirs");
      EXPECT_THROW(folder.publish(), OutputError);
    }
    EXPECT_EQ(read_text(target_), "theirs");
    EXPECT_EQ(names(folder_.path()), std::set<std::string>{"out"});
    std::filesystem::remove(target_);
  }
}

TEST_F(OutputFolders, DoNotAppearWithAFileTooFewOrTooMany) {
  for (std::string const strange : {"", "other", "part-00002.parquet", "part-0.parquet", "part-000000.parquet"}) {
    OutputFolder folder(disk_, target_, Overwrite::No, {}, {});
    write_text(folder.part_path(0), "x");
    std::string const second = folder.part_path(1);
    if (!strange.empty()) {
      write_text(second, "y");
      write_text(std::filesystem::path(second).parent_path() / strange, "z");
    }
    try {
      folder.publish();
      ADD_FAILURE() << strange;
    }
    catch (FileSystemError const& error) {
      EXPECT_EQ(error.error_number(), strange.empty() ? ENOENT : EEXIST);
    }
    EXPECT_FALSE(std::filesystem::exists(target_));
  }
  EXPECT_TRUE(names(folder_.path()).empty());
}

TEST_F(OutputFolders, FollowALinkToTheTarget) {
  std::filesystem::create_directory(folder_ / "real");
  std::filesystem::create_directory_symlink(folder_ / "real", target_);
  {
    OutputFolder folder(disk_, target_, Overwrite::Yes, {}, {});
    write_text(folder.part_path(0), "x");
    folder.publish();
  }
  EXPECT_TRUE(std::filesystem::is_symlink(target_));
  EXPECT_EQ(names(folder_ / "real"), std::set<std::string>{"part-00000.parquet"});
}

TEST_F(OutputFolders, OnAMountPointAreFilledFileByFileAndMarkedLast) {
  std::filesystem::create_directory(target_);
  std::filesystem::create_directory(target_ + "/lost+found");
  MountedFolder disk(disk_, target_);
  {
    OutputFolder folder(disk, target_, Overwrite::No, {}, {});
    write_text(folder.part_path(0), "new");
    folder.publish();
  }
  EXPECT_EQ(names(target_), (std::set<std::string>{"_SUCCESS", "lost+found", "part-00000.parquet"}));
  EXPECT_THROW(OutputFolder(disk, target_, Overwrite::No, {}, {}), OutputError);
}

TEST_F(OutputFolders, OnAMountPointLoseTheMarkerBeforeAnythingElse) {
  std::filesystem::create_directory(target_);
  for (std::string const name : {"/A.parquet", "/_SUCCESS", "/part-00000.parquet"}) {
    write_text(target_ + name, "old");
  }
  MountedFolder disk(disk_, target_);
  {
    OutputFolder folder(disk, target_, Overwrite::Yes, {}, {});
    write_text(folder.part_path(0), "new");
    folder.publish();
    ASSERT_FALSE(disk.removed().empty());
    EXPECT_EQ(disk.removed().front(), target_ + "/_SUCCESS");
  }
  EXPECT_EQ(names(target_), (std::set<std::string>{"_SUCCESS", "part-00000.parquet"}));
  EXPECT_EQ(read_text(target_ + "/part-00000.parquet"), "new");
}

}  // namespace
}  // namespace earmark::detail
