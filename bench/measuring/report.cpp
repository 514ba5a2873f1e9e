// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "measuring/report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace earmark::measuring {
namespace {

[[noreturn]] void refuse(char const* program) {
  std::fprintf(stderr, "usage: %s [--json] [--rows ROW,ROW...] [--rounds N]\n", program);
  std::exit(2);
}

std::vector<std::string> split_at_commas(std::string const& list) {
  std::vector<std::string> parts;
  std::istringstream stream{list};
  for (std::string part; std::getline(stream, part, ',');) { parts.push_back(part); }
  return parts;
}

// How much better than `other`: more is better.
double ratio(Figure const& figure, double other) {
  return figure.better == Better::Less ? other / figure.value : figure.value / other;
}

}  // namespace

Report::Report(int argc, char const* const* argv) {
  std::vector<std::string> const arguments(argv + 1, argv + argc);
  for (auto it = arguments.begin(); it != arguments.end(); ++it) {
    bool const has_value = it + 1 != arguments.end();
    if (*it == "--json") {
      json_ = true;
    } else if (*it == "--rows" && has_value) {
      rows_ = split_at_commas(*++it);
    } else if (*it == "--rounds" && has_value) {
      race_.rounds = std::max(1, std::atoi((++it)->c_str()));
    } else {
      refuse(argv[0]);
    }
  }
}

bool Report::wants(std::string_view row) const {
  return rows_.empty() || std::find(rows_.begin(), rows_.end(), row) != rows_.end();
}

void Report::print(Figure const& figure) {
  json_ ? print_json(figure) : print_text(figure);
  std::fflush(stdout);
}

void Report::print_skipped(std::string_view row, std::string_view reason, std::string_view figure_case) {
  std::string const line{row}, why{reason}, which{figure_case};
  if (!json_) {
    std::printf("%-4s %-40s skipped: %s\n", line.c_str(), which.c_str(), why.c_str());
  } else if (which.empty()) {
    std::printf(R"({"row":"%s","skipped":"%s"})"
                "\n",
                line.c_str(), why.c_str());
  } else {
    std::printf(R"({"row":"%s","case":"%s","skipped":"%s"})"
                "\n",
                line.c_str(), which.c_str(), why.c_str());
  }
  std::fflush(stdout);
}

void Report::print_json(Figure const& figure) const {
  std::printf(R"({"row":"%s","what":"%s","value":%.2f,"unit":"%s")", figure.row.c_str(), figure.what.c_str(),
              figure.value, figure.unit.c_str());
  if (!figure.figure_case.empty()) { std::printf(R"(,"case":"%s")", figure.figure_case.c_str()); }
  if (figure.peer) {
    std::printf(R"(,"peer":"%s","peer_value":%.2f,"ratio_to_peer":%.3f)", figure.peer->first.c_str(),
                figure.peer->second, ratio(figure, figure.peer->second));
  }
  if (figure.ceiling) {
    std::printf(R"(,"ceiling":%.2f,"ratio_to_ceiling":%.3f)", *figure.ceiling, ratio(figure, *figure.ceiling));
  }
  if (figure.spread) { std::printf(R"(,"spread":[%.2f,%.2f])", figure.spread->low, figure.spread->high); }
  std::printf("}\n");
}

void Report::print_text(Figure const& figure) {
  if (!std::exchange(headed_, true)) {
    std::printf("%-4s %-40s %10s %-3s %-19s %-30s %10s %8s %10s %8s\n", "row", "case", "value", "",
                "half of all within", "peer", "value", "ratio", "ceiling", "ratio");
  }
  std::string const which = figure.figure_case.empty() ? figure.what : figure.figure_case;
  std::printf("%-4s %-40s %10.2f %-3s", figure.row.c_str(), which.c_str(), figure.value, figure.unit.c_str());
  if (figure.spread) {
    std::printf(" %9.2f%10.2f", figure.spread->low, figure.spread->high);
  } else if (figure.peer || figure.ceiling) {
    std::printf(" %19s", "");
  }
  if (figure.peer) {
    std::printf(" %-30s %10.2f %7.2fx", figure.peer->first.c_str(), figure.peer->second,
                ratio(figure, figure.peer->second));
  } else if (figure.ceiling) {
    std::printf(" %-30s %10s %8s", "", "", "");
  }
  if (figure.ceiling) { std::printf(" %10.2f %7.2fx", *figure.ceiling, ratio(figure, *figure.ceiling)); }
  std::printf("\n");
}

std::string threads_case(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

}  // namespace earmark::measuring
