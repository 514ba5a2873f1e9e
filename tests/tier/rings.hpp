// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The io_urings that this process has open, for tests that break one. Thread safety: nobody opens or closes files
// meanwhile.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace earmark {

// Returns: their descriptors.
inline std::vector<int> rings() {
  std::vector<int> found;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    auto const target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && target == "anon_inode:[io_uring]") { found.push_back(std::stoi(entry.path().filename())); }
  }
  return found;
}

}  // namespace earmark
