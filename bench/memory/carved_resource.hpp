// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A carved block as a resource by itself, without a reservation around it: what carving alone costs. Over whatever
// block and marks it is given: made-up addresses here, device memory and CUDA events where there is a device.
// Thread safety: any thread. Ownership: copies share the carved block, which borrows memory and marks.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "earmark/memory/carved_block.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {

class CarvedResource {
 public:
  CarvedResource(std::span<std::byte> block, StreamEvents& events)
      : carved_(std::make_shared<detail::CarvedBlock>(block, 256, events)) {}

  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment) {
    return checked(carved_->try_allocate(bytes, alignment, stream));
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t, std::size_t) noexcept {
    carved_->deallocate(pointer, stream);
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    return checked(carved_->try_allocate_sync(bytes, alignment));
  }
  void deallocate_sync(void* pointer, std::size_t, std::size_t) noexcept { carved_->deallocate_sync(pointer); }
  bool operator==(CarvedResource const& other) const { return carved_ == other.carved_; }
  friend constexpr void get_property(CarvedResource const&, device_accessible) noexcept {}

 private:
  static void* checked(void* pointer) {
    if (pointer == nullptr) { throw std::bad_alloc{}; }
    return pointer;
  }

  std::shared_ptr<detail::CarvedBlock> carved_;  // shared: CCCL copies resources
};

}  // namespace earmark::bench
