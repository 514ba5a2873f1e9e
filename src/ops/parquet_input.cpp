// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "parquet_input.hpp"

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "earmark/ops/errors.hpp"
#include "schema_difference.hpp"

namespace earmark::detail {
namespace {

// Bytes or values of a chunk: sums of them must not overflow.
constexpr std::int64_t most_claimed = std::int64_t{1} << 48;

// A `core::File` as Arrow reads it.
class ArrowInputFile final : public ::arrow::io::RandomAccessFile {
 public:
  ArrowInputFile(std::unique_ptr<File> file, std::int64_t size, ::arrow::MemoryPool* pool, FileErrors errors)
      : file_(std::move(file)), size_(size), pool_(pool), errors_(errors) {}

  ::arrow::Status Close() override {
    closed_ = true;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> Tell() const override { return position_; }
  bool closed() const override { return closed_; }
  ::arrow::Status Seek(std::int64_t position) override {
    position_ = position;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> GetSize() override { return size_; }
  ::arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(std::int64_t const read, ReadAt(position_, bytes, out));
    position_ += read;
    return read;
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> Read(std::int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
    position_ += buffer->size();
    return buffer;
  }
  ::arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes, void* out) override {
    try {
      std::span<std::byte> const target(static_cast<std::byte*>(out), static_cast<std::size_t>(bytes));
      return static_cast<std::int64_t>(file_->read_at(target, position));
    }
    catch (FileSystemError const& error) {
      if (errors_ == FileErrors::AreTheDisks) { throw; }
      return ::arrow::Status::IOError(error.what());
    }
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ::arrow::AllocateResizableBuffer(bytes, pool_));
    ARROW_ASSIGN_OR_RAISE(std::int64_t const read, ReadAt(position, bytes, buffer->mutable_data()));
    if (read < bytes) { ARROW_RETURN_NOT_OK(buffer->Resize(read)); }
    return std::shared_ptr<::arrow::Buffer>(std::move(buffer));
  }

 private:
  std::unique_ptr<File> file_;
  std::int64_t size_;
  ::arrow::MemoryPool* pool_;
  FileErrors errors_;
  std::int64_t position_{0};
  bool closed_{false};
};

template <class Type>
class TypedChunkReader final : public ChunkReader {
 public:
  // `entries`: of the chunk, as the footer says.
  TypedChunkReader(std::shared_ptr<void> owner, std::shared_ptr<::parquet::ColumnReader> column, ReadAs read_as,
                   std::int64_t entries)
      : owner_(std::move(owner)),
        column_(std::static_pointer_cast<::parquet::TypedColumnReader<Type>>(std::move(column))),
        read_as_(read_as),
        entries_left_(entries) {}

  Count read(std::int64_t max_entries, std::int16_t* definition, std::int16_t* repetition, void* values) override {
    Count count;
    if (!has_next()) { return count; }
    if (read_as_ == ReadAs::Values) {
      count.entries = column_->ReadBatch(max_entries, definition, repetition,
                                         static_cast<typename Type::c_type*>(values), &count.values);
      entries_left_ -= count.entries;
      return count;
    }
    typename Type::c_type const* dictionary = nullptr;
    std::int32_t size = 0;
    auto* const indices = static_cast<std::int32_t*>(values);
    count.entries = column_->ReadBatchWithDictionary(max_entries, definition, repetition, indices, &count.values,
                                                     &dictionary, &size);
    entries_left_ -= count.entries;
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < count.values; ++i) {
      largest = std::max(largest, static_cast<std::uint32_t>(indices[i]));
    }
    if (count.values > 0 && largest >= static_cast<std::uint32_t>(size)) {
      throw ::parquet::ParquetException(fmt::format("dictionary index {} of {} values", largest, size));
    }
    return count;
  }

 private:
  // Arrow's reader takes an empty page for the end of the chunk, and goes on when asked again.
  bool has_next() {
    constexpr int most_empty_pages = 1000;  // in a row; at a true end asking costs next to nothing
    for (int pages = 0; pages < most_empty_pages; ++pages) {
      if (column_->HasNext()) { return true; }
      if (entries_left_ <= 0) { return false; }
    }
    return false;
  }

