// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "earmark/ops/errors.hpp"
#include "help_texts.hpp"
#include "option_values.hpp"

namespace earmark::cli {
namespace {

constexpr std::int64_t most_partitions = INT32_MAX;
constexpr std::int64_t most_threads = 1024;

using Text = std::optional<std::string>;

// Options as typed; their values are read after the parser has sorted them.
struct RawOptions {
  std::vector<std::string> inputs{};
  std::vector<std::string> by{};
  std::vector<std::string> columns{};
  Text partitions{};
  Text output{};
  Text memory{};
  Text threads{};
  Text compression{};
  Text row_group_bytes{};
  Text progress{};
  // Switches: the parser says "true" for one on the line.
  std::string overwrite{};
  std::string verify{};
  std::string json{};
  bool no_admission_check{false};
};

// "--row-group-bytes" -> "EARMARK_ROW_GROUP_BYTES".
[[nodiscard]] std::string variable_of(std::string_view option) {
  std::string name = "EARMARK";
  for (char const character : option.substr(1)) {
    name.push_back(character == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(character))));
  }
  return name;
}

[[nodiscard]] std::string_view environment(std::string const& variable) {
  auto const* const value = std::getenv(variable.c_str());
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

// The parser's help, without a variable beside each option: they follow one rule, which the end of the help tells.
class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(CLI::Option const* option) const override {
    if (option->get_type_size() == 0) { return {}; }
    return " " + option->get_type_name() + (option->get_required() ? " (required)" : "");
  }
};

CLI::Option* add_value(CLI::App& command, std::string const& option, Text& target, char const* description,
                       char const* type) {
  return command.add_option(option, target, description)->type_name(type)->envname(variable_of(option));
}

CLI::Option* add_names(CLI::App& command, std::string const& option, std::vector<std::string>& target,
                       char const* description) {
  return command.add_option(option, target, description)
      ->type_name("COL[,COL]")
      ->allow_extra_args(false)
      ->envname(variable_of(option));
}

void add_switch(CLI::App& command, std::string const& option, std::string& target, char const* description) {
  command.add_flag(option, target, description)->envname(variable_of(option));
}

// What several commands take.
void add_settings(CLI::App& command, RawOptions& raw) {
  add_value(command, "--memory", raw.memory,
            "Bound on the peak resident size of the process (default: auto, 80 % of what is available)",
            "SIZE|PCT%|auto");
  add_value(command, "--threads", raw.threads, "Threads that work (default: one a core)", "N");
  add_value(command, "--compression", raw.compression,
            "snappy, zstd[:LEVEL], lz4, gzip, brotli or none (default: each column's own)", "CODEC");
  add_value(command, "--row-group-bytes", raw.row_group_bytes,
            "Arrow bytes at which a row group is full (default: 64MiB or 122880 rows)", "SIZE");
  add_value(command, "--progress", raw.progress, "auto (on a terminal), always or never", "WHEN");
}

[[nodiscard]] CLI::App* add_repartition(CLI::App& app, RawOptions& raw) {
  auto* const command = app.add_subcommand(
      "repartition", "Reads Parquet and writes exactly N files, rows placed by the hash of their key");
  command->footer(repartition_help_end);
  command->add_option("IN", raw.inputs, "Files, folders (all *.parquet below) and globs, of one schema")
      ->required()
      ->type_name("");
  add_names(*command, "--by", raw.by, "Key columns; quote a name that has a comma: '\"a,b\"'")->required();
  add_value(*command, "--partitions", raw.partitions, "How many files to write", "N")->required();
  add_value(*command, "--output", raw.output, "Folder to create", "DIR")->required();
  add_names(*command, "--columns", raw.columns, "Columns to write, a nested one whole (default: all)");
  add_settings(*command, raw);
  add_switch(*command, "--overwrite", raw.overwrite, "Replace the output folder, whatever is in it");
  add_switch(*command, "--verify", raw.verify, "Read input and output again, and compare them before publishing");
  add_switch(*command, "--json", raw.json, "Print the summary, or the error, as one JSON object");
  // Hidden: lets a test find the least limit that works.
  command->add_flag("--no-admission-check", raw.no_admission_check, "")->group("");
  return command;
}

[[nodiscard]] CLI::App* add_info(CLI::App& app, RawOptions& raw) {
  auto* const command = app.add_subcommand(
      "info", "Tells what was built, what the machine has, which limits hold, and where each setting comes from");
  command->footer(info_help_end);
  add_value(*command, "--output", raw.output, "Folder whose disk to look at (default: the current one)", "DIR");
  add_settings(*command, raw);
  add_switch(*command, "--json", raw.json, "Print one JSON object");
  return command;
}

