// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Host memory that *claims* to be reachable from devices, so that RMM's containers can be fed without a GPU. The claim
// is false: nothing may be launched on these bytes. For tests only.
// Thread safety: any thread. Ownership: stateless; all instances are equal.
#pragma once

#include <cstddef>

#include "earmark/memory/host_memory_resource.hpp"

namespace earmark::testing {

class HostBackedDeviceResource {
 public:
  using default_queries = cuda::mr::properties_list<device_accessible>;

  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    return host_.allocate_sync(bytes, alignment);
  }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    host_.deallocate_sync(pointer, bytes, alignment);
  }
  [[nodiscard]] void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(cuda::stream_ref, void* pointer, std::size_t bytes,
                  std::size_t alignment = alignof(std::max_align_t)) noexcept {
    deallocate_sync(pointer, bytes, alignment);
  }

  [[nodiscard]] friend constexpr bool operator==(HostBackedDeviceResource const&,
                                                 HostBackedDeviceResource const&) noexcept {
    return true;
  }
  friend constexpr void get_property(HostBackedDeviceResource const&, device_accessible) noexcept {}
  friend constexpr void get_property(HostBackedDeviceResource const&, host_accessible) noexcept {}

 private:
  HostMemoryResource host_;
};

static_assert(cuda::mr::resource_with<HostBackedDeviceResource, host_accessible, device_accessible>);

}  // namespace earmark::testing
