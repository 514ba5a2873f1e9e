// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "partition_files.hpp"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/column_writer.h>
#include <parquet/exception.h>
#include <parquet/file_writer.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <sys/resource.h>

#include <atomic>
#include <limits>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

constexpr char magic[] = {'P', 'A', 'R', '1'};
constexpr unsigned file_mode = 0666;           // cut by the umask: the result belongs to whoever runs the job
constexpr std::size_t spare_descriptors = 64;  // for inputs, libraries and the terminal

::arrow::Compression::type arrow_codec(Compression::Codec codec) {
  switch (codec) {
    case Compression::Codec::None: return ::arrow::Compression::UNCOMPRESSED;
    case Compression::Codec::Snappy: return ::arrow::Compression::SNAPPY;
    case Compression::Codec::Gzip: return ::arrow::Compression::GZIP;
    case Compression::Codec::Brotli: return ::arrow::Compression::BROTLI;
    case Compression::Codec::Zstd: return ::arrow::Compression::ZSTD;
    case Compression::Codec::Lz4: break;
  }
  return ::arrow::Compression::LZ4;
}

void check_level(Compression const& compression) {
  if (!compression.level) { return; }
  auto const least = ::arrow::util::Codec::MinimumCompressionLevel(arrow_codec(compression.codec));
  auto const most = ::arrow::util::Codec::MaximumCompressionLevel(arrow_codec(compression.codec));
  if (!least.ok() || !most.ok()) { throw UsageError("the codec has no compression levels"); }
  if (*compression.level < *least || *compression.level > *most) {
    throw UsageError(
        fmt::format("the compression level must be from {} to {}, not {}", *least, *most, *compression.level));
  }
}

int level_of(Compression const& compression) {
  return compression.level.value_or(::arrow::util::kUseDefaultCompressionLevel);
}

// Where file descriptors are scarce, a file is opened for each write.
enum class KeepOpen { Yes, No };

KeepOpen keep_open(std::int64_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) { return KeepOpen::No; }
  return static_cast<std::size_t>(files) + spare_descriptors <= limit.rlim_cur ? KeepOpen::Yes : KeepOpen::No;
}

// One output file as Arrow writes it. Errors of the disk leave as FileSystemError.
class FileSink final : public ::arrow::io::OutputStream {
 public:
  FileSink(FileSystem& file_system, std::string path, KeepOpen keep, std::atomic<std::int64_t>& bytes_written)
      : file_system_(file_system), path_(std::move(path)), bytes_written_(bytes_written) {
    file_ = file_system_.create(path_, file_mode);
    write(magic, sizeof magic);
    if (keep == KeepOpen::No) { close(); }
  }

  ::arrow::Status Write(void const* data, std::int64_t bytes) override {
    write(data, static_cast<std::size_t>(bytes));
    return ::arrow::Status::OK();
  }
  using ::arrow::io::OutputStream::Write;
  ::arrow::Status Close() override { return ::arrow::Status::OK(); }
  ::arrow::Result<std::int64_t> Tell() const override { return position_; }
  bool closed() const override { return false; }

  void close() {
    if (file_) { std::exchange(file_, nullptr)->close(); }
  }

 private:
  void write(void const* data, std::size_t bytes) {
    std::span<std::byte const> const view(static_cast<std::byte const*>(data), bytes);
    if (file_) {
      file_->write_at(view, position_);
    } else {
      auto const file = file_system_.open_for_writing(path_);
      file->write_at(view, position_);
      file->close();
    }
    position_ += static_cast<std::int64_t>(bytes);
    bytes_written_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }

  FileSystem& file_system_;
  std::string path_;
  std::unique_ptr<File> file_;
  std::int64_t position_{0};
  std::atomic<std::int64_t>& bytes_written_;
};

// The ordinal is optional in the format, and 16 bits wide.
std::int16_t ordinal_of(std::int32_t row_group) {
  return row_group <= std::numeric_limits<std::int16_t>::max() ? static_cast<std::int16_t>(row_group)
                                                               : std::int16_t{-1};
}

struct PartitionFile {
  std::shared_ptr<FileSink> sink;
  std::unique_ptr<::parquet::FileMetaDataBuilder> metadata;
  std::unique_ptr<::parquet::PageIndexBuilder> page_index;
  // Of the current row group; null where the file gets no rows.
  ::parquet::RowGroupMetaDataBuilder* row_group{nullptr};
  ::parquet::ColumnChunkMetaDataBuilder* column{nullptr};
  std::unique_ptr<::parquet::PageWriter> pages;
  std::int64_t row_group_bytes{0};
  std::int32_t row_groups{0};
};

