// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Upstreams that do nothing, so that what is measured is the accounting alone; and pairs of allocate and deallocate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "earmark/core/spin_lock.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/resource_concepts.hpp"

namespace earmark::bench {

using Reference = cuda::mr::resource_ref<device_accessible>;
using AnyResource = cuda::mr::any_resource<device_accessible>;

// Hands out one address a thread, which nobody may look at: RMM's tracking adaptor wants live ones to differ.
class NoUpstream {
 public:
  void* allocate(cuda::stream_ref, std::size_t, std::size_t) { return address(); }
  void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t) noexcept {}
  void* allocate_sync(std::size_t, std::size_t) { return address(); }
  void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
  bool operator==(NoUpstream const&) const { return true; }
  friend constexpr void get_property(NoUpstream const&, device_accessible) noexcept {}

 private:
  static void* address() {
    static std::atomic<std::uintptr_t> threads{0};
    thread_local std::uintptr_t const mine = (threads.fetch_add(1) + 1) << 24;
    return reinterpret_cast<void*>(mine);
  }
};

// The ceiling: a resource that adds and subtracts on one atomic and checks nothing.
class OneAtomic {
 public:
  explicit OneAtomic(AnyResource upstream) : state_(std::make_shared<State>(std::move(upstream))) {}
  void* allocate(cuda::stream_ref stream, std::size_t size, std::size_t alignment) {
    state_->bytes.fetch_add(static_cast<std::int64_t>(size));
    return state_->upstream.allocate(stream, size, alignment);
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t size, std::size_t alignment) noexcept {
    state_->upstream.deallocate(stream, pointer, size, alignment);
    state_->bytes.fetch_sub(static_cast<std::int64_t>(size));
  }
  void* allocate_sync(std::size_t size, std::size_t alignment) {
    return state_->upstream.allocate_sync(size, alignment);
  }
  void deallocate_sync(void* pointer, std::size_t size, std::size_t alignment) noexcept {
    state_->upstream.deallocate_sync(pointer, size, alignment);
  }
  bool operator==(OneAtomic const& other) const { return state_ == other.state_; }
  friend constexpr void get_property(OneAtomic const&, device_accessible) noexcept {}

 private:
  struct alignas(128) State {
    explicit State(AnyResource u) : upstream(std::move(u)) {}
    AnyResource upstream;
    alignas(128) std::atomic<std::int64_t> bytes{0};
  };
  std::shared_ptr<State> state_;  // shared: CCCL copies resources
};

// The ceiling of what is guarded by a lock: takes one for each call, and gives out addresses that are not used yet.
class OneLock {
 public:
  void* allocate(cuda::stream_ref, std::size_t size, std::size_t) { return allocate_sync(size, 0); }
  void deallocate(cuda::stream_ref, void*, std::size_t size, std::size_t) noexcept {
    deallocate_sync(nullptr, size, 0);
  }
  void* allocate_sync(std::size_t size, std::size_t) {
    BasicMutexLock<SpinLock> const lock{state_->lock};
    state_->live += size;
    return reinterpret_cast<void*>(state_->next += size);
  }
  void deallocate_sync(void*, std::size_t size, std::size_t) noexcept {
    BasicMutexLock<SpinLock> const lock{state_->lock};
    state_->live -= size;
  }
  bool operator==(OneLock const& other) const { return state_ == other.state_; }
  friend constexpr void get_property(OneLock const&, device_accessible) noexcept {}

 private:
  struct alignas(128) State {
    SpinLock lock;
    std::uintptr_t next EARMARK_GUARDED_BY(lock){1 << 20};
    std::size_t live EARMARK_GUARDED_BY(lock){0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // shared: CCCL copies resources
};

// A stream a thread; only a name, for upstreams that do not look at it.
inline cuda::stream_ref stream_of(int thread) {
  return cuda::stream_ref{reinterpret_cast<cudaStream_t>(static_cast<std::uintptr_t>(thread) + 16)};
}

inline void allocate_and_free(Reference resource, cuda::stream_ref stream, std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i) {
    void* pointer = resource.allocate(stream, 1024, 256);
    asm volatile("" : "+r"(pointer));  // the pair must not be optimised away
    resource.deallocate(stream, pointer, 1024, 256);
  }
}

}  // namespace earmark::bench
