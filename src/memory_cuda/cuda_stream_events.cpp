// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory_cuda/cuda_stream_events.hpp"

#include <cuda_runtime_api.h>

#include "earmark/memory_cuda/cuda_error.hpp"

namespace earmark {
namespace {

// Whether the process is ending and has no driver any more: whatever ran on a device no longer does.
bool driver_has_gone(cudaError_t code) noexcept {
  return code == cudaErrorCudartUnloading || code == cudaErrorContextIsDestroyed;
}

// CUDA remembers a failure for whoever next asks for the last error; one that was dealt with here is no news to them.
cudaError_t dealt_with(cudaError_t code) noexcept {
  if (code != cudaSuccess) { (void)cudaGetLastError(); }
  return code;
}

void check(char const* call, cudaError_t code) {
  if (dealt_with(code) != cudaSuccess && !driver_has_gone(code)) { throw CudaError(call, code); }
}

// Makes a device current, and the one before again.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check("cudaGetDevice", cudaGetDevice(&before_));
    if (device != before_) { check("cudaSetDevice", cudaSetDevice(device)); }
  }
  ~CurrentDevice() { (void)dealt_with(cudaSetDevice(before_)); }
  CurrentDevice(CurrentDevice const&) = delete;
  CurrentDevice& operator=(CurrentDevice const&) = delete;

 private:
  int before_{0};
};

// The default streams are the current device's.
int device_of(cuda::stream_ref stream) {
  cudaStream_t const handle = stream.get();
  int device = 0;
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    check("cudaGetDevice", cudaGetDevice(&device));
  } else {
    check("cudaStreamGetDevice", cudaStreamGetDevice(handle, &device));
  }
  return device;
}

cudaEvent_t create_event(int device) {
  CurrentDevice const current{device};
  cudaEvent_t event = nullptr;
  // Timing would cost every record; blocking: a thread that waits sleeps.
  check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync));
  return event;
}

}  // namespace

CudaStreamEvents::~CudaStreamEvents() {
  for (Mark const& mark : marks_) { (void)dealt_with(cudaEventDestroy(mark.event)); }
}

EventHandle CudaStreamEvents::record(cuda::stream_ref stream) {
  Mark& mark = take(device_of(stream));
  EventHandle const handle{reinterpret_cast<std::uintptr_t>(&mark)};
  try {
    check("cudaEventRecord", cudaEventRecord(mark.event, stream.get()));
  }
  catch (...) {
    release(handle);
    throw;
  }
  return handle;
}

void CudaStreamEvents::record_again(EventHandle mark, cuda::stream_ref stream) noexcept {
  (void)dealt_with(cudaEventRecord(mark_of(mark).event, stream.get()));
}

void CudaStreamEvents::wait(cuda::stream_ref stream, EventHandle mark) {
  check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream.get(), mark_of(mark).event, cudaEventWaitDefault));
}

bool CudaStreamEvents::passed(EventHandle mark) {
  cudaError_t const code = dealt_with(cudaEventQuery(mark_of(mark).event));
  if (code == cudaErrorNotReady) { return false; }
  check("cudaEventQuery", code);
  return true;
}

void CudaStreamEvents::release(EventHandle handle) noexcept {
  Mark& mark = mark_of(handle);
  MutexLock const lock{mutex_};
  auto& spare = spare_[static_cast<std::size_t>(mark.device)];
  mark.next_spare = spare;
  spare = &mark;
}

void CudaStreamEvents::synchronize(cuda::stream_ref stream) {
  check("cudaStreamSynchronize", cudaStreamSynchronize(stream.get()));
}

void CudaStreamEvents::synchronize(EventHandle mark) {
  check("cudaEventSynchronize", cudaEventSynchronize(mark_of(mark).event));
}

void CudaStreamEvents::synchronize_all() { check("cudaDeviceSynchronize", cudaDeviceSynchronize()); }

std::size_t CudaStreamEvents::event_count() const {
  MutexLock const lock{mutex_};
  return marks_.size();
}

CudaStreamEvents::Mark& CudaStreamEvents::mark_of(EventHandle handle) noexcept {
  return *reinterpret_cast<Mark*>(static_cast<std::uintptr_t>(handle));
}

CudaStreamEvents::Mark& CudaStreamEvents::take(int device) {
  if (Mark* const mark = try_take_spare(device)) { return *mark; }
  // Not under the lock: making an event can take long.
  cudaEvent_t const event = create_event(device);
  try {
    return keep(event, device);
  }
  catch (...) {
    (void)dealt_with(cudaEventDestroy(event));
    throw;
  }
}

CudaStreamEvents::Mark* CudaStreamEvents::try_take_spare(int device) {
  auto const index = static_cast<std::size_t>(device);
  MutexLock const lock{mutex_};
  if (index >= spare_.size()) { spare_.resize(index + 1); }  // so that releasing needs no memory
  Mark* const mark = spare_[index];
  if (mark != nullptr) { spare_[index] = mark->next_spare; }
  return mark;
}

CudaStreamEvents::Mark& CudaStreamEvents::keep(cudaEvent_t event, int device) {
  MutexLock const lock{mutex_};
  return marks_.emplace_back(Mark{event, device, nullptr});
}

}  // namespace earmark
