// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/host_memory_resource.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "earmark/core/bytes.hpp"
#include "earmark/core/resident_memory.hpp"

namespace earmark {
namespace {

TEST(HostMemoryResource, HonoursSizeAndAlignmentOnBothSidesOfTheMappingThreshold) {
  HostMemoryResource host;
  std::size_t const threshold = HostMemoryResource::mapping_threshold;
  for (std::size_t bytes : {std::size_t{1}, std::size_t{63}, threshold - 1, threshold, threshold + 1}) {
    for (std::size_t alignment :
         {std::size_t{1}, std::size_t{8}, std::size_t{64}, std::size_t{4096}, std::size_t{1} << 21}) {
      void* const pointer = host.allocate_sync(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % alignment, 0U) << bytes << " at " << alignment;
      std::memset(pointer, 0xab, bytes);
      host.deallocate_sync(pointer, bytes, alignment);
    }
  }
}

TEST(HostMemoryResource, ReportsWhatTheSystemCannotGive) {
  HostMemoryResource host;
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 4095, std::size_t{1} << 63, std::size_t{1} << 60}) {
    EXPECT_THROW((void)host.allocate_sync(bytes, 64), std::bad_alloc) << bytes;
    EXPECT_THROW((void)host.allocate_sync(bytes, std::size_t{1} << 21), std::bad_alloc) << bytes;
  }
}

TEST(HostMemoryResource, GivesLargeBlocksBackToTheSystemWhenTheyAreFreed) {
  HostMemoryResource host;
  ProcResidentMemory resident;
  std::int64_t const before = resident.current_bytes();
  void* const pointer = host.allocate_sync(64_MiB, 64);
  std::memset(pointer, 1, 64_MiB);
  EXPECT_GE(resident.current_bytes(), before + static_cast<std::int64_t>(56_MiB));
  host.deallocate_sync(pointer, 64_MiB, 64);
  EXPECT_LE(resident.current_bytes(), before + static_cast<std::int64_t>(8_MiB));
}

TEST(HostMemoryResource, ServesZeroBytesAsNull) {
  HostMemoryResource host;
  EXPECT_EQ(host.allocate_sync(0, 64), nullptr);
  host.deallocate_sync(nullptr, 0, 64);
}

}  // namespace
}  // namespace earmark
