// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The real disk: pread, pwrite, renameat2, flock. Keeps no state but its setting; thread safety as `FileSystem`.
//
// Where a file system refuses flagged renames (some network and FUSE ones), `rename` that must not replace gives a file
// its new name by a hard link, or after a look where there are none; `exchange` takes three renames, undone as far as
// possible when one fails, so that for an instant one of the names is missing.
#pragma once

#include "earmark/core/file_system.hpp"

namespace earmark {

// Whether renames carry flags (refuse to replace, exchange); Emulate does without, as where they are refused.
enum class RenameFlags { Use, Emulate };

class PosixFileSystem final : public FileSystem {
 public:
  explicit PosixFileSystem(RenameFlags flags = RenameFlags::Use) noexcept : flags_(flags) {}

  [[nodiscard]] std::unique_ptr<File> open_for_reading(std::string const& path) override;
  [[nodiscard]] std::unique_ptr<File> open_for_writing(std::string const& path) override;
  [[nodiscard]] std::unique_ptr<File> create(std::string const& path, unsigned mode) override;
  void create_directory(std::string const& path, unsigned mode) override;
  void create_directories(std::string const& path, unsigned mode) override;
  [[nodiscard]] std::vector<DirectoryEntry> list(std::string const& path) override;
  [[nodiscard]] std::optional<FileStatus> status(std::string const& path) override;
  [[nodiscard]] std::string canonical(std::string const& path) override;
  void rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) override;
  void exchange(std::string const& a, std::string const& b) override;
  void remove(std::string const& path) override;
  void remove_all(std::string const& path) override;
  [[nodiscard]] std::unique_ptr<DirectoryLock> try_lock(std::string const& directory) override;

 private:
  void exchange_by_renames(std::string const& a, std::string const& b);

  RenameFlags flags_;
};

}  // namespace earmark
