// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/disk_space.hpp"

#include <bit>
#include <map>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "extent_map.hpp"

namespace earmark {
namespace {

// An extent's name: a mark of the space, so that a name of another one is known; the file's number, from 1 on so that
// no name is null; the block in it where the extent begins.
constexpr int block_bits = 32;
constexpr int file_bits = 16;
constexpr std::size_t most_files = (std::size_t{1} << file_bits) - 1;
constexpr std::int64_t most_file_bytes = static_cast<std::int64_t>(spill_alignment) << block_bits;

void* name_of(std::uint16_t mark, std::size_t file, std::int64_t offset) noexcept {
  return std::bit_cast<void*>((((std::uintptr_t{mark} << file_bits) | (file + 1)) << block_bits) |
                              (static_cast<std::uintptr_t>(offset) / spill_alignment));
}
std::uint16_t mark_of(void const* name) noexcept {
  return static_cast<std::uint16_t>(std::bit_cast<std::uintptr_t>(name) >> (block_bits + file_bits));
}
std::size_t file_of(void const* name) noexcept {
  return ((std::bit_cast<std::uintptr_t>(name) >> block_bits) & most_files) - 1;
}
std::int64_t offset_of(void const* name) noexcept {
  constexpr std::uintptr_t blocks = (std::uintptr_t{1} << block_bits) - 1;
  return static_cast<std::int64_t>((std::bit_cast<std::uintptr_t>(name) & blocks) * spill_alignment);
}
// Different for almost any two spaces that live at the same time.
std::uint16_t mark_for(void const* space) noexcept {
  return static_cast<std::uint16_t>((std::bit_cast<std::uintptr_t>(space) * 0x9e3779b97f4a7c15ULL) >> 48);
}

std::int64_t whole_blocks(std::size_t bytes) noexcept {
  return static_cast<std::int64_t>((bytes + spill_alignment - 1) & ~(spill_alignment - 1));
}

}  // namespace

struct DiskSpaceResource::State {
  struct File {
    File(std::unique_ptr<SpillFile> opened, std::int64_t capacity) : file(std::move(opened)), extents(capacity) {}
    std::unique_ptr<SpillFile> file;
    detail::ExtentMap extents;
  };

  State(FileSystem& file_system, SpillDisk& spill_disk, DiskSpaceOptions const& options)
      : disk(spill_disk),
        directory(file_system, spill_disk, options.directory, options.to_memory),
        file_bytes(static_cast<std::int64_t>(options.file_bytes & ~(spill_alignment - 1))) {
    if (directory.place().held_in_memory) {
      if (!options.memory) { throw std::invalid_argument("a spill directory in memory needs a tier to be charged to"); }
      memory = options.memory;
    }
    files.emplace_back(disk.create_unnamed(directory.path()), file_bytes);
  }

  [[nodiscard]] void* try_take(std::int64_t bytes) EARMARK_REQUIRES(mutex) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (auto const offset = files[i].extents.take(bytes)) { return name_of(mark, i, *offset); }
    }
    return nullptr;
  }

  // Takes `bytes` that are in use from now on. Throws: as `allocate_sync`.
  [[nodiscard]] void* take(std::int64_t bytes) EARMARK_EXCLUDES(mutex) {
    {
      MutexLock lock{mutex};
      if (void* const taken = try_take(bytes)) { return taken; }
    }
    // Outside the lock: it is the file system's work. Somebody else may begin a file, too; then there is one to spare.
    auto file = disk.create_unnamed(directory.path());
    MutexLock lock{mutex};
    if (files.size() == most_files) { throw std::bad_alloc{}; }
    files.emplace_back(std::move(file), file_bytes);
    return try_take(bytes);
  }
  void give(void* extent, std::int64_t bytes) noexcept EARMARK_EXCLUDES(mutex) {
    MutexLock lock{mutex};
    files[file_of(extent)].extents.give(offset_of(extent), bytes);
  }

  std::uint16_t const mark = mark_for(this);
  SpillDisk& disk;
  SpillDirectory directory;
  std::int64_t file_bytes;
  std::optional<HostReservationAwareResourceAdaptor> memory;
  mutable Mutex mutex;
  std::vector<File> files EARMARK_GUARDED_BY(mutex);
  std::map<void const*, HostMemoryReservation> in_memory EARMARK_GUARDED_BY(mutex);  // what extents cost there
};

DiskSpaceResource::DiskSpaceResource(FileSystem& files, SpillDisk& disk, DiskSpaceOptions const& options) {
  if (options.file_bytes < spill_alignment || options.file_bytes > static_cast<std::size_t>(most_file_bytes)) {
    throw std::invalid_argument("a spill file holds from one block to 16 TiB");
  }
  state_ = std::make_shared<State>(files, disk, options);
}

void* DiskSpaceResource::allocate_sync(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0) { return nullptr; }
  if (bytes > static_cast<std::size_t>(state_->file_bytes) || alignment > spill_alignment) { throw std::bad_alloc{}; }
  std::int64_t const wanted = whole_blocks(bytes);
  if (!state_->memory) { return state_->take(wanted); }
  HostMemoryReservation cost =
      state_->memory->reserve(static_cast<std::size_t>(wanted), {.label = "spilled to memory"});
  void* const extent = state_->take(wanted);
  try {
    MutexLock lock{state_->mutex};
    state_->in_memory.emplace(extent, std::move(cost));
  }
  catch (...) {
    state_->give(extent, wanted);
    throw;
  }
  return extent;
}

void DiskSpaceResource::deallocate_sync(void* extent, std::size_t bytes, std::size_t /*alignment*/) noexcept {
  if (bytes == 0) { return; }
  Extent const place = this->extent(extent);
  std::int64_t const given = whole_blocks(bytes);
  place.file.release_bytes(place.offset, given);  // before another can have it and write there
  HostMemoryReservation cost;                     // goes last, outside the lock: others may be waiting for it
  if (state_->memory) {
    MutexLock lock{state_->mutex};
    auto const found = state_->in_memory.find(extent);
    cost = std::move(found->second);
    state_->in_memory.erase(found);
  }
  state_->give(extent, given);
}

DiskSpaceResource::Extent DiskSpaceResource::extent(void const* extent) const noexcept {
  MutexLock lock{state_->mutex};
  return {*state_->files[file_of(extent)].file, offset_of(extent)};
}

bool DiskSpaceResource::owns(void const* extent) const noexcept {
  if (mark_of(extent) != state_->mark) { return false; }
  MutexLock lock{state_->mutex};
  return file_of(extent) < state_->files.size();
}

SpillDirectory const& DiskSpaceResource::directory() const noexcept { return state_->directory; }

bool DiskSpaceResource::direct() const noexcept {
  MutexLock lock{state_->mutex};
  return state_->files.front().file->direct();
}

SpillDisk& DiskSpaceResource::disk() const noexcept { return state_->disk; }

std::int64_t DiskSpaceResource::live_bytes() const noexcept {
  MutexLock lock{state_->mutex};
  std::int64_t sum = 0;
  for (State::File const& file : state_->files) { sum += file.extents.live_bytes(); }
  return sum;
}

std::size_t DiskSpaceResource::file_count() const noexcept {
  MutexLock lock{state_->mutex};
  return state_->files.size();
}

}  // namespace earmark
