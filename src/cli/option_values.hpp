// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading the values of options as people type them: lists of columns, counts, sizes, codecs. Each function either
// returns the value or throws `UsageError` with a sentence that names the option, or the variable that stood for it,
// and says what would be right. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "earmark/ops/repartition.hpp"

namespace earmark::cli {

// Reads column names separated by commas. A name in double quotes may hold commas and keeps its spaces; a quote inside
// it is doubled: `a,"b,c","say ""hi"""` is a | b,c | say "hi". Spaces around a bare name are dropped.
// Throws: UsageError for an empty bare name, an open quote, or text after a closing quote.
[[nodiscard]] std::vector<std::string> parse_column_list(std::string_view option, std::string_view text);

// Reads a size that is at least one byte. Throws: UsageError for anything else.
[[nodiscard]] std::int64_t parse_size(std::string_view option, std::string_view text);

// Reads a whole number in [1, most]. Throws: UsageError for anything else.
[[nodiscard]] std::int64_t parse_count(std::string_view option, std::string_view text, std::int64_t most);

// Reads `snappy`, `zstd`, `zstd:LEVEL`, `lz4`, `gzip`, `brotli` or `none`. Throws: UsageError for anything else.
[[nodiscard]] Compression parse_compression(std::string_view option, std::string_view text);

// Returns: the codec as `--compression` takes it.
[[nodiscard]] std::string_view name_of(Compression::Codec codec) noexcept;

// Returns: whether `1`, `true`, `yes`, `on` (yes) or `0`, `false`, `no`, `off` (no) was said; nothing for anything
// else.
[[nodiscard]] std::optional<bool> is_on(std::string_view text) noexcept;
// As above. Throws: UsageError for anything else.
[[nodiscard]] bool parse_switch(std::string_view option, std::string_view text);

}  // namespace earmark::cli