// The options that were given on the line; an option that is not among them was said by its variable.
class Line {
 public:
  Line(int argument_count, char const* const* arguments) {
    for (int i = 1; i < argument_count; ++i) {
      std::string argument = arguments[i];
      if (argument == "--" && !only_inputs_) {
        only_inputs_ = true;
        continue;
      }
      if (!only_inputs_) {
        options_.push_back(argument.substr(0, argument.find('=')));
        before_inputs_.push_back(argument);
      }
      // What follows `--` is input even if it looks like an option, which the parser does not see from inside a
      // command; and it takes an input `[ab]` for a list. As a path below "." it does, and does not.
      bool const looks_otherwise = only_inputs_
                                       ? argument.starts_with('-') || is_bracketed(argument)
                                       : is_bracketed(argument) && (words_.empty() || !takes_value(words_.back()));
      words_.push_back(looks_otherwise ? "./" + argument : std::move(argument));
    }
  }

  [[nodiscard]] bool has(std::string_view option) const {
    return std::find(options_.begin(), options_.end(), option) != options_.end();
  }
  // Returns: the option, or the variable that stands for it, as a message should name it.
  [[nodiscard]] std::string name(std::string_view option) const {
    return has(option) || environment(variable_of(option)).empty() ? std::string{option} : variable_of(option);
  }
  // Returns: what the last mention of a switch says, as `--json=false` may; nothing where it is not on the line.
  [[nodiscard]] std::optional<bool> last_switch(std::string_view option) const {
    std::optional<bool> on;
    for (std::string const& word : before_inputs_) {
      if (word == option) { on = true; }
      if (word.starts_with(std::string{option} + "=")) { on = is_on(word.substr(option.size() + 1)).value_or(true); }
    }
    return on;
  }
  // Returns: the arguments without the program, last first, as the parser takes them.
  [[nodiscard]] std::vector<std::string> for_parser() const { return {words_.rbegin(), words_.rend()}; }

 private:
  static bool is_bracketed(std::string_view word) { return word.starts_with('[') && word.ends_with(']'); }
  // Returns: whether the next word is this one's value.
  static bool takes_value(std::string_view word) {
    constexpr std::array<std::string_view, 4> switches = {"--overwrite", "--verify", "--json", "--no-admission-check"};
    return word.starts_with("--") && word.find('=') == std::string_view::npos &&
           std::find(switches.begin(), switches.end(), word) == switches.end();
  }

  std::vector<std::string> options_;        // without their values
  std::vector<std::string> before_inputs_;  // the words before `--`, whole
  std::vector<std::string> words_;
  bool only_inputs_{false};
};

// Asked apart from the parser, because a line that cannot be parsed still says how to report that.
[[nodiscard]] ReportStyle wanted_report(Line const& line) {
  auto const by_variable = environment(variable_of("--json"));
  bool const wants = line.last_switch("--json").value_or(!by_variable.empty() && is_on(by_variable).value_or(false));
  return wants ? ReportStyle::Json : ReportStyle::Text;
}

[[nodiscard]] std::vector<std::string> read_names(Line const& line, std::string_view option,
                                                  std::vector<std::string> const& lists) {
  std::vector<std::string> names;
  for (auto const& list : lists) {
    for (auto& name : parse_column_list(line.name(option), list)) { names.push_back(std::move(name)); }
  }
  return names;
}

[[nodiscard]] ProgressStyle parse_progress(std::string_view option, std::string_view text) {
  if (text == "auto") { return ProgressStyle::Auto; }
  if (text == "always") { return ProgressStyle::Always; }
  if (text == "never") { return ProgressStyle::Never; }
  throw UsageError(fmt::format("{} {}: give auto, always or never", option, text));
}

[[nodiscard]] RunRepartition read_repartition(RawOptions const& raw, Line const& line) {
  auto const on = [&](std::string_view option, std::string const& text) {
    return !text.empty() && parse_switch(line.name(option), text);
  };
  RunRepartition run;
  auto& options = run.options;
  options.inputs = raw.inputs;
  options.by = read_names(line, "--by", raw.by);
  if (!raw.columns.empty()) { options.columns = read_names(line, "--columns", raw.columns); }
  if (raw.partitions) { options.partitions = parse_count(line.name("--partitions"), *raw.partitions, most_partitions); }
  options.output = raw.output.value_or("");
  if (raw.output && options.output.empty()) { throw UsageError("--output is empty; name a folder"); }
  run.memory = raw.memory ? parse_memory(line.name("--memory"), *raw.memory) : MemorySetting{};
  if (raw.threads) {
    auto const threads = parse_count(line.name("--threads"), *raw.threads, most_threads);
    options.threads = static_cast<std::size_t>(threads);
  }
  if (raw.compression) { options.compression = parse_compression(line.name("--compression"), *raw.compression); }
  if (raw.row_group_bytes) {
    options.row_group_bytes = parse_size(line.name("--row-group-bytes"), *raw.row_group_bytes);
  }
  if (raw.progress) { run.progress = parse_progress(line.name("--progress"), *raw.progress); }
  options.overwrite = on("--overwrite", raw.overwrite) ? Overwrite::Yes : Overwrite::No;
  options.verify = on("--verify", raw.verify) ? Verify::Yes : Verify::No;
  static_cast<void>(on("--json", raw.json));  // only to refuse what is no switch
  options.admission_check = raw.no_admission_check ? AdmissionCheck::No : AdmissionCheck::Yes;
  return run;
}

