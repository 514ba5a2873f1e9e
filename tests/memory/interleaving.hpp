// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a handful of short threads in every order that their atomic operations can take, and checks an invariant after
// each step. For algorithms that are templates over their atomics: give them `interleaving::Atomics`.
//
//   struct TwoTakers : Scenario {
//     BasicAccount<Atomics> account{3, nullptr};
//     std::vector<std::function<void()>> threads() override { return {[this] { ... }, [this] { ... }}; }
//     void after_step() override { require(account.available() >= 0, "over-drawn"); }
//   };
//   EXPECT_EQ(explore<TwoTakers>().failure, "");
//
// How: each thread is a fiber that stops before every atomic operation; a depth-first search replays the scenario and
// takes another choice each time. States that were seen (values of all atomics, and what each thread has read so far,
// which stands for its locals) are not entered twice. It explores interleavings, not the reorderings of weak memory:
// ThreadSanitizer looks after those. Threads must be deterministic and must not block but in `Atomics::wait_until`.
// Thread safety: one exploration at a time.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"

namespace earmark::interleaving {

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdU;
  return hash ^ (hash >> 33);
}

// One replay of a scenario: its fibers, and the atomics that exist.
class World {
 public:
  struct Fiber {
    ucontext_t context{};  // its first entry
    jmp_buf stopped_at{};  // from then on: switching by ucontext costs two system calls
    bool entered{false};
    std::function<void()> body;
    std::function<bool()> ready;  // set while it waits
    std::uint64_t history{0};     // hash of all that it has read
    bool done{false};
  };

  static World*& current() {
    static World* world = nullptr;
    return world;
  }

  // -- called by atomics -----------------------------------------------------------------------------------------
  [[nodiscard]] bool inside_thread() const { return running_ != nullptr; }
  // The number of the thread that runs; outside, the one that is stood in for.
  [[nodiscard]] std::size_t running_thread() const {
    return running_ == nullptr ? stands_in_for_ : static_cast<std::size_t>(running_ - fibers_.data());
  }
  // Lets a scenario's constructor act on a thread's core.
  void stand_in_for(std::size_t thread) { stands_in_for_ = thread; }
  // From here mutexes remember who held them, in which order, which stands for whatever they guard. For scenarios whose
  // guarded plain members cannot be named in `plain_state`; it costs many states.
  void let_mutexes_remember() { mutexes_remember_ = true; }
  [[nodiscard]] std::uint64_t what_a_mutex_remembers(std::uint64_t so_far) const {
    return mutexes_remember_ ? mix(so_far, running_->history) : 0;
  }
  void stop_here() {
    if (running_ != nullptr && _setjmp(running_->stopped_at) == 0) { _longjmp(scheduler_, 1); }
  }
  void has_read(std::uint64_t value) {
    if (running_ != nullptr) { running_->history = mix(running_->history, value); }
  }
  void wait_until(std::function<bool()> ready) {
    if (running_ == nullptr) { return; }
    running_->ready = std::move(ready);
    stop_here();
    running_->ready = nullptr;
    has_read(1);
  }
  std::size_t add_cell(std::function<std::uint64_t()> value) {
    cells_.push_back(std::move(value));
    return cells_.size() - 1;
  }
  void remove_cell(std::size_t id) { cells_[id] = nullptr; }
  void fail(std::string what) {
    if (failure_.empty()) { failure_ = std::move(what); }
  }
  [[nodiscard]] std::string const& failure() const { return failure_; }

