// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The input files as Parquet: footers, one common schema, row groups in order, and readers of single column chunks.
// Everything that Parquet may throw comes out as `InputError` with file, column and row group (or as std::bad_alloc
// when the budget refused memory). Ownership: keeps all footers; opens a file for each chunk. Thread safety: after
// construction, `open_chunk`, `read_dictionary` and `will_need` may be called from any thread.
#pragma once

#include <arrow/io/type_fwd.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "input_paths.hpp"

namespace earmark::detail {

// One row group of the input, in the order of files and row groups.
struct RowGroupRef {
  int file{0};
  int row_group{0};
  std::int64_t rows{0};
};

// What is decoded from a chunk: Parquet's physical types, or indices into the chunk's dictionary.
enum class ReadAs { Values, DictionaryIndices };

// How far a chunk's data pages are dictionary encoded: writers need not say in the footer.
enum class DictionaryUse { None, Unknown, AllPages };

// Reads one column chunk from its beginning.
class ChunkReader {
 public:
  struct Count {
    std::int64_t entries{0};  // levels read; equal to rows for a flat column
    std::int64_t values{0};   // values read: entries that are not null
  };
  virtual ~ChunkReader() = default;
  // Reads at most `max_entries` entries of one page. `definition` and `repetition` are null where the column has no
  // such levels. `values` is an array of the physical type's C type (int32_t for indices); byte arrays point into
  // memory that lives until the next call. Returns: what was read; no entries at the end of the chunk.
  virtual Count read(std::int64_t max_entries, std::int16_t* definition, std::int16_t* repetition, void* values) = 0;
};

// The values of a dictionary page: views into `storage`, which is no string because a short one moves its bytes along.
struct DictionaryValues {
  std::vector<char> storage;
  std::vector<std::string_view> values;
};

// Returns: where a chunk's first page begins in its file, be it the dictionary's or a data page.
[[nodiscard]] std::int64_t first_page_offset(::parquet::ColumnChunkMetaData const& chunk);

// What an error of the file system is while files are read: the fault of whoever named them (InputError), or, for files
// of our own, the disk's (FileSystemError).
enum class FileErrors { AreTheInputs, AreTheDisks };

class ParquetInput {
 public:
  // Reads all footers. Throws: InputError for a file that is not Parquet, is encrypted, or whose schema differs from
  // the first file's.
  ParquetInput(FileSystem& file_system, ::arrow::MemoryPool* pool, std::vector<InputPath> paths,
               FileErrors errors = FileErrors::AreTheInputs);

  [[nodiscard]] ::parquet::SchemaDescriptor const& schema() const { return *metadata_.front()->schema(); }
  [[nodiscard]] ::parquet::FileMetaData const& first_footer() const { return *metadata_.front(); }
  [[nodiscard]] std::vector<RowGroupRef> const& row_groups() const { return row_groups_; }
  [[nodiscard]] std::int64_t total_rows() const { return total_rows_; }
  [[nodiscard]] std::int64_t total_bytes() const { return total_bytes_; }
  // Throws: InputError for a chunk that cannot be read: of an unknown codec, or encrypted.
  [[nodiscard]] std::unique_ptr<::parquet::ColumnChunkMetaData> chunk(RowGroupRef const& group, int column) const;
  [[nodiscard]] std::string const& path(int file) const { return paths_[static_cast<std::size_t>(file)].path; }

  // Returns: whether the data pages of the chunk are dictionary encoded, as far as the footer tells.
  [[nodiscard]] DictionaryUse dictionary_use(RowGroupRef const& group, int column) const;
  // `buffer_bytes`: size of the read buffer.
  [[nodiscard]] std::unique_ptr<ChunkReader> open_chunk(RowGroupRef const& group, int column, ReadAs read_as,
                                                        std::int64_t buffer_bytes) const;
  // Returns: the values of the chunk's dictionary page in plain encoding without length prefixes; nothing when it has
  // more than `max_values` or `max_bytes`, or when `use` is Unknown and a data page turns out not to be dictionary
  // encoded.
  [[nodiscard]] std::optional<DictionaryValues> read_dictionary(RowGroupRef const& group, int column, DictionaryUse use,
                                                                std::int64_t max_values, std::int64_t max_bytes) const;
  // Tells the system that a column of these row groups will be read soon.
  void will_need(std::span<RowGroupRef const> groups, int column) const noexcept;

  // Throws: InputError when the file is no longer the one that was listed, so that no two versions of it are mixed.
  void check_unchanged(int file) const;
  // Throws: InputError that names file, column and row group.
  [[noreturn]] void fail(RowGroupRef const& group, int column, std::string_view cause) const;

 private:
  struct Opened;
  [[nodiscard]] std::shared_ptr<::arrow::io::RandomAccessFile> open_file(int file) const;
  [[nodiscard]] std::shared_ptr<::parquet::FileMetaData> read_footer(int file) const;
  void check_schema(int file, ::parquet::FileMetaData const& footer) const;
  void add_row_groups(int file, ::parquet::FileMetaData const& footer);
  [[nodiscard]] Opened open(RowGroupRef const& group, std::int64_t buffer_bytes) const;
  template <class Function>
  auto reading(RowGroupRef const& group, int column, Function&& function) const;

  FileSystem& file_system_;
  ::arrow::MemoryPool* pool_;
  std::vector<InputPath> paths_;
  FileErrors errors_;
  std::vector<std::shared_ptr<::parquet::FileMetaData>> metadata_;
  std::vector<RowGroupRef> row_groups_;
  std::int64_t total_rows_{0};
  std::int64_t total_bytes_{0};
};

}  // namespace earmark::detail
