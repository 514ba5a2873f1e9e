// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes room in a tier for those who wait for it: as long as somebody misses bytes there, objects that can do without
// are asked to spill. Nothing is polled; demand comes from the tier's own queue.
//
//   ThreadPool spillers{2};                                                 // for nothing else
//   SpillManager spills{buffers, MemoryType::Host, spillers};
//   auto const column = std::make_shared<SpillableBuffer>(buffers, std::move(buffer), stream);
//   SpillRegistration const registration = spills.add(column, {.priority = 1});
//   HostMemoryReservation r = buffers.host().reserve_blocking(64_MiB);      // `column` may be on the disk by now
//
// Who goes first: lowest priority; then whoever came back long enough ago; then whoever is needed last; then those
// whose sizes fit best. As much is spilled as is missing, if there is as much, and less than that and the largest
// object together. Several go at a time. Only bytes that return to the tier help: draw what is to be spilled from a
// reservation that is closed or dropped afterwards, as one that stays open keeps what is freed. Callbacks run under no
// lock: they may register, remove, allocate and free. An object that fails is left where it is, and others are asked
// instead; what failed is counted, and told to the log. Thread safety: any thread. Ownership: knows objects weakly and
// never keeps one alive but while it spills. Borrows executor, clock and log. Destroying it waits for spills under way,
// so it is not for callbacks to do.
//
// The executor's threads must never wait for the tier that the manager serves: where all of them do, nobody is left to
// spill, and they wait for ever. Give it threads of its own. A callback of `async_reserve` without an executor
// (`WaitOptions`) runs on the spilling thread, between two objects: one that blocks or works for long holds up all
// spilling, and one that waits for memory there, for ever. Give such waits an executor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "earmark/core/clock.hpp"
#include "earmark/core/executor.hpp"
#include "earmark/core/log_sink.hpp"
#include "earmark/memory/memory_type.hpp"
#include "earmark/memory/pressure.hpp"
#include "earmark/tier/buffer_resource.hpp"
#include "earmark/tier/spillable.hpp"

namespace earmark {

// How badly an object is wanted where it is.
struct SpillRank {
  int priority{0};           // higher ones stay longer
  std::int64_t distance{0};  // how far off its next use is, in whatever unit the caller counts; the farthest goes first
};

struct SpillManagerOptions {
  std::size_t at_once{4};  // objects that spill at the same time, at most
  // An object that came back less than this ago goes after all others of its priority.
  Clock::duration settle_time{std::chrono::milliseconds{100}};
  Clock const* clock{nullptr};  // null: the machine's steady clock
  LogSink* log{nullptr};        // told of objects that could not be spilled; null: nobody
};

struct SpillStatistics {
  std::int64_t spills{0};          // objects that were spilled
  std::int64_t bytes{0};           // that came back to the tier
  std::int64_t failed{0};          // objects that could not be
  std::int64_t ping_pong{0};       // spills of what had come back less than the settle time ago
  std::int64_t copies_dropped{0};  // bytes of clean copies given up for room on the disk
  std::int64_t fell_short{0};      // times that less could be freed than was missing
  Clock::duration time{};          // in which something was being spilled
};

// What a call freed.
struct SpillResult {
  std::int64_t freed{0};
  std::int64_t objects{0};
  std::int64_t failed{0};
};

class SpillManager;

// Keeps an object known to a manager; may outlive it. Dropping it ends that, also inside a callback; a spill under way
// goes on.
class [[nodiscard]] SpillRegistration {
 public:
  SpillRegistration() noexcept = default;
  SpillRegistration(SpillRegistration&& other) noexcept = default;
  SpillRegistration& operator=(SpillRegistration&& other) noexcept;
  ~SpillRegistration() { end(); }

  // Idempotent.
  void end() noexcept;
  // What changes in the object's rank from now on.
  void set_rank(SpillRank const& rank) noexcept;

 private:
  friend class SpillManager;
  struct Registry;
  SpillRegistration(std::weak_ptr<Registry> registry, std::uint64_t id) noexcept;

  std::weak_ptr<Registry> registry_;
  std::uint64_t id_{0};
};

// Tells a manager that an object can be spilled that could not be; does nothing once the manager is gone.
class SpillWaker {
 public:
  SpillWaker() noexcept;
  SpillWaker(SpillWaker const& other) noexcept;
  SpillWaker& operator=(SpillWaker const& other) noexcept;
  ~SpillWaker();

  // If somebody waits for memory, the objects are looked at soon. Blocks: no.
  void wake() const noexcept;

 private:
  friend class SpillManager;
  struct Target;
  explicit SpillWaker(std::weak_ptr<Target> target) noexcept;

  std::weak_ptr<Target> target_;
};

class SpillManager {
 public:
  // Serves those who wait for `tier`, which is not the disk, on threads of `executor`, which do not wait for it.
  // Throws: std::invalid_argument if `buffers` has no such tier or `options` let nothing spill.
  SpillManager(BufferResource& buffers, MemoryType tier, Executor& executor, SpillManagerOptions const& options = {});
  SpillManager(SpillManager const&) = delete;
  SpillManager& operator=(SpillManager const&) = delete;
  ~SpillManager();

  // Makes an object known, weakly. Whoever waits may profit at once. Throws: std::bad_alloc.
  [[nodiscard]] SpillRegistration add(std::weak_ptr<Spillable> object, SpillRank const& rank = {});

  // Spills until `bytes` came back or nothing more can. Returns: what it did; others may have taken the bytes already.
  // Blocks: for the disk. Throws: std::bad_alloc.
  SpillResult spill(std::int64_t bytes);
  // For objects that are in use at times: to be called when they no longer are.
  [[nodiscard]] SpillWaker waker() const noexcept;

  // Returns: what could be freed now.
  [[nodiscard]] std::int64_t spillable_bytes() const;
  [[nodiscard]] SpillStatistics statistics() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with tasks that the executor still has
  PressureSubscription pressure_;
};

}  // namespace earmark
