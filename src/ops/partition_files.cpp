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

#include <algorithm>
#include <atomic>
#include <limits>
#include <unordered_map>

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
  FileSink(FileSystem& file_system, std::string path, KeepOpen keep, std::atomic<std::int64_t>& bytes_written,
           std::function<void()> const& check_stop)
      : file_system_(file_system), path_(std::move(path)), bytes_written_(bytes_written), check_stop_(check_stop) {
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
      write_to(*file_, view);
    } else {
      auto const file = file_system_.open_for_writing(path_);
      write_to(*file, view);
      file->close();
    }
  }

  // A huge page takes long: a stop is looked for every few MiB.
  void write_to(File& file, std::span<std::byte const> bytes) {
    constexpr std::size_t most_at_once = 16 << 20;
    while (!bytes.empty()) {
      auto const piece = bytes.first(std::min(bytes.size(), most_at_once));
      file.write_at(piece, position_);
      position_ += static_cast<std::int64_t>(piece.size());
      bytes_written_.fetch_add(static_cast<std::int64_t>(piece.size()), std::memory_order_relaxed);
      bytes = bytes.subspan(piece.size());
      if (!bytes.empty()) { check_stop_(); }
    }
  }

  FileSystem& file_system_;
  std::string path_;
  std::unique_ptr<File> file_;
  std::int64_t position_{0};
  std::atomic<std::int64_t>& bytes_written_;
  std::function<void()> const& check_stop_;
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

// What zstd takes grows with the level, and at its highest ones also with the page. These bounds fit a page of usual
// size, which gets all that the level would give it.
std::unique_ptr<::arrow::util::Codec> make_codec(Compression const& compression) {
  ::arrow::util::ZstdCodecOptions zstd;
  ::arrow::util::CodecOptions plain;
  bool const is_zstd = compression.codec == Compression::Codec::Zstd;
  ::arrow::util::CodecOptions& options = is_zstd ? zstd : plain;
  options.compression_level = level_of(compression);
  constexpr int bounded_from = 10;
  if (is_zstd && compression.level.value_or(1) >= bounded_from) {
    constexpr int window_log = 101;  // as zstd numbers its parameters
    constexpr int hash_log = 102;
    constexpr int chain_log = 103;
    zstd.compression_context_params = {{window_log, 21}, {hash_log, 21}, {chain_log, 22}};
  }
  std::unique_ptr<::arrow::util::Codec> codec;
  PARQUET_ASSIGN_OR_THROW(codec, ::arrow::util::Codec::Create(arrow_codec(compression.codec), options));
  return codec;
}

// Compression of one worker.
struct Compressor {
  static constexpr std::int64_t large_page = 2 << 20;  // compressed piece by piece, so that a stop need not wait
  static constexpr std::int64_t piece_bytes = 256 << 10;

  std::unique_ptr<::arrow::util::Codec> codec;  // null: uncompressed
  std::unique_ptr<::arrow::Buffer> buffer;

  // Returns: the compressed bytes, which live until the next call.
  std::shared_ptr<::arrow::Buffer> compress(std::uint8_t const* bytes, std::int64_t size, ::arrow::MemoryPool* pool,
                                            std::function<void()> const& check_stop) {
    std::int64_t const room = codec->MaxCompressedLen(size, bytes);
    if (!buffer || buffer->size() < room) {
      buffer.reset();
      PARQUET_ASSIGN_OR_THROW(buffer, ::arrow::AllocateBuffer(room, pool));
    }
    std::int64_t compressed = size > large_page && can_stream() ? compress_pieces(bytes, size, check_stop) : 0;
    if (compressed == 0) {
      PARQUET_ASSIGN_OR_THROW(compressed, codec->Compress(size, bytes, room, buffer->mutable_data()));
    }
    return std::make_shared<::arrow::Buffer>(buffer->data(), compressed);
  }

  void drop_large_buffer() noexcept {
    if (buffer && buffer->size() > 2 * large_page) { buffer.reset(); }
  }

