// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What most tests of this floor stand on: an adaptor over host memory that claims to be a device's, watched by a
// FaultControl that can make it fail and knows what is live.
#pragma once

#include <cstddef>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/testing/faulty_resource.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"

namespace earmark {

struct WatchedDevice {
  testing::FaultControl faults;
  ReservationAwareResourceAdaptor adaptor;
  explicit WatchedDevice(std::size_t limit, AdaptorOptions const& options = {})
      : adaptor(testing::FaultyResource{testing::HostBackedDeviceResource{}, faults}, limit, options) {}
};

struct WatchedHost {
  testing::FaultControl faults;
  HostReservationAwareResourceAdaptor adaptor;
  explicit WatchedHost(std::size_t limit, AdaptorOptions const& options = {})
      : adaptor(testing::FaultyResource{HostMemoryResource{}, faults}, limit, options) {}
};

// RMM's containers name a stream; without a device only the default one can be named, and it is never synchronised.
inline cuda::stream_ref default_stream() { return cuda::stream_ref{cudaStream_t{}}; }

}  // namespace earmark