struct KnownSetting {
  std::string_view option;
  Text value;
  char const* default_value;
};

// Every option that the environment may give, but the column names, which are a command's own affair.
[[nodiscard]] std::vector<KnownSetting> known_settings(RawOptions const& raw) {
  auto const by_variable = [](std::string_view option) {
    auto const value = environment(variable_of(option));
    return value.empty() ? Text{} : Text{value};
  };
  return {{"--memory", raw.memory, "auto"},
          {"--threads", raw.threads, "one a core"},
          {"--compression", raw.compression, "each column's own"},
          {"--row-group-bytes", raw.row_group_bytes, "64MiB or 122880 rows"},
          {"--progress", raw.progress, "auto"},
          {"--json", raw.json.empty() ? Text{} : Text{raw.json}, "false"},
          {"--output", raw.output, "none"},
          {"--by", by_variable("--by"), "none"},
          {"--columns", by_variable("--columns"), "all"},
          {"--partitions", by_variable("--partitions"), "none"},
          {"--overwrite", by_variable("--overwrite"), "false"},
          {"--verify", by_variable("--verify"), "false"}};
}

[[nodiscard]] std::vector<std::string> unknown_variables(std::vector<KnownSetting> const& known) {
  constexpr std::string_view prefix = "EARMARK_";
  std::vector<std::string> unknown;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    std::string_view const text = *entry;
    auto const name = text.substr(0, text.find('='));
    bool const is_known = std::any_of(known.begin(), known.end(), [name](KnownSetting const& setting) {
      return variable_of(setting.option) == name;
    });
    if (name.starts_with(prefix) && !is_known) { unknown.emplace_back(name); }
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

[[nodiscard]] RunInfo read_info(RawOptions const& raw, Line const& line) {
  // What would be refused by a command is refused here too.
  auto const checked = read_repartition(raw, line);
  RunInfo info{.settings = {}, .memory = checked.memory, .folder = raw.output.value_or("."), .unknown_variables = {}};
  auto const known = known_settings(raw);
  for (auto const& setting : known) {
    info.settings.push_back({std::string{setting.option.substr(2)}, setting.value.value_or(setting.default_value),
                             setting.value ? line.name(setting.option) : "default"});
  }
  info.unknown_variables = unknown_variables(known);
  return info;
}

[[nodiscard]] std::string one_line(std::string text) {
  for (auto& character : text) { character = character == '\n' ? ' ' : character; }
  return text;
}

}  // namespace

Arguments parse_arguments(int argument_count, char const* const* arguments) {
  Line const line{argument_count, arguments};
  Arguments parsed{WrongUsage{}, wanted_report(line)};
  CLI::App app{"Earmark: out-of-core jobs on Parquet inside a memory limit", "earmark"};
  app.formatter(std::make_shared<HelpFormat>());
  app.footer(main_help_end);
  app.set_version_flag("--version", std::string{"earmark "} + EARMARK_VERSION, "Print the version and exit");
  app.require_subcommand(0, 1);
  RawOptions raw;  // of repartition
  RawOptions for_info;
  auto const* const repartition = add_repartition(app, raw);
  auto const* const info = add_info(app, for_info);
  auto const wrong = [&](std::string message, std::string usage = {}) {
    auto const* const help = repartition->parsed() ? "earmark repartition --help"
                             : info->parsed()      ? "earmark info --help"
                                                   : "earmark --help";
    parsed.command = WrongUsage{one_line(std::move(message)), help, std::move(usage)};
  };
  try {
    app.parse(line.for_parser());
    if (repartition->parsed()) {
      parsed.command = read_repartition(raw, line);
    } else if (info->parsed()) {
      parsed.command = read_info(for_info, line);
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

std::string parser_version() { return CLI11_VERSION; }

}  // namespace earmark::cli
