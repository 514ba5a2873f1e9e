// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/faulty_resource.hpp"

#include <gtest/gtest.h>

#include <new>

#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"

namespace earmark::testing {
namespace {

static_assert(cuda::mr::resource_with<FaultyResource<HostBackedDeviceResource>, host_accessible, device_accessible>);
static_assert(!cuda::mr::resource_with<FaultyResource<HostMemoryResource>, device_accessible>);

TEST(FaultyResource, FailsTheChosenAllocationOnce) {
  FaultControl faults;
  FaultyResource resource{HostMemoryResource{}, faults};
  faults.fail_allocation(1, Fails::Once);
  void* const first = resource.allocate_sync(64);
  EXPECT_THROW((void)resource.allocate_sync(64), std::bad_alloc);
  void* const second = resource.allocate_sync(64);
  EXPECT_EQ(faults.failures(), 1);
  EXPECT_EQ(faults.allocations(), 2);
  EXPECT_EQ(faults.peak_live_bytes(), 128);
  resource.deallocate_sync(first, 64);
  resource.deallocate_sync(second, 64);
  EXPECT_EQ(faults.live_bytes(), 0);
  EXPECT_EQ(faults.deallocations(), 2);
}

TEST(FaultyResource, FailsForEverUntilTold) {
  FaultControl faults;
  FaultyResource resource{HostMemoryResource{}, faults};
  faults.fail_allocation(0, Fails::Always);
  EXPECT_THROW((void)resource.allocate_sync(64), std::bad_alloc);
  EXPECT_THROW((void)resource.allocate_sync(64), std::bad_alloc);
  faults.fail_none();
  resource.deallocate_sync(resource.allocate_sync(64), 64);
  EXPECT_EQ(faults.failures(), 2);
}

TEST(FaultyResource, NoticesAFreeThatDoesNotMatchItsAllocation) {
  FaultControl faults;
  FaultyResource resource{HostMemoryResource{}, faults};
  void* const pointer = resource.allocate_sync(64, 16);
  resource.deallocate_sync(pointer, 32, 16);
  EXPECT_EQ(faults.wrong_deallocations(), 1);
  FaultyResource copy{resource};
  EXPECT_TRUE(copy == resource) << "copies share one record";
}

}  // namespace
}  // namespace earmark::testing
