// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ring_queue.hpp"

#include <liburing.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "posix_spill_file.hpp"

namespace earmark::detail {
namespace {

class Ring {
 public:
  explicit Ring(unsigned entries) noexcept : open_(::io_uring_queue_init(entries, &ring_, 0) == 0) {}
  Ring(Ring const&) = delete;
  Ring& operator=(Ring const&) = delete;
  ~Ring() {
    if (open_) { ::io_uring_queue_exit(&ring_); }
  }
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] io_uring* get() noexcept { return &ring_; }

 private:
  io_uring ring_{};
  bool open_;
};

class RingQueue final : public SpillQueue {
 public:
  explicit RingQueue(std::size_t depth) : slots_(depth), ring_(static_cast<unsigned>(depth)) {
    free_.reserve(depth);
    for (std::size_t slot = depth; slot-- > 0;) { free_.push_back(slot); }
  }
  ~RingQueue() override {
    while (free_.size() != slots_.size()) { (void)wait(); }
  }
  [[nodiscard]] bool open() const noexcept { return ring_.open(); }

  void submit(SpillTransfer const& transfer) noexcept override {
    std::size_t const slot = free_.back();
    free_.pop_back();
    slots_[slot].emplace(transfer);
    start(slot);
  }

  [[nodiscard]] SpillOutcome wait() noexcept override {
    for (;;) {
      io_uring_cqe* event = nullptr;
      int const result = ::io_uring_submit_and_wait(ring_.get(), 1);
      if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) { return give_up(-result); }
      if (::io_uring_peek_cqe(ring_.get(), &event) != 0) { continue; }
      auto const slot = static_cast<std::size_t>(::io_uring_cqe_get_data64(event));
      long const moved = event->res;
      ::io_uring_cqe_seen(ring_.get(), event);
      if (slots_[slot]->advance(moved)) { return finish(slot); }
      start(slot);
    }
  }

 private:
  static constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30;  // a ring counts in 32 bits

  // Puts what is left of a transfer into the ring; there is an entry for each slot.
  void start(std::size_t slot) noexcept {
    SpillTransfer const& rest = slots_[slot]->rest();
    io_uring_sqe* const entry = ::io_uring_get_sqe(ring_.get());
    auto const bytes = static_cast<unsigned>(std::min(rest.bytes, most_bytes_at_once));
    auto const offset = static_cast<std::uint64_t>(rest.offset);
    if (rest.direction == SpillDirection::Write) {
      ::io_uring_prep_write(entry, slots_[slot]->descriptor(), rest.memory, bytes, offset);
    } else {
      ::io_uring_prep_read(entry, slots_[slot]->descriptor(), rest.memory, bytes, offset);
    }
    ::io_uring_sqe_set_data64(entry, slot);
    (void)::io_uring_submit(ring_.get());  // what was not taken now is handed over again by `wait`
  }
  [[nodiscard]] SpillOutcome finish(std::size_t slot) noexcept {
    SpillOutcome const outcome = slots_[slot]->outcome();
    slots_[slot].reset();
    free_.push_back(slot);
    return outcome;
  }
  // The ring is broken: nothing in it will ever be told of.
  [[nodiscard]] SpillOutcome give_up(int error_number) noexcept {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot] && slots_[slot]->advance(-error_number)) { return finish(slot); }
    }
    return {0, error_number};
  }

  std::vector<std::optional<TransferProgress>> slots_;
  std::vector<std::size_t> free_;
  Ring ring_;  // last: gone before what it works on
};

}  // namespace

bool rings_work() noexcept {
  Ring ring{2};
  if (!ring.open()) { return false; }
  io_uring_probe* const probe = ::io_uring_get_probe_ring(ring.get());
  if (probe == nullptr) { return false; }
  bool const both = ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                    ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  ::io_uring_free_probe(probe);
  return both;
}

std::unique_ptr<SpillQueue> try_open_ring_queue(std::size_t depth) {
  auto queue = std::make_unique<RingQueue>(depth);
  return queue->open() ? std::move(queue) : nullptr;
}

}  // namespace earmark::detail
