// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory headers under nvcc, and a reservation of a GPU's memory in use by a kernel. Skips where there is no GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/account.hpp"
#include "earmark/memory/budget.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/ledger.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory/memory_type.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory/reservation_block.hpp"
#include "earmark/memory/reservation_options.hpp"
#include "earmark/memory/reservation_resource.hpp"
#include "earmark/memory/resource_concepts.hpp"

namespace earmark {
namespace {

constexpr int block_size = 128;

__global__ void fill_with_index(int* values, int count) {
  int const i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) { values[i] = i; }
}

void launch_fill(int* values, int count, cudaStream_t stream) {
  fill_with_index<<<(count + block_size - 1) / block_size, block_size, 0, stream>>>(values, count);
}

std::vector<int> copied_to_host(int const* values, int count, cudaStream_t stream) {
  std::vector<int> result(static_cast<std::size_t>(count));
  EXPECT_EQ(cudaMemcpyAsync(result.data(), values, result.size() * sizeof(int), cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  return result;
}

std::vector<int> indices(int count) {
  std::vector<int> result;
  for (int i = 0; i < count; ++i) { result.push_back(i); }
  return result;
}

class ReservationOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaError_t const error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
      GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
    }
    if (devices == 0) { GTEST_SKIP() << "no GPU"; }
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ != nullptr) { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  }

  cudaStream_t stream_{nullptr};
};

TEST_F(ReservationOnDevice, PaysForAVectorThatAKernelFills) {
  constexpr int count = 1000;
  ReservationAwareResourceAdaptor adaptor{rmm::mr::cuda_async_memory_resource{}, 1_MiB};
  MemoryReservation reservation = adaptor.reserve(8_KiB);
  {
    rmm::device_uvector<int> values{count, cuda::stream_ref{stream_}, reservation};
    EXPECT_GE(reservation.spent(), static_cast<std::int64_t>(count * sizeof(int)));
    launch_fill(values.data(), count, stream_);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(copied_to_host(values.data(), count, stream_), indices(count));
  }
  EXPECT_EQ(reservation.spent(), 0);
}

TEST_F(ReservationOnDevice, MayEndBeforeTheBufferThatAKernelFills) {
  constexpr int count = 1000;
  ReservationAwareResourceAdaptor adaptor{rmm::mr::cuda_async_memory_resource{}, 1_MiB};
  auto const allocate = [&] {
    MemoryReservation const reservation = adaptor.reserve(8_KiB);
    return rmm::device_buffer{count * sizeof(int), cuda::stream_ref{stream_}, reservation};
  };
  rmm::device_buffer buffer = allocate();
  launch_fill(static_cast<int*>(buffer.data()), count, stream_);
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(copied_to_host(static_cast<int const*>(buffer.data()), count, stream_), indices(count));
}

TEST_F(ReservationOnDevice, RefusesABufferBeyondItsBalance) {
  ReservationAwareResourceAdaptor adaptor{rmm::mr::cuda_async_memory_resource{}, 1_MiB};
  MemoryReservation reservation = adaptor.reserve(4_KiB);
  EXPECT_THROW((rmm::device_buffer{8_KiB, cuda::stream_ref{stream_}, reservation}), ReservationExhausted);
  EXPECT_EQ(reservation.spent(), 0);
}

}  // namespace
}  // namespace earmark
