// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A memory resource that fails where a test wants it to, and that watches what passes: counts, live bytes, and whether
// each block is freed once, with the size and alignment that it was allocated with.
//
//   FaultControl faults;
//   HostReservationAwareResourceAdaptor adaptor{FaultyResource{HostMemoryResource{}, faults}, 1_MiB};
//   faults.fail_allocation(3, Fails::Once);      // the fourth from now throws std::bad_alloc
//
// Thread safety: any thread. Ownership: copies share one record, which `FaultControl` also holds, so that a test may
// look at it after the adaptor is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "earmark/memory/resource_concepts.hpp"

namespace earmark::testing {

enum class Fails : std::uint8_t { Once, Always };

class FaultControl {
 public:
  FaultControl();

  // Lets `successes` more allocations pass, then fails: the next one, or all from there on.
  void fail_allocation(std::int64_t successes, Fails fails);
  void fail_none();

  [[nodiscard]] std::int64_t allocations() const;  // that succeeded
  [[nodiscard]] std::int64_t failures() const;     // that were made to fail
  [[nodiscard]] std::int64_t deallocations() const;
  [[nodiscard]] std::int64_t live_bytes() const;
  [[nodiscard]] std::int64_t peak_live_bytes() const;
  // Frees of something that is not live, or with another size or alignment than it was allocated with.
  [[nodiscard]] std::int64_t wrong_deallocations() const;

  // For resources. `before_allocation` throws std::bad_alloc where a failure is due.
  void before_allocation();
  void after_allocation(void* pointer, std::size_t bytes, std::size_t alignment);
  void before_deallocation(void* pointer, std::size_t bytes, std::size_t alignment) noexcept;

  [[nodiscard]] friend bool operator==(FaultControl const& a, FaultControl const& b) noexcept {
    return a.record_ == b.record_;
  }

 private:
  struct Record;
  std::shared_ptr<Record> record_;  // shared with every copy of the resource, whoever lives longer
};

template <class Upstream>
class FaultyResource {
 public:
  FaultyResource(Upstream upstream, FaultControl control)
      : upstream_(std::move(upstream)), control_(std::move(control)) {}

  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes,
                               std::size_t alignment = alignof(std::max_align_t)) {
    return watched([&] { return upstream_.allocate(stream, bytes, alignment); }, bytes, alignment);
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t bytes,
                  std::size_t alignment = alignof(std::max_align_t)) noexcept {
    control_.before_deallocation(pointer, bytes, alignment);
    upstream_.deallocate(stream, pointer, bytes, alignment);
  }
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    return watched([&] { return upstream_.allocate_sync(bytes, alignment); }, bytes, alignment);
  }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    control_.before_deallocation(pointer, bytes, alignment);
    upstream_.deallocate_sync(pointer, bytes, alignment);
  }

  [[nodiscard]] friend bool operator==(FaultyResource const& a, FaultyResource const& b) noexcept {
    return a.control_ == b.control_ && a.upstream_ == b.upstream_;
  }
  template <class Property>
    requires detail::contains_v<Property, device_accessible, host_accessible> && cuda::has_property<Upstream, Property>
  friend constexpr void get_property(FaultyResource const&, Property) noexcept {}

 private:
  template <class Allocate>
  [[nodiscard]] void* watched(Allocate const& allocate_upstream, std::size_t bytes, std::size_t alignment) {
    control_.before_allocation();
    void* const pointer = allocate_upstream();
    control_.after_allocation(pointer, bytes, alignment);
    return pointer;
  }

  Upstream upstream_;
  FaultControl control_;
};

}  // namespace earmark::testing
