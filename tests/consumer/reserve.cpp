// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A reservation over a host resource of the consumer's own, drawn down by RMM buffers; no GPU is needed.
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <new>

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <rmm/device_buffer.hpp>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/table/partition.hpp"

// RMM asks for memory that devices can reach. Host memory is not; no device is used here.
struct HostMemory {
  void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    return ::operator new(bytes, std::align_val_t{alignment});
  }
  void deallocate_sync(void* pointer, std::size_t, std::size_t alignment) noexcept {
    ::operator delete(pointer, std::align_val_t{alignment});
  }
  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment) { return allocate_sync(bytes, alignment); }
  void deallocate(cuda::stream_ref, void* pointer, std::size_t bytes, std::size_t alignment) noexcept {
    deallocate_sync(pointer, bytes, alignment);
  }
  bool operator==(HostMemory const&) const = default;
  friend constexpr void get_property(HostMemory const&, cuda::mr::host_accessible) noexcept {}
  friend constexpr void get_property(HostMemory const&, cuda::mr::device_accessible) noexcept {}
};

int main() {
  using namespace earmark::literals;
  cuda::stream_ref const stream{cudaStream_t{}};
  earmark::ReservationAwareResourceAdaptor adaptor{HostMemory{}, 1_MiB};
  earmark::MemoryReservation reservation = adaptor.reserve(2_KiB);
  {
    rmm::device_buffer const first{1024, stream, reservation};
    rmm::device_buffer const second{1024, stream, reservation};
    try {
      rmm::device_buffer const third{1024, stream, reservation};
      return EXIT_FAILURE;
    }
    catch (rmm::out_of_memory const& error) {
      std::cout << "refused: " << error.what() << '\n';
    }
  }
  rmm::device_buffer const whole{2_KiB, stream, reservation};
  return earmark::PartitionFunction(64)(earmark::hash_value(42)) < 64 ? EXIT_SUCCESS : EXIT_FAILURE;
}
