// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The output folder, from a hidden folder under construction to the published result. The hidden folder stands beside
// the target (`.DIR.earmark-XXXX`), is locked while its maker lives, and becomes the target by one rename; whatever
// goes wrong before that leaves the target as it was. Folders of dead makers are removed by the next job with the same
// target. Ownership: removes what it made unless it was published. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/ops/repartition.hpp"
#include "input_paths.hpp"

namespace earmark::detail {

class OutputFolder {
 public:
  // Checks the target without touching anything. Throws: OutputError, FileSystemError.
  static void check(FileSystem& file_system, std::string const& target, Overwrite overwrite,
                    std::vector<InputPath> const& inputs, std::vector<std::string> const& named_inputs);
  // Checks the target and makes the hidden folder.
  // Throws: OutputError when the target is not empty and may not be replaced, is a file, or is equal to, above or below
  // an input; FileSystemError when the disk refuses.
  OutputFolder(FileSystem& file_system, std::string const& target, Overwrite overwrite,
               std::vector<InputPath> const& inputs, std::vector<std::string> const& named_inputs);
  OutputFolder(OutputFolder const&) = delete;
  OutputFolder& operator=(OutputFolder const&) = delete;
  ~OutputFolder();

  // Returns: where file `partition` is built.
  [[nodiscard]] std::string part_path(std::int64_t partition) const;
  // Makes the result appear: the files of all paths that were handed out.
  // Throws: OutputError when the target was filled, or became something else than a folder, meanwhile; FileSystemError,
  // also when a file has gone or a foreign one has come.
  void publish();

 private:
  struct CheckOnly {};
  OutputFolder(CheckOnly, FileSystem& file_system, std::string const& target, Overwrite overwrite);
  void check_target(std::vector<InputPath> const& inputs, std::vector<std::string> const& named_inputs);
  [[nodiscard]] std::vector<std::string> entries_of_target();
  [[nodiscard]] std::string hidden_prefix() const;
  [[nodiscard]] std::string const& hidden_parent() const { return is_mount_point_ ? target_ : parent_; }
  void remove_stale_folders();
  void make_hidden_folder();
  void check_files();
  void check_target_is_no_file();
  void publish_into_mount_point();

  FileSystem& file_system_;
  std::string target_;  // canonical
  std::string parent_;
  std::string name_;
  Overwrite overwrite_;
  bool is_mount_point_{false};             // then the hidden folder is inside the target, on its disk
  std::vector<std::string> made_parents_;  // missing parents of the target that we created, outermost first
  std::string hidden_;
  mutable std::vector<bool> handed_out_;  // by partition: whose path was asked for
  std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace earmark::detail
