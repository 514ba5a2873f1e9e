// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrow's pool over a reservation and over an adaptor, through the installed conformance suite.
#include <arrow/memory_pool.h>
#include <arrow/status.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <rmm/error.hpp>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory_arrow/arrow_memory_pool.hpp"
#include "earmark/testing/faulty_resource.hpp"
#include "earmark/testing/resource_conformance.hpp"

namespace earmark {
namespace {

using namespace earmark::testing;

// A pool in the suite's form: a status is thrown as what it says.
struct AnyArrowPool {
  std::shared_ptr<arrow::MemoryPool> pool;
  void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    if (bytes > static_cast<std::size_t>(INT64_MAX)) { throw rmm::out_of_memory{"more than Arrow can ask for"}; }
    std::uint8_t* block = nullptr;
    arrow::Status const status =
        pool->Allocate(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(alignment), &block);
    if (status.IsOutOfMemory()) { throw rmm::out_of_memory{status.message()}; }
    if (!status.ok()) { throw std::invalid_argument{status.message()}; }
    return block;
  }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment) noexcept {
    pool->Free(static_cast<std::uint8_t*>(pointer), static_cast<std::int64_t>(bytes),
               static_cast<std::int64_t>(alignment));
  }
  bool operator==(AnyArrowPool const&) const = default;
  [[maybe_unused]] friend constexpr void get_property(AnyArrowPool const&, host_accessible) noexcept {}
};

struct ArrowPool : ResourceSubject {
  using Resource = AnyArrowPool;
  static constexpr std::size_t capacity = 4_MiB;
  static constexpr Forms forms = Forms::SynchronousOnly;
  static constexpr MovedFrom moved_from = MovedFrom::AssignableOnly;  // the wrapper's, not the pool's
  static constexpr OddAlignments odd_alignments = OddAlignments::Refused;
  HostReservationAwareResourceAdaptor adaptor{FaultyResource{HostMemoryResource{}, faults}, capacity};
};

struct PoolOfAReservation : ArrowPool {
  HostMemoryReservation reservation = adaptor.reserve(capacity);
  std::shared_ptr<arrow::MemoryPool> pool = make_arrow_memory_pool(reservation.resource());
  Resource resource() { return {pool}; }
  std::int64_t used() { return reservation.spent() + pool->bytes_allocated(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PoolOfAReservation, ResourceConformance, PoolOfAReservation);

struct PoolOfAnAdaptor : ArrowPool {
  std::shared_ptr<arrow::MemoryPool> pool = make_arrow_memory_pool(adaptor);
  Resource resource() { return {pool}; }
  std::int64_t used() { return adaptor.committed() + pool->bytes_allocated(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PoolOfAnAdaptor, ResourceConformance, PoolOfAnAdaptor);

}  // namespace
}  // namespace earmark
