// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A claim on memory that is itself where the memory comes from: a move-only owner of bytes that were set aside, which
// any code that takes a memory resource can allocate from, and never more than that.
//
//   ReservationAwareResourceAdaptor adaptor{upstream, 1_MiB};
//   MemoryReservation reservation = adaptor.reserve(2_KiB);
//   rmm::device_buffer a{1024, stream, reservation};     // draws its balance down
//   rmm::device_buffer b{1024, stream, reservation};
//   rmm::device_buffer c{1024, stream, reservation};     // throws ReservationExhausted, an rmm::out_of_memory
//
// When to use: before work whose memory need is known or can be bounded. When not: for bytes nobody allocates (a
// file's, a peer's), use `Budget`.
// Thread safety: a handle is for one thread at a time; the resource that buffers keep is for any.
// Ownership: closing or dropping the handle gives the unspent bytes back at once; bytes in live buffers follow as they
// are freed, on whatever thread. The handle is one pointer and *not itself a resource* (resources are copyable, and
// every copy would own): it converts to references (from lvalues only: a temporary's would dangle) and to owning
// resources. A reference is valid while the handle, or a buffer made from it, lives; moving the handle is fine.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "earmark/memory/errors.hpp"
#include "earmark/memory/reservation_options.hpp"
#include "earmark/memory/reservation_resource.hpp"

namespace earmark {

template <class... Properties>
class [[nodiscard]] BasicMemoryReservation {
 public:
  using Resource = BasicReservationResource<Properties...>;
  using Adaptor = BasicReservationAwareResourceAdaptor<Properties...>;

  // An empty handle: owns nothing; only assignment, destruction, `close` and `operator bool` make sense.
  BasicMemoryReservation() noexcept = default;
  BasicMemoryReservation(BasicMemoryReservation&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BasicMemoryReservation& operator=(BasicMemoryReservation&& other) noexcept {
    BasicMemoryReservation taken{std::move(other)};
    std::swap(block_, taken.block_);
    return *this;
  }
  ~BasicMemoryReservation() {
    if (block_ != nullptr) { block_->drop(); }
  }

  // Whether this handle owns a reservation (moved-from and merged ones do not). The rest requires that it does.
  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }

  // Bytes set aside, spent or not; of a closed reservation, what is still live.
  [[nodiscard]] std::int64_t granted() const noexcept { return reading().granted; }
  // Bytes that can still be allocated; 0 once closed.
  [[nodiscard]] std::int64_t balance() const noexcept { return block_->balance(); }
  // Bytes allocated now (and lent to nested adaptors).
  [[nodiscard]] std::int64_t spent() const noexcept { return reading().live(); }
  // The most bytes that were ever allocated from it at once.
  [[nodiscard]] std::int64_t peak_spent() const noexcept { return block_->peak(); }
  // What granting it took.
  [[nodiscard]] Overbooking overbooking() const noexcept { return block_->overbooking(); }
  [[nodiscard]] std::string_view label() const noexcept { return block_->label(); }
  [[nodiscard]] MemoryType memory_type() const noexcept { return block_->ledger().memory_type(); }
  [[nodiscard]] bool closed() const noexcept { return block_->closed(); }

  // The adaptor it came from. Requires: not empty.
  [[nodiscard]] Adaptor adaptor() const noexcept { return resource().adaptor(); }
  // The resource itself, for code that stores one or asks for the concept.
  [[nodiscard]] Resource resource() const noexcept { return Resource{*block_}; }

