// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Random operations on an adaptor whose requests wait, with consumers, a nested adaptor, preallocated reservations and
// limits that move, compared after each with a model that is a few lines of plain arithmetic.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

constexpr int overtakes_allowed = 3;

// -- the model -------------------------------------------------------------------------------------------------------

struct ModelConsumer {
  std::int64_t quota;
  std::int64_t used{0};
  bool aborted{false};
};

struct ModelRequest {
  std::size_t id;
  std::int64_t bytes;
  int priority;
  std::int64_t delta;
  ModelConsumer* consumer;
  int overtaken{0};
};

// A limit and its queue. The nested one also takes from `lent`, the balance of the reservation it stands on.
struct ModelBudget {
  std::int64_t limit;
  std::int64_t committed{0};
  std::int64_t* lent{nullptr};
  std::list<ModelRequest> queue{};
  std::vector<std::pair<std::size_t, Outcome>> told{};
  std::int64_t missing{0};
  std::int64_t wanted{0};

  [[nodiscard]] std::int64_t available() const {
    return lent == nullptr ? limit - committed : std::min(limit - committed, *lent);
  }
  [[nodiscard]] std::int64_t pressure() const {
    return std::max({missing, wanted + committed - limit, committed - limit, std::int64_t{0}});
  }
  static bool within_quota(ModelRequest const& r) {
    return r.consumer == nullptr || r.consumer->used + r.bytes <= r.consumer->quota;
  }
  void take(ModelRequest const& r) {
    committed += r.bytes;
    if (lent != nullptr) { *lent -= r.bytes; }
    if (r.consumer != nullptr) { r.consumer->used += r.bytes; }
  }
  void give_back(std::int64_t bytes, ModelConsumer* consumer) {
    committed -= bytes;
    if (lent != nullptr) { *lent += bytes; }
    if (consumer != nullptr) { consumer->used -= bytes; }
    serve();
  }
  [[nodiscard]] bool takes_at_once(ModelRequest const& r) const {
    bool const there = r.bytes == 0 || (within_quota(r) && r.bytes <= available());  // nothing is always there
    return there && !(r.consumer != nullptr && r.consumer->aborted);
  }
  static bool barrier(ModelRequest const& r) { return r.overtaken >= overtakes_allowed; }
  static bool goes_before(ModelRequest const& a, ModelRequest const& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.delta < b.delta;
  }
  [[nodiscard]] std::optional<Outcome> hopeless(ModelRequest const& r) const {
    if (r.consumer != nullptr && r.consumer->aborted) { return Outcome::Aborted; }
    if (r.bytes > limit || (r.consumer != nullptr && r.bytes > r.consumer->quota)) { return Outcome::Impossible; }
    return std::nullopt;
  }

  void ask(ModelRequest const& r) {
    bool const passes_nobody = wanted == 0 && missing == 0;  // those who wait are short of nothing but a quota
    if ((passes_nobody || r.bytes == 0) && takes_at_once(r)) { return grant(r); }
    if (auto const why = hopeless(r)) { return told.emplace_back(r.id, *why), void(); }
    if (r.delta < 0 && takes_at_once(r) && std::none_of(queue.begin(), queue.end(), barrier)) {
      for (ModelRequest& other : queue) { ++other.overtaken; }
      return grant(r);
    }
    auto at = queue.end();
    while (at != queue.begin() && goes_before(r, *std::prev(at)) && !barrier(*std::prev(at))) {
      --at;
      ++at->overtaken;
    }
    queue.insert(at, r);
    serve();
  }
  void grant(ModelRequest const& r) {
    take(r);
    told.emplace_back(r.id, Outcome::Granted);
  }
  void serve() {
    missing = wanted = 0;
    for (auto at = queue.begin(); at != queue.end();) {
      if (!within_quota(*at)) {
        ++at;
      } else if (at->bytes > available()) {
        // What the root misses is looked up when it is asked for; what a lender said is kept.
        wanted = lent == nullptr ? at->bytes : 0;
        missing = lent == nullptr ? 0 : at->bytes - (at->bytes > limit - committed ? limit - committed : *lent);
        return;
      } else {
        grant(*at);
        at = queue.erase(at);
      }
    }
  }
  void drop_hopeless() {
    for (auto at = queue.begin(); at != queue.end();) {
      auto const why = hopeless(*at);
      if (why) { told.emplace_back(at->id, *why); }
      at = why ? queue.erase(at) : std::next(at);
    }
    serve();
  }
  void stop(std::size_t id) {
    auto const at = std::find_if(queue.begin(), queue.end(), [id](ModelRequest const& r) { return r.id == id; });
    if (at == queue.end()) { return; }
    told.emplace_back(id, Outcome::Aborted);
    queue.erase(at);
    serve();
  }
};

// -- both side by side -----------------------------------------------------------------------------------------------