  std::shared_ptr<void> owner_;  // the file and row group that the column reads from
  std::shared_ptr<::parquet::TypedColumnReader<Type>> column_;
  ReadAs read_as_;
  std::int64_t entries_left_;
};

// Wraps a chunk reader so that its failures name file, column and row group.
class NamedChunkReader final : public ChunkReader {
 public:
  NamedChunkReader(std::unique_ptr<ChunkReader> inner, ParquetInput const& input, RowGroupRef group, int column)
      : inner_(std::move(inner)), input_(input), group_(group), column_(column) {}
  Count read(std::int64_t max_entries, std::int16_t* definition, std::int16_t* repetition, void* values) override;

 private:
  std::unique_ptr<ChunkReader> inner_;
  ParquetInput const& input_;
  RowGroupRef group_;
  int column_;
};

// Returns: the text of an error in one line; Arrow and Thrift end some with a newline.
std::string_view cause_of(std::exception const& error) {
  std::string_view const text(error.what());
  return text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
}

// Runs `function`; what Parquet, Arrow or Thrift throws becomes `fail(cause)`, a refusal of memory std::bad_alloc.
template <class Function, class Fail>
auto translating(Function&& function, Fail&& fail) {
  try {
    return function();
  }
  catch (EarmarkError const&) {
    throw;
  }
  catch (std::bad_alloc const&) {
    throw;
  }
  catch (::parquet::ParquetStatusException const& error) {
    if (error.status().IsOutOfMemory()) { throw std::bad_alloc(); }
    fail(cause_of(error));
  }
  catch (std::exception const& error) {
    fail(cause_of(error));
  }
  __builtin_unreachable();
}

ChunkReader::Count NamedChunkReader::read(std::int64_t max_entries, std::int16_t* definition, std::int16_t* repetition,
                                          void* values) {
  Count const count = translating([&] { return inner_->read(max_entries, definition, repetition, values); },
                                  [&](std::string_view cause) { input_.fail(group_, column_, cause); });
  if (count.entries == 0) { input_.check_unchanged(group_.file); }
  return count;
}

bool is_index_encoding(::parquet::Encoding::type encoding) {
  return encoding == ::parquet::Encoding::RLE_DICTIONARY || encoding == ::parquet::Encoding::PLAIN_DICTIONARY;
}

// Reads the rest of a chunk's pages. Returns: whether all of them hold dictionary indices.
bool has_only_index_pages(::parquet::PageReader& pages) {
  while (auto const page = pages.NextPage()) {
    bool const is_data =
        page->type() == ::parquet::PageType::DATA_PAGE || page->type() == ::parquet::PageType::DATA_PAGE_V2;
    if (is_data && !is_index_encoding(static_cast<::parquet::DataPage const&>(*page).encoding())) { return false; }
  }
  return true;
}

// Returns: the bytes of the next value of a dictionary page. Throws: ParquetException when the page is cut short.
std::string_view take_value(std::string_view& rest, ::parquet::ColumnDescriptor const& column) {
  std::uint32_t length = 0;
  if (column.physical_type() == ::parquet::Type::BYTE_ARRAY) {
    if (rest.size() < sizeof length) { throw ::parquet::ParquetException("the dictionary page is cut short"); }
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
  } else if (column.physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY) {
    length = static_cast<std::uint32_t>(column.type_length());
  } else {
    length = static_cast<std::uint32_t>(::parquet::GetTypeByteSize(column.physical_type()));
  }
  if (rest.size() < length) { throw ::parquet::ParquetException("the dictionary page is cut short"); }
  std::string_view const value = rest.substr(0, length);
  rest.remove_prefix(length);
  return value;
}

DictionaryValues split_dictionary(::parquet::DictionaryPage const& page, ::parquet::ColumnDescriptor const& column) {
  if (page.encoding() != ::parquet::Encoding::PLAIN && page.encoding() != ::parquet::Encoding::PLAIN_DICTIONARY) {
    throw ::parquet::ParquetException("the dictionary page is not in plain encoding");
  }
  if (page.num_values() < 0) { throw ::parquet::ParquetException("a dictionary of negative size"); }
  DictionaryValues result;
  auto const* const bytes = reinterpret_cast<char const*>(page.data());
  result.storage.assign(bytes, bytes + page.size());
  result.values.reserve(static_cast<std::size_t>(page.num_values()));
  std::string_view rest(result.storage.data(), result.storage.size());
  for (int i = 0; i < page.num_values(); ++i) { result.values.push_back(take_value(rest, column)); }
  return result;
}

// Planning computes with these before a page is read.
void check_claims(::parquet::ColumnChunkMetaData const& chunk, std::int64_t file_bytes) {
  auto const check = [](std::string_view what, std::int64_t claimed, std::int64_t most) {
    if (claimed >= 0 && claimed <= most) { return; }
    throw ::parquet::ParquetException(fmt::format("its footer claims {} {}", claimed, what));
  };
  check("compressed bytes", chunk.total_compressed_size(), file_bytes);
  check("uncompressed bytes", chunk.total_uncompressed_size(), most_claimed);
  check("values", chunk.num_values(), most_claimed);
}

constexpr std::string_view encrypted = "it is encrypted, which is not supported";

// Returns: whether the file ends with the mark of an encrypted footer.
bool has_encrypted_footer(::arrow::io::RandomAccessFile& file) {
  char mark[4] = {};
  PARQUET_ASSIGN_OR_THROW(std::int64_t const size, file.GetSize());
  if (size < static_cast<std::int64_t>(sizeof mark)) { return false; }
  PARQUET_ASSIGN_OR_THROW(std::int64_t const read, file.ReadAt(size - 4, sizeof mark, mark));
  return std::string_view(mark, static_cast<std::size_t>(read)) == "PARE";
}

}  // namespace

