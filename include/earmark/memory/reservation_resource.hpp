// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory resource of a reservation: what buffers keep. One pointer, copyable, equal to the copies of the same
// reservation's resource; satisfies `cuda::mr::resource_with` for each of its properties, so RMM, CCCL and libraries
// built on them take it. Get one from `MemoryReservation::resource()` when code stores a resource or asks for the
// concept; pass the reservation itself where a `resource_ref` or an `any_resource` is taken.
//
//   auto resource = reservation.resource();
//   void* p = resource.allocate_sync(4096);        // draws on the reservation, or throws
//   resource.deallocate_sync(p, 4096);             // gives back to it, or to its heir once it is closed
//
// Allocating an exhausted reservation throws ReservationExhausted before the upstream is asked; a closed one,
// ReservationClosed; an upstream failure gives the bytes back and throws UpstreamOutOfMemory. Zero bytes are null and
// free. Thread safety: any thread, any stream. Ownership: shares the reservation's control block, not its balance: the
// unspent bytes go back when the owning handle closes. A moved-from resource still works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "earmark/memory/ledger.hpp"
#include "earmark/memory/resource_concepts.hpp"

namespace earmark {

template <class... Properties>
class BasicReservationAwareResourceAdaptor;
template <class... Properties>
class BasicMemoryReservation;

namespace detail {

// A ledger with the upstream that its allocations come from.
template <class... Properties>
class UpstreamLedger final : public Ledger {
 public:
  using Upstream = cuda::mr::any_resource<Properties...>;
  UpstreamLedger(Upstream upstream, std::size_t limit, AdaptorOptions const& options, ReservationBlock* lender)
      : Ledger(limit, memory_type_of<Properties...>, options, lender), upstream_(std::move(upstream)) {}
  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }

  // Calls `allocate`, and once more if memory that streams have yet to free may have been missing.
  // An upstream that returns null has failed, too.
  template <class Allocate>
  [[nodiscard]] void* patiently(Allocate const& allocate) {
    try {
      return something(allocate());
    }
    catch (std::bad_alloc const&) {
      if (!wait_for_pending_frees()) { throw; }
    }
    return something(allocate());
  }

  [[nodiscard]] void* allocate_upstream(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment) override {
    return patiently([&] { return upstream_.allocate(stream, bytes, alignment); });
  }
  void deallocate_upstream(cuda::stream_ref stream, void* pointer, std::size_t bytes,
                           std::size_t alignment) noexcept override {
    upstream_.deallocate(stream, pointer, bytes, alignment);
    note_free();
  }
  [[nodiscard]] void* allocate_upstream_sync(std::size_t bytes, std::size_t alignment) override {
    return patiently([&] { return upstream_.allocate_sync(bytes, alignment); });
  }
  void deallocate_upstream_sync(void* pointer, std::size_t bytes, std::size_t alignment) noexcept override {
    upstream_.deallocate_sync(pointer, bytes, alignment);
  }

 private:
  [[nodiscard]] static void* something(void* pointer) {
    if (pointer == nullptr) { throw std::bad_alloc{}; }
    return pointer;
  }

  alignas(64) Upstream upstream_;  // read by every allocation: apart from what reserving changes
};

}  // namespace detail

template <class... Properties>
class BasicReservationResource {
 public:
  using default_queries = cuda::mr::properties_list<Properties...>;

