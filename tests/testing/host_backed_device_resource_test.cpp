// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/host_backed_device_resource.hpp"

#include <gtest/gtest.h>

#include <rmm/device_buffer.hpp>

namespace earmark::testing {
namespace {

TEST(HostBackedDeviceResource, FeedsRmmWithoutADevice) {
  rmm::device_buffer const buffer{1000, cuda::stream_ref{cudaStream_t{}}, HostBackedDeviceResource{}};
  EXPECT_EQ(buffer.size(), 1000U);
}

}  // namespace
}  // namespace earmark::testing
