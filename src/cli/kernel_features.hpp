// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel and a folder's file system can do, found by trying. Each function returns "yes", or "no" with the
// reason: "no (Operation not permitted)". Leaves nothing behind. Thread safety: as the system calls.
#pragma once

#include <string>

namespace earmark::cli {

[[nodiscard]] std::string kernel_release();
// Whether a process may have io_uring, which administrators and containers often forbid.
[[nodiscard]] std::string io_uring_allowed();

// Requires, of all that follow: the folder exists.
// Files that bypass the page cache.
[[nodiscard]] std::string direct_io_in(std::string const& folder);
// Files that never have a name, and so are gone with their process.
[[nodiscard]] std::string unnamed_files_in(std::string const& folder);
// Exchanging two names in one step, which `--overwrite` does.
[[nodiscard]] std::string exchange_in(std::string const& folder);

// Whether groups below the process's memory cgroup can be made.
[[nodiscard]] std::string may_write_folder(std::string const& folder);

}  // namespace earmark::cli
