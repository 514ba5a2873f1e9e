// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/carved_block.hpp"

#include <bit>
#include <stdexcept>

#include "memory/carver.hpp"

namespace earmark::detail {

CarvedBlock::CarvedBlock(std::span<std::byte> block, std::size_t granularity, StreamEvents& events,
                         std::optional<cuda::stream_ref> ready_on, std::pmr::memory_resource* metadata) {
  if (!std::has_single_bit(granularity) || granularity < 64) {
    throw std::invalid_argument("the granularity of a carved block must be a power of two of at least 64");
  }
  if ((reinterpret_cast<std::uintptr_t>(block.data()) & (granularity - 1)) != 0) {
    throw std::invalid_argument("a carved block must begin at a multiple of its granularity");
  }
  if (block.size() < granularity) { throw std::invalid_argument("a carved block must hold at least one granule"); }
  carver_ = std::make_unique<Carver>(granularity, events, *metadata);
  carver_->occupy(block, ready_on);
}
CarvedBlock::~CarvedBlock() = default;

void* CarvedBlock::try_allocate(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) {
  Carver::Refusal refusal;
  return carver_->allocate(bytes, alignment, stream, refusal).pointer;
}
void* CarvedBlock::try_allocate_sync(std::size_t bytes, std::size_t alignment) {
  Carver::Refusal refusal;
  return carver_->allocate(bytes, alignment, std::nullopt, refusal).pointer;
}
std::size_t CarvedBlock::deallocate(void* pointer, cuda::stream_ref stream) noexcept {
  return carver_->deallocate(pointer, stream).bytes;
}
std::size_t CarvedBlock::deallocate_sync(void* pointer) noexcept {
  return carver_->deallocate(pointer, std::nullopt).bytes;
}
bool CarvedBlock::owns(void const* pointer) const noexcept { return carver_->owns(pointer); }
void CarvedBlock::forget_stream(cuda::stream_ref stream) noexcept { carver_->forget_stream(stream); }
void CarvedBlock::drain_into(cuda::stream_ref stream) noexcept { carver_->drain(stream); }
void CarvedBlock::drain_sync() noexcept { carver_->drain(std::nullopt); }
std::size_t CarvedBlock::largest_hole() const noexcept { return carver_->largest_hole(); }
std::size_t CarvedBlock::live_blocks() const noexcept { return carver_->live_blocks(); }
CarvedBlock::Counters CarvedBlock::counters() const noexcept { return carver_->counters(); }

}  // namespace earmark::detail
