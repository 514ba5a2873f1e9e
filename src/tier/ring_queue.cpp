// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ring_queue.hpp"

#include <liburing.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
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

// Failures of a call that may go well later: for lack of memory, or until what has ended is taken out.
constexpr bool may_pass(int error_number) noexcept {
  return error_number == EAGAIN || error_number == EBUSY || error_number == ENOMEM;
}

void pause_a_millisecond() noexcept { (void)::poll(nullptr, 0, 1); }

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
  [[nodiscard]] bool usable() const noexcept override { return !broken_; }

  void submit(SpillTransfer const& transfer) noexcept override {
    std::size_t const slot = free_.back();
    free_.pop_back();
    slots_[slot].progress.emplace(transfer);
    start(slot);
  }

  [[nodiscard]] SpillOutcome wait() noexcept override {
    for (int refusals = 0; !broken_;) {
      int const result = ::io_uring_submit_and_wait(ring_.get(), 1);
      if (auto const slot = take_ended()) { return finish(*slot); }
      if (result >= 0 || result == -EINTR) { continue; }
      if (!may_pass(-result) || ++refusals == most_refusals) {
        give_up();
      } else {
        pause_a_millisecond();
      }
    }
    return wait_without_ring();
  }

 private:
  struct Slot {
    std::optional<TransferProgress> progress;
    std::uint64_t started{0};  // its place among all entries that were put into the ring
  };
  static constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30;  // a ring counts in 32 bits
  static constexpr int most_refusals = 1000;

  // Puts what is left of a transfer into the ring; there is an entry for each slot.
  void start(std::size_t slot) noexcept {
    io_uring_sqe* const entry = broken_ ? nullptr : ::io_uring_get_sqe(ring_.get());
    if (entry == nullptr) { give_up(); }
    slots_[slot].started = started_++;
    if (entry == nullptr) { return; }
    TransferProgress const& progress = *slots_[slot].progress;
    SpillTransfer const& rest = progress.rest();
    auto const bytes = static_cast<unsigned>(std::min(rest.bytes, most_bytes_at_once));
    auto const offset = static_cast<std::uint64_t>(rest.offset);
    if (rest.direction == SpillDirection::Write) {
      ::io_uring_prep_write(entry, progress.descriptor(), rest.memory, bytes, offset);
    } else {
      ::io_uring_prep_read(entry, progress.descriptor(), rest.memory, bytes, offset);
    }
    ::io_uring_sqe_set_data64(entry, slot);
    (void)::io_uring_submit(ring_.get());  // what was not taken now is handed over again by `wait`
  }
  // Takes what has ended out of the ring, and goes on with what has not moved all. Returns: a transfer that has ended.
  [[nodiscard]] std::optional<std::size_t> take_ended() noexcept {
    io_uring_cqe* event = nullptr;
    while (::io_uring_peek_cqe(ring_.get(), &event) == 0 && event != nullptr) {
      auto const slot = static_cast<std::size_t>(::io_uring_cqe_get_data64(event));
      long const moved = event->res;
      ::io_uring_cqe_seen(ring_.get(), event);
      if (slots_[slot].progress->advance(moved)) { return slot; }
      start(slot);
      event = nullptr;
    }
    return std::nullopt;
  }
  [[nodiscard]] SpillOutcome finish(std::size_t slot) noexcept {
    SpillOutcome const outcome = slots_[slot].progress->outcome();
    slots_[slot].progress.reset();
    free_.push_back(slot);
    return outcome;
  }

  // The system takes nothing from the ring any more. Entries leave it in order: the last of them never did.
  void give_up() noexcept {
    if (broken_) { return; }
    broken_ = true;
    first_left_ = started_ - ::io_uring_sq_ready(ring_.get());
  }
  // What the system never saw is done here. What it saw uses memory until it tells, so that is waited for.
  [[nodiscard]] SpillOutcome wait_without_ring() noexcept {
    for (;;) {
      auto const left = std::find_if(slots_.begin(), slots_.end(),
                                     [&](Slot const& slot) { return slot.progress && slot.started >= first_left_; });
      if (left != slots_.end()) {
        finish_blocking(*left->progress);
        return finish(static_cast<std::size_t>(left - slots_.begin()));
      }
      if (auto const slot = take_ended()) { return finish(*slot); }
      pause_a_millisecond();
    }
  }

  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::uint64_t started_{0};
  std::uint64_t first_left_{0};  // of a broken ring
  bool broken_{false};
  Ring ring_;  // last: gone before what it works on
};

// As many as queues have, or more: older kernels take a ring's memory from what a process may lock (RLIMIT_MEMLOCK).
constexpr unsigned probed_entries = 32;

}  // namespace

bool rings_work() noexcept {
  Ring ring{probed_entries};
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
