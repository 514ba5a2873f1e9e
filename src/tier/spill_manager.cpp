// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spill_manager.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/errors.hpp"
#include "spill_victims.hpp"

namespace earmark {
namespace {

// Whether a spill failed for want of room below, which clean copies may be taking: the disk tier's own, or the disk's.
bool is_lack_of_room(std::exception const& error) noexcept {
  if (dynamic_cast<ReservationRefused const*>(&error) != nullptr) { return true; }
  if (auto const* of_disk = dynamic_cast<FileSystemError const*>(&error)) {
    return of_disk->error_number() == ENOSPC || of_disk->error_number() == EDQUOT;
  }
  auto const* upstream = dynamic_cast<UpstreamOutOfMemory const*>(&error);
  return upstream != nullptr && upstream->fields().tier.view() == to_string(MemoryType::Disk);
}

}  // namespace

// Who is known. Objects are looked up under the lock, and asked outside it.
struct SpillRegistration::Registry {
  struct Entry {
    std::weak_ptr<Spillable> object;
    SpillRank rank;
  };
  struct Known {
    std::shared_ptr<Spillable> object;
    SpillRank rank;
  };

  [[nodiscard]] std::vector<Known> all() const EARMARK_EXCLUDES(mutex) {
    std::vector<Known> known;  // outlives the lock: an object may end with our reference
    MutexLock lock{mutex};
    known.reserve(entries.size());
    for (auto const& [id, entry] : entries) {
      if (auto object = entry.object.lock()) { known.push_back({std::move(object), entry.rank}); }
    }
    return known;
  }

  mutable Mutex mutex;
  std::map<std::uint64_t, Entry> entries EARMARK_GUARDED_BY(mutex);
  std::uint64_t last_id EARMARK_GUARDED_BY(mutex){0};
};

SpillRegistration::SpillRegistration(std::weak_ptr<Registry> registry, std::uint64_t id) noexcept
    : registry_(std::move(registry)), id_(id) {}

SpillRegistration& SpillRegistration::operator=(SpillRegistration&& other) noexcept {
  if (this != &other) {
    end();
    registry_ = std::move(other.registry_);
    id_ = other.id_;
  }
  return *this;
}

void SpillRegistration::end() noexcept {
  auto const registry = registry_.lock();
  registry_.reset();
  if (registry == nullptr) { return; }
  MutexLock lock{registry->mutex};
  registry->entries.erase(id_);
}

void SpillRegistration::set_rank(SpillRank const& rank) noexcept {
  auto const registry = registry_.lock();
  if (registry == nullptr) { return; }
  MutexLock lock{registry->mutex};
  registry->entries.at(id_).rank = rank;
}

// What a waker knows of a manager.
struct SpillWaker::Target {
  virtual ~Target() = default;
  virtual void look_again() noexcept = 0;
};

SpillWaker::SpillWaker() noexcept = default;
SpillWaker::SpillWaker(SpillWaker const& other) noexcept = default;
SpillWaker& SpillWaker::operator=(SpillWaker const& other) noexcept = default;
SpillWaker::~SpillWaker() = default;
SpillWaker::SpillWaker(std::weak_ptr<Target> target) noexcept : target_(std::move(target)) {}

void SpillWaker::wake() const noexcept {
  if (auto const target = target_.lock()) { target->look_again(); }
}

struct SpillManager::State final : SpillWaker::Target, std::enable_shared_from_this<SpillManager::State> {
  using Known = SpillRegistration::Registry::Known;

  State(MemoryType freed, Executor& runs_on, SpillManagerOptions const& given)
      : tier(freed), executor(runs_on), options(given) {}

  [[nodiscard]] Clock const& clock() const noexcept { return options.clock == nullptr ? steady_clock : *options.clock; }

  void look_again() noexcept override {
    if (pressure() > 0) { wake(); }
  }
  // Lets a task look after those who wait, unless one does already: then it looks once more. `ended`: nothing is begun.
  void wake() noexcept EARMARK_EXCLUDES(mutex) {
    {
      MutexLock lock{mutex};
      again = true;
      if (posted || ended) { return; }
      posted = true;
    }
    try {
      executor.post([self = shared_from_this()] { self->serve(); });
    }
    catch (...) {
      stop_serving();  // the next change wakes again
    }
  }
  void serve() noexcept EARMARK_EXCLUDES(mutex) {
    while (look_is_due()) {
      // What somebody misses is known anew after each round: bytes that came back have been granted.
      for (std::int64_t missing = pressure(); missing > 0 && !is_ended(); missing = pressure()) {
        if (spill_some(missing).freed == 0) { break; }
      }
    }
  }
  // Returns: false when there is nothing to do, and then nobody does anything.
  [[nodiscard]] bool look_is_due() noexcept EARMARK_EXCLUDES(mutex) {
    MutexLock lock{mutex};
    serving = again && !ended;
    again = false;
    if (!serving) {
      posted = false;
      stopped.notify_all();
    }
    return serving;
  }
  void stop_serving() noexcept EARMARK_EXCLUDES(mutex) {
    MutexLock lock{mutex};
    posted = false;
  }
  [[nodiscard]] bool is_ended() noexcept EARMARK_EXCLUDES(mutex) {
    MutexLock lock{mutex};
    return ended;
  }
  // A task that was posted and has not begun does nothing any more, whenever it comes.
  void end() noexcept EARMARK_EXCLUDES(mutex) {
    MutexLock lock{mutex};
    ended = true;
    while (serving) { stopped.wait(mutex); }
  }

