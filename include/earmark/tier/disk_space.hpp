// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Room on a disk as a memory resource, so that a disk is a tier like the others: the same adaptor over it has a limit,
// reservations, a queue to wait in, labels and reports.
//
//   DiskSpaceResource const space{files, disk, {.directory = "/data/spill"}};
//   DiskSpaceAdaptor tier{space, 100_GiB, disk_granularity};
//   DiskSpaceReservation r = tier.reserve(1_GiB);
//   void* where = r.resource().allocate_sync(64_MiB);       // an extent; a name for it, never to be dereferenced
//   auto const [file, offset] = space.extent(where);
//
// Space lies in few files without names, as extents of whole `spill_alignment` blocks. What is freed goes back to the
// file system at once, and its place is used again. Nothing is read or written here: `DiskTier` does that.
// Thread safety: any thread. Ownership: copies share the files and the spill directory, which live as long as the last
// of them; file system and disk are borrowed and outlive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "earmark/core/file_system.hpp"
#include "earmark/core/spill_disk.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory/resource_concepts.hpp"
#include "earmark/tier/spill_directory.hpp"

namespace earmark {

// The property of what lies on a disk: nobody can address it.
struct disk_space {};

namespace detail {
template <>
inline constexpr MemoryType memory_type_of<disk_space> = MemoryType::Disk;
}  // namespace detail

// What a disk tier charges by.
inline constexpr std::size_t disk_granularity = spill_alignment;

using DiskSpaceAdaptor = BasicReservationAwareResourceAdaptor<disk_space>;
using DiskSpaceReservation = BasicMemoryReservation<disk_space>;

struct DiskSpaceOptions {
  std::string directory{};  // where to spill; made where it is missing
  SpillToMemory to_memory{SpillToMemory::Refuse};
  // Of a place that is memory, where that is allowed: the tier whose memory it is. Each extent is charged there, too.
  std::optional<HostReservationAwareResourceAdaptor> memory{};
  std::size_t file_bytes{std::size_t{1} << 39};  // a further file is begun when this much is in one
};

class DiskSpaceResource {
 public:
  using default_queries = cuda::mr::properties_list<disk_space>;

  // Where an extent lies.
  struct Extent {
    SpillFile& file;
    std::int64_t offset;
  };

  // Makes the directory and the first file. Throws: SpillPlaceRefused, FileSystemError, std::invalid_argument for files
  // of less than a block, or a place in memory without a tier to charge.
  DiskSpaceResource(FileSystem& files, SpillDisk& disk, DiskSpaceOptions const& options);

  // Throws: FileSystemError when a further file is needed and cannot be made; std::bad_alloc, also for more than a
  // file.
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = spill_alignment);
  // Gives the space back to the file system. Blocks: for that.
  void deallocate_sync(void* extent, std::size_t bytes, std::size_t alignment = spill_alignment) noexcept;
  [[nodiscard]] void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment = spill_alignment) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(cuda::stream_ref, void* extent, std::size_t bytes, std::size_t alignment = spill_alignment) noexcept {
    deallocate_sync(extent, bytes, alignment);
  }

  // Requires: `extent` came from here and is not freed.
  [[nodiscard]] Extent extent(void const* extent) const noexcept;
  // Whether an extent came from here, and not from another space. Told by a mark of 16 bits in its name: a guard
  // against mix-ups, which finds all but very few. Requires: it is some space's extent.
  [[nodiscard]] bool owns(void const* extent) const noexcept;
  [[nodiscard]] SpillDirectory const& directory() const noexcept;
  [[nodiscard]] SpillDisk& disk() const noexcept;
  // Whether transfers pass by the system's cache.
  [[nodiscard]] bool direct() const noexcept;
  // Bytes in extents, rounded up to blocks.
  [[nodiscard]] std::int64_t live_bytes() const noexcept;
  [[nodiscard]] std::size_t file_count() const noexcept;

  // Equal: copies of one.
  [[nodiscard]] friend bool operator==(DiskSpaceResource const& a, DiskSpaceResource const& b) noexcept {
    return a.state_ == b.state_;
  }
  friend constexpr void get_property(DiskSpaceResource const&, disk_space) noexcept {}

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared by all copies: CCCL keeps one of its own in every adaptor
};

static_assert(cuda::mr::resource_with<DiskSpaceResource, disk_space>);
static_assert(!cuda::mr::resource_with<DiskSpaceResource, host_accessible>);
static_assert(cuda::mr::resource_with<DiskSpaceReservation::Resource, disk_space>);

}  // namespace earmark
