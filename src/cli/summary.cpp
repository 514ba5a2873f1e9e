// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"

namespace earmark::cli {
namespace {

struct Line {
  std::string_view label;
  std::string value;
  std::string note{};
};

[[nodiscard]] std::string note_of_share(std::int64_t part, std::int64_t whole, std::string_view of_what) {
  if (whole <= 0) { return {}; }
  return fmt::format("({:.0f} % of {})", 100.0 * static_cast<double>(part) / static_cast<double>(whole), of_what);
}

[[nodiscard]] std::string throughput(RepartitionResult const& result) {
  auto const seconds = std::max(result.seconds, 1e-9);
  return fmt::format("{:.2f} million rows/s, {:.0f} MB/s", static_cast<double>(result.rows) / seconds / 1e6,
                     static_cast<double>(result.bytes_in) / seconds / 1e6);
}

[[nodiscard]] std::string waits(RepartitionResult const& result) {
  return result.waits == 0 ? "0"
                           : fmt::format("{}, {:.2f} s in all", with_separators(result.waits), result.wait_seconds);
}

[[nodiscard]] std::vector<Line> lines_of(RepartitionResult const& result) {
  return {{"rows", with_separators(result.rows)},
          {"read", format_bytes(result.bytes_in)},
          {"written", format_bytes(result.bytes_out), note_of_share(result.bytes_out, result.bytes_in, "the input")},
          {"time", fmt::format("{:.2f} s", result.seconds)},
          {"throughput", throughput(result)},
          {"memory limit", format_bytes(result.limit_bytes)},
          {"peak resident size", format_bytes(result.peak_resident_bytes),
           note_of_share(result.peak_resident_bytes, result.limit_bytes, "the limit")},
          {"peak of the budget", format_bytes(result.peak_committed_bytes)},
          {"before the job", format_bytes(result.baseline_bytes)},
          {"spilled", format_bytes(result.spilled_bytes)},
          {"waits", waits(result)},
          {"verified", result.verified == Verify::Yes ? "yes, the output was read back" : "no"}};
}

}  // namespace

std::string with_separators(std::int64_t count) {
  auto digits = fmt::format("{}", count);
  auto const first = count < 0 ? 1 : 0;
  for (auto place = std::ssize(digits) - 3; place > first; place -= 3) {
    digits.insert(static_cast<std::size_t>(place), ",");
  }
  return digits;
}

std::string summary_text(RepartitionResult const& result, std::string_view output) {
  auto text =
      fmt::format("Wrote {} {} to {}\n", with_separators(result.files), result.files == 1 ? "file" : "files", output);
  for (auto const& line : lines_of(result)) {
    text += fmt::format("  {:<20}{}{}{}\n", line.label, line.value, line.note.empty() ? "" : "  ", line.note);
  }
  return text;
}

}  // namespace earmark::cli
