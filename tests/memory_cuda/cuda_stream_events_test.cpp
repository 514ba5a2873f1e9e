// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What holds with and without a device. What a device does: cuda_stream_events_on_device_test.
#include "earmark/memory_cuda/cuda_stream_events.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "earmark/core/error.hpp"
#include "earmark/memory_cuda/cuda_error.hpp"

namespace earmark {
namespace {

bool has_device() {
  int devices = 0;
  bool const has = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  (void)cudaGetLastError();
  return has;
}

TEST(CudaStreamEvents, IsMadeAndDestroyedWithoutCallingTheDevice) {
  CudaStreamEvents const events;
  EXPECT_EQ(events.event_count(), 0U);
  EXPECT_EQ(events.order(), StreamEvents::Order::ByStream);
}

TEST(CudaStreamEvents, ThrowsATypedErrorWhereThereIsNoDevice) {
  if (has_device()) { GTEST_SKIP() << "there is a device"; }
  CudaStreamEvents events;
  cuda::stream_ref const stream{cudaStream_t{}};
  try {
    (void)events.record(stream);
    FAIL() << "recorded without a device";
  }
  catch (CudaError const& error) {
    EXPECT_NE(error.code(), cudaSuccess);
    EXPECT_EQ(error.fields().tier.view(), "device");
    EXPECT_NE(std::string{error.what()}.find("cudaGetDevice"), std::string::npos) << error.what();
  }
  EXPECT_THROW(events.synchronize(stream), rmm::cuda_error);
  EXPECT_EQ(events.event_count(), 0U);
}

}  // namespace
}  // namespace earmark
