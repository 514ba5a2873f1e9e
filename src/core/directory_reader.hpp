// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The entries of an open folder. Private to core.
#pragma once

#include <string>
#include <vector>

#include "posix_file.hpp"

namespace earmark::detail {

struct RawEntry {
  std::string name;
  unsigned char type;  // DT_* of readdir(3); DT_UNKNOWN where the file system does not tell
};

// Reads a folder's entries but "." and "..", in the system's order.
// Requires: `directory` is an open folder; its position moves. Throws: FileSystemError naming `path`.
[[nodiscard]] std::vector<RawEntry> read_entries(Descriptor const& directory, std::string const& path);

}  // namespace earmark::detail
