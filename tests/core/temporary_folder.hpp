// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder of its own for each test, removed with all that is in it. Thread safety: as the file system.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

namespace earmark {

class TemporaryFolder {
 public:
  // The system's folder for temporary files may be held in memory: what must lie on a disk names another parent.
  explicit TemporaryFolder(std::filesystem::path const& parent = std::filesystem::temp_directory_path())
      : path_((parent / "earmark-test-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) { throw std::runtime_error("cannot make a temporary folder"); }
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(std::string const& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_text(std::string const& path, std::string const& text) { std::ofstream(path) << text; }

inline std::string read_text(std::string const& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace earmark
