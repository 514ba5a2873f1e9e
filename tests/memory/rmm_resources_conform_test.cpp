// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// RMM's resources above and below a reservation, through the installed conformance suite.
#include <gtest/gtest.h>

#include <concepts>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/testing/faulty_resource.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"
#include "earmark/testing/resource_conformance.hpp"

namespace earmark {
namespace {

using namespace earmark::testing;

using OnDevice = cuda::mr::properties_list<device_accessible>;

// -- RMM above a reservation
// -------------------------------------------------------------------------------------------

// RMM's own synchronous calls synchronise a stream, so they need a device.
template <class Adaptor>
struct AboveReservation : ResourceSubject {
  using Resource = Adaptor;
  using Properties = OnDevice;
  static constexpr Forms forms = Forms::StreamOrderedOnly;
  static constexpr MovedFrom moved_from = MovedFrom::AssignableOnly;
  static constexpr ZeroBytes zero_bytes = ZeroBytes::ReachUpstream;
  static constexpr std::size_t largest_alignment = 256;  // RMM promises no more
  ReservationAwareResourceAdaptor ours{FaultyResource{HostBackedDeviceResource{}, faults}, 64_MiB};
  MemoryReservation reservation = ours.reserve(16_MiB);
};
struct LimitingAbove : AboveReservation<rmm::mr::limiting_resource_adaptor> {
  Resource rmm_resource{reservation, 8_MiB};
  Resource resource() { return rmm_resource; }
  std::int64_t used() { return reservation.spent(); }
};
struct StatisticsAbove : AboveReservation<rmm::mr::statistics_resource_adaptor> {
  Resource rmm_resource{reservation};
  Resource resource() { return rmm_resource; }
  std::int64_t used() { return reservation.spent() + rmm_resource.get_bytes_counter().value; }
};
struct TrackingAbove : AboveReservation<rmm::mr::tracking_resource_adaptor> {
  Resource rmm_resource{reservation};
  Resource resource() { return rmm_resource; }
  std::int64_t used() {
    return reservation.spent() + static_cast<std::int64_t>(rmm_resource.get_outstanding_allocations().size());
  }
};
struct PoolAbove : AboveReservation<rmm::mr::pool_memory_resource> {
  static constexpr FreedBytes freed_bytes = FreedBytes::AreKept;
  Resource rmm_resource{reservation, 256_KiB, 8_MiB};
  Resource resource() { return rmm_resource; }
};
struct BinningAbove : AboveReservation<rmm::mr::binning_memory_resource> {
  static constexpr FreedBytes freed_bytes = FreedBytes::AreKept;
  Resource rmm_resource{reservation, 10, 14};
  Resource resource() { return rmm_resource; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(RmmLimitingAbove, ResourceConformance, LimitingAbove);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmStatisticsAbove, ResourceConformance, StatisticsAbove);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmTrackingAbove, ResourceConformance, TrackingAbove);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmPoolAbove, ResourceConformance, PoolAbove);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmBinningAbove, ResourceConformance, BinningAbove);

// -- RMM below a reservation
// -------------------------------------------------------------------------------------------

template <class RmmResource>
struct BelowReservation : ResourceSubject {
  using Resource = MemoryReservation::Resource;
  using Properties = OnDevice;
  static constexpr Forms forms = Forms::StreamOrderedOnly;
  static constexpr std::size_t largest_alignment = 256;
  static constexpr std::size_t capacity = 4_MiB;
  RmmResource make_upstream() {
    FaultyResource host{HostBackedDeviceResource{}, faults};
    if constexpr (std::constructible_from<RmmResource, decltype(host), std::size_t>) {
      return RmmResource(host, 32_MiB);
    } else {
      return RmmResource(host);
    }
  }
  ReservationAwareResourceAdaptor adaptor{make_upstream(), 16_MiB};
  MemoryReservation reservation = adaptor.reserve(capacity);
  Resource resource() { return reservation.resource(); }
  std::int64_t used() { return reservation.spent(); }
};
struct PoolBelow : BelowReservation<rmm::mr::pool_memory_resource> {
  static constexpr FreedBytes freed_bytes = FreedBytes::AreKept;
};
using LimitingBelow = BelowReservation<rmm::mr::limiting_resource_adaptor>;
using StatisticsBelow = BelowReservation<rmm::mr::statistics_resource_adaptor>;
using TrackingBelow = BelowReservation<rmm::mr::tracking_resource_adaptor>;
INSTANTIATE_TYPED_TEST_SUITE_P(RmmLimitingBelow, ResourceConformance, LimitingBelow);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmStatisticsBelow, ResourceConformance, StatisticsBelow);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmTrackingBelow, ResourceConformance, TrackingBelow);
INSTANTIATE_TYPED_TEST_SUITE_P(RmmPoolBelow, ResourceConformance, PoolBelow);

}  // namespace
}  // namespace earmark