// Compression of one worker.
struct Compressor {
  std::unique_ptr<::arrow::util::Codec> codec;  // null: uncompressed
  std::shared_ptr<::arrow::ResizableBuffer> buffer;
};

}  // namespace

struct PartitionFiles::State {
  std::shared_ptr<::parquet::SchemaDescriptor const> schema;
  std::vector<Compression> compression;
  std::shared_ptr<::parquet::WriterProperties> properties;
  std::shared_ptr<::arrow::KeyValueMetadata const> key_values;
  ::arrow::MemoryPool* pool{nullptr};
  std::vector<PartitionFile> files;
  std::vector<Compressor> compressors;
  int column{-1};
  bool has_dictionary{false};
};

Compression output_compression(ParquetInput const& input, int column, std::optional<Compression> const& wanted) {
  if (wanted) {
    check_level(*wanted);
    return *wanted;
  }
  auto const& groups = input.row_groups();
  if (groups.empty()) { return {}; }
  switch (input.chunk(groups.front(), column)->compression()) {
    case ::arrow::Compression::UNCOMPRESSED: return {Compression::Codec::None, {}};
    case ::arrow::Compression::GZIP: return {Compression::Codec::Gzip, {}};
    case ::arrow::Compression::BROTLI: return {Compression::Codec::Brotli, {}};
    case ::arrow::Compression::ZSTD: return {Compression::Codec::Zstd, {}};
    case ::arrow::Compression::LZ4:
    case ::arrow::Compression::LZ4_HADOOP: return {Compression::Codec::Lz4, {}};
    default: return {};
  }
}

PartitionFiles::PartitionFiles(FileSystem& file_system, OutputFolder const& folder, std::int64_t partitions,
                               std::shared_ptr<::parquet::SchemaDescriptor const> schema,
                               std::vector<Compression> const& column_compression,
                               ::parquet::FileMetaData const& metadata, std::size_t workers, ::arrow::MemoryPool* pool,
                               std::atomic<std::int64_t>& bytes_written)
    : state_(std::make_unique<State>()) {
  state_->schema = std::move(schema);
  state_->compression = column_compression;
  state_->pool = pool;
  state_->key_values = metadata.key_value_metadata();
  ::parquet::WriterProperties::Builder builder;
  builder.memory_pool(pool)->created_by("earmark version " EARMARK_VERSION);
  for (int i = 0; i < state_->schema->num_columns(); ++i) {
    // Properties go by path: of columns that share one, the first decides.
    auto const path = state_->schema->Column(i)->path()->ToDotString();
    for (int j = 0; j < i; ++j) {
      if (state_->schema->Column(j)->path()->ToDotString() == path) {
        state_->compression[static_cast<std::size_t>(i)] = state_->compression[static_cast<std::size_t>(j)];
        break;
      }
    }
    builder.compression(path, arrow_codec(state_->compression[static_cast<std::size_t>(i)].codec));
  }
  state_->properties = builder.build();
  KeepOpen const keep = keep_open(partitions);
  state_->files.resize(static_cast<std::size_t>(partitions));
  for (std::size_t p = 0; p < state_->files.size(); ++p) {
    PartitionFile& file = state_->files[p];
    file.sink =
        std::make_shared<FileSink>(file_system, folder.part_path(static_cast<std::int64_t>(p)), keep, bytes_written);
    file.metadata = ::parquet::FileMetaDataBuilder::Make(state_->schema.get(), state_->properties);
    file.page_index = ::parquet::PageIndexBuilder::Make(state_->schema.get());
  }
  state_->compressors.resize(workers);
}

PartitionFiles::~PartitionFiles() = default;

void PartitionFiles::begin_row_group(std::vector<std::int64_t> const& rows) {
  state_->column = -1;
  for (std::size_t p = 0; p < state_->files.size(); ++p) {
    PartitionFile& file = state_->files[p];
    file.row_group = nullptr;
    if (rows[p] == 0) { continue; }
    file.row_group = file.metadata->AppendRowGroup();
    file.row_group->set_num_rows(rows[p]);
    file.page_index->AppendRowGroup();
    file.row_group_bytes = 0;
  }
}

