// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "posix_spill_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "earmark/core/file_system.hpp"

namespace earmark::detail {
namespace {

constexpr unsigned own_mode = 0600;

// The file systems that have no O_TMPFILE say so in one of these ways; EISDIR is a kernel that does not know the flag.
bool unnamed_is_unknown(int error_number) noexcept {
  return error_number == EOPNOTSUPP || error_number == EISDIR || error_number == EINVAL;
}

Descriptor open_and_unlink(std::string const& folder) {
  std::string path = folder + "/spill-XXXXXX";
  Descriptor descriptor{::mkostemp(path.data(), O_CLOEXEC)};
  if (!descriptor.valid()) { throw FileSystemError("create a file in", folder, errno); }
  if (::unlink(path.c_str()) != 0) { throw FileSystemError("unlink", path, errno); }
  return descriptor;
}

Descriptor open_unnamed(std::string const& folder, PosixSpillDiskOptions const& options) {
  if (options.unnamed == UseUnnamed::WherePossible) {
    Descriptor descriptor = open_at(AT_FDCWD, folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL, own_mode);
    if (descriptor.valid()) { return descriptor; }
    if (!unnamed_is_unknown(errno)) { throw FileSystemError("create a file in", folder, errno); }
  }
  return open_and_unlink(folder);
}

// Returns: whether the file system takes it, not only in name. What was written to find out is gone again.
bool pass_by_the_cache(int descriptor) noexcept {
  int const flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_DIRECT) != 0) { return false; }
  bool const works = takes_single_blocks(descriptor);
  if (!works) { (void)::fcntl(descriptor, F_SETFL, flags); }
  (void)::ftruncate(descriptor, 0);
  return works;
}

}  // namespace

bool takes_single_blocks(int descriptor) noexcept {
  alignas(spill_alignment) std::byte block[spill_alignment]{};
  // Only EINVAL means that the block is too small or lies wrong. A full or broken disk shows when it is used.
  return (::pwrite(descriptor, block, spill_alignment, 0) >= 0 || errno != EINVAL) &&
         (::pread(descriptor, block, spill_alignment, 0) >= 0 || errno != EINVAL);
}

void finish_blocking(TransferProgress& progress) noexcept {
  long result = 0;
  do {
    SpillTransfer const& rest = progress.rest();
    result = rest.direction == SpillDirection::Write
                 ? ::pwrite(progress.descriptor(), rest.memory, rest.bytes, rest.offset)
                 : ::pread(progress.descriptor(), rest.memory, rest.bytes, rest.offset);
    if (result < 0) { result = -errno; }
  } while (!progress.advance(result));
}

int PosixSpillFile::place_bytes(std::int64_t offset, std::int64_t bytes) noexcept {
  int result = 0;
  do { result = ::fallocate(descriptor_.get(), 0, offset, bytes); } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
}

void PosixSpillFile::release_bytes(std::int64_t offset, std::int64_t bytes) noexcept {
  // Where holes are unknown the space stays with the file, to be used again.
  int result = 0;
  do {
    result = ::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  } while (result != 0 && errno == EINTR);
}

std::unique_ptr<SpillFile> create_posix_spill_file(std::string const& folder, PosixSpillDiskOptions const& options) {
  Descriptor descriptor = open_unnamed(folder, options);
  bool const direct = options.direct == UseDirect::WherePossible && pass_by_the_cache(descriptor.get());
  return std::make_unique<PosixSpillFile>(std::move(descriptor), folder, direct);
}

}  // namespace earmark::detail
