// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// An upstream that is out of memory only because frees are still pending on streams is asked again when they are done.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory_cuda/cuda_stream_events.hpp"
#include "memory_cuda/on_device.hpp"

namespace earmark {
namespace {

using testing::Gate;
using testing::Stream;
using testing::succeed;

constexpr std::size_t pool_bytes = 256_MiB;

// A pool of the driver that neither grows nor makes one stream wait for another.
class SmallPool {
 public:
  SmallPool() {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {.type = cudaMemLocationTypeDevice, .id = 0};
    properties.maxSize = pool_bytes;
    succeed(cudaMemPoolCreate(&pool_, &properties));
    refuse(cudaMemPoolReuseFollowEventDependencies);
    refuse(cudaMemPoolReuseAllowInternalDependencies);
  }
  ~SmallPool() { (void)cudaMemPoolDestroy(pool_); }
  SmallPool(SmallPool const&) = delete;
  SmallPool& operator=(SmallPool const&) = delete;
  [[nodiscard]] cudaMemPool_t get() const { return pool_; }

 private:
  void refuse(cudaMemPoolAttr attribute) {
    int no = 0;
    succeed(cudaMemPoolSetAttribute(pool_, attribute, &no));
  }
  cudaMemPool_t pool_{nullptr};
};

// Opens a gate when someone starts to wait for a stream, so that the test needs no other thread.
class OpeningEvents final : public StreamEvents {
 public:
  explicit OpeningEvents(Gate& gate) : gate_(gate) {}
  [[nodiscard]] EventHandle record(cuda::stream_ref stream) override { return events_.record(stream); }
  void record_again(EventHandle mark, cuda::stream_ref stream) noexcept override { events_.record_again(mark, stream); }
  void wait(cuda::stream_ref stream, EventHandle mark) override { events_.wait(stream, mark); }
  [[nodiscard]] bool passed(EventHandle mark) override { return events_.passed(mark); }
  void release(EventHandle mark) noexcept override { events_.release(mark); }
  void synchronize(cuda::stream_ref stream) override {
    ++waits_;
    gate_.open();
    events_.synchronize(stream);
  }
  void synchronize(EventHandle mark) override {
    ++waits_;
    gate_.open();
    events_.synchronize(mark);
  }
  void synchronize_all() override {
    ++waits_;
    gate_.open();
    events_.synchronize_all();
  }
  [[nodiscard]] int waits() const { return waits_; }

 private:
  Gate& gate_;
  CudaStreamEvents events_;
  int waits_{0};
};

class PendingFrees : public testing::OnDeviceAtOnce {
 protected:
  void SetUp() override {
    OnDeviceAtOnce::SetUp();
    if (IsSkipped()) { return; }
    pool_.emplace();
    gate_.emplace();
    events_.emplace(*gate_);
    adaptor_.emplace(rmm::mr::cuda_async_view_memory_resource{pool_->get()}, 4 * pool_bytes,
                     AdaptorOptions{.events = &*events_});
  }

  std::optional<SmallPool> pool_;
  std::optional<Gate> gate_;
  std::optional<OpeningEvents> events_;
  std::optional<ReservationAwareResourceAdaptor> adaptor_;
};

TEST_F(PendingFrees, AreWaitedForBeforeTheUpstreamIsCalledOutOfMemory) {
  Stream const slow;
  Stream const other;
  MemoryReservation reservation = adaptor_->reserve(2 * pool_bytes);
  {
    rmm::device_buffer const buffer{pool_bytes * 3 / 4, slow, reservation};
    gate_->close(slow);
  }
  EXPECT_TRUE(slow.busy());
  rmm::device_buffer const next{pool_bytes * 3 / 4, other, reservation};
  EXPECT_GE(events_->waits(), 1);
  EXPECT_FALSE(gate_->expired());
  other.synchronize();
}

TEST_F(PendingFrees, AreNotWaitedForWhereThereAreNone) {
  Stream const stream;
  MemoryReservation reservation = adaptor_->reserve(2 * pool_bytes);
  rmm::device_buffer const buffer{pool_bytes * 3 / 4, stream, reservation};
  EXPECT_THROW((rmm::device_buffer{pool_bytes * 3 / 4, stream, reservation}), UpstreamOutOfMemory);
  EXPECT_EQ(events_->waits(), 0);
  EXPECT_EQ(reservation.spent(), static_cast<std::int64_t>(pool_bytes * 3 / 4));
}

}  // namespace
}  // namespace earmark
