// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "earmark/core/bytes.hpp"
#include "earmark/ops/errors.hpp"

namespace earmark::cli {
namespace {

constexpr double automatic_percent = 80;

[[nodiscard]] std::optional<double> percentage(std::string_view text) {
  if (!text.ends_with('%')) { return std::nullopt; }
  text.remove_suffix(1);
  double value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  bool const is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && value > 0 && value <= 100 ? std::optional{value} : std::nullopt;
}

[[nodiscard]] std::int64_t share_of(double percent, std::int64_t bytes) {
  auto const share = static_cast<std::int64_t>(percent / 100 * static_cast<double>(bytes));
  return std::max<std::int64_t>(share, 1);
}

}  // namespace

MemorySetting parse_memory(std::string_view option, std::string_view text) {
  if (text == "auto") { return {}; }
  if (auto const percent = percentage(text)) { return {MemorySetting::Kind::Percent, 0, *percent}; }
  auto const bytes = parse_bytes(text);
  if (bytes && *bytes >= 1) { return {MemorySetting::Kind::Size, *bytes, 0}; }
  throw UsageError(
      fmt::format("{} {}: give a size above 0 like 512MiB, 1.5GiB, 2GB or plain bytes (it must fit in 63 bits), a "
                  "percentage from above 0 to 100 like 50%, or auto",
                  option, text));
}

std::int64_t memory_limit(MemorySetting const& setting, MachineMemory const& machine) {
  switch (setting.kind) {
    case MemorySetting::Kind::Size: return setting.bytes;
    case MemorySetting::Kind::Percent: return share_of(setting.percent, machine.limit_bytes());
    case MemorySetting::Kind::Auto: break;
  }
  return share_of(automatic_percent, machine.available_bytes());
}

std::string memory_origin(MemorySetting const& setting, MachineMemory const& machine) {
  auto const* const cgroup = machine.tightest_cgroup();
  switch (setting.kind) {
    case MemorySetting::Kind::Size: return {};
    case MemorySetting::Kind::Percent:
      return fmt::format("{:g} % of {}", setting.percent,
                         cgroup == nullptr ? "the machine's memory" : "the limit in " + cgroup->limit_path);
    case MemorySetting::Kind::Auto: break;
  }
  bool const by_cgroup = machine.available_bytes() < machine.machine_available_bytes;
  return fmt::format("{:g} % of what the {} left", automatic_percent, by_cgroup ? "cgroup" : "machine");
}

}  // namespace earmark::cli
