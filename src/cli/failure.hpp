// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A failed run as the command reports it: the kind that scripts may branch on, the exit code, a sentence for people,
// and whatever numbers apply. Thread safety: a value.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace earmark::cli {

// The documented exit codes.
enum class ExitCode : int {
  Done = 0,
  Defect = 1,
  Usage = 2,
  Input = 3,
  Memory = 4,
  Disk = 5,
  Interrupted = 130,
  Terminated = 143,
};

struct Failure {
  std::string kind{};  // usage, output, input, memory, disk, interrupted, internal
  ExitCode exit_code{ExitCode::Defect};
  std::string message{};
  std::string hint{};  // what to do about it; may be empty
  std::string file{};
  std::string column{};
  std::optional<std::int64_t> row_group{};
  std::optional<std::int64_t> limit_bytes{};
  std::optional<std::int64_t> least_bytes{};
};

// What to call the end of a job that was asked to stop.
enum class StopCause { None, Interrupt, Terminate };

// Requires: `error` is not null. `cause` tells what stopped a job that ends with `JobInterrupted`.
[[nodiscard]] Failure describe(std::exception_ptr const& error, StopCause cause);

// `help` is the command line that tells more.
[[nodiscard]] Failure usage_failure(std::string message, std::string_view help = "earmark repartition --help");

// Returns: a size for `--memory` that is short and not below `bytes`: "93MiB".
[[nodiscard]] std::string pasteable_size(std::int64_t bytes);

// One or two lines for standard error, each ended.
[[nodiscard]] std::string failure_text(Failure const& failure);

}  // namespace earmark::cli
