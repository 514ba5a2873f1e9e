// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints figures: a line each, as a table for people or (`--json`) as objects for programs, with the peer's figure, the
// ceiling and both ratios, oriented so that more is better.
//
//   Report report{argc, argv};                     // --json, --rows M1,M4, --rounds N
//   if (report.wants("M1")) {
//     report.print({.row = "M1", .what = "pair", .unit = "ns", .value = 20, .peer = {{"RMM limiting", 30}}});
//   }
//
// Thread safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measuring/race.hpp"

namespace earmark::measuring {

enum class Better : unsigned char { Less, More };

struct Figure {
  std::string row{};
  std::string what{};
  std::string unit{};
  double value{0};
  std::string figure_case{};
  std::optional<std::pair<std::string, double>> peer{};
  std::optional<double> ceiling{};
  std::optional<Cost> spread{};  // of the value
  Better better{Better::Less};
};

class Report {
 public:
  // Ends the process with status 2 and a usage line for arguments it does not know.
  Report(int argc, char const* const* argv);

  // Whether --rows names this row, or is absent.
  [[nodiscard]] bool wants(std::string_view row) const;
  void print(Figure const& figure);
  // `reason`: "cores" or "no device".
  void print_skipped(std::string_view row, std::string_view reason, std::string_view figure_case = {});
  // How long to measure.
  [[nodiscard]] RaceOptions race() const { return race_; }

 private:
  void print_json(Figure const& figure) const;
  void print_text(Figure const& figure);

  bool json_{false};
  bool headed_{false};
  std::vector<std::string> rows_;
  RaceOptions race_;
};

// "1 thread", "4 threads".
[[nodiscard]] std::string threads_case(int threads);

}  // namespace earmark::measuring
