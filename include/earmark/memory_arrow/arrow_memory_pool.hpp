// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrow's memory from a reservation: an `arrow::MemoryPool` whose every byte is drawn from an Earmark resource, so that
// readers, writers and kernels stay inside what was set aside. Give it to everything that takes a pool (reader and
// writer properties, `arrow::io::IOContext`, `QueryOptions`): what is not told uses Arrow's default pool.
//
//   HostMemoryReservation reservation = adaptor.reserve(64_MiB, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
//   std::shared_ptr<arrow::MemoryPool> pool = make_arrow_memory_pool(reservation.resource());
//   parquet::ReaderProperties properties{pool.get()};
//
// Too little left is a `Status` of code OutOfMemory, never an exception, with the numbers attached
// (`memory_error_fields`). Buffers are charged by the adaptor's granularity and aligned to 64 bytes at least.
// Thread safety: any thread. Ownership: the pool outlives its last owner until Arrow has freed its last buffer, so
// Arrow's own threads may free late. It keeps the reservation's resource alive, not its balance.
#pragma once

#include <memory>
#include <optional>

#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

namespace arrow {
class MemoryPool;
class Status;
}  // namespace arrow

namespace earmark {

// A pool that draws on a reservation. Bytes freed go back to its balance; with ExhaustedPolicy::GrowOrRefuse it grows
// as Arrow asks for more.
[[nodiscard]] std::shared_ptr<arrow::MemoryPool> make_arrow_memory_pool(HostMemoryReservation::Resource resource);
// A pool that draws on the adaptor itself: bounded by its limit, and bytes freed are available to all at once.
[[nodiscard]] std::shared_ptr<arrow::MemoryPool> make_arrow_memory_pool(HostReservationAwareResourceAdaptor adaptor);

// Returns: the numbers behind an out-of-memory status of such a pool, or nothing for any other status.
[[nodiscard]] std::optional<ErrorFields> memory_error_fields(arrow::Status const& status);

}  // namespace earmark
