// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "page_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

constexpr std::size_t usual_header_bytes = 512;
constexpr std::size_t most_header_bytes = 16 << 20;  // statistics of long strings are in it
constexpr int most_depth = 16;

// Reads Thrift's compact protocol; every read fails softly at the end of the bytes.
class CompactReader {
 public:
  explicit CompactReader(std::span<std::byte const> bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::size_t position() const noexcept { return at_; }

  std::uint8_t byte() noexcept {
    if (at_ >= bytes_.size()) {
      failed_ = true;
      return 0;
    }
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      std::uint8_t const part = byte();
      value |= static_cast<std::uint64_t>(part & 0x7fU) << shift;
      if ((part & 0x80U) == 0) { return value; }
    }
    failed_ = true;
    return 0;
  }
  std::int64_t zigzag() noexcept {
    std::uint64_t const value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  void skip_bytes(std::uint64_t count) noexcept {
    if (count > bytes_.size() - at_) {
      failed_ = true;
    } else {
      at_ += count;
    }
  }
  void skip(int type, int depth) noexcept {
    switch (type) {
      case 1:
      case 2: break;                 // a boolean is its type
      case 3: skip_bytes(1); break;  // byte
      case 4:
      case 5:
      case 6: varint(); break;       // i16, i32, i64
      case 7: skip_bytes(8); break;  // double
      case 8: skip_bytes(varint()); break;
      case 9:
      case 10: skip_list(depth); break;
      case 12: skip_struct(depth); break;
      default: failed_ = true;  // maps have no place in a page header
    }
  }
  // Calls `field(id, type)` for each field of a struct; it has to read or skip the value.
  template <class Field>
  void read_struct(Field&& field) noexcept {
    std::int64_t id = 0;
    while (!failed_) {
      std::uint8_t const header = byte();
      int const type = header & 0x0f;
      if (failed_ || type == 0) { return; }
      id = (header >> 4) != 0 ? id + (header >> 4) : zigzag();
      field(id, type);
    }
  }

 private:
  void skip_struct(int depth) noexcept {
    if (depth == 0) {
      failed_ = true;
      return;
    }
    read_struct([&](std::int64_t, int type) { skip(type, depth - 1); });
  }
  void skip_list(int depth) noexcept {
    std::uint8_t const header = byte();
    std::uint64_t const count = (header >> 4) == 0x0f ? varint() : header >> 4;
    int const type = header & 0x0f;
    for (std::uint64_t i = 0; i < count && !failed_; ++i) {
      if (type == 1 || type == 2) {
        skip_bytes(1);  // in a list, a boolean is a byte
      } else if (depth == 0) {
        failed_ = true;
      } else {
        skip(type, depth - 1);
      }
    }
  }

  std::span<std::byte const> bytes_;
  std::size_t at_{0};
  bool failed_{false};
};

// Returns: the header at `offset`, reading as much as it takes.
std::optional<PageHeader> read_header(File& file, std::int64_t offset, std::vector<std::byte>& buffer) {
  for (std::size_t size = usual_header_bytes; size <= most_header_bytes; size *= 8) {
    buffer.resize(size);
    std::size_t const read = file.read_at(buffer, offset);
    if (auto const header = parse_page_header(std::span(buffer).first(read))) { return header; }
    if (read < size) { break; }
  }
  return std::nullopt;
}

constexpr std::int64_t least_value_bytes = 4;  // of a byte array: its length

// What Arrow holds while it reads pages one after another, as they come.
class DecodingBuffers {
 public:
  DecodingBuffers(::parquet::ColumnChunkMetaData const& chunk, ::parquet::ColumnDescriptor const& column)
      : is_compressed_(chunk.compression() != ::arrow::Compression::UNCOMPRESSED),
        is_bytes_(column.physical_type() == ::parquet::Type::BYTE_ARRAY) {}

  void add(PageHeader const& page) noexcept {
    sizes_.largest_page = std::max(sizes_.largest_page, page.uncompressed_bytes);
    // The buffer of decompressed pages is kept, and grows by making a larger one beside it; an uncompressed page stays
    // until the next one has been read.
    if (!is_compressed_) {
      see(previous_page_ + page.compressed_bytes);
      previous_page_ = page.compressed_bytes;
    } else {
      std::int64_t const grown = page.uncompressed_bytes > buffer_ ? page.uncompressed_bytes : 0;
      see(page.compressed_bytes + buffer_ + grown);
      buffer_ = std::max(buffer_, page.uncompressed_bytes);
    }
    if (page.is_dictionary) {
      std::int64_t const values = std::clamp<std::int64_t>(page.values, 0, page.uncompressed_bytes / least_value_bytes);
      dictionary_ = page.uncompressed_bytes + (is_bytes_ ? values * bytes_a_dictionary_value : 0);
      see(buffer_ + previous_page_);
    } else if (is_bytes_ && page.encoding >= first_delta && page.encoding <= last_delta) {
      see(buffer_ + previous_page_ + std::clamp<std::int64_t>(page.values, 0, INT32_MAX) * bytes_a_delta_value);
    }
    sizes_.holding = std::max(sizes_.holding, buffer_ + previous_page_ + dictionary_);
    bool const holds_indices = page.encoding == plain_dictionary || page.encoding == rle_dictionary;
    if (is_bytes_ && (page.is_dictionary || !holds_indices)) {
      sizes_.largest_value = std::max(sizes_.largest_value, page.uncompressed_bytes);
    }
  }
  [[nodiscard]] PageSizes const& sizes() const noexcept { return sizes_; }

