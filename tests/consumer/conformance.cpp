// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A memory resource of the consumer's own, put through Earmark's conformance suite.
#include <cstddef>
#include <new>

#include <cuda/memory_resource>

#include "earmark/testing/resource_conformance.hpp"

struct OwnMemory {
  void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    return ::operator new(bytes, std::align_val_t{alignment});
  }
  void deallocate_sync(void* pointer, std::size_t, std::size_t alignment) noexcept {
    ::operator delete(pointer, std::align_val_t{alignment});
  }
  bool operator==(OwnMemory const&) const = default;
  friend constexpr void get_property(OwnMemory const&, cuda::mr::host_accessible) noexcept {}
};

using namespace earmark::testing;
struct OwnSubject : ResourceSubject {
  using Resource = OwnMemory;
  static constexpr Forms forms = Forms::SynchronousOnly;
  Resource resource() { return {}; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OwnMemory, ResourceConformance, OwnSubject);
