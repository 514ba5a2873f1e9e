// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns what the user named (files, folders, globs) into a list of files. Thread safety: a pure function of the disk.
#pragma once

#include <string>
#include <vector>

#include "earmark/core/file_system.hpp"

namespace earmark::detail {

struct InputPath {
  std::string path;
  FileStatus status;
};

// A file stands for itself; a folder for all `*.parquet` below it, sorted, names with a leading "." or "_" skipped; a
// pattern with *, ? or [...] (and ** for any depth) for the files it matches, sorted. A file named twice is listed
// twice. Throws: InputError when something is missing or matches nothing.
[[nodiscard]] std::vector<InputPath> expand_inputs(FileSystem& file_system, std::vector<std::string> const& inputs);

}  // namespace earmark::detail
