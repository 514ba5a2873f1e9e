// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/bytes.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace earmark {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// Returns: the digits that `text` begins with, taken off it.
std::string_view take_digits(std::string_view& text) {
  auto const end = std::find_if_not(text.begin(), text.end(), is_digit);
  auto const digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

std::optional<std::int64_t> parse_digits(std::string_view digits) {
  std::optional<std::int64_t> value = 0;
  for (char const digit : digits) {
    value = checked_multiply(*value, 10);
    if (value) { value = checked_add(*value, digit - '0'); }
    if (!value) { break; }
  }
  return value;
}

// Returns: the bytes of a unit such as "KiB" or "mb"; 1 for "B" and for no unit.
std::optional<std::int64_t> parse_unit(std::string_view unit) {
  std::string text(unit);
  std::transform(text.begin(), text.end(), text.begin(), to_upper);
  if (text.empty() || text == "B") { return 1; }
  auto const power = std::string_view("KMGTPE").find(text.front());
  if (power == std::string_view::npos) { return std::nullopt; }
  auto const rest = std::string_view(text).substr(1);
  bool const binary = rest.empty() || rest == "I" || rest == "IB";
  if (!binary && rest != "B") { return std::nullopt; }
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) { bytes *= binary ? 1024 : 1000; }
  return bytes;
}

// Returns: the whole bytes in 0.`digits` units. 18 digits are exact to a millionth of a byte for the largest unit.
std::int64_t fraction_of(std::int64_t unit, std::string_view digits) {
  __extension__ using Wide = __int128;
  Wide numerator = 0;
  Wide denominator = 1;
  for (char const digit : digits.substr(0, 18)) {
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  return static_cast<std::int64_t>(numerator * unit / denominator);
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  auto const whole_digits = take_digits(text);
  if (whole_digits.empty()) { return std::nullopt; }
  std::string_view fraction_digits;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction_digits = take_digits(text);
    if (fraction_digits.empty()) { return std::nullopt; }
  }
  if (text.size() > 1 && text.front() == ' ') { text.remove_prefix(1); }
  auto const unit = parse_unit(text);
  if (!unit || (*unit == 1 && !fraction_digits.empty())) { return std::nullopt; }  // there are no parts of a byte
  auto const whole = parse_digits(whole_digits);
  auto const bytes = whole ? checked_multiply(*whole, *unit) : std::nullopt;
  return bytes ? checked_add(*bytes, fraction_of(*unit, fraction_digits)) : std::nullopt;
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto const magnitude = bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
  std::size_t unit = 0;
  auto whole = magnitude;
  std::uint64_t hundredths = 0;
  // Rounding may carry into the next unit: 1048575 B are 1 MiB, not 1024 KiB.
  while (whole >= 1024 && unit + 1 < units.size()) {
    ++unit;
    auto const shift = 10 * unit;
    auto const rest = magnitude & ((std::uint64_t{1} << shift) - 1);
    whole = magnitude >> shift;
    hundredths = (rest * 100 + (std::uint64_t{1} << (shift - 1))) >> shift;
    if (hundredths == 100) {
      ++whole;
      hundredths = 0;
    }
  }
  std::string text = (bytes < 0 ? "-" : "") + std::to_string(whole);
  if (hundredths != 0) {
    text += '.';
    text += static_cast<char>('0' + hundredths / 10);
    if (hundredths % 10 != 0) { text += static_cast<char>('0' + hundredths % 10); }
  }
  return text.append(" ").append(units[unit]);
}

}  // namespace earmark
