// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/posix_spill_disk.hpp"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "earmark/core/file_system.hpp"
#include "posix_spill_file.hpp"
#include "ring_queue.hpp"
#include "worker_queue.hpp"

namespace earmark {
namespace {

struct KnownFileSystem {
  std::uint32_t magic;
  std::string_view name;
  bool held_in_memory;
};
// Numbers as statfs(2) tells them; the last ones have none in the kernel's header for programs.
constexpr std::array known_file_systems{
    KnownFileSystem{EXT4_SUPER_MAGIC, "ext4", false},
    KnownFileSystem{XFS_SUPER_MAGIC, "xfs", false},
    KnownFileSystem{BTRFS_SUPER_MAGIC, "btrfs", false},
    KnownFileSystem{F2FS_SUPER_MAGIC, "f2fs", false},
    KnownFileSystem{OVERLAYFS_SUPER_MAGIC, "overlay", false},
    KnownFileSystem{NFS_SUPER_MAGIC, "nfs", false},
    KnownFileSystem{FUSE_SUPER_MAGIC, "fuse", false},
    KnownFileSystem{TMPFS_MAGIC, "tmpfs", true},  // devtmpfs and shared memory, too
    KnownFileSystem{RAMFS_MAGIC, "ramfs", true},
    KnownFileSystem{HUGETLBFS_MAGIC, "hugetlbfs", true},
    KnownFileSystem{0x2fc12fc1U, "zfs", false},
};

void describe(std::uint32_t magic, SpillPlace& place) {
  auto const known = std::find_if(known_file_systems.begin(), known_file_systems.end(),
                                  [=](KnownFileSystem const& each) { return each.magic == magic; });
  if (known == known_file_systems.end()) { return place.file_system.assign(std::to_string(magic)); }
  place.file_system.assign(known->name);
  place.held_in_memory = known->held_in_memory;
}

}  // namespace

PosixSpillDisk::PosixSpillDisk(Executor& executor, PosixSpillDiskOptions const& options)
    : executor_(executor),
      options_(options),
      method_(options.io_uring == UseIoUring::WherePossible && detail::rings_work() ? SpillMethod::IoUring
                                                                                    : SpillMethod::Workers) {}

std::unique_ptr<SpillFile> PosixSpillDisk::create_unnamed(std::string const& folder) {
  return detail::create_posix_spill_file(folder, options_);
}

std::unique_ptr<SpillQueue> PosixSpillDisk::open_queue(std::size_t depth) {
  depth = std::max<std::size_t>(depth, 1);
  if (method_ == SpillMethod::IoUring) {
    if (auto queue = detail::try_open_ring_queue(depth)) { return queue; }
  }
  return detail::open_worker_queue(executor_, depth);
}

SpillPlace PosixSpillDisk::look_at(std::string const& folder) {
  struct statfs status{};
  int result = 0;
  do { result = ::statfs(folder.c_str(), &status); } while (result != 0 && errno == EINTR);
  if (result != 0) { throw FileSystemError("look at", folder, errno); }
  SpillPlace place;
  describe(static_cast<std::uint32_t>(status.f_type), place);
  // Blocks are counted by the fragment, which may be smaller than what is best moved at once.
  auto const fragment = status.f_frsize != 0 ? status.f_frsize : status.f_bsize;
  place.free_bytes = static_cast<std::int64_t>(status.f_bavail) * fragment;
  return place;
}

}  // namespace earmark
