// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong with tiers beyond memory (`earmark/memory/errors.hpp`) and disks (`FileSystemError`). Catch the
// type that changes what you do; types and fields are API, text is not. Thread safety: immutable once thrown.
#pragma once

#include <stdexcept>
#include <string>

#include "earmark/core/error.hpp"

namespace earmark {

// A folder that Earmark does not spill to: its files would take the memory that spilling is to free.
class SpillPlaceRefused : public std::runtime_error, public EarmarkError {
 public:
  SpillPlaceRefused(std::string const& folder, std::string const& file_system);
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  ErrorFields fields_;
};

// Bytes that came back from a disk are not those that went there. What was read is not handed on; what lies on the disk
// stays as it is.
class SpilledDataCorrupted : public std::runtime_error, public EarmarkError {
 public:
  // `first`: the block's place among the bytes that were spilled together; `bytes`: its size.
  SpilledDataCorrupted(std::string const& folder, std::int64_t first, std::int64_t bytes);
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  ErrorFields fields_;
};

}  // namespace earmark