 private:
  // The others are fast, and their streams are another format.
  [[nodiscard]] bool can_stream() const {
    auto const type = codec->compression_type();
    return type == ::arrow::Compression::ZSTD || type == ::arrow::Compression::BROTLI ||
           type == ::arrow::Compression::GZIP;
  }

  // Returns: the compressed size; 0 when the buffer did not suffice, as it may not for what cannot be compressed.
  std::int64_t compress_pieces(std::uint8_t const* bytes, std::int64_t size, std::function<void()> const& check_stop) {
    std::shared_ptr<::arrow::util::Compressor> stream;
    PARQUET_ASSIGN_OR_THROW(stream, codec->MakeCompressor());
    std::uint8_t* const out = buffer->mutable_data();
    std::int64_t written = 0;
    for (std::int64_t read = 0; read < size;) {
      check_stop();
      ::arrow::util::Compressor::CompressResult step{};
      PARQUET_ASSIGN_OR_THROW(step, stream->Compress(std::min(piece_bytes, size - read), bytes + read,
                                                     buffer->size() - written, out + written));
      if (step.bytes_read == 0 && step.bytes_written == 0) { return 0; }
      read += step.bytes_read;
      written += step.bytes_written;
    }
    for (;;) {
      ::arrow::util::Compressor::EndResult end{};
      PARQUET_ASSIGN_OR_THROW(end, stream->End(buffer->size() - written, out + written));
      written += end.bytes_written;
      if (!end.should_retry) { return written; }
      if (end.bytes_written == 0) { return 0; }
    }
  }
};

}  // namespace

struct PartitionFiles::State {
  std::shared_ptr<::parquet::SchemaDescriptor const> schema;
  std::vector<Compression> compression;
  std::shared_ptr<::parquet::WriterProperties> properties;
  std::shared_ptr<::arrow::KeyValueMetadata const> key_values;
  ::arrow::MemoryPool* pool{nullptr};
  std::function<void()> check_stop;
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
                               std::shared_ptr<::arrow::KeyValueMetadata const> metadata, std::size_t workers,
                               ::arrow::MemoryPool* pool, std::atomic<std::int64_t>& bytes_written,
                               std::function<void()> const& check_stop)
    : state_(std::make_unique<State>()) {
  state_->schema = std::move(schema);
  state_->compression = column_compression;
  state_->pool = pool;
  state_->check_stop = check_stop;
  state_->key_values = std::move(metadata);
  ::parquet::WriterProperties::Builder builder;
  builder.memory_pool(pool)->created_by("earmark version " EARMARK_VERSION);
  std::unordered_map<std::string, std::size_t> first_of;
  for (std::size_t i = 0; i < state_->compression.size(); ++i) {
    // Properties go by path: of columns that share one, the first decides.
    auto const path = state_->schema->Column(static_cast<int>(i))->path()->ToDotString();
    state_->compression[i] = state_->compression[first_of.try_emplace(path, i).first->second];
    builder.compression(path, arrow_codec(state_->compression[i].codec));
  }
  state_->properties = builder.build();
  KeepOpen const keep = keep_open(partitions);
  state_->files.resize(static_cast<std::size_t>(partitions));
  for (std::size_t p = 0; p < state_->files.size(); ++p) {
    PartitionFile& file = state_->files[p];
    file.sink = std::make_shared<FileSink>(file_system, folder.part_path(static_cast<std::int64_t>(p)), keep,
                                           bytes_written, state_->check_stop);
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
    compressor.codec = make_codec(compression);
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
      state_->check_stop();
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
  if (compressor.codec) { body = compressor.compress(bytes, size, state_->pool, state_->check_stop); }
  PartitionFile& file = state_->files[partition];
  file.row_group_bytes +=
      file.pages->WriteDataPage(::parquet::DataPageV1(body, page.entries, page.encoding, ::parquet::Encoding::RLE,
                                                      ::parquet::Encoding::RLE, size, page.statistics, first_row));
  compressor.drop_large_buffer();
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
