// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The example that Earmark began with: a limit of 1 MB, 2 KB of it set aside, and RMM buffers that draw on them. It
// needs no GPU: the memory is the host's and only claims to be a device's.
#include <cstdlib>
#include <iostream>
#include <rmm/device_buffer.hpp>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"

using namespace earmark::literals;

int main() {
  cuda::stream_ref const stream{cudaStream_t{}};
  earmark::testing::HostBackedDeviceResource upstream;

  earmark::ReservationAwareResourceAdaptor adaptor{upstream, 1_MiB};
  earmark::MemoryReservation reservation = adaptor.reserve(2_KiB);
  {
    rmm::device_buffer const a{1024, stream, reservation};
    rmm::device_buffer const b{1024, stream, reservation};
    try {
      rmm::device_buffer const c{1024, stream, reservation};
      return EXIT_FAILURE;
    }
    catch (rmm::out_of_memory const& error) {
      std::cout << error.what() << '\n';
    }
  }
  rmm::device_buffer const d{2048, stream, reservation};  // what a and b had is there again

  std::cout << adaptor.committed() << " of " << adaptor.limit() << " bytes are committed\n";
  return reservation.balance() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
