// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Paths without links, "." and "..", also for what does not exist yet. Private to core. Thread safety: pure functions.
#pragma once

#include <string>

namespace earmark::detail {

// Returns: the folder that `path` is in ("." for a bare name, "/" for the root), without trailing slashes.
[[nodiscard]] std::string parent_of(std::string const& path);

// Returns: the absolute path with links, "." and ".." resolved. Parts at the end may be missing, also as the target of
// a link. Throws: FileSystemError.
[[nodiscard]] std::string canonical_path(std::string const& path);

}  // namespace earmark::detail
