// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading what the kernel tells in small text files: /proc, /sys. Private to core. Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace earmark::detail {

// Returns: the whole file, at most 4 MiB of it; nothing when it cannot be read, with the cause in errno.
[[nodiscard]] std::optional<std::string> read_small_file(std::string const& path);

// Takes the first line, without its end, or the first word, ended by a blank, off the front of `text`.
std::string_view next_line(std::string_view& text);
std::string_view next_word(std::string_view& text);

}  // namespace earmark::detail
