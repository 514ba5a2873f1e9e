// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "earmark/ops/errors.hpp"
#include "option_values.hpp"

namespace earmark::cli {
namespace {

constexpr std::int64_t most_partitions = INT32_MAX;
constexpr std::int64_t most_threads = 1024;

constexpr auto main_examples = R"(Example:
  earmark repartition in/*.parquet --by customer --partitions 64 --output out --memory 512MiB

'earmark COMMAND --help' tells all about a command.)";

constexpr auto repartition_examples = R"(SIZE: 512MiB, 1.5GiB, 2g (binary), 1GB (decimal) or plain bytes.

Examples:
  earmark repartition events/ --by user_id --partitions 64 --output out --memory 512MiB
  earmark repartition 'in/*.parquet' --by 'country,"city, district"' --partitions 16 \
      --output out --memory 1GB --threads 4 --compression zstd:3 --overwrite
  earmark repartition a.parquet b.parquet --by id --partitions 8 --output out \
      --memory 200MiB --json --progress never

Exit codes: 0 done, 1 a defect of Earmark, 2 usage or refused output, 3 bad input, 4 not enough
memory, 5 file system, 130 interrupted, 143 terminated.)";

// Options as typed; their values are read after the parser has sorted them.
struct RawRepartition {
  std::vector<std::string> inputs;
  std::vector<std::string> by;
  std::string partitions;
  std::string output;
  std::string memory;
  std::optional<std::string> threads{};
  std::optional<std::string> compression{};
  std::optional<std::string> row_group_bytes{};
  std::string progress{"auto"};
  bool overwrite{false};
  bool json{false};
  bool no_admission_check{false};
};

[[nodiscard]] CLI::App* add_repartition(CLI::App& app, RawRepartition& raw) {
  auto* const command = app.add_subcommand(
      "repartition", "Reads Parquet and writes exactly N files, rows placed by the hash of their key");
  command->footer(repartition_examples);
  command->add_option("IN", raw.inputs, "Files, folders (all *.parquet below) and globs, of one schema")
      ->required()
      ->type_name("");
  command->add_option("--by", raw.by, "Key columns; quote a name that has a comma: '\"a,b\"'")
      ->required()
      ->type_name("COL[,COL]")
      ->allow_extra_args(false);
  command->add_option("--partitions", raw.partitions, "How many files to write")->required()->type_name("N");
  command->add_option("--output", raw.output, "Folder to create")->required()->type_name("DIR");
  command->add_option("--memory", raw.memory, "Bound on the peak resident size of the process")
      ->required()
      ->type_name("SIZE");
  command->add_option("--threads", raw.threads, "Threads that work (default: one a core)")->type_name("N");
  command
      ->add_option("--compression", raw.compression,
                   "snappy, zstd[:LEVEL], lz4, gzip, brotli or none (default: each column's own)")
      ->type_name("CODEC");
  command
      ->add_option("--row-group-bytes", raw.row_group_bytes,
                   "Arrow bytes at which a row group is full (default: 64MiB or 122880 rows)")
      ->type_name("SIZE");
  command->add_flag("--overwrite", raw.overwrite, "Replace the output folder, whatever is in it");
  command->add_option("--progress", raw.progress, "auto (on a terminal), always or never")->type_name("WHEN");
  command->add_flag("--json", raw.json, "Print the summary, or the error, as one JSON object");
  // Hidden: lets a test find the least limit that works.
  command->add_flag("--no-admission-check", raw.no_admission_check, "")->group("");
  return command;
}

[[nodiscard]] ProgressStyle parse_progress(std::string_view text) {
  if (text == "auto") { return ProgressStyle::Auto; }
  if (text == "always") { return ProgressStyle::Always; }
  if (text == "never") { return ProgressStyle::Never; }
  throw UsageError(fmt::format("--progress {}: give auto, always or never", text));
}

[[nodiscard]] RunRepartition read_values(RawRepartition const& raw) {
  RunRepartition run;
  auto& options = run.options;
  options.inputs = raw.inputs;
  for (auto const& list : raw.by) {
    for (auto& name : parse_column_list("--by", list)) { options.by.push_back(std::move(name)); }
  }
  options.partitions = parse_count("--partitions", raw.partitions, most_partitions);
  if (raw.output.empty()) { throw UsageError("--output is empty; name a folder"); }
  options.output = raw.output;
  options.memory_bytes = parse_size("--memory", raw.memory);
  if (raw.threads) { options.threads = static_cast<std::size_t>(parse_count("--threads", *raw.threads, most_threads)); }
  if (raw.compression) { options.compression = parse_compression("--compression", *raw.compression); }
  if (raw.row_group_bytes) { options.row_group_bytes = parse_size("--row-group-bytes", *raw.row_group_bytes); }
  options.overwrite = raw.overwrite ? Overwrite::Yes : Overwrite::No;
  options.admission_check = raw.no_admission_check ? AdmissionCheck::No : AdmissionCheck::Yes;
  run.progress = parse_progress(raw.progress);
  return run;
}

// Asked of the bare arguments, because a line that cannot be parsed still says how to report that.
[[nodiscard]] ReportStyle wanted_report(int argument_count, char const* const* arguments) {
  for (int i = 1; i < argument_count; ++i) {
    std::string_view const argument = arguments[i];
    if (argument == "--") { break; }
    if (argument == "--json") { return ReportStyle::Json; }
  }
  return ReportStyle::Text;
}

// What follows `--` is input even if it looks like an option, which the parser does not see from inside a command; as a
// path below "." it does. Returns: the arguments without the program, last first, as the parser takes them.
[[nodiscard]] std::vector<std::string> parser_arguments(int argument_count, char const* const* arguments) {
  std::vector<std::string> list;
  bool only_inputs = false;
  for (int i = 1; i < argument_count; ++i) {
    std::string argument = arguments[i];
    if (argument == "--" && !only_inputs) {
      only_inputs = true;
    } else {
      list.push_back(only_inputs && argument.starts_with('-') ? "./" + argument : std::move(argument));
    }
  }
  std::reverse(list.begin(), list.end());
  return list;
}

[[nodiscard]] std::string one_line(std::string text) {
  for (auto& character : text) { character = character == '\n' ? ' ' : character; }
  return text;
}

}  // namespace

Arguments parse_arguments(int argument_count, char const* const* arguments) {
  Arguments parsed{WrongUsage{}, wanted_report(argument_count, arguments)};
  CLI::App app{"Earmark: out-of-core jobs on Parquet inside a memory limit", "earmark"};
  app.footer(main_examples);
  app.set_version_flag("--version", std::string{"earmark "} + EARMARK_VERSION);
  app.require_subcommand(0, 1);
  RawRepartition raw;
  auto const* const repartition = add_repartition(app, raw);
  auto const wrong = [&](std::string message, std::string usage = {}) {
    auto const* const help = repartition->parsed() ? "earmark repartition --help" : "earmark --help";
    parsed.command = WrongUsage{one_line(std::move(message)), help, std::move(usage)};
  };
  try {
    app.parse(parser_arguments(argument_count, arguments));
    if (repartition->parsed()) {
      parsed.command = read_values(raw);
    } else {
      wrong("no command given", app.help());
    }
  }
  catch (CLI::CallForHelp const&) {
    parsed.command = PrintText{app.help()};
  }
  catch (CLI::CallForVersion const&) {
    parsed.command = PrintText{app.version() + "\n"};
  }
  catch (CLI::ParseError const& error) {
    wrong(error.what());
  }
  catch (UsageError const& error) {
    wrong(error.what());
  }
  return parsed;
}

}  // namespace earmark::cli
