// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The order in which those who wait are served, also against a model of ten lines.
#include "earmark/memory/wait_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "earmark/memory/basic_budget.hpp"

namespace earmark::detail {
namespace {

using Core = BasicBudget<StdAtomics>;
using Queue = BasicWaitQueue<StdAtomics>;

class Request final : public BasicWaitRequest<StdAtomics> {
 public:
  Request(char name, Core& purse, int priority, std::int64_t delta, std::int64_t bytes = 1)
      : BasicWaitRequest(bytes, purse, priority, delta), name_(name) {}
  [[nodiscard]] char name() const { return name_; }

 private:
  void complete() noexcept override {}
  char name_;
};

class Waiting : public ::testing::Test {
 protected:
  Request& add(char name, int priority = 0, std::int64_t delta = 0) {
    Request& request = *requests_.emplace_back(std::make_unique<Request>(name, purse_, priority, delta));
    queue_.insert(request);
    return request;
  }
  [[nodiscard]] std::string order() const {
    std::string names;
    for (auto* request = queue_.first(); request != nullptr; request = Queue::next(*request)) {
      names += static_cast<Request&>(*request).name();
    }
    return names;
  }

  Core purse_{100, 0, 2};
  Queue queue_{2};
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST_F(Waiting, IsServedInTheOrderOfArrival) {
  add('a');
  add('b');
  add('c');
  EXPECT_EQ(order(), "abc");
  EXPECT_EQ(queue_.size(), 3U);
}

TEST_F(Waiting, IsServedByPriorityFirst) {
  add('a');
  add('b', 1);
  add('c', 2, 100);
  EXPECT_EQ(order(), "cba");
}

TEST_F(Waiting, IsServedEarlierWhenItLetsGoOfMore) {
  add('a', 0, 10);
  add('b', 0, -10);
  add('c', 0, 0);
  EXPECT_EQ(order(), "bca");
}

TEST_F(Waiting, IsPassedNoMoreOnceItWasOvertakenTooOften) {
  Request& a = add('a');
  add('b', 1);
  EXPECT_FALSE(queue_.has_barrier());
  add('c', 1);
  EXPECT_TRUE(queue_.has_barrier());
  add('d', 9);
  EXPECT_EQ(order(), "bcad");
  EXPECT_TRUE(queue_.remove(a));
  EXPECT_FALSE(queue_.has_barrier());
  EXPECT_FALSE(queue_.remove(a)) << "it is not there any more";
}

TEST_F(Waiting, CountsThoseWhoWereServedWithoutQueueing) {
  Request& a = add('a');
  queue_.overtake_all();
  EXPECT_EQ(a.overtaken(), 1);
  EXPECT_FALSE(queue_.has_barrier());
  queue_.overtake_all();
  EXPECT_TRUE(queue_.has_barrier());
}

TEST(WaitingFor, ABudgetLetsWhoeverLetsGoOfMoreThanHeAsksPassUntilSomebodyIsOwed) {
  Core budget{4, 0, 2};
  (void)budget.take(2, Pass::Yes);
  Request big{'a', budget, 0, 0, 3};
  ASSERT_EQ(budget.take_or_enqueue(big).result, Take::Queue);
  Request polite{'p', budget, 0, 0, 1};
  ASSERT_EQ(budget.take_or_enqueue(polite).result, Take::Queue) << "there is a byte, but others wait";
  for (char name : {'b', 'c'}) {
    Request freeing{name, budget, 0, -5, 1};
    EXPECT_EQ(budget.take_or_enqueue(freeing).result, Take::Ok);
    budget.credit(1);
  }
  Request too_late{'d', budget, 0, -5, 1};
  EXPECT_EQ(budget.take_or_enqueue(too_late).result, Take::Queue);
  EXPECT_TRUE(budget.cancel(too_late, Take::Short));
  EXPECT_TRUE(budget.cancel(big, Take::Short));
  EXPECT_EQ(polite.outcome().result, Take::Ok);
}

// The model: a list; a newcomer goes in behind the last that it may not pass.
struct Modelled {
  char name;
  int priority;
  std::int64_t delta;
  int overtaken{0};
};
void insert(std::vector<Modelled>& model, Modelled const& one, int allowed) {
  auto at = model.end();
  while (at != model.begin()) {
    Modelled& ahead = *(at - 1);
    bool const before = one.priority != ahead.priority ? one.priority > ahead.priority : one.delta < ahead.delta;
    if (!before || ahead.overtaken >= allowed) { break; }
    ++ahead.overtaken;
    --at;
  }
  model.insert(at, one);
}

RC_GTEST_PROP(WaitQueueModel, OrdersAsTheModelDoes, ()) {
  int const allowed = *rc::gen::inRange(0, 4);
  Core purse{100, 0, allowed};
  Queue queue{allowed};
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Modelled> model;
  int const steps = *rc::gen::inRange(0, 40);
  for (int step = 0; step < steps; ++step) {
    if (!model.empty() && *rc::gen::inRange(0, 3) == 0) {
      auto const at = static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(model.size())));
      auto const it = std::find_if(requests.begin(), requests.end(),
                                   [&](auto const& request) { return request->name() == model[at].name; });
      RC_ASSERT(queue.remove(**it));
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      Modelled const one{static_cast<char>('0' + step), *rc::gen::inRange(0, 3), *rc::gen::inRange(-2, 3)};
      requests.push_back(std::make_unique<Request>(one.name, purse, one.priority, one.delta));
      queue.insert(*requests.back());
      insert(model, one, allowed);
    }
    auto* request = queue.first();
    bool barrier = false;
    for (Modelled const& one : model) {
      RC_ASSERT(request != nullptr);
      RC_ASSERT(static_cast<Request&>(*request).name() == one.name);
      RC_ASSERT(request->overtaken() == one.overtaken);
      barrier = barrier || one.overtaken >= allowed;
      request = Queue::next(*request);
    }
    RC_ASSERT(request == nullptr);
    RC_ASSERT(queue.size() == model.size());
    RC_ASSERT(queue.has_barrier() == barrier);
  }
}

}  // namespace
}  // namespace earmark::detail
