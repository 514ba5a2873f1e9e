// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What tests on a device share: a fixture that skips where there is none, streams, pinned memory, and a gate that keeps
// a stream busy until a test opens it, so that what must happen while work is pending needs no luck with time.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cuda/stream_ref>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory_cuda/kernels.hpp"

namespace earmark::testing {

inline void succeed(cudaError_t code) {
  if (code != cudaSuccess) { throw std::runtime_error(cudaGetErrorString(code)); }
}

class Stream {
 public:
  Stream() { succeed(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(Stream&& other) noexcept : stream_(other.stream_) { other.stream_ = nullptr; }
  Stream& operator=(Stream&&) = delete;
  ~Stream() { destroy(); }
  void destroy() {
    if (stream_ != nullptr) { (void)cudaStreamDestroy(stream_); }
    stream_ = nullptr;
  }
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  operator cuda::stream_ref() const { return cuda::stream_ref{stream_}; }
  void synchronize() const { succeed(cudaStreamSynchronize(stream_)); }
  [[nodiscard]] bool busy() const {
    bool const is = cudaStreamQuery(stream_) == cudaErrorNotReady;
    if (is) { (void)cudaGetLastError(); }  // nobody is to take it for an error
    return is;
  }
  // Later work here waits for all that `other` has been given.
  void wait_for(Stream const& other) const {
    cudaEvent_t event = nullptr;
    succeed(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    succeed(cudaEventRecord(event, other.get()));
    succeed(cudaStreamWaitEvent(stream_, event, 0));
    succeed(cudaEventDestroy(event));
  }

 private:
  cudaStream_t stream_{nullptr};
};

// Zeroed memory that host and device see.
template <class T>
class Pinned {
 public:
  explicit Pinned(std::size_t count = 1) : count_(count) {
    succeed(cudaHostAlloc(reinterpret_cast<void**>(&values_), count * sizeof(T), cudaHostAllocMapped));
    for (std::size_t i = 0; i < count; ++i) { values_[i] = T{}; }
  }
  ~Pinned() { (void)cudaFreeHost(values_); }
  Pinned(Pinned const&) = delete;
  Pinned& operator=(Pinned const&) = delete;
  [[nodiscard]] T* data() const { return values_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] T& operator[](std::size_t i) const { return values_[i]; }

 private:
  T* values_{nullptr};
  std::size_t count_;
};

// Keeps a stream busy from `close` to `open`, or until it gives up, which `expired` tells.
class Gate {
 public:
  // Twenty seconds at two billion cycles a second: a test that hangs ends as a failure.
  static constexpr long long patient = 40'000'000'000;

  ~Gate() { open(); }
  void close(Stream const& stream, long long most_cycles = patient) {
    flags_[0] = 0;
    enqueue_wait(&flags_[0], &flags_[1], most_cycles, stream.get());
    last_ = stream.get();
  }
  void open() {
    static_cast<int volatile&>(flags_[0]) = 1;
    // Its flags must outlive the kernel.
    if (last_ != nullptr) { (void)cudaStreamSynchronize(last_); }
    last_ = nullptr;
  }
  [[nodiscard]] bool expired() const { return static_cast<int volatile&>(flags_[1]) != 0; }

 private:
  Pinned<int> flags_{2};
  cudaStream_t last_{nullptr};
};

// Whether work of different streams really runs at the same time; tools that watch kernels may not allow it.
inline bool kernels_run_behind_the_host() {
  Stream stream;
  Gate gate;
  gate.close(stream, 400'000'000);
  bool const busy = stream.busy();
  gate.open();
  return busy && !gate.expired();
}

// Base of the tests: skips, with the reason, where there is no device.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaError_t const error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
      GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
    }
    if (devices == 0) { GTEST_SKIP() << "no GPU"; }
    load_kernels();
  }
  void TearDown() override {
    if (!IsSkipped()) { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "an error was left behind"; }
  }

  // Of integers on the device, seen by `stream`: how many are not `value`. Waits for the stream.
  static unsigned long long count_wrong(void const* values, std::size_t count, int value, Stream const& stream) {
    Pinned<unsigned long long> wrong;
    enqueue_compare(static_cast<int const*>(values), count, value, wrong.data(), stream.get());
    stream.synchronize();
    return wrong[0];
  }
};

// For tests that need a closed gate.
class OnDeviceAtOnce : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) { return; }
    if (!kernels_run_behind_the_host()) { GTEST_SKIP() << "kernels are run one at a time here"; }
  }
};

}  // namespace earmark::testing