  // -- called by the search --------------------------------------------------------------------------------------
  void start(std::vector<std::function<void()>> bodies, std::vector<std::vector<char>>& stacks) {
    fibers_ = std::vector<Fiber>(bodies.size());
    stacks.resize(std::max(stacks.size(), bodies.size()));
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      stacks[i].resize(std::size_t{64} << 10);
      fibers_[i].body = std::move(bodies[i]);
      prepare(fibers_[i].context, stacks[i]);
    }
    for (Fiber& fiber : fibers_) { run(fiber); }  // up to the first atomic operation
  }
  void run(Fiber& fiber) {
    running_ = &fiber;
    if (_setjmp(scheduler_) == 0) {
      if (fiber.entered) { _longjmp(fiber.stopped_at, 1); }
      fiber.entered = true;
      ::setcontext(&fiber.context);
    }
    running_ = nullptr;
  }
  [[nodiscard]] std::vector<Fiber>& fibers() { return fibers_; }
  [[nodiscard]] bool all_done() const {
    for (Fiber const& fiber : fibers_) {
      if (!fiber.done) { return false; }
    }
    return true;
  }
  [[nodiscard]] std::vector<std::size_t> runnable() const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      if (!fibers_[i].done && (!fibers_[i].ready || fibers_[i].ready())) { result.push_back(i); }
    }
    return result;
  }
  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) { hash = mix(hash, cells_[i] ? cells_[i]() + 1 : 0); }
    for (Fiber const& fiber : fibers_) {
      hash = mix(hash, fiber.history * 4 + (fiber.done ? 2U : 0U) + (fiber.ready ? 1U : 0U));
    }
    return hash;
  }

 private:
  static void prepare(ucontext_t& context, std::vector<char>& stack) {
    ::getcontext(&context);
    context.uc_stack.ss_sp = stack.data();
    context.uc_stack.ss_size = stack.size();
    ::makecontext(&context, &World::enter, 0);
  }
  static void enter() {
    World& world = *current();
    Fiber& fiber = *world.running_;
    fiber.body();
    fiber.done = true;
    _longjmp(world.scheduler_, 1);
  }

  jmp_buf scheduler_{};
  std::vector<Fiber> fibers_;
  Fiber* running_{nullptr};
  std::size_t stands_in_for_{0};
  bool mutexes_remember_{false};
  std::vector<std::function<std::uint64_t()>> cells_;
  std::string failure_;
};

// An atomic whose every operation is a point where another thread may go first.
template <class T>
class Atomic {
 public:
  Atomic(T value = T{})  // NOLINT: converts as std::atomic does
      : value_(value), id_(World::current()->add_cell([this] { return number(value_); })) {}
  Atomic(Atomic const&) = delete;
  Atomic& operator=(Atomic const&) = delete;
  ~Atomic() { World::current()->remove_cell(id_); }

  T load(std::memory_order = std::memory_order_seq_cst) const { return step(Operation::Load, value_); }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    World::current()->stop_here();
    value_ = value;
    World::current()->has_read(1);
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    T const before = step(Operation::Exchange, value_);
    value_ = value;
    return before;
  }
  T fetch_add(T value, std::memory_order = std::memory_order_seq_cst) {
    T const before = step(Operation::Add, value_);
    value_ = static_cast<T>(before + value);
    return before;
  }
  T fetch_sub(T value, std::memory_order = std::memory_order_seq_cst) {
    T const before = step(Operation::Subtract, value_);
    value_ = static_cast<T>(before - value);
    return before;
  }
  T fetch_and(T value, std::memory_order = std::memory_order_seq_cst) {
    T const before = step(Operation::And, value_);
    value_ = static_cast<T>(before & value);
    return before;
  }
  T fetch_or(T value, std::memory_order = std::memory_order_seq_cst) {
    T const before = step(Operation::Or, value_);
    value_ = static_cast<T>(before | value);
    return before;
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) {
    return compare_exchange_weak(expected, desired);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                             std::memory_order = std::memory_order_seq_cst) {
    T const before = step(Operation::CompareExchange, value_);
    if (before == expected) {
      value_ = desired;
      return true;
    }
    expected = before;
    return false;
  }

 private:
  enum class Operation : std::uint64_t {
    Load = 3,
    Exchange = 5,
    Add = 7,
    Subtract = 11,
    CompareExchange = 13,
    And = 17,
    Or = 19
  };
  // Of a pointer: how far it is from here, which is the same in each replay within one scenario.
  std::uint64_t number(T value) const {
    if constexpr (std::is_pointer_v<T>) {
      return value == nullptr ? 1 : reinterpret_cast<std::uintptr_t>(value) - reinterpret_cast<std::uintptr_t>(this);
    } else {
      return static_cast<std::uint64_t>(value);
    }
  }
  // Stops, then notes what is read. `value_` is passed by reference: it may change while this thread is stopped.
  T step(Operation operation, T const& value) const {
    World::current()->stop_here();
    T const read = value;
    World::current()->has_read(mix(static_cast<std::uint64_t>(operation), number(read)));
    return read;
  }

  T value_;
  std::size_t id_;
};