void PartitionFiles::begin_column(Dictionary const* dictionary) {
  ++state_->column;
  Compression const& compression = state_->compression[static_cast<std::size_t>(state_->column)];
  auto const codec = arrow_codec(compression.codec);
  state_->has_dictionary = dictionary != nullptr;
  for (Compressor& compressor : state_->compressors) {
    compressor.codec.reset();
    if (codec == ::arrow::Compression::UNCOMPRESSED) { continue; }
    PARQUET_ASSIGN_OR_THROW(compressor.codec, ::arrow::util::Codec::Create(codec, level_of(compression)));
    if (!compressor.buffer) {
      PARQUET_ASSIGN_OR_THROW(compressor.buffer, ::arrow::AllocateResizableBuffer(0, state_->pool));
    }
  }
  std::shared_ptr<::arrow::Buffer> body;
  if (dictionary != nullptr) {
    body = ::arrow::Buffer::Wrap(dictionary->page().data(), static_cast<std::int64_t>(dictionary->page().size()));
  }
  for (PartitionFile& file : state_->files) {
    if (file.row_group == nullptr) { continue; }
    file.column = file.row_group->NextColumnChunk();
    file.pages = ::parquet::PageWriter::Open(
        file.sink, codec, file.column, ordinal_of(file.row_groups), static_cast<std::int16_t>(state_->column),
        state_->pool,
        /*buffered_row_group=*/false, nullptr, nullptr, /*page_write_checksum_enabled=*/false,
        file.page_index->GetColumnIndexBuilder(state_->column), file.page_index->GetOffsetIndexBuilder(state_->column),
        ::arrow::util::CodecOptions(level_of(compression)));
    if (dictionary != nullptr) {
      file.row_group_bytes += file.pages->WriteDictionaryPage(
          ::parquet::DictionaryPage(body, static_cast<std::int32_t>(dictionary->values().size()),
                                    ::parquet::Encoding::PLAIN, dictionary->ranked() == dictionary->values().size()));
    }
  }
}

void PartitionFiles::write_page(std::size_t worker, std::size_t partition, EncodedPage const& page,
                                std::int64_t first_row) {
  Compressor& compressor = state_->compressors[worker];
  auto const* const bytes = reinterpret_cast<std::uint8_t const*>(page.body.data());
  auto const size = static_cast<std::int64_t>(page.body.size());
  auto body = std::make_shared<::arrow::Buffer>(bytes, size);
  if (compressor.codec) {
    std::int64_t const room = compressor.codec->MaxCompressedLen(size, bytes);
    PARQUET_THROW_NOT_OK(compressor.buffer->Resize(room, /*shrink_to_fit=*/false));
    PARQUET_ASSIGN_OR_THROW(std::int64_t const compressed,
                            compressor.codec->Compress(size, bytes, room, compressor.buffer->mutable_data()));
    body = std::make_shared<::arrow::Buffer>(compressor.buffer->data(), compressed);
  }
  PartitionFile& file = state_->files[partition];
  file.row_group_bytes +=
      file.pages->WriteDataPage(::parquet::DataPageV1(body, page.entries, page.encoding, ::parquet::Encoding::RLE,
                                                      ::parquet::Encoding::RLE, size, page.statistics, first_row));
}

void PartitionFiles::end_column(std::size_t partition, ::parquet::EncodedStatistics const& statistics) {
  PartitionFile& file = state_->files[partition];
  if (file.row_group == nullptr) { return; }
  file.column->SetStatistics(statistics);
  file.pages->Close(state_->has_dictionary, /*fallback=*/false);
  file.pages.reset();
}

void PartitionFiles::end_row_group() {
  for (PartitionFile& file : state_->files) {
    if (file.row_group == nullptr) { continue; }
    file.row_group->Finish(file.row_group_bytes, ordinal_of(file.row_groups));
    file.row_group = nullptr;
    ++file.row_groups;
  }
}

void PartitionFiles::finish(std::size_t partition) {
  PartitionFile& file = state_->files[partition];
  if (file.row_groups > 0) {
    file.page_index->Finish();
    auto const locations = file.page_index->WriteTo(file.sink.get());
    file.metadata->SetIndexLocations(::parquet::IndexKind::kColumnIndex, locations.column_index_locations);
    file.metadata->SetIndexLocations(::parquet::IndexKind::kOffsetIndex, locations.offset_index_locations);
  }
  auto const footer = file.metadata->Finish(state_->key_values);
  ::parquet::WriteFileMetaData(*footer, file.sink.get());
  file.sink->close();
  file.page_index.reset();
  file.metadata.reset();
}

}  // namespace earmark::detail
