// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What any memory resource must keep, as a googletest suite: sizes and alignments, zero bytes, both forms of the calls,
// copies, equality, moves, properties, refusals, failing upstreams, frees on other threads, many threads, and blocks
// that outlive everything. A new resource adds a subject, in a test that links `earmark::conformance`:
//
//   using namespace earmark::testing;
//   struct DeviceReservation : ResourceSubject {
//     using Resource = earmark::MemoryReservation::Resource;
//     using Properties = cuda::mr::properties_list<earmark::device_accessible>;
//     static constexpr std::size_t capacity = std::size_t{8} << 20;
//     earmark::ReservationAwareResourceAdaptor adaptor{FaultyResource{HostBackedDeviceResource{}, faults}, capacity};
//     earmark::MemoryReservation reservation = adaptor.reserve(capacity);
//     Resource resource() { return reservation.resource(); }
//     std::int64_t used() { return reservation.spent(); }
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(DeviceReservation, ResourceConformance, DeviceReservation);
//
// Each check makes its own subject. `conformance_checks.hpp` has the checks themselves.
// Thread safety: of one test at a time; some checks start threads of their own.
#pragma once

#include <gtest/gtest.h>

#include "earmark/testing/conformance_checks.hpp"

namespace earmark::testing {

template <class Subject>
class ResourceConformance : public ::testing::Test {};

TYPED_TEST_SUITE_P(ResourceConformance);

TYPED_TEST_P(ResourceConformance, HasTheConceptsAndPropertiesItClaims) {
  conformance::has_the_concepts_and_properties_it_claims<TypeParam>();
}
TYPED_TEST_P(ResourceConformance, ServesEverySizeAtEveryAlignment) {
  conformance::serves_every_size_at_every_alignment<TypeParam>();
}
TYPED_TEST_P(ResourceConformance, ServesZeroBytesForNothing) {
  conformance::serves_zero_bytes_for_nothing<TypeParam>();
}
TYPED_TEST_P(ResourceConformance, RefusesAlignmentsThatAreNoPowerOfTwo) {
  if constexpr (TypeParam::odd_alignments == OddAlignments::Undefined) {
    GTEST_SKIP() << "the resource leaves them to its caller";
  } else {
    conformance::refuses_alignments_that_are_no_power_of_two<TypeParam>();
  }
}
TYPED_TEST_P(ResourceConformance, MakesEqualCopiesThatFreeEachOthersBlocks) {
  conformance::makes_equal_copies_that_free_each_others_blocks<TypeParam>();
}
TYPED_TEST_P(ResourceConformance, KeepsTheLawsOfCopyingMovingAndSwapping) {
  conformance::keeps_the_laws_of_copying_moving_and_swapping<TypeParam>();
}
TYPED_TEST_P(ResourceConformance, RefusesWhatIsAboveItsCapacityBeforeTheUpstreamIsAsked) {
  if constexpr (TypeParam::capacity == 0) {
    GTEST_SKIP() << "the resource has no bound of its own";
  } else {
    conformance::refuses_what_is_above_its_capacity_before_the_upstream_is_asked<TypeParam>();
  }
}
TYPED_TEST_P(ResourceConformance, LosesNothingWhicheverUpstreamAllocationFails) {
  conformance::loses_nothing_whichever_upstream_allocation_fails<TypeParam>();
}
TYPED_TEST_P(ResourceConformance, TakesFreesOnOtherThreads) { conformance::takes_frees_on_other_threads<TypeParam>(); }
TYPED_TEST_P(ResourceConformance, ServesManyThreadsAtOnce) { conformance::serves_many_threads_at_once<TypeParam>(); }
TYPED_TEST_P(ResourceConformance, OutlivesWhatItCameFromThroughACopy) {
  conformance::outlives_what_it_came_from_through_a_copy<TypeParam>();
}

REGISTER_TYPED_TEST_SUITE_P(ResourceConformance, HasTheConceptsAndPropertiesItClaims, ServesEverySizeAtEveryAlignment,
                            ServesZeroBytesForNothing, RefusesAlignmentsThatAreNoPowerOfTwo,
                            MakesEqualCopiesThatFreeEachOthersBlocks, KeepsTheLawsOfCopyingMovingAndSwapping,
                            RefusesWhatIsAboveItsCapacityBeforeTheUpstreamIsAsked,
                            LosesNothingWhicheverUpstreamAllocationFails, TakesFreesOnOtherThreads,
                            ServesManyThreadsAtOnce, OutlivesWhatItCameFromThroughACopy);

}  // namespace earmark::testing