std::int64_t first_page_offset(::parquet::ColumnChunkMetaData const& chunk) {
  std::int64_t const data = chunk.data_page_offset();
  bool const has_dictionary = chunk.has_dictionary_page() && chunk.dictionary_page_offset() > 0;
  return has_dictionary ? std::min(data, chunk.dictionary_page_offset()) : data;
}

// A file and one of its row groups, open for reading.
struct ParquetInput::Opened {
  std::unique_ptr<::parquet::ParquetFileReader> file;
  std::shared_ptr<::parquet::RowGroupReader> row_group;
};

void ParquetInput::fail(RowGroupRef const& group, int column, std::string_view cause) const {
  std::string const name = schema().Column(column)->path()->ToDotString();
  throw InputError(fmt::format("cannot read column '{}' in row group {} of '{}': {}", name, group.row_group,
                               path(group.file), cause),
                   path(group.file), name, group.row_group);
}

template <class Function>
auto ParquetInput::reading(RowGroupRef const& group, int column, Function&& function) const {
  return translating(std::forward<Function>(function), [&](std::string_view cause) { fail(group, column, cause); });
}

ParquetInput::ParquetInput(FileSystem& file_system, ::arrow::MemoryPool* pool, std::vector<InputPath> paths,
                           FileErrors errors)
    : file_system_(file_system), pool_(pool), paths_(std::move(paths)), errors_(errors) {
  for (int i = 0; i < static_cast<int>(paths_.size()); ++i) {
    auto const fail_file = [&](std::string_view cause) {
      throw InputError(fmt::format("cannot read '{}': {}", path(i), cause), path(i));
    };
    auto footer = translating([&] { return read_footer(i); }, fail_file);
    translating([&] { check_schema(i, *footer); }, fail_file);
    translating([&] { add_row_groups(i, *footer); }, fail_file);
    total_bytes_ += paths_[static_cast<std::size_t>(i)].status.size;
    metadata_.push_back(std::move(footer));
  }
}

std::shared_ptr<::parquet::FileMetaData> ParquetInput::read_footer(int file) const {
  auto const source = open_file(file);
  if (has_encrypted_footer(*source)) { throw ::parquet::ParquetException(encrypted); }
  auto footer = ::parquet::ParquetFileReader::Open(source, ::parquet::ReaderProperties(pool_))->metadata();
  if (footer->is_encryption_algorithm_set()) { throw ::parquet::ParquetException(encrypted); }
  return footer;
}

