// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spill_directory.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "earmark/tier/errors.hpp"

namespace earmark {
namespace {

constexpr unsigned own_mode = 0700;
constexpr std::string_view prefix = "earmark-spill-";

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
    : files_(files) {
  std::string const place = files.canonical(parent);
  refuse_memory(place, disk, to_memory);
  files.create_directories(place, own_mode);
  remove_stale(place);
  make_own(place);
}

SpillDirectory::~SpillDirectory() {
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
  for (DirectoryEntry const& entry : files_.list(parent)) {
    if (!entry.name.starts_with(prefix) || entry.kind != FileKind::Directory) { continue; }
    std::string const path = parent + "/" + entry.name;
    try {
      auto const lock = files_.try_lock(path);
      if (lock == nullptr) { continue; }
      files_.remove_all(path);
      ++removed_stale_;
    }
    catch (FileSystemError const&) {
      // Another user's, perhaps; it is not in the way.
    }
  }
}

void SpillDirectory::make_own(std::string const& parent) {
  std::string const start = parent + "/" + std::string{prefix} + std::to_string(::getpid()) + "-";
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