  [[nodiscard]] SpillResult spill_some(std::int64_t bytes) noexcept {
    try {
      return spill(bytes);
    }
    catch (...) {
      return {};  // no memory to choose with: the next change wakes again
    }
  }

  // Rounds, until enough came back: what was chosen may be in use by then, or fail, and others take its place.
  SpillResult spill(std::int64_t bytes) {
    Clock::time_point const start = clock().now();
    SpillResult sum;
    std::vector<Spillable const*> failed;
    bool copies_dropped_before = false;
    while (sum.freed < bytes) {
      std::vector<Known> const known = registry->all();
      auto const victims = choose(known, failed, bytes - sum.freed);
      if (victims.empty()) { break; }
      Round round{known, victims};
      spill_all(round);
      sum.freed += round.freed.load();
      sum.objects += round.objects.load();
      // Room below may be had at the price of a later spill; once, or it would never end.
      bool const again_with_room = round.without_room.load() != 0 && !copies_dropped_before && drop_copies(known) != 0;
      copies_dropped_before = copies_dropped_before || again_with_room;
      if (!again_with_room) {
        sum.failed += round.failed_count.load();
        take_failed(round, failed);
      }
    }
    note(sum, bytes, start);
    return sum;
  }

  struct Round {
    Round(std::vector<Known> const& all, std::vector<detail::SpillCandidate> const& chosen)
        : known(all), victims(chosen), begun(chosen.size()), ended_badly(chosen.size()) {}
    std::vector<Known> const& known;
    std::vector<detail::SpillCandidate> const& victims;
    std::vector<std::atomic<bool>> begun;
    std::vector<std::atomic<bool>> ended_badly;
    std::atomic<std::int64_t> freed{0};
    std::atomic<std::int64_t> objects{0};
    std::atomic<std::int64_t> failed_count{0};
    std::atomic<std::int64_t> without_room{0};
  };

  [[nodiscard]] std::vector<detail::SpillCandidate> choose(std::vector<Known> const& known,
                                                           std::vector<Spillable const*> const& left_out,
                                                           std::int64_t bytes) const {
    std::vector<detail::SpillCandidate> candidates;
    Clock::time_point const now = clock().now();
    for (std::size_t i = 0; i < known.size(); ++i) {
      Spillable const& object = *known[i].object;
      if (std::find(left_out.begin(), left_out.end(), &object) != left_out.end()) { continue; }
      auto const restored = object.restored_at();
      bool const just_restored = restored && now - *restored < options.settle_time;
      candidates.push_back({i, object.spillable_bytes(tier), known[i].rank, just_restored});
    }
    return detail::choose_victims(std::move(candidates), bytes);
  }

  void spill_all(Round& round) {
    try {
      parallel_for(executor, options.at_once, round.victims.size(),
                   [&](std::size_t, std::size_t index) { spill_one(round, index); });
    }
    catch (...) {
      // The executor takes nothing: this thread does what nobody has begun.
      for (std::size_t i = 0; i < round.victims.size(); ++i) { spill_one(round, i); }
    }
  }
  void spill_one(Round& round, std::size_t index) noexcept {
    if (round.begun[index].exchange(true)) { return; }
    detail::SpillCandidate const& victim = round.victims[index];
    try {
      std::int64_t const freed = round.known[victim.index].object->spill(tier);
      round.freed += freed;
      round.ended_badly[index] = freed == 0;  // in use by now: not asked again in this call
      if (freed == 0) { return; }
      ++round.objects;
      if (victim.just_restored) { ++ping_pong; }
    }
    catch (std::exception const& error) {
      if (is_lack_of_room(error)) { ++round.without_room; }
      ++round.failed_count;
      round.ended_badly[index] = true;
      log(error.what());
    }
    catch (...) {
      ++round.failed_count;
      round.ended_badly[index] = true;
      log("unknown error");
    }
  }
  static void take_failed(Round const& round, std::vector<Spillable const*>& failed) {
    for (std::size_t i = 0; i < round.victims.size(); ++i) {
      if (round.ended_badly[i]) { failed.push_back(round.known[round.victims[i].index].object.get()); }
    }
  }
  [[nodiscard]] std::int64_t drop_copies(std::vector<Known> const& known) noexcept {
    std::int64_t sum = 0;
    for (Known const& each : known) { sum += each.object->drop_copy(); }
    copies_dropped += sum;
    return sum;
  }

