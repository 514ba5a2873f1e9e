// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Every resource of this floor, and its doors, through the installed conformance suite.
#include <gtest/gtest.h>

#include <memory>
#include <memory_resource>
#include <optional>
#include <rmm/mr/per_device_resource.hpp>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/pmr_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory/reservation_scope.hpp"
#include "earmark/testing/faulty_resource.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"
#include "earmark/testing/resource_conformance.hpp"

namespace earmark {
namespace {

using namespace earmark::testing;

using OnDevice = cuda::mr::properties_list<device_accessible>;
using OnBoth = cuda::mr::properties_list<host_accessible, device_accessible>;
using OnHost = cuda::mr::properties_list<host_accessible>;

// -- the resources themselves
// ------------------------------------------------------------------------------------------

struct HostMemory : ResourceSubject {
  using Resource = HostMemoryResource;
  using Properties = OnHost;
  static constexpr OddAlignments odd_alignments = OddAlignments::Refused;
  Resource resource() { return {}; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(HostMemory, ResourceConformance, HostMemory);

template <class Reservation, class Upstream, class ExpectedProperties>
struct OfReservation : ResourceSubject {
  using Resource = typename Reservation::Resource;
  using Properties = ExpectedProperties;
  static constexpr std::size_t capacity = 4_MiB;
  static constexpr OddAlignments odd_alignments = OddAlignments::Refused;
  typename Reservation::Adaptor adaptor{FaultyResource{Upstream{}, faults}, 16_MiB};
  Reservation reservation = adaptor.reserve(capacity);
  Resource resource() { return reservation.resource(); }
  std::int64_t used() { return reservation.spent(); }
};
using DeviceReservation = OfReservation<MemoryReservation, HostBackedDeviceResource, OnDevice>;
using PinnedReservation = OfReservation<PinnedMemoryReservation, HostBackedDeviceResource, OnBoth>;
using HostReservation = OfReservation<HostMemoryReservation, HostMemoryResource, OnHost>;
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceReservation, ResourceConformance, DeviceReservation);
INSTANTIATE_TYPED_TEST_SUITE_P(PinnedReservation, ResourceConformance, PinnedReservation);
INSTANTIATE_TYPED_TEST_SUITE_P(HostReservation, ResourceConformance, HostReservation);

struct GrowingReservation : DeviceReservation {
  GrowingReservation() {
    adaptor.set_limit(capacity);
    reservation = adaptor.reserve(0, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(GrowingReservation, ResourceConformance, GrowingReservation);

struct PreallocatedReservation : HostReservation {
  static constexpr FreedBytes freed_bytes = FreedBytes::AreKept;
  PreallocatedReservation() { reservation = adaptor.reserve(capacity, {.backing = Backing::Preallocated}); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PreallocatedReservation, ResourceConformance, PreallocatedReservation);

template <class Adaptor, class Upstream, class ExpectedProperties>
struct OfAdaptor : ResourceSubject {
  using Resource = Adaptor;
  using Properties = ExpectedProperties;
  static constexpr std::size_t capacity = 4_MiB;
  static constexpr OddAlignments odd_alignments = OddAlignments::Refused;
  Adaptor adaptor{FaultyResource{Upstream{}, faults}, capacity};
  Resource resource() { return adaptor; }
  std::int64_t used() { return adaptor.committed(); }
};
using DeviceAdaptor = OfAdaptor<ReservationAwareResourceAdaptor, HostBackedDeviceResource, OnDevice>;
using HostAdaptor = OfAdaptor<HostReservationAwareResourceAdaptor, HostMemoryResource, OnHost>;
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceAdaptor, ResourceConformance, DeviceAdaptor);
INSTANTIATE_TYPED_TEST_SUITE_P(HostAdaptor, ResourceConformance, HostAdaptor);

struct NestedAdaptor : ResourceSubject {
  using Resource = ReservationAwareResourceAdaptor;
  using Properties = OnDevice;
  static constexpr std::size_t capacity = 4_MiB;
  ReservationAwareResourceAdaptor outer{FaultyResource{HostBackedDeviceResource{}, faults}, 16_MiB};
  MemoryReservation query = outer.reserve(capacity);
  ReservationAwareResourceAdaptor inner{query, 8_MiB};
  Resource resource() { return inner; }
  std::int64_t used() { return query.spent(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(NestedAdaptor, ResourceConformance, NestedAdaptor);

// -- the doors
// ---------------------------------------------------------------------------------------------------------

// The standard's resources in the suite's form. Copies share the door, which containers would point at.
struct AnyPmr {
  std::shared_ptr<std::pmr::memory_resource> door;
  void* allocate_sync(std::size_t bytes, std::size_t alignment) { return door->allocate(bytes, alignment); }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment) noexcept {
    door->deallocate(pointer, bytes, alignment);
  }
  AnyPmr(std::shared_ptr<std::pmr::memory_resource> resource) : door(std::move(resource)) {}
  bool operator==(AnyPmr const& other) const { return *door == *other.door; }
  [[maybe_unused]] friend constexpr void get_property(AnyPmr const&, host_accessible) noexcept {}
};
struct PmrDoor : ResourceSubject {
  using Resource = AnyPmr;
  static constexpr std::size_t capacity = 4_MiB;
  static constexpr Forms forms = Forms::SynchronousOnly;
  static constexpr MovedFrom moved_from = MovedFrom::AssignableOnly;  // the wrapper's, not the door's
  HostReservationAwareResourceAdaptor adaptor{FaultyResource{HostMemoryResource{}, faults}, 16_MiB};
  HostMemoryReservation reservation = adaptor.reserve(capacity);
  Resource resource() { return AnyPmr{std::make_shared<PmrMemoryResource>(reservation)}; }
  std::int64_t used() { return reservation.spent(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PmrDoor, ResourceConformance, PmrDoor);

// The dispatcher as a library sees it: whatever RMM says is current.
struct OfDispatcher : ResourceSubject {
  using Resource = cuda::mr::any_resource<device_accessible>;
  static constexpr MovedFrom moved_from = MovedFrom::AssignableOnly;
  rmm::cuda_device_id device = rmm::get_current_cuda_device();
  Resource former = rmm::mr::set_per_device_resource(device, FaultyResource{HostBackedDeviceResource{}, faults});
  std::optional<ScopeDispatcher> dispatcher{install_scope_dispatcher(device)};
  ~OfDispatcher() {
    dispatcher.reset();
    rmm::mr::set_per_device_resource(device, former);
  }
  Resource resource() { return Resource{rmm::mr::get_current_device_resource_ref()}; }
};
struct OutsideAScope : OfDispatcher {
  static constexpr ZeroBytes zero_bytes = ZeroBytes::ReachUpstream;
};
INSTANTIATE_TYPED_TEST_SUITE_P(OutsideAScope, ResourceConformance, OutsideAScope);

struct InsideAScope : OfDispatcher {
  static constexpr ZeroBytes zero_bytes = ZeroBytes::ReachUpstream;
  static constexpr std::size_t capacity = 4_MiB;
  ReservationAwareResourceAdaptor adaptor{FaultyResource{HostBackedDeviceResource{}, faults}, 16_MiB};
  MemoryReservation reservation = adaptor.reserve(capacity);
  ReservationScope scope{reservation};
  std::int64_t used() { return reservation.spent(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(InsideAScope, ResourceConformance, InsideAScope);

}  // namespace
}  // namespace earmark