// A mutex whose every operation is such a point, too. Outside threads (in a scenario's constructor) it does nothing.
class EARMARK_CAPABILITY("mutex") Mutex {
 public:
  Mutex() : id_(World::current()->add_cell([this] { return mix(past_, held_ ? 1 : 0); })) {}
  Mutex(Mutex const&) = delete;
  Mutex& operator=(Mutex const&) = delete;
  ~Mutex() { World::current()->remove_cell(id_); }

  void lock() EARMARK_ACQUIRE() {
    if (!World::current()->inside_thread()) { return; }
    World::current()->wait_until([this] { return !held_; });
    held_ = true;
    World::current()->has_read(past_);
  }
  bool try_lock() EARMARK_TRY_ACQUIRE(true) {
    if (!World::current()->inside_thread()) { return true; }
    World::current()->stop_here();
    bool const free = !held_;
    held_ = true;
    World::current()->has_read(free ? mix(past_, 1) : 2);
    return free;
  }
  void unlock() EARMARK_RELEASE() {
    if (!World::current()->inside_thread()) { return; }
    World::current()->stop_here();
    held_ = false;
    past_ = World::current()->what_a_mutex_remembers(past_);
    World::current()->has_read(3);
  }

 private:
  bool held_{false};
  std::uint64_t past_{0};
  std::size_t id_;
};

struct Atomics {
  template <class T>
  using Atomic = interleaving::Atomic<T>;
  using Mutex = interleaving::Mutex;
  using Thread = std::size_t;
  // Each thread has a core of its own.
  [[nodiscard]] static std::size_t core() noexcept { return World::current()->running_thread(); }
  [[nodiscard]] static Thread thread() noexcept { return World::current()->running_thread(); }
  template <class T>
  static void about_to_change(Atomic<T> const&) noexcept {}
  template <class Predicate>
  static void wait_until(Predicate const& ready) {
    World::current()->wait_until(ready);
  }
};

class Scenario {
 public:
  virtual ~Scenario() = default;
  [[nodiscard]] virtual std::vector<std::function<void()>> threads() = 0;
  virtual void after_step() {}
  virtual void at_end() {}
  // Plain members that threads change and that decide what happens later.
  [[nodiscard]] virtual std::uint64_t plain_state() const { return 0; }

 protected:
  static void require(bool holds, char const* what) {
    if (!holds) { World::current()->fail(what); }
  }
};

struct Exploration {
  std::string failure;                // empty: it holds in every order
  std::vector<std::size_t> schedule;  // the order in which it failed: which thread made each step
  std::size_t states{0};
  std::size_t endings{0};
  bool complete{true};  // false: given up after too many states
};

template <class S>
Exploration explore(std::size_t most_states = 5'000'000) {
  struct Choice {
    std::vector<std::size_t> threads;
    std::size_t taken;
  };
  Exploration result;
  std::unordered_set<std::uint64_t> seen;
  std::vector<Choice> path;
  std::vector<std::vector<char>> stacks;
  for (bool first = true;; first = false) {
    if (!first) {
      while (!path.empty() && path.back().taken + 1 >= path.back().threads.size()) { path.pop_back(); }
      if (path.empty() || seen.size() > most_states) { break; }
      ++path.back().taken;
    }
    World world;
    World::current() = &world;
    auto scenario = std::make_unique<S>();
    world.start(scenario->threads(), stacks);
    for (std::size_t depth = 0;; ++depth) {
      scenario->after_step();
      if (!world.failure().empty()) { break; }
      if (world.all_done()) {
        ++result.endings;
        scenario->at_end();
        break;
      }
      if (depth == path.size()) {
        std::vector<std::size_t> runnable = world.runnable();
        if (runnable.empty()) {
          world.fail("every thread waits");
          break;
        }
        if (!seen.insert(mix(world.hash(), scenario->plain_state())).second) { break; }
        path.push_back({std::move(runnable), 0});
      }
      world.run(world.fibers()[path[depth].threads[path[depth].taken]]);
    }
    scenario.reset();
    World::current() = nullptr;
    if (!world.failure().empty()) {
      result.failure = world.failure();
      for (Choice const& choice : path) { result.schedule.push_back(choice.threads[choice.taken]); }
      break;
    }
  }
  result.states = seen.size();
  result.complete = seen.size() <= most_states;
  return result;
}

}  // namespace earmark::interleaving
