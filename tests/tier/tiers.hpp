// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// All tiers that a test can have without a GPU: a device and pinned memory that are host memory underneath, whose
// copies are ordered by events moved by hand; a host; and a disk that can be made to fail. Thread safety: the parts'.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "core/temporary_folder.hpp"
#include "earmark/core/bytes.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/testing/faulty_resource.hpp"
#include "earmark/testing/faulty_spill_disk.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"
#include "earmark/testing/manual_stream_events.hpp"
#include "earmark/tier/buffer_resource.hpp"
#include "earmark/tier/posix_spill_disk.hpp"
#include "tier/pages.hpp"

namespace earmark {

// Copies at once, and counts what it copied.
class ManualCopier final : public MemoryCopier {
 public:
  explicit ManualCopier(testing::ManualStreamEvents& events) : events_(events) {}
  void copy(std::byte* to, std::byte const* from, std::size_t bytes, cuda::stream_ref stream) override {
    if (copies == fail_at) { throw std::runtime_error("the device is gone"); }
    ++copies;
    if (bytes != 0) { std::memcpy(to, from, bytes); }
    last = events_.enqueue(stream);
  }
  StreamEvents& events() noexcept override { return events_; }

  int copies{0};
  int fail_at{-1};
  testing::ManualStreamEvents::Work last{};

 private:
  testing::ManualStreamEvents& events_;
};

struct Tiers {
  static constexpr std::size_t limit = 1_MiB;
  static constexpr std::size_t block = 16_KiB;

  TemporaryFolder folder{std::filesystem::current_path()};
  PosixFileSystem files;
  ThreadPool pool{2};
  PosixSpillDisk real_disk{pool};
  testing::FaultySpillDisk disk{real_disk};
  testing::ManualStreamEvents events;
  ManualCopier copier{events};
  HostReservationAwareResourceAdaptor host{HostMemoryResource{}, limit};
  PinnedReservationAwareResourceAdaptor pinned{testing::HostBackedDeviceResource{}, limit};
  ReservationAwareResourceAdaptor device{testing::HostBackedDeviceResource{}, limit, {.events = &events}};
  DiskTier disk_tier{files, disk, {.space = {.directory = folder.path()}, .limit = limit, .block_bytes = block}};
  BufferResource buffers{{.host = host,
                          .disk = disk_tier,
                          .pinned = pinned,
                          .device = device,
                          .bounces = {.count = 2, .bytes = block},
                          .device_copier = &copier,
                          .events = &events}};
  cuda::stream_ref stream = testing::ManualStreamEvents::stream(1);
};

}  // namespace earmark
