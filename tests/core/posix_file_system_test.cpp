// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/posix_file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ostream>
#include <thread>

#include "core/temporary_folder.hpp"

namespace earmark {

void PrintTo(RenameFlags flags, std::ostream* out) { *out << (flags == RenameFlags::Use ? "Use" : "Emulate"); }

namespace {

std::vector<std::byte> bytes_of(std::string const& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string text_of(std::span<std::byte const> bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

std::string read_back(File& file, std::size_t size, std::int64_t offset) {
  std::vector<std::byte> bytes(size);
  return text_of(std::span(bytes).first(file.read_at(bytes, offset)));
}

// Returns: the errno that `operation` fails with; 0 when it does not.
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

class PosixFiles : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  PosixFileSystem disk_;
};

TEST_F(PosixFiles, ReadWhatWasWrittenAtAnyOffset) {
  auto const file = disk_.create(folder_ / "a", 0644);
  file->write_at(bytes_of("world"), 6);
  file->write_at(bytes_of("hello "), 0);
  EXPECT_EQ(file->size(), 11);
  EXPECT_EQ(read_back(*file, 11, 0), "hello world");
  EXPECT_EQ(read_back(*file, 4, 3), "lo w");
  EXPECT_EQ(file->path(), folder_ / "a");
  file->close();
  EXPECT_EQ(read_text(folder_ / "a"), "hello world");
}

TEST_F(PosixFiles, ReadFewerBytesOnlyAtTheEnd) {
  write_text(folder_ / "a", "abc");
  auto const file = disk_.open_for_reading(folder_ / "a");
  EXPECT_EQ(read_back(*file, 10, 1), "bc");
  EXPECT_EQ(read_back(*file, 10, 3), "");
  EXPECT_EQ(read_back(*file, 10, 1000), "");
  EXPECT_EQ(file->read_at({}, 0), 0U);
  file->will_need(0, 3);
  file->will_need(-1, -1);
}

TEST_F(PosixFiles, TruncateBothWays) {
  auto const file = disk_.create(folder_ / "a", 0600);
  file->write_at(bytes_of("abcdef"), 0);
  file->truncate(3);
  EXPECT_EQ(file->size(), 3);
  file->truncate(5);
  EXPECT_EQ(read_back(*file, 10, 0), std::string("abc\0\0", 5));
}

TEST_F(PosixFiles, OpenForWritingKeepsTheContents) {
  write_text(folder_ / "a", "abcdef");
  disk_.open_for_writing(folder_ / "a")->write_at(bytes_of("XY"), 2);
  EXPECT_EQ(read_text(folder_ / "a"), "abXYef");
}

TEST_F(PosixFiles, CreateRefusesAnExistingFileAndObeysTheMode) {
  disk_.create(folder_ / "a", 0600)->close();
  EXPECT_EQ(error_of([&] { (void)disk_.create(folder_ / "a", 0600); }), EEXIST);
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(PosixFiles, FailureNamesOperationPathAndCause) {
  auto const path = folder_ / "missing";
  try {
    (void)disk_.open_for_reading(path);
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_EQ(error.what(), "cannot open '" + path + "': No such file or directory");
  }
  write_text(folder_ / "a", "abc");
  auto const file = disk_.open_for_reading(folder_ / "a");
  try {
    file->write_at(bytes_of("xyz"), 0);
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_EQ(error.error_number(), EBADF);
    EXPECT_EQ(error.bytes(), 3);
    EXPECT_EQ(std::string(error.what()).substr(0, 24), "cannot write 3 bytes to ");
  }
  EXPECT_EQ(error_of([&] { (void)read_back(*disk_.open_for_reading(folder_.path()), 1, 0); }), EISDIR);
}

TEST_F(PosixFiles, ReportAFullDisk) {
  auto const file = disk_.open_for_writing("/dev/full");
  EXPECT_EQ(error_of([&] { file->write_at(bytes_of("x"), 0); }), ENOSPC);
}

TEST_F(PosixFiles, GoOnAfterAShortWrite) {
  // With a limit on file sizes the kernel writes what fits and refuses the rest: the loop must see both.
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limited = before;
  limited.rlim_cur = 4096;
  auto const file = disk_.create(folder_ / "a", 0600);
  std::vector<std::byte> const bytes(10'000);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  auto const error_number = error_of([&] { file->write_at(bytes, 0); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error_number, EFBIG);
  EXPECT_EQ(file->size(), 4096);
}

TEST_F(PosixFiles, AreNotInheritedByPrograms) {
  auto const file = disk_.create(folder_ / "a", 0600);
  auto const lock = disk_.try_lock(folder_.path());
  int checked = 0;
  for (int fd = 3; fd < 256; ++fd) {
    std::string target(4096, '\0');
    auto const size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target.data(), target.size());
    if (size < 0 || !target.starts_with(folder_.path())) { continue; }
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << target;
    ++checked;
  }
  EXPECT_EQ(checked, 2);
}

using PosixFolders = PosixFiles;

TEST_F(PosixFolders, CreateOneRefusesAnExistingOne) {
  disk_.create_directory(folder_ / "a", 0755);
  EXPECT_EQ(error_of([&] { disk_.create_directory(folder_ / "a", 0755); }), EEXIST);
  EXPECT_EQ(error_of([&] { disk_.create_directory(folder_ / "b/c", 0755); }), ENOENT);
}

TEST_F(PosixFolders, CreateManyMakesParentsAndAcceptsExistingOnes) {
  for (auto const* path : {"a/b/c", "a/b/c", "a/b/c/", "a//d///e//", "a/new/../f", "."}) {
    disk_.create_directories(folder_ / path, 0755);
  }
  EXPECT_EQ(disk_.status(folder_ / "a/b/c")->kind, FileKind::Directory);
  EXPECT_EQ(disk_.status(folder_ / "a/d/e")->kind, FileKind::Directory);
  EXPECT_EQ(disk_.status(folder_ / "a/f")->kind, FileKind::Directory);
  ASSERT_EQ(::symlink("a", (folder_ / "link").c_str()), 0);
  disk_.create_directories(folder_ / "link/g", 0755);
  disk_.create_directories(folder_ / "link", 0755);
  EXPECT_EQ(disk_.status(folder_ / "a/g")->kind, FileKind::Directory);
}

TEST_F(PosixFolders, CreateManyRefusesFilesInTheWayAndEmptyPaths) {
  write_text(folder_ / "file", "");
  EXPECT_EQ(error_of([&] { disk_.create_directories(folder_ / "file", 0755); }), EEXIST);
  EXPECT_EQ(error_of([&] { disk_.create_directories(folder_ / "file/a", 0755); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { disk_.create_directories(folder_ / "file/a/b", 0755); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { disk_.create_directories("", 0755); }), ENOENT);
}

TEST_F(PosixFolders, ListSortsByNameAndFollowsLinks) {
  write_text(folder_ / "b", "");
  write_text(folder_ / ".hidden", "");
  disk_.create_directory(folder_ / "a", 0755);
  ASSERT_EQ(::symlink("a", (folder_ / "to_folder").c_str()), 0);
  ASSERT_EQ(::symlink("b", (folder_ / "to_file").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (folder_ / "to_nothing").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::vector<std::pair<std::string, FileKind>> found;
  for (auto const& entry : disk_.list(folder_.path())) { found.emplace_back(entry.name, entry.kind); }
  EXPECT_EQ(found, (std::vector<std::pair<std::string, FileKind>>{{".hidden", FileKind::Regular},
                                                                  {"a", FileKind::Directory},
                                                                  {"b", FileKind::Regular},
                                                                  {"pipe", FileKind::Other},
                                                                  {"to_file", FileKind::Regular},
                                                                  {"to_folder", FileKind::Directory},
                                                                  {"to_nothing", FileKind::Other}}));
  EXPECT_EQ(error_of([&] { (void)disk_.list(folder_ / "b"); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { (void)disk_.list(folder_ / "none"); }), ENOENT);
}

TEST_F(PosixFolders, StatusFollowsLinksAndTellsTheSameFileBySeveralPaths) {
  write_text(folder_ / "a", "12345");
  ASSERT_EQ(::symlink("a", (folder_ / "link").c_str()), 0);
  auto const file = disk_.status(folder_ / "a");
  auto const link = disk_.status(folder_ / "link");
  ASSERT_TRUE(file && link);
  EXPECT_EQ(link->kind, FileKind::Regular);
  EXPECT_EQ(link->size, 5);
  EXPECT_EQ(std::pair(link->device, link->inode), std::pair(file->device, file->inode));
  EXPECT_GT(file->modified_ns, 1'500'000'000'000'000'000);
  EXPECT_EQ(disk_.status(folder_.path())->kind, FileKind::Directory);
  EXPECT_EQ(disk_.status("/dev/null")->kind, FileKind::Other);
}

TEST_F(PosixFolders, StatusIsNothingForWhatDoesNotExist) {
  write_text(folder_ / "a", "");
  ASSERT_EQ(::symlink("nowhere", (folder_ / "link").c_str()), 0);
  EXPECT_FALSE(disk_.status(folder_ / "none"));
  EXPECT_FALSE(disk_.status(folder_ / "a/below"));
  EXPECT_FALSE(disk_.status(folder_ / "link"));
  ASSERT_EQ(::symlink("loop", (folder_ / "loop").c_str()), 0);
  EXPECT_EQ(error_of([&] { (void)disk_.status(folder_ / "loop"); }), ELOOP);
}

TEST_F(PosixFolders, CanonicalResolvesLinksAlsoBeforePartsThatDoNotExist) {
  auto const root = disk_.canonical(folder_.path());
  disk_.create_directories(folder_ / "a/b", 0755);
  write_text(folder_ / "file", "");
  ASSERT_EQ(::symlink("a/b", (folder_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink("a/later", (folder_ / "dangling").c_str()), 0);
  ASSERT_EQ(::symlink((root + "/a/abs").c_str(), (folder_ / "dangling_abs").c_str()), 0);
  for (auto const& [path, expected] : std::vector<std::pair<std::string, std::string>>{
           {"a/b", "/a/b"},
           {"a/./b/../b/", "/a/b"},
           {"link/..", "/a"},
           {"link/x/y", "/a/b/x/y"},
           {"link/x/./y/../z", "/a/b/x/z"},
           {"none/../..", ""},
           {"none/", "/none"},
           {"dangling", "/a/later"},
           {"dangling/x", "/a/later/x"},
           {"dangling_abs", "/a/abs"},
           {"file/x", "/file/x"},
       }) {
    EXPECT_EQ(disk_.canonical(folder_ / path), expected.empty() ? disk_.canonical(root + "/..") : root + expected)
        << path;
  }
  EXPECT_EQ(disk_.canonical("/"), "/");
  EXPECT_EQ(disk_.canonical("/none-of-this/../x"), "/x");
  EXPECT_EQ(disk_.canonical("none-here"), disk_.canonical(".") + "/none-here");
}

TEST_F(PosixFolders, CanonicalRefusesLoopsAndEmptyPaths) {
  ASSERT_EQ(::symlink("loop", (folder_ / "loop").c_str()), 0);
  EXPECT_EQ(error_of([&] { (void)disk_.canonical(folder_ / "loop"); }), ELOOP);
  EXPECT_EQ(error_of([&] { (void)disk_.canonical(folder_ / "loop/x"); }), ELOOP);
  EXPECT_EQ(error_of([&] { (void)disk_.canonical(""); }), ENOENT);
}

// Renames behave alike whether the kernel helps or not.
class PosixRenames : public ::testing::TestWithParam<RenameFlags> {
 protected:
  TemporaryFolder folder_;
  PosixFileSystem disk_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutFlags, PosixRenames, ::testing::Values(RenameFlags::Use, RenameFlags::Emulate),
                         [](auto const& flags) { return flags.param == RenameFlags::Use ? "Flags" : "NoFlags"; });

TEST_P(PosixRenames, MoveFilesAndFolders) {
  write_text(folder_ / "a", "A");
  disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Fail);
  EXPECT_EQ(read_text(folder_ / "b"), "A");
  EXPECT_FALSE(disk_.status(folder_ / "a"));
  disk_.create_directory(folder_ / "d", 0755);
  write_text(folder_ / "d/x", "X");
  disk_.rename(folder_ / "d", folder_ / "e", IfTargetExists::Fail);
  EXPECT_EQ(read_text(folder_ / "e/x"), "X");
}

TEST_P(PosixRenames, RefuseAnExistingTarget) {
  write_text(folder_ / "a", "A");
  write_text(folder_ / "b", "B");
  disk_.create_directory(folder_ / "d", 0755);
  disk_.create_directory(folder_ / "full", 0755);
  disk_.create_directory(folder_ / "empty", 0755);
  write_text(folder_ / "full/x", "X");
  auto const refusal = [&](std::string const& from, std::string const& to) {
    return error_of([&] { disk_.rename(folder_ / from, folder_ / to, IfTargetExists::Fail); });
  };
  EXPECT_EQ(refusal("a", "b"), EEXIST);
  EXPECT_EQ(refusal("d", "full"), EEXIST);
  EXPECT_EQ(refusal("d", "b"), EEXIST);
  EXPECT_EQ(refusal("a", "empty"), EEXIST);
  EXPECT_EQ(refusal("none", "c"), ENOENT);
  EXPECT_EQ(read_text(folder_ / "b"), "B");
  EXPECT_EQ(read_text(folder_ / "full/x"), "X");
  EXPECT_TRUE(disk_.status(folder_ / "a") && disk_.status(folder_ / "d"));
  EXPECT_EQ(refusal("d", "d/below"), EINVAL);
}

TEST_P(PosixRenames, ReplaceAnEmptyFolderByAFolder) {
  disk_.create_directories(folder_ / "from/x", 0755);
  disk_.create_directory(folder_ / "to", 0755);
  disk_.rename(folder_ / "from", folder_ / "to", IfTargetExists::Fail);
  EXPECT_TRUE(disk_.status(folder_ / "to/x"));
}

TEST_P(PosixRenames, ReplaceWhenAsked) {
  write_text(folder_ / "a", "A");
  write_text(folder_ / "b", "B");
  disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Replace);
  EXPECT_EQ(read_text(folder_ / "b"), "A");
  EXPECT_EQ(error_of([&] { disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Replace); }), ENOENT);
}

TEST_P(PosixRenames, FailureNamesBothPaths) {
  try {
    disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Fail);
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_EQ(error.what(),
              "cannot rename '" + folder_ / "a" + "' to '" + folder_ / "b" + "': No such file or directory");
  }
}

TEST_P(PosixRenames, ExchangeFoldersAndFiles) {
  disk_.create_directory(folder_ / "a", 0755);
  write_text(folder_ / "a/x", "X");
  disk_.create_directory(folder_ / "b", 0755);
  write_text(folder_ / "b/y", "Y");
  disk_.exchange(folder_ / "a", folder_ / "b");
  EXPECT_EQ(read_text(folder_ / "a/y"), "Y");
  EXPECT_EQ(read_text(folder_ / "b/x"), "X");
  write_text(folder_ / "f", "F");
  disk_.exchange(folder_ / "f", folder_ / "a");
  EXPECT_EQ(read_text(folder_ / "a"), "F");
  EXPECT_EQ(read_text(folder_ / "f/y"), "Y");
  EXPECT_EQ(disk_.list(folder_.path()).size(), 3U);
}

TEST_P(PosixRenames, ExchangeNeedsBoth) {
  write_text(folder_ / "a", "A");
  EXPECT_EQ(error_of([&] { disk_.exchange(folder_ / "a", folder_ / "none"); }), ENOENT);
  EXPECT_EQ(error_of([&] { disk_.exchange(folder_ / "none", folder_ / "a"); }), ENOENT);
  EXPECT_EQ(read_text(folder_ / "a"), "A");
}

TEST_P(PosixRenames, ExchangeThatFailsLeavesBothAsTheyWere) {
  disk_.create_directories(folder_ / "a/b", 0755);
  EXPECT_EQ(error_of([&] { disk_.exchange(folder_ / "a", folder_ / "a/b"); }), EINVAL);
  EXPECT_TRUE(disk_.status(folder_ / "a/b"));
  EXPECT_EQ(disk_.list(folder_.path()).size(), 1U);
}

using PosixRemovals = PosixFiles;

TEST_F(PosixRemovals, RemoveFilesAndEmptyFoldersAndIgnoreWhatIsNotThere) {
  write_text(folder_ / "a", "");
  disk_.create_directory(folder_ / "d", 0755);
  for (auto const* path : {"a", "a", "d", "none", "none/below"}) { disk_.remove(folder_ / path); }
  write_text(folder_ / "file", "");
  disk_.remove(folder_ / "file/below");
  EXPECT_EQ(disk_.list(folder_.path()).size(), 1U);
  disk_.create_directories(folder_ / "full/x", 0755);
  EXPECT_EQ(error_of([&] { disk_.remove(folder_ / "full"); }), ENOTEMPTY);
}

TEST_F(PosixRemovals, RemoveTreesWithAllThatIsInThem) {
  disk_.create_directories(folder_ / "tree/a/b/c", 0755);
  write_text(folder_ / "tree/a/b/file", "x");
  write_text(folder_ / "tree/.hidden", "x");
  ASSERT_EQ(::mkfifo((folder_ / "tree/pipe").c_str(), 0600), 0);
  disk_.remove_all(folder_ / "tree/");
  disk_.remove_all(folder_ / "tree");
  write_text(folder_ / "file", "x");
  disk_.remove_all(folder_ / "file");
  EXPECT_TRUE(disk_.list(folder_.path()).empty());
}

TEST_F(PosixRemovals, NeverFollowLinks) {
  disk_.create_directory(folder_ / "outside", 0755);
  write_text(folder_ / "outside/precious", "x");
  disk_.create_directory(folder_ / "tree", 0755);
  ASSERT_EQ(::symlink("../outside", (folder_ / "tree/link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (folder_ / "tree/dangling").c_str()), 0);
  disk_.remove_all(folder_ / "tree");
  ASSERT_EQ(::symlink("outside", (folder_ / "link").c_str()), 0);
  disk_.remove_all(folder_ / "link/");
  EXPECT_FALSE(disk_.status(folder_ / "tree"));
  struct stat status{};
  EXPECT_NE(::lstat((folder_ / "link").c_str(), &status), 0);
  EXPECT_EQ(read_text(folder_ / "outside/precious"), "x");
}

TEST_F(PosixRemovals, SucceedWhileOthersRemoveTheSameTree) {
  for (int round = 0; round < 20; ++round) {
    auto const tree = folder_ / "tree";
    for (int i = 0; i < 10; ++i) {
      disk_.create_directories(tree + "/" + std::to_string(i), 0755);
      for (int k = 0; k < 5; ++k) { write_text(tree + "/" + std::to_string(i) + "/" + std::to_string(k), ""); }
    }
    std::atomic<int> failures{0};
    auto const remove = [&] {
      if (error_of([&] { disk_.remove_all(tree); }) != 0) { ++failures; }
    };
    std::thread other(remove);
    remove();
    other.join();
    EXPECT_EQ(failures, 0);
    EXPECT_FALSE(disk_.status(tree));
  }
}

TEST_F(PosixRemovals, NameWhatTheyCannotRemove) {
  // Not even root may remove from /proc.
  try {
    disk_.remove_all("/proc/self/fdinfo");
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_TRUE(error.error_number() == EPERM || error.error_number() == EACCES) << error.what();
    EXPECT_TRUE(error.path().starts_with("/proc/self/fdinfo/")) << error.path();
  }
}

using PosixLocks = PosixFiles;

TEST_F(PosixLocks, AreHeldOnceAndFreedWithTheirObject) {
  auto lock = disk_.try_lock(folder_.path());
  EXPECT_TRUE(lock);
  EXPECT_FALSE(disk_.try_lock(folder_.path()));
  PosixFileSystem other;
  EXPECT_FALSE(other.try_lock(folder_.path()));
  lock.reset();
  EXPECT_TRUE(disk_.try_lock(folder_.path()));
}

TEST_F(PosixLocks, AreRefusedForWhatIsGoneAndForFiles) {
  EXPECT_FALSE(disk_.try_lock(folder_ / "none"));
  write_text(folder_ / "file", "");
  EXPECT_EQ(error_of([&] { (void)disk_.try_lock(folder_ / "file"); }), ENOTDIR);
}

TEST_F(PosixLocks, OutliveARenameOfTheFolder) {
  disk_.create_directory(folder_ / "a", 0755);
  auto const lock = disk_.try_lock(folder_ / "a");
  disk_.rename(folder_ / "a", folder_ / "b", IfTargetExists::Fail);
  EXPECT_FALSE(disk_.try_lock(folder_ / "b"));
  disk_.create_directory(folder_ / "a", 0755);
  EXPECT_TRUE(disk_.try_lock(folder_ / "a"));
}

TEST_F(PosixLocks, ArriveAtOnlyOneOfManyThreadsAtATime) {
  std::atomic<int> holders{0};
  std::atomic<int> most{0};
  auto const contend = [&] {
    for (int i = 0; i < 500; ++i) {
      if (auto const lock = disk_.try_lock(folder_.path())) {
        most = std::max(most.load(), ++holders);
        --holders;
      }
    }
  };
  std::thread other(contend);
  contend();
  other.join();
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace earmark