 private:
  static constexpr std::int64_t plain_dictionary = 2;  // encodings, as the format numbers them
  static constexpr std::int64_t rle_dictionary = 8;
  static constexpr std::int64_t first_delta = 5;
  static constexpr std::int64_t last_delta = 7;
  static constexpr std::int64_t bytes_a_dictionary_value = 20;  // pointer, length and offset
  static constexpr std::int64_t bytes_a_delta_value = 8;        // lengths of suffixes and prefixes

  void see(std::int64_t bytes) noexcept { sizes_.decoding = std::max(sizes_.decoding, bytes + dictionary_); }

  bool is_compressed_;
  bool is_bytes_;
  std::int64_t buffer_{0};
  std::int64_t previous_page_{0};
  std::int64_t dictionary_{0};
  PageSizes sizes_;
};

}  // namespace

std::optional<PageHeader> parse_page_header(std::span<std::byte const> bytes) noexcept {
  constexpr int i32 = 5;
  constexpr int structure = 12;
  constexpr std::int64_t dictionary_page = 2;
  CompactReader reader(bytes);
  PageHeader header;
  header.compressed_bytes = header.uncompressed_bytes = -1;
  // The headers of data pages (5), dictionary pages (7) and data pages of version 2 (8) begin alike.
  auto const read_inner = [&](std::int64_t encoding_id) {
    reader.read_struct([&](std::int64_t id, int type) {
      if (id == 1 && type == i32) {
        header.values = reader.zigzag();
      } else if (id == encoding_id && type == i32) {
        header.encoding = reader.zigzag();
      } else {
        reader.skip(type, most_depth);
      }
    });
  };
  reader.read_struct([&](std::int64_t id, int type) {
    if (id == 1 && type == i32) {
      header.is_dictionary = reader.zigzag() == dictionary_page;
    } else if (id == 2 && type == i32) {
      header.uncompressed_bytes = reader.zigzag();
    } else if (id == 3 && type == i32) {
      header.compressed_bytes = reader.zigzag();
    } else if ((id == 5 || id == 7 || id == 8) && type == structure) {
      read_inner(id == 8 ? 4 : 2);
    } else {
      reader.skip(type, most_depth);
    }
  });
  if (reader.failed() || header.compressed_bytes < 0 || header.uncompressed_bytes < 0) { return std::nullopt; }
  header.header_bytes = static_cast<std::int64_t>(reader.position());
  return header;
}

PageSizes page_sizes_by_footer(ParquetInput const& input, RowGroupRef const& group, int column) {
  auto const chunk = input.chunk(group, column);
  DecodingBuffers buffers(*chunk, *input.schema().Column(column));
  std::int64_t const bytes = chunk->total_uncompressed_size();
  PageHeader page{0, chunk->total_compressed_size(), bytes, chunk->has_dictionary_page(), 0, 0};
  page.values = std::min(chunk->num_values(), bytes / least_value_bytes);
  buffers.add(page);
  return buffers.sizes();
}

PageSizes page_sizes_by_headers(FileSystem& file_system, ParquetInput const& input, RowGroupRef const& group,
                                int column, std::function<void()> const& check_stop) {
  constexpr int pages_between_checks = 1000;
  auto const chunk = input.chunk(group, column);
  DecodingBuffers buffers(*chunk, *input.schema().Column(column));
  std::int64_t at = first_page_offset(*chunk);
  std::int64_t const end = at + chunk->total_compressed_size();
  // Some writers' totals are off a little; a damaged header is off by much.
  std::int64_t const most_bytes = 2 * chunk->total_uncompressed_size() + (1 << 20);
  std::vector<std::byte> buffer;
  try {
    auto const file = file_system.open_for_reading(input.path(group.file));
    for (int page = 0; at < end; ++page) {
      if (page % pages_between_checks == 0) { check_stop(); }
      auto const header = read_header(*file, at, buffer);
      if (!header) { input.fail(group, column, fmt::format("there is no page at byte {}", at)); }
      if (header->compressed_bytes > end - at || header->uncompressed_bytes > most_bytes) {
        input.fail(group, column,
                   fmt::format("the page at byte {} claims {} bytes, more than its chunk holds", at,
                               std::max(header->compressed_bytes, header->uncompressed_bytes)));
      }
      buffers.add(*header);
      at += header->header_bytes + header->compressed_bytes;
    }
  }
  catch (FileSystemError const& error) {
    throw InputError(error.what(), error.path());
  }
  return buffers.sizes();
}

}  // namespace earmark::detail
