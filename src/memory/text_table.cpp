// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/text_table.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "earmark/core/bytes.hpp"

namespace earmark::detail {
namespace {

std::size_t width_of(std::string const& text) {
  auto const continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; };
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues));
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  auto const is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7f; };
  for (std::string& cell : row) { std::replace_if(cell.begin(), cell.end(), is_control, '?'); }
  rows_.push_back(std::move(row));
}

std::string TextTable::to_text() const {
  std::vector<std::size_t> widths(columns_.size());
  for (auto const& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) { widths[i] = std::max(widths[i], width_of(row[i])); }
  }
  std::string text;
  for (auto const& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string const padding(widths[i] - width_of(row[i]), ' ');
      line.append("  ").append(columns_[i] == Left ? row[i] + padding : padding + row[i]);
    }
    text.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  std::string const plain = std::to_string(bytes) + " B";
  std::string const for_people = format_bytes(bytes);
  return plain == for_people ? plain : plain + " (" + for_people + ")";
}

std::string format_duration(std::chrono::nanoseconds duration) {
  struct Unit {
    std::string_view name;
    std::int64_t nanoseconds;
  };
  constexpr Unit units[]{{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};
  std::int64_t const value = std::max<std::int64_t>(duration.count(), 0);
  if (value == 0) { return "0 s"; }
  Unit const& unit =
      *std::find_if(std::begin(units), std::end(units), [&](Unit const& u) { return value >= u.nanoseconds; });
  std::int64_t const hundredths = value % unit.nanoseconds * 100 / unit.nanoseconds;
  std::string text = std::to_string(value / unit.nanoseconds);
  if (hundredths != 0) {
    text += '.';
    text += static_cast<char>('0' + hundredths / 10);
    if (hundredths % 10 != 0) { text += static_cast<char>('0' + hundredths % 10); }
  }
  return text.append(" ").append(unit.name);
}

}  // namespace earmark::detail
