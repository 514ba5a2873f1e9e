// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/posix_file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "canonical_path.hpp"
#include "directory_reader.hpp"
#include "posix_file.hpp"
#include "remove_tree.hpp"

namespace earmark {
namespace {

using detail::Descriptor;

constexpr bool is_missing(int error_number) { return error_number == ENOENT || error_number == ENOTDIR; }

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) { return FileKind::Regular; }
  return S_ISDIR(mode) ? FileKind::Directory : FileKind::Other;
}

FileKind kind_of(detail::RawEntry const& entry, Descriptor const& directory) {
  if (entry.type == DT_REG) { return FileKind::Regular; }
  if (entry.type == DT_DIR) { return FileKind::Directory; }
  struct stat status{};
  return ::fstatat(directory.get(), entry.name.c_str(), &status, 0) == 0 ? kind_of(status.st_mode) : FileKind::Other;
}

// Returns: whether `path` itself, links not followed, is a folder.
bool is_directory(std::string const& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(std::string const& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

// Failures of a flagged rename that mean that the kernel or the file system lacks the flag. EINVAL also stands for
// moving a folder into itself; the way without flags then says so.
constexpr bool lacks_flags(int error_number) {
  return error_number == EINVAL || error_number == ENOSYS || error_number == ENOTSUP || error_number == EOPNOTSUPP;
}

bool try_rename(std::string const& from, std::string const& to, unsigned flags) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0;
}

// Gives a file a new name that must be free, without a flagged rename.
bool try_rename_by_link(std::string const& from, std::string const& to) {
  if (::link(from.c_str(), to.c_str()) == 0) { return ::unlink(from.c_str()) == 0; }
  if (errno != EPERM && errno != ENOSYS && errno != ENOTSUP && errno != EOPNOTSUPP && errno != EMLINK) { return false; }
  if (exists(to)) {
    errno = EEXIST;
    return false;
  }
  return try_rename(from, to, 0);
}

// Returns: whether one path is inside the folder at the other.
bool one_holds_the_other(std::string const& a, std::string const& b) {
  auto const below_a = detail::canonical_path(a) + "/";
  auto const below_b = detail::canonical_path(b) + "/";
  return below_a != below_b && (below_a.starts_with(below_b) || below_b.starts_with(below_a));
}

FileSystemError rename_error(std::string const& from, std::string const& to, int error_number) {
  return {"rename '" + from + "' to", to, error_number};
}

// Holds flock(2) on a folder until its descriptor closes.
class PosixDirectoryLock final : public DirectoryLock {
 public:
  explicit PosixDirectoryLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;
};

bool is_same_file(struct stat const& a, struct stat const& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Returns: whether `path` still leads to what `descriptor` has open.
bool leads_to(std::string const& path, Descriptor const& descriptor) {
  struct stat open_now{};
  struct stat named_now{};
  return ::fstat(descriptor.get(), &open_now) == 0 && ::stat(path.c_str(), &named_now) == 0 &&
         is_same_file(open_now, named_now);
}

}  // namespace

std::unique_ptr<File> PosixFileSystem::open_for_reading(std::string const& path) {
  return detail::open_posix_file("open", path, O_RDONLY);
}

std::unique_ptr<File> PosixFileSystem::open_for_writing(std::string const& path) {
  return detail::open_posix_file("open for writing", path, O_WRONLY);
}

std::unique_ptr<File> PosixFileSystem::create(std::string const& path, unsigned mode) {
  return detail::open_posix_file("create", path, O_RDWR | O_CREAT | O_EXCL, mode);
}

void PosixFileSystem::create_directory(std::string const& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) != 0) { throw FileSystemError("create folder", path, errno); }
}

void PosixFileSystem::create_directories(std::string const& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) { return; }
  auto error_number = errno;
  auto const parent = detail::parent_of(path);
  if (error_number == ENOENT && !path.empty() && parent != path && parent != ".") {
    create_directories(parent, mode);
    if (::mkdir(path.c_str(), mode) == 0) { return; }
    error_number = errno;
  }
  // Someone else may have made it meanwhile; a file in its place is a failure.
  auto const found = error_number == EEXIST ? status(path) : std::nullopt;
  if (!found || found->kind != FileKind::Directory) { throw FileSystemError("create folder", path, error_number); }
}