class System {
 public:
  explicit System(std::size_t limit)
      : host_(limit + 1024, {.overtakes_allowed = overtakes_allowed}),
        lender_(host_.adaptor.reserve(1024)),
        nested_(lender_, 768, {.overtakes_allowed = overtakes_allowed}) {
    for (std::size_t i = 0; i < 2; ++i) {
      std::size_t const quota = size() * 2;
      consumers_.push_back(host_.adaptor.make_consumer("consumer", quota));
      model_consumers_.push_back({static_cast<std::int64_t>(quota)});
    }
    root_.limit = static_cast<std::int64_t>(limit) + 1024;
    root_.committed = 1024;
    inner_.limit = 768;
    inner_.lent = &lent_;
  }

  void step() {
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
      case 1:
      case 2:
      case 3: ask(); break;
      case 4:
      case 5:
      case 6: close(); break;
      case 7: stop(); break;
      case 8: use(); break;
      case 9: unreserved(); break;
      case 10: overbook(); break;
      default: *rc::gen::inRange(0, 5) == 0 ? abort() : change_limits(); break;
    }
    compare();
  }
  void finish() {
    for (Consumer& consumer : consumers_) { consumer.set_quota(1 << 20); }
    host_.adaptor.set_limit(1 << 20);
    nested_.set_limit(1 << 20);
    lender_.grow(1 << 18);
    for (Held& one : held_) {
      RC_ASSERT(one.asked.outcome() != Outcome::Waits);
      if (one.buffer != nullptr) { one.free(); }
      one.asked.drop();
    }
    if (plain_ != nullptr) { host_.adaptor.deallocate_sync(plain_, 64, 64); }
    over_.clear();
    RC_ASSERT(nested_.committed() == 0);
    RC_ASSERT(host_.adaptor.committed() == lender_.granted());
    for (Consumer& consumer : consumers_) { RC_ASSERT(consumer.used() == 0); }
    RC_ASSERT(host_.faults.live_bytes() == 0);
  }

 private:
  // A request and what it was granted.
  struct Held {
    Asked asked;
    std::stop_source stop;
    ModelBudget* budget;
    ModelConsumer* consumer;
    std::int64_t bytes;
    bool preallocated;
    Outcome expected{Outcome::Waits};
    bool open{true};  // once granted
    std::optional<HostMemoryReservation::Resource> resource{};
    void* buffer{nullptr};  // all that is granted, or nothing
    void free() { resource->deallocate_sync(std::exchange(buffer, nullptr), static_cast<std::size_t>(bytes), 64); }
  };

  static std::size_t size() { return 64 * *rc::gen::inRange<std::size_t>(0, 16); }
  Held* any() { return held_.empty() ? nullptr : &held_[*rc::gen::inRange<std::size_t>(0, held_.size())]; }

  void ask() {
    bool const inner = *rc::gen::inRange(0, 4) == 0;
    auto const who = inner ? 2 : *rc::gen::inRange<std::size_t>(0, 4);
    Consumer const* const consumer = who < 2 ? &consumers_[who] : nullptr;
    ModelConsumer* const model_consumer = who < 2 ? &model_consumers_[who] : nullptr;
    std::size_t const bytes = size();
    ReservationOptions options;
    options.consumer = consumer;
    options.backing = *rc::gen::inRange(0, 4) == 0 ? Backing::Preallocated : Backing::OnDemand;
    std::stop_source stop;
    WaitOptions wait;
    wait.priority = *rc::gen::inRange(0, 2);
    wait.net_memory_delta = 64 * *rc::gen::inRange(-1, 2);
    wait.stop = stop.get_token();
    ModelBudget& model = inner ? inner_ : root_;
    held_.push_back({Asked{inner ? nested_ : host_.adaptor, bytes, options, wait}, stop, &model, model_consumer,
                     static_cast<std::int64_t>(bytes), options.backing == Backing::Preallocated});
    model.ask(
        {held_.size() - 1, static_cast<std::int64_t>(bytes), wait.priority, wait.net_memory_delta, model_consumer});
  }
  // Closes a reservation; what it has allocated goes with a later free.
  void close() {
    Held* const one = any();
    if (one == nullptr || one->expected != Outcome::Granted || !one->open) { return; }
    one->asked.reservation().close();
    one->open = false;
    if (one->buffer == nullptr && one->bytes != 0) { one->budget->give_back(one->bytes, one->consumer); }
  }
  // Allocates all of a reservation, or frees that.
  void use() {
    Held* const one = any();
    if (one == nullptr || one->expected != Outcome::Granted || one->bytes == 0) { return; }
    if (one->buffer != nullptr) {
      one->free();
      if (!one->open) { one->budget->give_back(one->bytes, one->consumer); }
    } else if (one->open) {
      one->resource = one->asked.reservation().resource();
      one->buffer = one->resource->allocate_sync(static_cast<std::size_t>(one->bytes), 64);
    }
  }
  void stop() {
    if (Held* const one = any()) {
      one->stop.request_stop();
      one->budget->stop(static_cast<std::size_t>(one - held_.data()));
    }
  }
  void unreserved() {
    if (plain_ != nullptr) {
      host_.adaptor.deallocate_sync(std::exchange(plain_, nullptr), 64, 64);
      root_.give_back(64, nullptr);
    } else if (root_.available() >= 64) {
      plain_ = host_.adaptor.allocate_sync(64, 64);
      root_.committed += 64;
    } else {
      try {
        (void)host_.adaptor.allocate_sync(64, 64);
        RC_FAIL("passed the limit");
      }
      catch (ReservationExhausted const&) {
        // as it should be
      }
    }
  }
  void overbook() {
    if (!over_.empty() && *rc::gen::inRange(0, 2) == 0) {
      std::int64_t const bytes = over_.front().granted();
      over_.pop_front();
      if (bytes != 0) { root_.give_back(bytes, nullptr); }
      return;
    }
    std::int64_t const before = root_.available();
    over_.push_back(host_.adaptor.reserve(size(), AllowOverbooking::YES));
    std::int64_t const bytes = over_.back().granted();
    root_.committed += bytes;
    RC_ASSERT(over_.back().overbooking().tier_deficit == std::max<std::int64_t>(-root_.available(), 0));
    RC_ASSERT(over_.back().overbooking().short_for_this_request ==
              std::max<std::int64_t>(bytes - std::max<std::int64_t>(before, 0), 0));
  }
  void abort() {
    auto const who = *rc::gen::inRange<std::size_t>(0, 2);
    consumers_[who].abort();
    model_consumers_[who].aborted = true;
    root_.drop_hopeless();
  }
  void change_limits() {
    auto const who = *rc::gen::inRange<std::size_t>(0, 4);
    std::size_t const limit = *rc::gen::inRange<std::size_t>(0, 40) * 64;
    if (who < 2) {
      consumers_[who].set_quota(limit);
      model_consumers_[who].quota = static_cast<std::int64_t>(limit);
      root_.drop_hopeless();
    } else if (who == 2) {
      host_.adaptor.set_limit(limit);
      root_.limit = static_cast<std::int64_t>(limit);
      root_.drop_hopeless();
    } else {
      nested_.set_limit(limit);
      inner_.limit = static_cast<std::int64_t>(limit);
      inner_.drop_hopeless();
    }
  }

  void compare() {
    for (ModelBudget* budget : {&root_, &inner_}) {
      for (auto const& [id, outcome] : budget->told) { held_[id].expected = outcome; }
      budget->told.clear();
    }
    for (Held& one : held_) {
      RC_ASSERT(one.asked.outcome() == one.expected);
      RC_ASSERT(one.asked.calls() == (one.expected == Outcome::Waits ? 0 : 1));
      if (one.expected != Outcome::Granted) { continue; }
      std::int64_t const live = one.buffer == nullptr ? 0 : one.bytes;
      RC_ASSERT(one.asked.reservation().closed() == !one.open);
      if (one.open) { RC_ASSERT(one.asked.reservation().balance() == one.bytes - live); }
    }
    compare(host_.adaptor, root_);
    compare(nested_, inner_);
    RC_ASSERT(lender_.balance() == lent_);
    for (std::size_t i = 0; i < 2; ++i) { RC_ASSERT(consumers_[i].used() == model_consumers_[i].used); }
  }
  static void compare(HostReservationAwareResourceAdaptor const& adaptor, ModelBudget const& model) {
    MemoryReport const now = adaptor.report();
    RC_ASSERT(now.limit == model.limit);
    RC_ASSERT(now.committed == model.committed);
    RC_ASSERT(now.pressure == model.pressure());
    RC_ASSERT(now.waiting.size() == model.queue.size());
    std::size_t i = 0;
    for (ModelRequest const& request : model.queue) {
      RC_ASSERT(now.waiting[i].bytes == request.bytes);
      RC_ASSERT(now.waiting[i].overtaken == request.overtaken);
      ++i;
    }
  }

  WatchedHost host_;
  HostMemoryReservation lender_;
  std::int64_t lent_{1024};
  HostReservationAwareResourceAdaptor nested_;
  std::vector<Consumer> consumers_;
  std::deque<ModelConsumer> model_consumers_;
  ModelBudget root_{};
  ModelBudget inner_{};
  std::vector<Held> held_;
  std::deque<HostMemoryReservation> over_;
  void* plain_{nullptr};
};

RC_GTEST_PROP(WaitingModel, AgreesWithPlainArithmeticAfterEveryOperation, ()) {
  System system{*rc::gen::inRange<std::size_t>(0, 40) * 64};
  int const steps = *rc::gen::inRange(0, 120);
  for (int i = 0; i < steps; ++i) { system.step(); }
  system.finish();
}

}  // namespace
}  // namespace earmark
