// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The command: reads the line, runs the job of `earmark::ops`, and says how it went. Exit codes: failure.hpp.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>

#include "arguments.hpp"
#include "earmark/core/clock.hpp"
#include "earmark/core/machine_memory.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/ops/repartition.hpp"
#include "failure.hpp"
#include "info.hpp"
#include "memory_setting.hpp"
#include "process.hpp"
#include "progress.hpp"
#include "stop_signals.hpp"
#include "summary.hpp"

namespace earmark::cli {
namespace {

[[nodiscard]] int code(ExitCode exit_code) { return static_cast<int>(exit_code); }

// Reports what is asked for on standard output. A reader that went away has seen what it wanted.
[[nodiscard]] int print_result(std::string const& text) {
  if (write_all(STDOUT_FILENO, text) != Written::Failed) { return code(ExitCode::Done); }
  static_cast<void>(write_all(STDERR_FILENO, "earmark: error: cannot write to standard output\n"));
  return code(ExitCode::Disk);
}

[[nodiscard]] int report(Failure const& failure, ReportStyle style) {
  static_cast<void>(write_all(STDERR_FILENO, failure_text(failure)));
  if (style == ReportStyle::Json) { static_cast<void>(write_all(STDOUT_FILENO, failure_json(failure))); }
  return code(failure.exit_code);
}

[[nodiscard]] int run(PrintText const& print, ReportStyle /*style*/) { return print_result(print.text); }

[[nodiscard]] int run(WrongUsage const& wrong, ReportStyle style) {
  if (!wrong.usage.empty()) { static_cast<void>(write_all(STDERR_FILENO, wrong.usage + "\n")); }
  return report(usage_failure(wrong.message, wrong.help), style);
}

[[nodiscard]] std::int64_t limit_of(MemorySetting const& setting) {
  // A size needs no look at the machine, which may not let us.
  return setting.kind == MemorySetting::Kind::Size ? setting.bytes : memory_limit(setting, read_machine_memory());
}

[[nodiscard]] RepartitionResult run_job(RunRepartition const& command, std::stop_token const& stop) {
  auto options = command.options;
  options.memory_bytes = limit_of(command.memory);
  if (options.threads == 0) { options.threads = std::max(1U, std::thread::hardware_concurrency()); }
  SteadyClock const clock;
  PosixFileSystem files;
  // The calling thread works too.
  ThreadPool pool{std::max<std::size_t>(options.threads - 1, 1)};
  ProgressDisplay display{command.progress, options.memory_bytes, clock};
  options.progress = [&display](RepartitionProgress const& progress) { display.show(progress); };
  options.stop = stop;
  return repartition(options, {pool, clock, files});
}

[[nodiscard]] int run(RunRepartition const& command, ReportStyle style) {
  std::stop_source stop;
  StopSignals const signals{stop};
  try {
    auto const result = run_job(command, stop.get_token());
    return print_result(style == ReportStyle::Json ? summary_json(result)
                                                   : summary_text(result, command.options.output));
  }
  catch (...) {
    return report(describe(std::current_exception(), signals.cause()), style);
  }
}

[[nodiscard]] int run(RunInfo const& command, ReportStyle style) {
  auto const info = gather_info(command);
  return print_result(style == ReportStyle::Json ? info_json(info) : info_text(info));
}

[[nodiscard]] int run_command(int argument_count, char const* const* arguments) {
  auto style = ReportStyle::Text;
  try {
    auto const parsed = parse_arguments(argument_count, arguments);
    style = parsed.report;
    return std::visit([style](auto const& command) { return run(command, style); }, parsed.command);
  }
  catch (...) {
    return report(describe(std::current_exception(), StopCause::None), style);
  }
}

}  // namespace
}  // namespace earmark::cli

int main(int argument_count, char** arguments) {
  earmark::cli::prepare_process();
  earmark::cli::end_process(earmark::cli::run_command(argument_count, arguments));
}
