// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "option_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/ops/errors.hpp"

namespace earmark::cli {
namespace {

constexpr int least_zstd_level = 1;
constexpr int most_zstd_level = 22;

[[nodiscard]] std::string_view without_outer_spaces(std::string_view text) {
  auto const first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) { return {}; }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) { return std::nullopt; }
  return value;
}

class ColumnListReader {
 public:
  ColumnListReader(std::string_view option, std::string_view text) : option_(option), text_(text) {}

  [[nodiscard]] std::vector<std::string> read() {
    std::vector<std::string> names;
    do {
      skip_spaces();
      names.push_back(at('"') ? quoted_name() : bare_name());
    } while (skip_comma());
    return names;
  }

 private:
  [[nodiscard]] bool at(char wanted) const { return next_ < text_.size() && text_[next_] == wanted; }

  void skip_spaces() {
    while (at(' ') || at('\t')) { ++next_; }
  }

  [[nodiscard]] bool skip_comma() {
    if (next_ == text_.size()) { return false; }
    ++next_;  // both kinds of name end at a comma or at the end
    return true;
  }

  [[nodiscard]] std::string quoted_name() {
    std::string name;
    for (++next_; next_ < text_.size(); ++next_) {
      if (at('"') && !(next_ + 1 < text_.size() && text_[next_ + 1] == '"')) { return end_of_quoted(std::move(name)); }
      next_ += at('"') ? 1 : 0;
      name.push_back(text_[next_]);
    }
    refuse("a double quote is not closed");
  }

  [[nodiscard]] std::string end_of_quoted(std::string name) {
    ++next_;
    skip_spaces();
    if (next_ < text_.size() && !at(',')) { refuse("there is text after a closing quote"); }
    return name;
  }

  [[nodiscard]] std::string bare_name() {
    auto const start = next_;
    next_ = std::min(text_.find(',', start), text_.size());
    auto const name = without_outer_spaces(text_.substr(start, next_ - start));
    if (name.empty()) { refuse("a column name is empty"); }
    return std::string{name};
  }

  [[noreturn]] void refuse(std::string_view cause) const {
    throw UsageError(fmt::format("{} {}: {}; give names like a,b or '\"a,b\"'", option_, text_, cause));
  }

  std::string_view option_;
  std::string_view text_;
  std::size_t next_{0};
};

using enum Compression::Codec;
constexpr std::array<std::pair<std::string_view, Compression::Codec>, 6> codecs{
    {{"snappy", Snappy}, {"zstd", Zstd}, {"lz4", Lz4}, {"gzip", Gzip}, {"brotli", Brotli}, {"none", None}}};

[[nodiscard]] std::optional<Compression::Codec> codec_named(std::string_view name) {
  for (auto const& [known, codec] : codecs) {
    if (known == name) { return codec; }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> parse_column_list(std::string_view option, std::string_view text) {
  return ColumnListReader{option, text}.read();
}

std::int64_t parse_size(std::string_view option, std::string_view text) {
  auto const bytes = parse_bytes(text);
  if (!bytes || *bytes < 1) {
    throw UsageError(
        fmt::format("{} {}: not a size above 0 that fits in 63 bits; give one like 512MiB, 1.5GiB, 2GB "
                    "or plain bytes",
                    option, text));
  }
  return *bytes;
}

std::int64_t parse_count(std::string_view option, std::string_view text, std::int64_t most) {
  auto const count = whole_number(text);
  if (!count || *count < 1 || *count > most) {
    throw UsageError(fmt::format("{} {}: not a whole number from 1 to {}", option, text, most));
  }
  return *count;
}

Compression parse_compression(std::string_view option, std::string_view text) {
  auto const colon = text.find(':');
  auto const codec = codec_named(text.substr(0, colon));
  if (!codec) {
    throw UsageError(fmt::format("{} {}: no such codec; there are snappy, zstd, zstd:LEVEL, lz4, gzip, brotli and none",
                                 option, text));
  }
  if (colon == std::string_view::npos) { return {*codec, std::nullopt}; }
  auto const level = whole_number(text.substr(colon + 1));
  if (*codec != Compression::Codec::Zstd || !level || *level < least_zstd_level || *level > most_zstd_level) {
    throw UsageError(
        fmt::format("{} {}: only zstd takes a level, from {} to {}", option, text, least_zstd_level, most_zstd_level));
  }
  return {*codec, static_cast<int>(*level)};
}

std::string_view name_of(Compression::Codec codec) noexcept {
  for (auto const& [name, known] : codecs) {
    if (known == codec) { return name; }
  }
  return "unknown";
}

std::optional<bool> is_on(std::string_view text) noexcept {
  for (auto const* const word : {"1", "true", "yes", "on"}) {
    if (text == word) { return true; }
  }
  for (auto const* const word : {"0", "false", "no", "off"}) {
    if (text == word) { return false; }
  }
  return std::nullopt;
}

bool parse_switch(std::string_view option, std::string_view text) {
  auto const on = is_on(text);
  if (!on) { throw UsageError(fmt::format("{} {}: give 1, true, yes or on, or 0, false, no or off", option, text)); }
  return *on;
}

}  // namespace earmark::cli