  void log(char const* cause) noexcept {
    if (options.log == nullptr || !options.log->takes(LogLevel::Warning)) { return; }
    try {
      options.log->write(LogLevel::Warning,
                         std::string{"cannot spill from "} + std::string{to_string(tier)} + ": " + cause);
    }
    catch (...) {
      // No memory for the text: the count tells.
    }
  }
  void note(SpillResult const& sum, std::int64_t wanted, Clock::time_point start) noexcept {
    spills += sum.objects;
    spilled_bytes += sum.freed;
    failures += sum.failed;
    fell_short += sum.freed < wanted ? 1 : 0;
    nanoseconds += (clock().now() - start).count();
  }

  MemoryType tier;
  Executor& executor;
  SpillManagerOptions options;
  SteadyClock steady_clock;
  std::function<std::int64_t()> pressure;
  std::shared_ptr<SpillRegistration::Registry> registry = std::make_shared<SpillRegistration::Registry>();

  std::atomic<std::int64_t> spills{0};
  std::atomic<std::int64_t> spilled_bytes{0};
  std::atomic<std::int64_t> failures{0};
  std::atomic<std::int64_t> ping_pong{0};
  std::atomic<std::int64_t> copies_dropped{0};
  std::atomic<std::int64_t> fell_short{0};
  std::atomic<std::int64_t> nanoseconds{0};

  Mutex mutex;
  ConditionVariable stopped;
  bool posted EARMARK_GUARDED_BY(mutex){false};   // a task, begun or not
  bool serving EARMARK_GUARDED_BY(mutex){false};  // it has begun
  bool again EARMARK_GUARDED_BY(mutex){false};
  bool ended EARMARK_GUARDED_BY(mutex){false};
};

namespace {

// Calls `use` with the tier's adaptor.
template <class Use>
auto with_adaptor(BufferResource& buffers, MemoryType tier, Use const& use) {
  switch (tier) {
    case MemoryType::Device: return use(buffers.device());
    case MemoryType::Pinned: return use(buffers.pinned());
    default: return use(buffers.host());
  }
}

}  // namespace

SpillManager::SpillManager(BufferResource& buffers, MemoryType tier, Executor& executor,
                           SpillManagerOptions const& options) {
  if (tier == MemoryType::Disk || !buffers.has(tier)) { throw std::invalid_argument("no such tier to spill from"); }
  if (options.at_once == 0) { throw std::invalid_argument("a spill manager that spills nothing at once"); }
  state_ = std::make_shared<State>(tier, executor, options);
  with_adaptor(buffers, tier, [&](auto const& adaptor) {
    state_->pressure = [adaptor] { return adaptor.pressure(); };
    auto listened = adaptor;
    // Told inside somebody's reserve or free: the work is done elsewhere.
    pressure_ = listened.on_pressure([state = state_.get()](std::int64_t missing) {
      if (missing > 0) { state->wake(); }
    });
  });
}

SpillManager::~SpillManager() {
  pressure_.end();
  state_->end();
}

SpillRegistration SpillManager::add(std::weak_ptr<Spillable> object, SpillRank const& rank) {
  std::uint64_t id = 0;
  {
    MutexLock lock{state_->registry->mutex};
    id = ++state_->registry->last_id;
    state_->registry->entries.emplace(id, SpillRegistration::Registry::Entry{std::move(object), rank});
  }
  state_->look_again();
  return {state_->registry, id};
}

SpillResult SpillManager::spill(std::int64_t bytes) { return state_->spill(bytes); }

SpillWaker SpillManager::waker() const noexcept { return SpillWaker{state_}; }

std::int64_t SpillManager::spillable_bytes() const {
  std::int64_t sum = 0;
  for (auto const& each : state_->registry->all()) { sum += each.object->spillable_bytes(state_->tier); }
  return sum;
}

SpillStatistics SpillManager::statistics() const noexcept {
  return {state_->spills,
          state_->spilled_bytes,
          state_->failures,
          state_->ping_pong,
          state_->copies_dropped,
          state_->fell_short,
          Clock::duration{state_->nanoseconds.load()}};
}

}  // namespace earmark