void ParquetInput::check_schema(int file, ::parquet::FileMetaData const& footer) const {
  if (footer.schema()->num_columns() == 0) { throw ::parquet::ParquetException("it has no column"); }
  if (file == 0) { return; }
  auto const found = schema_difference(first_footer(), footer);
  if (!found) { return; }
  throw InputError(fmt::format("the schema of '{}' differs from that of '{}': {}", path(file), path(0), found->text),
                   path(file), found->column);
}

void ParquetInput::add_row_groups(int file, ::parquet::FileMetaData const& footer) {
  for (int group = 0; group < footer.num_row_groups(); ++group) {
    std::int64_t const rows = footer.RowGroup(group)->num_rows();
    if (rows < 0) { throw ::parquet::ParquetException(fmt::format("row group {} has {} rows", group, rows)); }
    row_groups_.push_back({file, group, rows});
    total_rows_ += rows;
  }
}

std::shared_ptr<::arrow::io::RandomAccessFile> ParquetInput::open_file(int file) const {
  std::unique_ptr<File> opened;
  try {
    opened = file_system_.open_for_reading(path(file));
  }
  catch (FileSystemError const& error) {
    if (errors_ == FileErrors::AreTheDisks) { throw; }
    throw InputError(error.what(), path(file));
  }
  check_unchanged(file);  // after opening: a file that takes its place later is not the one that is read
  return std::make_shared<ArrowInputFile>(std::move(opened), paths_[static_cast<std::size_t>(file)].status.size, pool_,
                                          errors_);
}

void ParquetInput::check_unchanged(int file) const {
  FileStatus const& then = paths_[static_cast<std::size_t>(file)].status;
  std::optional<FileStatus> now;
  try {
    now = file_system_.status(path(file));
  }
  catch (FileSystemError const& error) {
    if (errors_ == FileErrors::AreTheDisks) { throw; }
    throw InputError(error.what(), path(file));
  }
  bool const is_same = now && now->device == then.device && now->inode == then.inode && now->size == then.size &&
                       now->modified_ns == then.modified_ns;
  if (!is_same) { throw InputError(fmt::format("'{}' changed while it was read", path(file)), path(file)); }
}

std::unique_ptr<::parquet::ColumnChunkMetaData> ParquetInput::chunk(RowGroupRef const& group, int column) const {
  return reading(group, column, [&] {
    auto meta = metadata_[static_cast<std::size_t>(group.file)]->RowGroup(group.row_group)->ColumnChunk(column);
    if (meta->crypto_metadata()) { throw ::parquet::ParquetException(encrypted); }
    check_claims(*meta, paths_[static_cast<std::size_t>(group.file)].status.size);
    // The codec is decoded at each call: what it cannot be comes out here.
    if (!::parquet::IsCodecSupported(meta->compression())) {
      throw ::parquet::ParquetException(fmt::format("its compression codec {} is not supported",
                                                    ::arrow::util::Codec::GetCodecAsString(meta->compression())));
    }
    return meta;
  });
}

DictionaryUse ParquetInput::dictionary_use(RowGroupRef const& group, int column) const {
  auto const meta = chunk(group, column);
  if (!meta->has_dictionary_page()) { return DictionaryUse::None; }
  if (meta->encoding_stats().empty()) {
    auto const& encodings = meta->encodings();
    return std::any_of(encodings.begin(), encodings.end(), is_index_encoding) ? DictionaryUse::Unknown
                                                                              : DictionaryUse::None;
  }
  for (auto const& pages : meta->encoding_stats()) {
    bool const is_data =
        pages.page_type == ::parquet::PageType::DATA_PAGE || pages.page_type == ::parquet::PageType::DATA_PAGE_V2;
    if (is_data && pages.count > 0 && !is_index_encoding(pages.encoding)) { return DictionaryUse::None; }
  }
  return DictionaryUse::AllPages;
}

ParquetInput::Opened ParquetInput::open(RowGroupRef const& group, std::int64_t buffer_bytes) const {
  ::parquet::ReaderProperties properties(pool_);
  properties.enable_buffered_stream();
  properties.set_buffer_size(buffer_bytes);
  properties.set_page_checksum_verification(true);  // where the writer left checksums
  Opened opened;
  opened.file = ::parquet::ParquetFileReader::Open(open_file(group.file), properties,
                                                   metadata_[static_cast<std::size_t>(group.file)]);
  opened.row_group = opened.file->RowGroup(group.row_group);
  return opened;
}

