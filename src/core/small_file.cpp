// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "posix_file.hpp"

namespace earmark::detail {

std::optional<std::string> read_small_file(std::string const& path) {
  constexpr std::size_t step = 16 << 10;
  constexpr std::size_t most = 4 << 20;
  Descriptor const file = open_at(AT_FDCWD, path.c_str(), O_RDONLY);
  if (!file.valid()) { return std::nullopt; }
  std::string text;
  while (text.size() < most) {
    std::size_t const size = text.size();
    text.resize(size + step);
    auto const count = ::read(file.get(), text.data() + size, step);
    text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) { break; }
    if (count < 0 && errno != EINTR) { return std::nullopt; }
  }
  return text;
}

std::string_view next_line(std::string_view& text) {
  auto const end = std::min(text.find('\n'), text.size());
  std::string_view const line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view next_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  auto const end = std::min(text.find_first_of(blanks), text.size());
  std::string_view const word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

}  // namespace earmark::detail
