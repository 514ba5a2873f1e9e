// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the command line asks for. The only file that knows the parser (its header is dear to compile) is the
// implementation. Thread safety: a pure function of its arguments.
#pragma once

#include <string>
#include <variant>

#include "earmark/ops/repartition.hpp"

namespace earmark::cli {

enum class ProgressStyle { Auto, Always, Never };
enum class ReportStyle { Text, Json };

// Text to print on standard output, e.g. of `--help`; nothing else is to be done.
struct PrintText {
  std::string text;
};

// `earmark repartition`; progress callback and stop token of `options` are still empty.
struct RunRepartition {
  RepartitionOptions options;
  ProgressStyle progress{ProgressStyle::Auto};
};

// The command line makes no sense.
struct WrongUsage {
  std::string message;  // one sentence
  std::string help;     // the command line that tells more, e.g. "earmark --help"
  std::string usage{};  // to be printed first; empty unless no command was given
};

struct Arguments {
  std::variant<PrintText, RunRepartition, WrongUsage> command;
  ReportStyle report{ReportStyle::Text};
};

// Requires: the arguments of `main`. Never throws for what the user typed: that comes back as `WrongUsage`.
[[nodiscard]] Arguments parse_arguments(int argument_count, char const* const* arguments);

}  // namespace earmark::cli
