// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spill_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "earmark/tier/errors.hpp"

namespace earmark {
namespace {

constexpr unsigned own_mode = 0700;
constexpr std::string_view prefix = "earmark-spill-";
constexpr std::string_view file_prefix = "spill-";  // of files that got a name for a moment
constexpr std::size_t file_suffix = 6;

// File systems whose locks are seen by everybody who can see the folder. Elsewhere (NFS, SMB, FUSE) another machine may
// hold a lock that this one does not know of.
constexpr std::array<std::string_view, 9> local_file_systems{"ext2", "ext3",    "ext4",  "xfs", "btrfs",
                                                             "f2fs", "overlay", "tmpfs", "zfs"};

bool locks_tell_who_lives(SpillPlace const& place) noexcept {
  return std::find(local_file_systems.begin(), local_file_systems.end(), place.file_system.view()) !=
         local_file_systems.end();
}

bool is_number(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}
// Exactly a name that `make_own` gives.
bool is_folder_name(std::string_view name) noexcept {
  if (!name.starts_with(prefix)) { return false; }
  name.remove_prefix(prefix.size());
  auto const dash = name.find('-');
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
}
bool is_file_name(std::string_view name) noexcept {
  return name.starts_with(file_prefix) && name.size() == file_prefix.size() + file_suffix;
}
// Whether it is of that kind itself, not a link to such a thing, and this user's.
bool is_own(std::string const& path, mode_t kind) noexcept {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid();
}
// Removes a folder that a dead process left, unless there is anything in it that is not ours. Never goes deeper.
// Returns: whether it is gone. Throws: FileSystemError.
bool remove_left(FileSystem& files, std::string const& path) {
  std::vector<DirectoryEntry> const entries = files.list(path);
  bool const all_ours = std::all_of(entries.begin(), entries.end(), [&](DirectoryEntry const& entry) {
    return is_file_name(entry.name) && is_own(path + "/" + entry.name, S_IFREG);
  });
  if (!all_ours) { return false; }
  for (DirectoryEntry const& entry : entries) { files.remove(path + "/" + entry.name); }
  files.remove(path);  // fails if something has come into it meanwhile
  return true;
}

std::string parent_of(std::string const& path) {
  auto const slash = path.find_last_of('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// The folder that `path` is in or will be made in.
std::string nearest_existing(FileSystem& files, std::string path) {
  while (path != "/" && !files.status(path)) { path = parent_of(path); }
  return path;
}

}  // namespace

SpillDirectory::SpillDirectory(FileSystem& files, SpillDisk& disk, std::string const& parent, SpillToMemory to_memory)
    : files_(files), process_(::getpid()) {
  std::string const place = files.canonical(parent);
  refuse_memory(place, disk, to_memory);
  files.create_directories(place, own_mode);
  remove_stale(place);
  make_own(place);
}

SpillDirectory::~SpillDirectory() {
  if (process_ != ::getpid()) { return; }  // a child of fork(2): the folder is its parent's
  try {
    files_.remove(path_);
  }
  catch (FileSystemError const&) {
    // An empty folder stays, and the next start here removes it.
  }
}

void SpillDirectory::refuse_memory(std::string const& parent, SpillDisk& disk, SpillToMemory to_memory) {
  place_ = disk.look_at(nearest_existing(files_, parent));
  if (place_.held_in_memory && to_memory == SpillToMemory::Refuse) {
    throw SpillPlaceRefused(parent, std::string{place_.file_system.view()});
  }
}

// Whoever lives holds the lock of his folder. One that is being made by another process just now and is taken for dead
// is no loss: that process finds it locked or gone, and makes another one.
void SpillDirectory::remove_stale(std::string const& parent) {
  if (!locks_tell_who_lives(place_)) { return; }
  for (DirectoryEntry const& entry : files_.list(parent)) {
    std::string const path = parent + "/" + entry.name;
    if (!is_folder_name(entry.name) || !is_own(path, S_IFDIR)) { continue; }
    try {
      auto const lock = files_.try_lock(path);
      if (lock != nullptr && remove_left(files_, path)) { ++removed_stale_; }
    }
    catch (FileSystemError const&) {
      // It is not in the way.
    }
  }
}

void SpillDirectory::make_own(std::string const& parent) {
  std::string const start = parent + "/" + std::string{prefix} + std::to_string(process_) + "-";
  for (std::int64_t number = 0; lock_ == nullptr; ++number) {
    path_ = start + std::to_string(number);
    try {
      files_.create_directory(path_, own_mode);
    }
    catch (FileSystemError const& error) {
      if (error.error_number() == EEXIST) { continue; }
      throw;
    }
    try {
      lock_ = files_.try_lock(path_);
    }
    catch (FileSystemError const&) {
      files_.remove(path_);
      throw;
    }
  }
}

}  // namespace earmark
