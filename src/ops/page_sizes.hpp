// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How large the pages of a column chunk are: footers do not tell, page headers do. Reads the headers alone (Thrift's
// compact protocol; format: "parquet.thrift" of apache/parquet-format, PageHeader). Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "earmark/core/file_system.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

struct PageHeader {
  std::int64_t header_bytes{0};
  std::int64_t compressed_bytes{0};
  std::int64_t uncompressed_bytes{0};
  bool is_dictionary{false};
  std::int64_t values{0};  // nulls included
  std::int64_t encoding{0};
};

// Returns: the page header that `bytes` begin with; nothing when they are cut short or no header.
[[nodiscard]] std::optional<PageHeader> parse_page_header(std::span<std::byte const> bytes) noexcept;

// What the pages of a chunk ask for.
struct PageSizes {
  std::int64_t largest_page{0};   // bytes, decompressed
  std::int64_t decoding{0};       // bytes that Arrow holds at most while it reads a page
  std::int64_t holding{0};        // and between two pages
  std::int64_t largest_value{0};  // a bound on the bytes of one value
};

// Returns: what a chunk asks for that is one page, as far as its footer tells.
[[nodiscard]] PageSizes page_sizes_by_footer(ParquetInput const& input, RowGroupRef const& group, int column);

// Returns: what a chunk asks for, by its page headers. Throws: InputError when a header makes no sense, above all when
// a page claims more than its chunk holds; what `check_stop` throws, which is called for each thousand pages.
[[nodiscard]] PageSizes page_sizes_by_headers(FileSystem& file_system, ParquetInput const& input,
                                              RowGroupRef const& group, int column,
                                              std::function<void()> const& check_stop);

}  // namespace earmark::detail