std::unique_ptr<ChunkReader> ParquetInput::open_chunk(RowGroupRef const& group, int column, ReadAs read_as,
                                                      std::int64_t buffer_bytes) const {
  auto inner = reading(group, column, [&]() -> std::unique_ptr<ChunkReader> {
    auto owner = std::make_shared<Opened>(open(group, buffer_bytes));
    auto reader = read_as == ReadAs::Values
                      ? owner->row_group->Column(column)
                      : owner->row_group->ColumnWithExposeEncoding(column, ::parquet::ExposedEncoding::DICTIONARY);
    std::int64_t const entries = owner->row_group->metadata()->ColumnChunk(column)->num_values();
    switch (reader->type()) {
      case ::parquet::Type::BOOLEAN:
        return std::make_unique<TypedChunkReader<::parquet::BooleanType>>(owner, reader, read_as, entries);
      case ::parquet::Type::INT32:
        return std::make_unique<TypedChunkReader<::parquet::Int32Type>>(owner, reader, read_as, entries);
      case ::parquet::Type::INT64:
        return std::make_unique<TypedChunkReader<::parquet::Int64Type>>(owner, reader, read_as, entries);
      case ::parquet::Type::INT96:
        return std::make_unique<TypedChunkReader<::parquet::Int96Type>>(owner, reader, read_as, entries);
      case ::parquet::Type::FLOAT:
        return std::make_unique<TypedChunkReader<::parquet::FloatType>>(owner, reader, read_as, entries);
      case ::parquet::Type::DOUBLE:
        return std::make_unique<TypedChunkReader<::parquet::DoubleType>>(owner, reader, read_as, entries);
      case ::parquet::Type::BYTE_ARRAY:
        return std::make_unique<TypedChunkReader<::parquet::ByteArrayType>>(owner, reader, read_as, entries);
      case ::parquet::Type::FIXED_LEN_BYTE_ARRAY:
        return std::make_unique<TypedChunkReader<::parquet::FLBAType>>(owner, reader, read_as, entries);
      default: throw ::parquet::ParquetException("unknown physical type");
    }
  });
  return std::make_unique<NamedChunkReader>(std::move(inner), *this, group, column);
}

std::optional<DictionaryValues> ParquetInput::read_dictionary(RowGroupRef const& group, int column, DictionaryUse use,
                                                              std::int64_t max_values, std::int64_t max_bytes) const {
  constexpr std::int64_t length_bytes = sizeof(std::uint32_t);
  constexpr std::int64_t buffer_bytes = 64 << 10;
  return reading(group, column, [&]() -> std::optional<DictionaryValues> {
    Opened opened = open(group, buffer_bytes);
    auto const pages = opened.row_group->GetColumnPageReader(column);
    auto const page = pages->NextPage();
    if (!page || page->type() != ::parquet::PageType::DICTIONARY_PAGE) {
      throw ::parquet::ParquetException("the footer promises a dictionary page and there is none");
    }
    auto const& dictionary = static_cast<::parquet::DictionaryPage const&>(*page);
    if (dictionary.num_values() > max_values) { return std::nullopt; }
    if (dictionary.size() > max_bytes + length_bytes * dictionary.num_values()) { return std::nullopt; }
    DictionaryValues result = split_dictionary(dictionary, *schema().Column(column));
    if (use == DictionaryUse::Unknown && !has_only_index_pages(*pages)) { return std::nullopt; }
    return result;
  });
}

void ParquetInput::will_need(std::span<RowGroupRef const> groups, int column) const noexcept {
  try {
    std::unique_ptr<File> file;
    int opened = -1;
    for (RowGroupRef const& group : groups) {
      if (group.file != opened) { file = file_system_.open_for_reading(path(group.file)); }
      opened = group.file;
      auto const meta = chunk(group, column);
      file->will_need(first_page_offset(*meta), meta->total_compressed_size());
    }
  }
  catch (std::exception const&) {
    // A hint: the read that follows reports what is wrong.
  }
}

}  // namespace earmark::detail
