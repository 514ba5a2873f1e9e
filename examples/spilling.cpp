// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// More data than memory: buffers that nobody uses go to a disk when somebody waits for memory, and come back when they
// are used again.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/tier/buffer_resource.hpp"
#include "earmark/tier/posix_spill_disk.hpp"
#include "earmark/tier/spill_manager.hpp"
#include "earmark/tier/spillable_buffer.hpp"

using namespace earmark;

namespace {

std::string a_directory() { return (std::filesystem::current_path() / "earmark-example").string(); }

}  // namespace

int main() {
  cuda::stream_ref const stream{cudaStream_t{}};  // of a program without a GPU

  // What everything stands on: threads, the disk, a directory on it.
  ThreadPool pool{2};
  PosixFileSystem files;
  PosixSpillDisk disk{pool};
  DiskTier const disk_tier{files, disk, {.space = {.directory = a_directory()}, .limit = 1_GiB}};

  // The tiers, and somebody who makes room in one of them.
  HostReservationAwareResourceAdaptor const host{HostMemoryResource{}, 16_MiB};
  BufferResource buffers{{.host = host, .disk = disk_tier, .bounces = {.count = 2}}};
  ThreadPool spillers{2};  // for nothing else: they must never wait for host memory themselves
  SpillManager spills{buffers, MemoryType::Host, spillers};

  // Twelve buffers of 2 MiB; 14 MiB are left beside the bounce buffers.
  std::vector<std::shared_ptr<SpillableBuffer>> columns;
  std::vector<SpillRegistration> registrations;
  for (int i = 0; i < 12; ++i) {
    HostMemoryReservation room = buffers.host().reserve_blocking(2_MiB, {.label = "column"});
    Buffer buffer = buffers.allocate(2_MiB, stream, room);
    std::memset(buffer.data(), i, buffer.size());
    room.close();  // from here on, what the buffer gives up goes to whoever waits
    columns.push_back(SpillableBuffer::make(buffers, std::move(buffer), stream, {.waker = spills.waker()}));
    registrations.push_back(spills.add(columns.back(), {.distance = 12 - i}));
  }

  // Each comes back when it is used; others make room for it.
  for (std::size_t i = 0; i < columns.size(); ++i) {
    HostMemoryReservation room = buffers.host().reserve_blocking(columns[i]->size(), {.label = "column"});
    SpillableBuffer::Use const use = columns[i]->use(Access::Read, stream, room);
    if (use.data()[0] != static_cast<std::byte>(i)) { return EXIT_FAILURE; }
    room.close();
  }

  // What is asked for is never more than there is.
  std::cout << "most host memory committed: " << format_bytes(buffers.host().peak_committed()) << " of "
            << format_bytes(buffers.host().limit()) << '\n';
  std::cout << "spilled through " << to_string(disk.method()) << ": " << (spills.statistics().spills > 0 ? "yes" : "no")
            << '\n';
  return buffers.host().peak_committed() <= buffers.host().limit() ? EXIT_SUCCESS : EXIT_FAILURE;
}