  // Takes more from the adaptor's budget. Throws: ReservationRefused, ImpossibleRequest, ReservationClosed. A
  // preallocated one must have nothing live (ReservationMismatch): its block goes back and another is taken. Where the
  // upstream has none (UpstreamOutOfMemory) it keeps what it had; unless somebody else was given even that meanwhile:
  // then it is closed. The same holds for `split` and `merge`.
  void grow(std::size_t bytes, AllowOverbooking overbooking = AllowOverbooking::NO) {
    block_->grow(bytes, overbooking);
  }
  // Returns: whether the bytes were there; false for a preallocated one.
  [[nodiscard]] bool try_grow(std::size_t bytes) noexcept { return block_->try_grow(bytes); }
  // Gives back all that is unspent and stays open. Returns: the bytes given back.
  std::int64_t shrink_to_fit() noexcept { return block_->shrink_to_fit(); }
  // Moves `bytes` of the balance into a reservation of its own, with the same label and policies; nobody can take them
  // in between. Throws: ReservationExhausted when the balance is less, ReservationClosed.
  [[nodiscard]] BasicMemoryReservation split(std::size_t bytes) { return BasicMemoryReservation{block_->split(bytes)}; }
  // Takes in all of `other`, its live buffers included: what they free comes here. `other` is empty afterwards. A
  // closed `other` has nothing to bring and stays what it was; merging into a closed one closes `other`. Throws:
  // ReservationMismatch if it came from another adaptor or consumer, or one of them is preallocated and has live
  // allocations; ReservationClosed if this one is preallocated and closed; then both are unharmed.
  void merge(BasicMemoryReservation&& other) {
    if (other.block_ == nullptr || other.block_ == block_) { return; }
    if (&other.block_->ledger() != &block_->ledger()) {
      throw ReservationMismatch(block_->ledger().fields(other.granted(), 0), "reservations of different adaptors");
    }
    if (&other.block_->purse() != &block_->purse()) {
      throw ReservationMismatch(block_->ledger().fields(other.granted(), 0), "reservations of different consumers");
    }
    other.block_->merge_into(*block_);
    std::exchange(other.block_, nullptr)->release();
  }
  // Gives the unspent bytes back now; allocations then throw ReservationClosed. Idempotent, also on an empty handle.
  void close() noexcept {
    if (block_ != nullptr) { block_->close(); }
  }

  // Non-owning references, from a handle that stays.
  template <class... Q>
    requires(detail::SubsetOf<Q...>::template value<Properties...>)
  operator cuda::mr::resource_ref<Q...>() const& noexcept {
    return cuda::mr::resource_ref<Q...>{block_->template resource<Resource>()};
  }
  template <class... Q>
    requires(detail::SubsetOf<Q...>::template value<Properties...>)
  operator cuda::mr::synchronous_resource_ref<Q...>() const& noexcept {
    return cuda::mr::synchronous_resource_ref<Q...>{block_->template resource<Resource>()};
  }
  template <class... Q>
    requires(detail::SubsetOf<Q...>::template value<Properties...>)
  operator cuda::mr::resource_ref<Q...>() const&& = delete;
  template <class... Q>
    requires(detail::SubsetOf<Q...>::template value<Properties...>)
  operator cuda::mr::synchronous_resource_ref<Q...>() const&& = delete;

  // Owning resources, from temporaries too.
  template <class... Q>
    requires(detail::SubsetOf<Q...>::template value<Properties...>)
  operator cuda::mr::any_resource<Q...>() const {
    return cuda::mr::any_resource<Q...>{resource()};
  }

 private:
  friend class BasicReservationAwareResourceAdaptor<Properties...>;
  // Takes over the block's one reference.
  explicit BasicMemoryReservation(detail::ReservationBlock& block) noexcept : block_(&block) {
    block.template place_resource<Resource>(block, typename Resource::Borrow{});
  }
  [[nodiscard]] detail::Account::Reading reading() const noexcept { return block_->reading(); }

  detail::ReservationBlock* block_{nullptr};
};

using MemoryReservation = BasicMemoryReservation<device_accessible>;
using PinnedMemoryReservation = BasicMemoryReservation<host_accessible, device_accessible>;
using HostMemoryReservation = BasicMemoryReservation<host_accessible>;

}  // namespace earmark

#include "earmark/memory/reservation_aware_resource_adaptor.hpp"  // IWYU pragma: export (completes `adaptor()`)
