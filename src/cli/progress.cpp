// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "process.hpp"

namespace earmark::cli {
namespace {

constexpr std::size_t widest_bar = 30;
constexpr std::size_t narrowest_bar = 8;
constexpr double fraction_between_lines = 0.05;
constexpr double longest_estimate_seconds = 100.0 * 3600;
constexpr std::string_view to_line_start_and_wipe = "\r\x1b[K";

[[nodiscard]] bool is_set(char const* name) {
  auto const* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

[[nodiscard]] Charset charset_of_locale() {
  for (auto const* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(name)) { continue; }
    std::string_view const value = std::getenv(name);
    auto const has = [value](std::string_view part) { return value.find(part) != std::string_view::npos; };
    return has("UTF-8") || has("utf8") || has("UTF8") || has("utf-8") ? Charset::Unicode : Charset::Ascii;
  }
  return Charset::Ascii;
}

[[nodiscard]] bool is_dumb_terminal() { return !is_set("TERM") || std::string_view{std::getenv("TERM")} == "dumb"; }

[[nodiscard]] std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) { return size.ws_col; }
  return 80;
}

// "14.2 M", "812 k", "96".
[[nodiscard]] std::string short_count(std::int64_t count) {
  auto const value = static_cast<double>(count);
  if (value >= 1e9) { return fmt::format("{:.2f} G", value / 1e9); }
  if (value >= 1e6) { return fmt::format("{:.1f} M", value / 1e6); }
  if (value >= 1e3) { return fmt::format("{:.0f} k", value / 1e3); }
  return fmt::format("{}", count);
}

[[nodiscard]] std::string bar(double fraction, std::size_t width, ProgressLook const& look) {
  static constexpr std::array<std::string_view, 8> eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  auto const steps = look.charset == Charset::Unicode ? eighths.size() : 1;
  auto const filled = static_cast<std::size_t>(std::floor(fraction * static_cast<double>(width * steps)));
  std::string full;
  for (std::size_t i = 0; i < filled / steps; ++i) { full += look.charset == Charset::Unicode ? "█" : "#"; }
  full += eighths[filled % steps];
  auto const used = filled / steps + (filled % steps != 0 ? 1 : 0);
  auto const rest = std::string(width - used, look.charset == Charset::Unicode ? ' ' : '.');
  if (look.colour == Colour::No) { return fmt::format("[{}{}]", full, rest); }
  return fmt::format("[\x1b[32m{}\x1b[0m{}]", full, rest);
}

// The memory gauge turns yellow near the limit.
[[nodiscard]] std::string memory_gauge(std::int64_t resident, std::int64_t limit, ProgressLook const& look) {
  auto const text = fmt::format("{} of {}", format_bytes(resident), format_bytes(limit));
  auto const is_near = static_cast<double>(resident) > 0.9 * static_cast<double>(limit);
  return look.colour == Colour::Yes && is_near ? fmt::format("\x1b[33m{}\x1b[0m", text) : text;
}

// Columns that a text takes: escape sequences none, a UTF-8 character one.
[[nodiscard]] std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size() - 1);
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      ++columns;
    }
  }
  return columns;
}

[[nodiscard]] std::string time_left(double fraction, double seconds) {
  if (fraction >= 1.0) { return "ETA 0 s"; }
  // The first moments say nothing about the rest.
  if (fraction < 0.01 || seconds < 0.2) { return "ETA -"; }
  return "ETA " + duration_text(std::min(seconds * (1.0 - fraction) / fraction, longest_estimate_seconds));
}

}  // namespace

std::string duration_text(double seconds) {
  auto const whole = static_cast<std::int64_t>(std::ceil(std::max(seconds, 0.0)));
  if (whole < 60) { return fmt::format("{} s", whole); }
  if (whole < 3600) { return fmt::format("{} min {:02} s", whole / 60, whole % 60); }
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string progress_line(RepartitionProgress const& progress, double seconds, std::int64_t limit_bytes,
                          ProgressLook const& look) {
  auto const fraction = std::clamp(progress.fraction, 0.0, 1.0);
  auto const rate = static_cast<double>(progress.bytes_read) / std::max(seconds, 1e-3) / 1e6;
  std::vector<std::string> parts{
      fmt::format("{:3.0f} %", std::floor(100.0 * fraction)), time_left(fraction, seconds),
      fmt::format("{:.0f} MB/s", rate), memory_gauge(progress.resident_bytes, limit_bytes, look),
      fmt::format("{} of {} rows", short_count(progress.rows), short_count(progress.total_rows))};
  std::string text;
  for (auto const& part : parts) {
    auto const next = text.empty() ? part : text + "  " + part;
    if (columns_of(next) > look.width) { break; }
    text = next;
  }
  auto const used = columns_of(text) + 3;  // brackets and a space
  if (used + narrowest_bar > look.width) { return text; }
  return bar(fraction, std::min(widest_bar, look.width - used), look) + " " + text;
}

ProgressDisplay::ProgressDisplay(ProgressStyle style, std::int64_t limit_bytes, Clock const& clock)
    : clock_(clock), start_(clock.now()), limit_bytes_(limit_bytes), form_(Form::Nothing) {
  auto const on_terminal = ::isatty(STDERR_FILENO) == 1;
  if (style == ProgressStyle::Never || (style == ProgressStyle::Auto && !on_terminal)) { return; }
  form_ = on_terminal && !is_dumb_terminal() ? Form::Bar : Form::Lines;
  look_.charset = charset_of_locale();
  look_.colour = form_ == Form::Bar && !is_set("NO_COLOR") ? Colour::Yes : Colour::No;
}

ProgressDisplay::~ProgressDisplay() { finish(); }

void ProgressDisplay::show(RepartitionProgress const& progress) {
  if (form_ == Form::Nothing) { return; }
  auto const seconds = std::chrono::duration<double>(clock_.now() - start_).count();
  // The last column stays free: some terminals wrap as soon as it is filled.
  look_.width = form_ == Form::Bar ? std::max<std::size_t>(terminal_width(), 2) - 1 : 120;
  auto const line = progress_line(progress, seconds, limit_bytes_, look_);
  form_ == Form::Bar ? draw(line) : print(line, progress.fraction);
}

void ProgressDisplay::draw(std::string const& line) {
  drawn_ = true;
  // Lost progress is no reason to stop.
  static_cast<void>(write_all(STDERR_FILENO, std::string{to_line_start_and_wipe} + line));
}

void ProgressDisplay::print(std::string const& line, double fraction) {
  if (fraction < next_line_at_) { return; }
  next_line_at_ = (std::floor(fraction / fraction_between_lines) + 1) * fraction_between_lines;
  static_cast<void>(write_all(STDERR_FILENO, "earmark: " + line + "\n"));
}

void ProgressDisplay::finish() noexcept {
  if (drawn_) { static_cast<void>(write_all(STDERR_FILENO, to_line_start_and_wipe)); }
  drawn_ = false;
}

}  // namespace earmark::cli
