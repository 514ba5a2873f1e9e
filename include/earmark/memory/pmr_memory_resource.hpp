// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The door to `std::pmr`: the standard library's containers, drawing on a reservation of host memory. Use it for what
// is sized by the data (hash tables, staging vectors), so that it stays inside what was set aside.
//
//   HostMemoryReservation reservation = adaptor.reserve(16_MiB);
//   PmrMemoryResource memory{reservation};
//   std::pmr::vector<Row> rows{&memory};           // growing past the reservation throws ReservationExhausted
//
// Containers hold a bare pointer, as the standard has it: this object must outlive them. The reservation and its
// adaptor need not. What runs out throws Earmark's own errors, which are `std::bad_alloc`. Freed bytes return to the
// reservation (to its heir once it is closed), on whatever thread; a container that grows holds old and new at once.
// Zero bytes cost nothing: their address is aligned, never null, and must not be read.
// Thread safety: any thread. Ownership: shares the reservation's control block, not its balance; neither copied nor
// moved, since containers point at it.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <utility>

#include "earmark/memory/memory_reservation.hpp"

namespace earmark {

template <class... Properties>
  requires(detail::contains_v<host_accessible, Properties...>)
class BasicPmrMemoryResource final : public std::pmr::memory_resource {
 public:
  using Reservation = BasicMemoryReservation<Properties...>;
  using Resource = typename Reservation::Resource;

  // Requires: `reservation` is not empty.
  explicit BasicPmrMemoryResource(Reservation const& reservation) noexcept : resource_(reservation.resource()) {}
  explicit BasicPmrMemoryResource(Resource resource) noexcept : resource_(std::move(resource)) {}
  explicit BasicPmrMemoryResource(Reservation&&) = delete;  // it would close before the first allocation

  BasicPmrMemoryResource(BasicPmrMemoryResource const&) = delete;
  BasicPmrMemoryResource& operator=(BasicPmrMemoryResource const&) = delete;

  [[nodiscard]] Resource const& resource() const noexcept { return resource_; }

 private:
  // Requires: alignment is a power of two, as the standard does.
  [[nodiscard]] void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes == 0) { return reinterpret_cast<void*>(alignment); }
    return resource_.allocate_sync(bytes, alignment);
  }
  void do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) noexcept override {
    if (bytes != 0) { resource_.deallocate_sync(pointer, bytes, alignment); }
  }
  // Equal: doors to one reservation, so that containers may take over each other's memory.
  [[nodiscard]] bool do_is_equal(std::pmr::memory_resource const& other) const noexcept override {
    auto const* const door = dynamic_cast<BasicPmrMemoryResource const*>(&other);
    return door != nullptr && door->resource_ == resource_;
  }

  Resource resource_;
};

using PmrMemoryResource = BasicPmrMemoryResource<host_accessible>;
using PinnedPmrMemoryResource = BasicPmrMemoryResource<host_accessible, device_accessible>;

}  // namespace earmark
