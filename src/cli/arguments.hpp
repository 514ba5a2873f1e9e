// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the command line asks for, and the environment where the line is silent: each option `--some-name` may be given
// as EARMARK_SOME_NAME. The only file that knows the parser (its header is dear to compile) is the implementation.
// Thread safety: as getenv(3).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "earmark/ops/repartition.hpp"
#include "memory_setting.hpp"

namespace earmark::cli {

enum class ProgressStyle { Auto, Always, Never };
enum class ReportStyle { Text, Json };

// Text to print on standard output, e.g. of `--help`; nothing else is to be done.
struct PrintText {
  std::string text;
};

// `earmark repartition`; progress callback, stop token and memory limit of `options` are still empty.
struct RunRepartition {
  RepartitionOptions options;
  MemorySetting memory;
  ProgressStyle progress{ProgressStyle::Auto};
};

// An option with the value that a command would use, and who said so.
struct Setting {
  std::string name;    // "row-group-bytes"
  std::string value;   // as typed, or in words for a default
  std::string source;  // "--row-group-bytes", "EARMARK_ROW_GROUP_BYTES" or "default"
};

// `earmark info`.
struct RunInfo {
  std::vector<Setting> settings;
  MemorySetting memory;
  std::string folder;                          // whose disk is looked at
  std::vector<std::string> unknown_variables;  // EARMARK_... that no option reads
};

// The command line makes no sense.
struct WrongUsage {
  std::string message;  // one sentence
  std::string help;     // the command line that tells more, e.g. "earmark --help"
  std::string usage{};  // to be printed first; empty unless no command was given
};

struct Arguments {
  std::variant<PrintText, RunRepartition, RunInfo, WrongUsage> command;
  ReportStyle report{ReportStyle::Text};
};

// Requires: the arguments of `main`. Never throws for what the user typed: that comes back as `WrongUsage`.
[[nodiscard]] Arguments parse_arguments(int argument_count, char const* const* arguments);

// Returns: the version of the parser's library.
[[nodiscard]] std::string parser_version();

}  // namespace earmark::cli
