// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory_arrow/arrow_memory_pool.hpp"

#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

struct PoolFixture {
  WatchedHost host;
  HostMemoryReservation reservation;
  std::shared_ptr<arrow::MemoryPool> pool;
  explicit PoolFixture(std::size_t bytes, ExhaustedPolicy exhausted = ExhaustedPolicy::Refuse)
      : host(64_MiB),
        reservation(host.adaptor.reserve(bytes, {.label = "arrow", .exhausted = exhausted})),
        pool(make_arrow_memory_pool(reservation.resource())) {}
};

std::shared_ptr<arrow::Table> make_table(arrow::MemoryPool* pool, std::int64_t rows) {
  arrow::Int64Builder keys{pool};
  arrow::StringBuilder names{pool};
  for (std::int64_t i = 0; i < rows; ++i) {
    PARQUET_THROW_NOT_OK(keys.Append(i * 7));
    PARQUET_THROW_NOT_OK(i % 5 == 0 ? names.AppendNull() : names.Append("name " + std::to_string(i % 100)));
  }
  auto const schema = arrow::schema({arrow::field("key", arrow::int64()), arrow::field("name", arrow::utf8())});
  return arrow::Table::Make(schema, {keys.Finish().ValueOrDie(), names.Finish().ValueOrDie()});
}

