// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_cuda/kernels.hpp"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace earmark::testing {
namespace {

constexpr unsigned block_size = 256;
constexpr unsigned most_blocks = 1024;

__global__ void fill(int* values, std::size_t count, int value) {
  std::size_t const step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) { values[i] = value; }
}

__global__ void compare(int const* values, std::size_t count, int value, unsigned long long* wrong) {
  std::size_t const step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    if (values[i] != value) { atomicAdd(wrong, 1ULL); }
  }
}

__global__ void wait_until_open(int const volatile* open, int volatile* expired, long long most_cycles) {
  long long const begin = clock64();
  while (*open == 0) {
    if (clock64() - begin > most_cycles) {
      *expired = 1;
      return;
    }
    __nanosleep(1000);
  }
}

unsigned blocks_for(std::size_t count) {
  std::size_t const blocks = (count + block_size - 1) / block_size;
  return blocks == 0 ? 1U : static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

void check(cudaError_t code) {
  if (code != cudaSuccess) { throw std::runtime_error(std::string{"kernel: "} + cudaGetErrorString(code)); }
}

template <class Kernel>
void load(Kernel kernel) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel));
}

}  // namespace

void enqueue_fill(int* values, std::size_t count, int value, cudaStream_t stream) {
  fill<<<blocks_for(count), block_size, 0, stream>>>(values, count, value);
  check(cudaGetLastError());
}

void enqueue_compare(int const* values, std::size_t count, int value, unsigned long long* wrong, cudaStream_t stream) {
  compare<<<blocks_for(count), block_size, 0, stream>>>(values, count, value, wrong);
  check(cudaGetLastError());
}

void enqueue_wait(int const volatile* open, int volatile* expired, long long most_cycles, cudaStream_t stream) {
  wait_until_open<<<1, 1, 0, stream>>>(open, expired, most_cycles);
  check(cudaGetLastError());
}

void load_kernels() {
  load(fill);
  load(compare);
  load(wait_until_open);
}

}  // namespace earmark::testing