  BasicReservationResource(BasicReservationResource const& other) noexcept : block_(other.block_) { block_->retain(); }
  // Copies: CCCL may go on using a resource that was moved from.
  BasicReservationResource(BasicReservationResource&& other) noexcept : block_(other.block_) { block_->retain(); }
  BasicReservationResource& operator=(BasicReservationResource other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BasicReservationResource() { block_->release(); }

  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes,
                               std::size_t alignment = alignof(std::max_align_t)) {
    if (bytes == 0) { return nullptr; }
    detail::ReservationBlock& block = *block_;  // kept at hand while the upstream is called
    if (block.preallocated()) [[unlikely]] { return block.allocate_within({bytes, alignment, stream}); }
    auto const [charge, live] = block.draw(bytes);
    if (block.is_new_peak(live)) [[unlikely]] { return allocate_at_peak({bytes, alignment, stream}, charge, live); }
    void* pointer = nullptr;
    try {
      pointer = upstream().allocate(stream, bytes, alignment);
      if (pointer == nullptr) [[unlikely]] { throw std::bad_alloc{}; }
    }
    catch (...) {
      pointer = retry_or_fail({bytes, alignment, stream}, charge);
    }
    block.note_allocation(charge);
    return pointer;
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t bytes,
                  std::size_t alignment = alignof(std::max_align_t)) noexcept {
    if (bytes == 0) { return; }
    detail::ReservationBlock& block = *block_;
    if (block.preallocated()) [[unlikely]] { return block.deallocate_within(pointer, {bytes, alignment, stream}); }
    upstream().deallocate(stream, pointer, bytes, alignment);
    ledger().note_free();
    block.give_back(bytes);
  }
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    if (bytes == 0) { return nullptr; }
    detail::ReservationBlock& block = *block_;
    if (block.preallocated()) [[unlikely]] { return block.allocate_within({bytes, alignment, {}}); }
    auto const [charge, live] = block.draw(bytes);
    if (block.is_new_peak(live)) [[unlikely]] { return allocate_at_peak({bytes, alignment, {}}, charge, live); }
    void* pointer = nullptr;
    try {
      pointer = upstream().allocate_sync(bytes, alignment);
      if (pointer == nullptr) [[unlikely]] { throw std::bad_alloc{}; }
    }
    catch (...) {
      pointer = retry_or_fail({bytes, alignment, {}}, charge);
    }
    block.note_allocation(charge);
    return pointer;
  }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    if (bytes == 0) { return; }
    detail::ReservationBlock& block = *block_;
    if (block.preallocated()) [[unlikely]] { return block.deallocate_within(pointer, {bytes, alignment, {}}); }
    upstream().deallocate_sync(pointer, bytes, alignment);
    block.give_back(bytes);
  }

  // The adaptor that the reservation came from: to make another one beside it.
  [[nodiscard]] BasicReservationAwareResourceAdaptor<Properties...> adaptor() const noexcept;
  // Bytes left in the reservation now; 0 once closed.
  [[nodiscard]] std::int64_t balance() const noexcept { return block_->balance(); }
  // Call before destroying a stream on which pieces of a preallocated reservation were freed, once nothing more is
  // freed on it. Does nothing for others.
  void forget_stream(cuda::stream_ref stream) noexcept { block_->forget_stream(stream); }

  [[nodiscard]] friend bool operator==(BasicReservationResource const& a, BasicReservationResource const& b) noexcept {
    return a.block_ == b.block_;
  }
  template <class Property>
    requires detail::contains_v<Property, Properties...>
  friend constexpr void get_property(BasicReservationResource const&, Property) noexcept {}

 private:
  friend class BasicMemoryReservation<Properties...>;
  friend class BasicReservationAwareResourceAdaptor<Properties...>;
  friend class detail::ReservationBlock;  // holds one that owns nothing

  struct Borrow {};
  BasicReservationResource(detail::ReservationBlock& block, Borrow) noexcept : block_(&block) {}
  explicit BasicReservationResource(detail::ReservationBlock& block) noexcept : block_(&block) { block_->retain(); }

  [[nodiscard]] detail::UpstreamLedger<Properties...>& ledger() const noexcept {
    return static_cast<detail::UpstreamLedger<Properties...>&>(block_->ledger());
  }
  [[nodiscard]] auto& upstream() const noexcept { return ledger().upstream(); }

  [[nodiscard]] void* ask_upstream(detail::ReservationBlock::Within const& request) {
    void* const pointer = request.stream ? upstream().allocate(*request.stream, request.bytes, request.alignment)
                                         : upstream().allocate_sync(request.bytes, request.alignment);
    if (pointer == nullptr) { throw std::bad_alloc{}; }
    return pointer;
  }
  // The rest of an allocation with which as much is live as never before. Apart, so that most need not keep `live`.
  [[nodiscard, gnu::noinline]] void* allocate_at_peak(detail::ReservationBlock::Within const& request,
                                                      std::int64_t charge, std::int64_t live) {
    void* pointer = nullptr;
    try {
      pointer = ask_upstream(request);
    }
    catch (...) {
      pointer = retry_or_fail(request, charge);
    }
    block_->raise_peak(live);
    block_->note_allocation(charge);
    return pointer;
  }
  // In a handler: once more, if memory that streams have yet to free may have been missing.
  [[nodiscard, gnu::noinline]] void* retry_or_fail(detail::ReservationBlock::Within const& request,
                                                   std::int64_t charge) {
    try {
      try {
        throw;
      }
      catch (std::bad_alloc const&) {
        if (!ledger().wait_for_pending_frees()) { throw; }
      }
      return ask_upstream(request);
    }
    catch (...) {
      block_->fail(charge);
    }
  }

  detail::ReservationBlock* block_;
};

}  // namespace earmark

#include "earmark/memory/memory_reservation.hpp"  // IWYU pragma: export (completes `adaptor()`)
