// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/host_memory_resource.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace earmark {
namespace {

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  if (bytes > SIZE_MAX - (multiple - 1)) { throw std::bad_alloc{}; }
  return (bytes + multiple - 1) & ~(multiple - 1);
}

std::byte* map(std::size_t bytes) {
  void* const pointer = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer == MAP_FAILED) { throw std::bad_alloc{}; }
  return static_cast<std::byte*>(pointer);
}

// Mappings are page-aligned; for more, map more and give the ends back.
void* map_aligned(std::size_t bytes, std::size_t alignment) {
  std::size_t const page = page_size();
  std::size_t const length = round_up(bytes, page);
  if (alignment <= page) { return map(length); }
  if (length > SIZE_MAX - alignment) { throw std::bad_alloc{}; }
  std::byte* const begin = map(length + alignment);
  auto const address = reinterpret_cast<std::uintptr_t>(begin);
  std::size_t const head = round_up(address, alignment) - address;
  if (head != 0) { ::munmap(begin, head); }
  if (head != alignment) { ::munmap(begin + head + length, alignment - head); }
  return begin + head;
}

}  // namespace

void* HostMemoryResource::allocate_sync(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0) { return nullptr; }
  if (!std::has_single_bit(alignment)) { throw std::bad_alloc{}; }  // neither way of allocating would honour it
  if (bytes >= mapping_threshold) { return map_aligned(bytes, alignment); }
  void* pointer = nullptr;
  if (::posix_memalign(&pointer, std::max(alignment, sizeof(void*)), bytes) != 0) { throw std::bad_alloc{}; }
  return pointer;
}

void HostMemoryResource::deallocate_sync(void* pointer, std::size_t bytes, std::size_t /*alignment*/) noexcept {
  if (bytes == 0) { return; }
  if (bytes >= mapping_threshold) {
    std::size_t const page = page_size();
    ::munmap(pointer, (bytes + page - 1) & ~(page - 1));
  } else {
    std::free(pointer);
  }
}

}  // namespace earmark
