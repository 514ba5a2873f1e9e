// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Removal of a folder with everything in it, relative to open folders so that a link put in the way meanwhile is
// removed and never followed. Private to core. Thread safety: any thread; what others remove meanwhile is no failure.
#pragma once

#include <string>

namespace earmark::detail {

// Removes `path` (a file, a link or a folder). Removes as much as it can, then
// Throws: FileSystemError for the first thing that could not be removed. One that does not exist is fine.
void remove_tree(std::string const& path);

}  // namespace earmark::detail
