// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Pageable host memory as an upstream. Large blocks are mapped from the system and unmapped when freed, so that the
// process really shrinks when they go; small ones come from malloc. The upstream of choice where `--memory` bounds the
// resident size; anything else that satisfies the concept will do too.
//
//   HostReservationAwareResourceAdaptor host{HostMemoryResource{}, 512_MiB};
//
// The stream-ordered calls ignore the stream: host memory is ready at once, and must be idle when it is freed.
// Thread safety: any thread. Ownership: stateless; all instances are equal. Zero bytes are null.
#pragma once

#include <cstddef>

#include "earmark/memory/resource_concepts.hpp"

namespace earmark {

class HostMemoryResource {
 public:
  using default_queries = cuda::mr::properties_list<host_accessible>;

  // From this size on, blocks are mapped rather than taken from malloc.
  static constexpr std::size_t mapping_threshold = std::size_t{64} << 10;

  // Returns: `bytes` aligned to `alignment`. Throws: std::bad_alloc, also if that is no power of two.
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t));
  // Requires: the same `bytes` and `alignment` as when it was allocated.
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept;

  [[nodiscard]] void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(cuda::stream_ref, void* pointer, std::size_t bytes,
                  std::size_t alignment = alignof(std::max_align_t)) noexcept {
    deallocate_sync(pointer, bytes, alignment);
  }

  [[nodiscard]] friend constexpr bool operator==(HostMemoryResource const&, HostMemoryResource const&) noexcept {
    return true;
  }
  friend constexpr void get_property(HostMemoryResource const&, host_accessible) noexcept {}
};

static_assert(cuda::mr::resource_with<HostMemoryResource, host_accessible>);
static_assert(!cuda::mr::resource_with<HostMemoryResource, device_accessible>);

}  // namespace earmark