std::vector<DirectoryEntry> PosixFileSystem::list(std::string const& path) {
  auto const directory = detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) { throw FileSystemError("list", path, errno); }
  std::vector<DirectoryEntry> entries;
  for (auto const& entry : detail::read_entries(directory, path)) {
    entries.push_back({entry.name, kind_of(entry, directory)});
  }
  std::sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
  return entries;
}

std::optional<FileStatus> PosixFileSystem::status(std::string const& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (is_missing(errno)) { return std::nullopt; }
    throw FileSystemError("look at", path, errno);
  }
  return FileStatus{kind_of(status.st_mode), status.st_size, status.st_dev, status.st_ino,
                    status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string PosixFileSystem::canonical(std::string const& path) { return detail::canonical_path(path); }

void PosixFileSystem::rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) {
  if (if_target_exists == IfTargetExists::Replace) {
    if (!try_rename(from, to, 0)) { throw rename_error(from, to, errno); }
    return;
  }
  if (flags_ == RenameFlags::Use) {
    if (try_rename(from, to, RENAME_NOREPLACE)) { return; }
    if (!lacks_flags(errno) && !(errno == EEXIST && is_directory(to))) { throw rename_error(from, to, errno); }
  }
  // For a folder the plain rename refuses every target but an empty folder. For a file it would replace.
  bool const renamed = is_directory(from) ? try_rename(from, to, 0) : try_rename_by_link(from, to);
  if (renamed) { return; }
  bool const is_taken = errno == ENOTEMPTY || (errno == ENOTDIR && exists(to));
  throw rename_error(from, to, is_taken ? EEXIST : errno);
}

void PosixFileSystem::exchange(std::string const& a, std::string const& b) {
  if (flags_ == RenameFlags::Use) {
    if (try_rename(a, b, RENAME_EXCHANGE)) { return; }
    if (!lacks_flags(errno)) { throw FileSystemError("exchange '" + a + "' with", b, errno); }
  }
  exchange_by_renames(a, b);
}

void PosixFileSystem::exchange_by_renames(std::string const& a, std::string const& b) {
  if (!exists(a) || !exists(b)) { throw FileSystemError("exchange '" + a + "' with", b, ENOENT); }
  if (one_holds_the_other(a, b)) { throw FileSystemError("exchange '" + a + "' with", b, EINVAL); }
  auto const aside = a + ".exchange";
  rename(a, aside, IfTargetExists::Fail);
  if (!try_rename(b, a, 0)) {
    auto const error_number = errno;
    (void)try_rename(aside, a, 0);
    throw FileSystemError("exchange '" + a + "' with", b, error_number);
  }
  if (!try_rename(aside, b, 0)) {
    auto const error_number = errno;
    if (try_rename(a, b, 0)) { (void)try_rename(aside, a, 0); }
    throw FileSystemError("exchange '" + a + "' with", b, error_number);
  }
}

void PosixFileSystem::remove(std::string const& path) {
  // remove(3) tries both kinds: unlink, then rmdir for a folder.
  if (std::remove(path.c_str()) != 0 && !is_missing(errno)) { throw FileSystemError("remove", path, errno); }
}

void PosixFileSystem::remove_all(std::string const& path) { detail::remove_tree(path); }

std::unique_ptr<DirectoryLock> PosixFileSystem::try_lock(std::string const& directory) {
  auto descriptor = detail::open_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (!descriptor.valid()) {
    if (errno == ENOENT) { return nullptr; }
    throw FileSystemError("lock", directory, errno);
  }
  while (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) { return nullptr; }
    if (errno != EINTR) { throw FileSystemError("lock", directory, errno); }
  }
  // Whoever held the lock until now may have removed or replaced the folder.
  if (!leads_to(directory, descriptor)) { return nullptr; }
  return std::make_unique<PosixDirectoryLock>(std::move(descriptor));
}

}  // namespace earmark
