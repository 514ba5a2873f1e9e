// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder of one process to spill into. It is made and locked at the start, so that a place that does not work is
// found out before anything depends on it. The files in it have no names: a process that is killed leaves at most the
// empty folder, which the next start removes.
//
//   PosixFileSystem files;
//   PosixSpillDisk disk{pool};
//   SpillDirectory const directory{files, disk, "/data/spill"};      // makes /data/spill, too
//   directory.path();                                                // "/data/spill/earmark-spill-4711-0"
//
// Who is alive is told by a lock on the folder, never by a process number, which another machine or container may use
// as well. Removed is what surely is a dead process's and nothing else: a folder of this user with exactly such a name,
// whose lock is free, with nothing in it but files as Earmark names them; and only where a lock is seen by all who see
// the folder. On file systems not known to be local (NFS, SMB, FUSE) nothing is removed, and empty folders are left to
// the user. The lock is the process's and its children's that go on without exec(2). Thread safety: any thread.
// Ownership: owns the folder and removes it at the end (a child of fork(2) does not); borrows file system and disk.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "earmark/core/file_system.hpp"
#include "earmark/core/spill_disk.hpp"

namespace earmark {

// What to do with a place whose files take memory (tmpfs and the like).
enum class SpillToMemory : std::uint8_t {
  Refuse,
  Allow,  // the user named it: what lies there counts as memory
};

class SpillDirectory {
 public:
  // Makes `parent` where it is missing, with parents of its own, each for this user alone, and the folder in it.
  // Throws: SpillPlaceRefused, before anything is made; FileSystemError.
  SpillDirectory(FileSystem& files, SpillDisk& disk, std::string const& parent,
                 SpillToMemory to_memory = SpillToMemory::Refuse);
  SpillDirectory(SpillDirectory const&) = delete;
  SpillDirectory& operator=(SpillDirectory const&) = delete;
  ~SpillDirectory();

  // The process's own folder.
  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  // The place as it was at the start.
  [[nodiscard]] SpillPlace const& place() const noexcept { return place_; }
  // Folders of dead processes that were removed.
  [[nodiscard]] std::int64_t removed_stale() const noexcept { return removed_stale_; }

 private:
  void refuse_memory(std::string const& parent, SpillDisk& disk, SpillToMemory to_memory);
  void remove_stale(std::string const& parent);
  void make_own(std::string const& parent);

  FileSystem& files_;
  pid_t process_;
  SpillPlace place_;
  std::string path_;
  std::unique_ptr<DirectoryLock> lock_;
  std::int64_t removed_stale_{0};
};

}  // namespace earmark
