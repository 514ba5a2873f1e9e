// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How large the pages of a column chunk are: footers do not tell, page headers do. Reads the headers alone (Thrift's
// compact protocol; format: "parquet.thrift" of apache/parquet-format, PageHeader). Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "earmark/core/file_system.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

struct PageHeader {
  std::int64_t header_bytes{0};
  std::int64_t compressed_bytes{0};
  std::int64_t uncompressed_bytes{0};
};

// Returns: the page header that `bytes` begin with; nothing when they are cut short or no header.
[[nodiscard]] std::optional<PageHeader> parse_page_header(std::span<std::byte const> bytes) noexcept;

// Returns: bytes of the largest page of a chunk, decompressed. Throws: InputError when a header makes no sense, above
// all when a page claims more than its chunk holds.
[[nodiscard]] std::int64_t largest_page_bytes(FileSystem& file_system, ParquetInput const& input,
                                              RowGroupRef const& group, int column);

}  // namespace earmark::detail
