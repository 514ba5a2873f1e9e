// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "parquet_files.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include <cstdio>

#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"

namespace earmark {
namespace {

std::shared_ptr<parquet::ArrowWriterProperties> arrow_properties(WriterSettings const& settings) {
  parquet::ArrowWriterProperties::Builder builder;
  if (settings.int96) { builder.enable_deprecated_int96_timestamps(); }
  if (settings.store_schema) { builder.store_schema(); }
  return builder.build();
}

}  // namespace

void write_parquet(arrow::Table const& table, std::string const& path, WriterSettings const& settings) {
  std::shared_ptr<arrow::io::FileOutputStream> file;
  PARQUET_ASSIGN_OR_THROW(file, arrow::io::FileOutputStream::Open(path));
  PARQUET_THROW_NOT_OK(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), file, settings.row_group_rows,
                                                  settings.properties, arrow_properties(settings)));
  PARQUET_THROW_NOT_OK(file->Close());
}

void write_row_groups(arrow::Table const& table, std::string const& path,
                      std::vector<std::int64_t> const& row_group_rows, WriterSettings const& settings) {
  std::shared_ptr<arrow::io::FileOutputStream> file;
  PARQUET_ASSIGN_OR_THROW(file, arrow::io::FileOutputStream::Open(path));
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  PARQUET_ASSIGN_OR_THROW(writer, parquet::arrow::FileWriter::Open(*table.schema(), arrow::default_memory_pool(), file,
                                                                   settings.properties, arrow_properties(settings)));
  std::int64_t begin = 0;
  for (std::int64_t const rows : row_group_rows) {
    auto const slice = table.Slice(begin, rows);
    PARQUET_THROW_NOT_OK(writer->NewRowGroup());
    for (auto const& column : slice->columns()) { PARQUET_THROW_NOT_OK(writer->WriteColumnChunk(column)); }
    begin += rows;
  }
  PARQUET_THROW_NOT_OK(writer->Close());
  PARQUET_THROW_NOT_OK(file->Close());
}

std::shared_ptr<arrow::Table> read_parquet(std::string const& path) {
  std::shared_ptr<arrow::io::ReadableFile> file;
  PARQUET_ASSIGN_OR_THROW(file, arrow::io::ReadableFile::Open(path));
  std::unique_ptr<parquet::arrow::FileReader> reader;
  PARQUET_ASSIGN_OR_THROW(reader, parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
  std::shared_ptr<arrow::Table> table;
  PARQUET_ASSIGN_OR_THROW(table, reader->ReadTable());
  return table;
}

RepartitionOptions plenty_of_memory(std::vector<std::string> inputs, std::vector<std::string> by,
                                    std::int64_t partitions, std::string output) {
  RepartitionOptions options;
  options.inputs = std::move(inputs);
  options.by = std::move(by);
  options.partitions = partitions;
  options.output = std::move(output);
  options.memory_bytes = std::int64_t{16} << 30;
  options.admission_check = AdmissionCheck::No;
  return options;
}

RepartitionResult run(RepartitionOptions const& options) {
  PosixFileSystem disk;
  SteadyClock const clock;
  ThreadPool pool(3);
  return repartition(options, {pool, clock, disk});
}

std::string part_path(std::string const& folder, std::int64_t partition) {
  char name[32];
  std::snprintf(name, sizeof name, "/part-%05lld.parquet", static_cast<long long>(partition));
  return folder + name;
}

}  // namespace earmark
