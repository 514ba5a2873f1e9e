// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "failure.hpp"

#include <fmt/format.h>

#include <new>
#include <system_error>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/core/file_system.hpp"
#include "earmark/ops/errors.hpp"

namespace earmark::cli {
namespace {

constexpr auto defect_hint =
    "this is a defect of Earmark, not of your data; please report it with this line and the command that you ran";

[[nodiscard]] Failure input_failure(InputError const& error) {
  Failure failure{.kind = "input", .exit_code = ExitCode::Input, .message = error.what()};
  failure.file = error.file();
  failure.column = error.column();
  if (error.row_group() >= 0) { failure.row_group = error.row_group(); }
  return failure;
}

[[nodiscard]] Failure memory_failure(NotEnoughMemory const& error) {
  Failure failure{.kind = "memory", .exit_code = ExitCode::Memory, .message = error.what()};
  failure.limit_bytes = error.fields().limit;
  if (error.least_bytes() > 0) {
    failure.least_bytes = error.least_bytes();
    failure.hint = fmt::format("the least that will do: --memory {}", pasteable_size(error.least_bytes()));
  }
  return failure;
}

[[nodiscard]] Failure disk_failure(FileSystemError const& error) {
  Failure failure{.kind = "disk", .exit_code = ExitCode::Disk, .message = error.what()};
  failure.file = error.path();
  return failure;
}

[[nodiscard]] Failure interrupted_failure(JobInterrupted const& error, StopCause cause) {
  auto const exit_code = cause == StopCause::Terminate ? ExitCode::Terminated : ExitCode::Interrupted;
  return {.kind = "interrupted", .exit_code = exit_code, .message = error.what()};
}

// What std::thread throws where limits on threads, memory or address space leave no room for another thread.
[[nodiscard]] bool is_about_threads(std::system_error const& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

[[nodiscard]] Failure thread_failure(std::system_error const& error) {
  return {.kind = "internal",
          .exit_code = ExitCode::Defect,
          .message = fmt::format("the system starts no more threads ({})", error.what()),
          .hint = "pass fewer --threads, or raise the limits of processes and of address space (ulimit -u, ulimit -v)"};
}

[[nodiscard]] Failure internal_failure(std::string message) {
  return {.kind = "internal", .exit_code = ExitCode::Defect, .message = std::move(message), .hint = defect_hint};
}

}  // namespace

Failure describe(std::exception_ptr const& error, StopCause cause) {
  try {
    std::rethrow_exception(error);
  }
  catch (UsageError const& usage) {
    return usage_failure(usage.what());
  }
  catch (OutputError const& output) {
    return {.kind = "output", .exit_code = ExitCode::Usage, .message = output.what()};
  }
  catch (InputError const& input) {
    return input_failure(input);
  }
  catch (NotEnoughMemory const& memory) {
    return memory_failure(memory);
  }
  catch (FileSystemError const& disk) {
    return disk_failure(disk);
  }
  catch (JobInterrupted const& interrupted) {
    return interrupted_failure(interrupted, cause);
  }
  catch (std::bad_alloc const& memory) {
    return {.kind = "memory",
            .exit_code = ExitCode::Memory,
            .message = fmt::format("the system gave no memory ({})", memory.what()),
            .hint = "give the process more memory, or a larger --memory"};
  }
  catch (std::system_error const& system) {
    return is_about_threads(system) ? thread_failure(system) : internal_failure(system.what());
  }
  catch (std::exception const& other) {
    return internal_failure(other.what());
  }
  catch (...) {
    return internal_failure("something was thrown that is no exception");
  }
}

Failure usage_failure(std::string message, std::string_view help) {
  return {.kind = "usage",
          .exit_code = ExitCode::Usage,
          .message = std::move(message),
          .hint = fmt::format("see '{}'", help)};
}

std::string pasteable_size(std::int64_t bytes) {
  constexpr auto mebibyte = std::int64_t{1_MiB};
  return fmt::format("{}MiB", bytes / mebibyte + (bytes % mebibyte != 0 ? 1 : 0));
}

std::string failure_text(Failure const& failure) {
  auto text = fmt::format("earmark: error: {}\n", failure.message);
  if (!failure.hint.empty()) { text += fmt::format("earmark: {}\n", failure.hint); }
  return text;
}

}  // namespace earmark::cli
