// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How a job can fail. One type per cause that a caller may want to act on; each is an `EarmarkError`, and the command
// maps each to an exit code. Memory errors of the ledger itself (`earmark/memory/errors.hpp`) do not leave a job: they
// come out as `NotEnoughMemory` with the least limit that will do.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "earmark/core/error.hpp"

namespace earmark {

// Base of the errors of jobs; `FileSystemError` (core) comes beside them, from output or spill.
class JobError : public std::runtime_error, public EarmarkError {
 public:
  using std::runtime_error::runtime_error;
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 protected:
  ErrorFields fields_{};
};

// The options make no sense: no partitions, a negative size, no key.
class UsageError : public JobError {
 public:
  using JobError::JobError;
};

// The output cannot be where it is wanted: not empty, or equal to, above or below an input.
class OutputError : public JobError {
 public:
  using JobError::JobError;
};

// The input is missing, not Parquet, broken, or has no such key. `row_group` is -1 and `column` empty where they do not
// apply.
class InputError : public JobError {
 public:
  InputError(std::string const& message, std::string file, std::string column = {}, std::int64_t row_group = -1)
      : JobError(message), file_(std::move(file)), column_(std::move(column)), row_group_(row_group) {}
  [[nodiscard]] std::string const& file() const noexcept { return file_; }
  [[nodiscard]] std::string const& column() const noexcept { return column_; }
  [[nodiscard]] std::int64_t row_group() const noexcept { return row_group_; }

 private:
  std::string file_;
  std::string column_;
  std::int64_t row_group_;
};

// The limit is too small for this input. `least_bytes()` works.
class NotEnoughMemory : public JobError {
 public:
  NotEnoughMemory(std::string const& message, std::int64_t limit_bytes, std::int64_t least_bytes)
      : JobError(message), least_bytes_(least_bytes) {
    fields_.tier.assign("host");
    fields_.limit = limit_bytes;
    fields_.requested = least_bytes;
    fields_.shortfall = least_bytes - limit_bytes;
    fields_.setting.assign("--memory");
  }
  [[nodiscard]] std::int64_t least_bytes() const noexcept { return least_bytes_; }

 private:
  std::int64_t least_bytes_;
};

// Someone asked the job to stop.
class JobInterrupted : public JobError {
 public:
  using JobError::JobError;
};

// A defect of ours: an invariant of the job did not hold.
class InternalError : public JobError {
 public:
  using JobError::JobError;
};

}  // namespace earmark