TEST(ArrowMemoryPool, DrawsEveryByteFromItsReservation) {
  PoolFixture fixture{1_MiB};
  std::uint8_t* block = nullptr;
  ASSERT_TRUE(fixture.pool->Allocate(1000, &block).ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
  EXPECT_EQ(fixture.reservation.spent(), 1024);
  EXPECT_EQ(fixture.pool->bytes_allocated(), 1000);
  fixture.pool->Free(block, 1000);
  EXPECT_EQ(fixture.reservation.spent(), 0);
  EXPECT_EQ(fixture.pool->bytes_allocated(), 0);
  EXPECT_EQ(fixture.pool->max_memory(), 1000);
  EXPECT_EQ(fixture.pool->total_bytes_allocated(), 1000);
  EXPECT_EQ(fixture.pool->num_allocations(), 1);
  EXPECT_EQ(fixture.pool->backend_name(), "earmark");
}

TEST(ArrowMemoryPool, RefusesWithAStatusThatCarriesTheNumbers) {
  PoolFixture fixture{1_KiB};
  std::uint8_t* block = nullptr;
  arrow::Status const status = fixture.pool->Allocate(2000, &block);
  EXPECT_TRUE(status.IsOutOfMemory());
  EXPECT_NE(status.message().find("reservation exhausted"), std::string::npos) << status.ToString();
  auto const fields = memory_error_fields(status);
  ASSERT_TRUE(fields.has_value());
  EXPECT_EQ(fields->requested, 2048);
  EXPECT_EQ(fields->shortfall, 1024);
  EXPECT_EQ(memory_error_fields(arrow::Status::OK()), std::nullopt);
  EXPECT_EQ(memory_error_fields(arrow::Status::Invalid("other")), std::nullopt);
  EXPECT_TRUE(fixture.pool->Allocate(INT64_MAX, &block).IsOutOfMemory());
  EXPECT_TRUE(fixture.pool->Allocate(-1, &block).IsInvalid());
  EXPECT_EQ(fixture.reservation.spent(), 0);
}

TEST(ArrowMemoryPool, ReportsAFailingUpstreamAsOutOfMemory) {
  PoolFixture fixture{1_MiB};
  fixture.host.faults.fail_allocation(0, testing::Fails::Once);
  std::uint8_t* block = nullptr;
  EXPECT_TRUE(fixture.pool->Allocate(100, &block).IsOutOfMemory());
  EXPECT_EQ(fixture.reservation.spent(), 0);
}

TEST(ArrowMemoryPool, ServesBuffersOfNoBytesWithoutCharge) {
  PoolFixture fixture{1_KiB};
  std::uint8_t* block = nullptr;
  ASSERT_TRUE(fixture.pool->Allocate(0, &block).ok());
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(fixture.reservation.spent(), 0);
  ASSERT_TRUE(fixture.pool->Reallocate(0, 100, &block).ok());
  EXPECT_EQ(fixture.reservation.spent(), 128);
  ASSERT_TRUE(fixture.pool->Reallocate(100, 0, &block).ok());
  EXPECT_EQ(fixture.reservation.spent(), 0);
  fixture.pool->Free(block, 0);
  EXPECT_EQ(fixture.host.faults.allocations(), 1);
}

TEST(ArrowMemoryPool, ResizesInPlaceWhileTheChargeDoesNotGrow) {
  PoolFixture fixture{1_KiB};
  std::uint8_t* block = nullptr;
  ASSERT_TRUE(fixture.pool->Allocate(970, &block).ok());
  std::uint8_t* const first = block;
  ASSERT_TRUE(fixture.pool->Reallocate(970, 1024, &block).ok());
  EXPECT_EQ(block, first);
  ASSERT_TRUE(fixture.pool->Reallocate(1024, 600, &block).ok());
  EXPECT_EQ(block, first) << "more than half: kept";
  ASSERT_TRUE(fixture.pool->Reallocate(600, 1024, &block).ok());
  EXPECT_EQ(block, first);
  ASSERT_TRUE(fixture.pool->Reallocate(1024, 100, &block).ok()) << "no room to move it: kept";
  EXPECT_EQ(block, first);
  EXPECT_EQ(fixture.host.faults.allocations(), 1);
  fixture.pool->Free(block, 100);
  EXPECT_EQ(fixture.reservation.spent(), 0);
  EXPECT_EQ(fixture.host.faults.wrong_deallocations(), 0);
}

TEST(ArrowMemoryPool, KeepsContentsWhenABlockHasToMove) {
  PoolFixture fixture{1_MiB};
  std::uint8_t* block = nullptr;
  ASSERT_TRUE(fixture.pool->Allocate(100, &block).ok());
  for (std::uint8_t i = 0; i < 100; ++i) { block[i] = i; }
  ASSERT_TRUE(fixture.pool->Reallocate(100, 300'000, &block).ok());
  ASSERT_TRUE(fixture.pool->Reallocate(300'000, 90, &block).ok());
  for (std::uint8_t i = 0; i < 90; ++i) { ASSERT_EQ(block[i], i); }
  EXPECT_EQ(fixture.reservation.spent(), 128) << "below half: moved, so that the memory came back";
  fixture.pool->Free(block, 90);
  EXPECT_EQ(fixture.host.faults.wrong_deallocations(), 0);
}

TEST(ArrowMemoryPool, LeavesABlockAloneThatCannotGrow) {
  PoolFixture fixture{1_KiB};
  std::uint8_t* block = nullptr;
  ASSERT_TRUE(fixture.pool->Allocate(600, &block).ok());
  std::uint8_t* const before = block;
  EXPECT_TRUE(fixture.pool->Reallocate(600, 2000, &block).IsOutOfMemory());
  EXPECT_EQ(block, before);
  EXPECT_EQ(fixture.pool->bytes_allocated(), 600);
  fixture.pool->Free(block, 600);
}

TEST(ArrowMemoryPool, OutlivesItsOwnersUntilTheLastBufferIsFreed) {
  testing::FaultControl faults;
  std::shared_ptr<arrow::Buffer> late;
  {
    HostReservationAwareResourceAdaptor adaptor{testing::FaultyResource{HostMemoryResource{}, faults}, 1_MiB};
    HostMemoryReservation const reservation = adaptor.reserve(1_MiB);
    std::shared_ptr<arrow::MemoryPool> const pool = make_arrow_memory_pool(reservation.resource());
    late = arrow::AllocateBuffer(100'000, pool.get()).ValueOrDie();
  }
  EXPECT_GT(faults.live_bytes(), 0);
  std::thread{[buffer = std::move(late)]() mutable { buffer.reset(); }}.join();
  EXPECT_EQ(faults.live_bytes(), 0);
}

TEST(ArrowMemoryPool, RefusesOnceItsReservationIsClosed) {
  PoolFixture fixture{1_MiB};
  std::shared_ptr<arrow::Buffer> buffer = arrow::AllocateBuffer(1000, fixture.pool.get()).ValueOrDie();
  fixture.reservation.close();
  EXPECT_TRUE(arrow::AllocateBuffer(1000, fixture.pool.get()).status().IsOutOfMemory());
  EXPECT_EQ(fixture.host.adaptor.committed(), 1024);
  buffer.reset();
  EXPECT_EQ(fixture.host.adaptor.committed(), 0);
}

TEST(ArrowMemoryPool, DrawsOnAnAdaptorDirectly) {
  WatchedHost host{1_MiB};
  std::shared_ptr<arrow::MemoryPool> const pool = make_arrow_memory_pool(host.adaptor);
  {
    std::shared_ptr<arrow::Buffer> const buffer = arrow::AllocateBuffer(1000, pool.get()).ValueOrDie();
    EXPECT_EQ(host.adaptor.committed(), 1024);
    EXPECT_TRUE(arrow::AllocateBuffer(2'000'000, pool.get()).status().IsOutOfMemory());
  }
  EXPECT_EQ(host.adaptor.committed(), 0);
}

TEST(ArrowMemoryPool, CarriesParquetThereAndBackWithoutTheDefaultPool) {
  PoolFixture fixture{1_KiB, ExhaustedPolicy::GrowOrRefuse};
  arrow::MemoryPool* const pool = fixture.pool.get();
  std::int64_t const default_before = arrow::default_memory_pool()->total_bytes_allocated();
  {
    std::shared_ptr<arrow::Table> const table = make_table(pool, 20'000);
    auto const sink = arrow::io::BufferOutputStream::Create(1024, pool).ValueOrDie();
    auto const writer_properties = parquet::WriterProperties::Builder{}.memory_pool(pool)->build();
    ASSERT_TRUE(parquet::arrow::WriteTable(*table, pool, sink, 5000, writer_properties).ok());
    std::shared_ptr<arrow::Buffer> const file = sink->Finish().ValueOrDie();

    parquet::arrow::FileReaderBuilder builder;
    ASSERT_TRUE(builder.Open(std::make_shared<arrow::io::BufferReader>(file), parquet::ReaderProperties{pool}).ok());
    parquet::ArrowReaderProperties properties;
    properties.set_io_context(arrow::io::IOContext{pool});
    auto const reader = builder.memory_pool(pool)->properties(properties)->Build().ValueOrDie();
    std::shared_ptr<arrow::Table> const back = reader->ReadTable().ValueOrDie();
    EXPECT_TRUE(back->Equals(*table));
    EXPECT_GT(fixture.reservation.spent(), 0);
  }
  EXPECT_EQ(arrow::default_memory_pool()->total_bytes_allocated(), default_before);
  EXPECT_EQ(pool->bytes_allocated(), 0);
  EXPECT_EQ(fixture.reservation.spent(), 0);
}

TEST(ArrowMemoryPool, SurvivesBuffersThatArrowsThreadsFreeAfterEverythingElseIsGone) {
  testing::FaultControl faults;
  std::shared_ptr<arrow::Table> table;
  {
    HostReservationAwareResourceAdaptor adaptor{testing::FaultyResource{HostMemoryResource{}, faults}, 64_MiB};
    HostMemoryReservation const reservation = adaptor.reserve(0, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
    std::shared_ptr<arrow::MemoryPool> const pool = make_arrow_memory_pool(reservation.resource());
    std::shared_ptr<arrow::Buffer> file;
    {
      auto const sink = arrow::io::BufferOutputStream::Create(1024, pool.get()).ValueOrDie();
      std::shared_ptr<arrow::Table> const source = make_table(pool.get(), 20'000);
      ASSERT_TRUE(parquet::arrow::WriteTable(*source, pool.get(), sink, 1000).ok());
      file = sink->Finish().ValueOrDie();
    }
    parquet::arrow::FileReaderBuilder builder;
    ASSERT_TRUE(
        builder.Open(std::make_shared<arrow::io::BufferReader>(file), parquet::ReaderProperties{pool.get()}).ok());
    parquet::ArrowReaderProperties properties;
    properties.set_use_threads(true);
    properties.set_pre_buffer(true);
    properties.set_io_context(arrow::io::IOContext{pool.get()});
    auto const reader = builder.memory_pool(pool.get())->properties(properties)->Build().ValueOrDie();
    table = reader->ReadTable().ValueOrDie();
  }
  EXPECT_GT(faults.live_bytes(), 0);
  EXPECT_EQ(table->num_rows(), 20'000);
  table.reset();
  EXPECT_EQ(faults.wrong_deallocations(), 0);
}

TEST(ArrowMemoryPool, CarriesIpcThereAndBack) {
  PoolFixture fixture{8_MiB};
  arrow::MemoryPool* const pool = fixture.pool.get();
  {
    std::shared_ptr<arrow::RecordBatch> const batch = make_table(pool, 5000)->CombineChunksToBatch(pool).ValueOrDie();
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.memory_pool = pool;
    auto const bytes = arrow::ipc::SerializeRecordBatch(*batch, options).ValueOrDie();
    arrow::io::BufferReader stream{bytes};
    arrow::ipc::DictionaryMemo memo;
    auto read_options = arrow::ipc::IpcReadOptions::Defaults();
    read_options.memory_pool = pool;
    auto const back = arrow::ipc::ReadRecordBatch(batch->schema(), &memo, read_options, &stream).ValueOrDie();
    EXPECT_TRUE(back->Equals(*batch));
  }
  EXPECT_EQ(fixture.reservation.spent(), 0);
}

TEST(ArrowMemoryPool, LosesNothingWhicheverAllocationOfAParquetWriterFails) {
  for (std::int64_t n = 0;; n += 7) {
    PoolFixture fixture{1_KiB, ExhaustedPolicy::GrowOrRefuse};
    arrow::MemoryPool* const pool = fixture.pool.get();
    bool failed = false;
    {
      std::shared_ptr<arrow::Table> const table = make_table(arrow::default_memory_pool(), 2000);
      fixture.host.faults.fail_allocation(n, testing::Fails::Once);
      auto const sink = arrow::io::BufferOutputStream::Create(1024, pool);
      if (!sink.ok()) {
        failed = true;
      } else {
        // No dictionaries: Arrow's hash tables of strings go on after a failed allocation, whatever the pool.
        auto const properties = parquet::WriterProperties::Builder{}.memory_pool(pool)->disable_dictionary()->build();
        try {
          failed = !parquet::arrow::WriteTable(*table, pool, *sink, 500, properties).ok();
        }
        catch (std::exception const&) {
          failed = true;  // Parquet's and Arrow's own ways of passing a status on where they do not catch it
        }
      }
    }
    bool const was_due = fixture.host.faults.failures() != 0;
    // A block that only shrinks is kept where it is when it cannot be moved, so not every failure is felt.
    EXPECT_TRUE(was_due || !failed) << "with allocation " << n << " failing";
    EXPECT_EQ(pool->bytes_allocated(), 0) << "with allocation " << n << " failing";
    EXPECT_EQ(fixture.reservation.spent(), 0) << "with allocation " << n << " failing";
    EXPECT_EQ(fixture.host.faults.wrong_deallocations(), 0);
    if (!was_due) { break; }
  }
}

}  // namespace
}  // namespace earmark
