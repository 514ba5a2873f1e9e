// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/file_system.hpp"

#include <system_error>
#include <utility>

namespace earmark {

FileSystemError::FileSystemError(std::string const& operation, std::string path, int error_number, std::int64_t bytes)
    : std::runtime_error("cannot " + operation + " '" + path + "': " + std::generic_category().message(error_number)),
      path_(std::move(path)),
      error_number_(error_number) {
  fields_.tier.assign("disk");
  fields_.requested = bytes;
}

}  // namespace earmark
