// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Open files of the operating system: an owned descriptor, and `File` on one. Private to core and tier.
// Thread safety: as `File`.
#pragma once

#include <memory>
#include <string>

#include "earmark/core/file_system.hpp"

namespace earmark::detail {

// Owns a file descriptor; -1 means none.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept;

 private:
  int fd_{-1};
};

// Opens `path` as openat(2) does, close-on-exec, again when a signal interrupts.
// Returns: an invalid descriptor on failure, with the cause in errno.
[[nodiscard]] Descriptor open_at(int directory, char const* path, int flags, unsigned mode = 0) noexcept;

// Opens a file. Throws: FileSystemError that says "cannot `operation` 'path'".
[[nodiscard]] std::unique_ptr<File> open_posix_file(std::string const& operation, std::string const& path, int flags,
                                                    unsigned mode = 0);

}  // namespace earmark::detail
