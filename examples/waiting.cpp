// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Two threads wait for memory and get it in their order, without polling: whoever brings memory back serves the queue.
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "earmark/core/bytes.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

using namespace earmark::literals;

namespace {

class Order {
 public:
  void note(char const* who) {
    earmark::MutexLock lock{mutex_};
    order_ += who;
  }
  [[nodiscard]] std::string order() {
    earmark::MutexLock lock{mutex_};
    return order_;
  }

 private:
  earmark::Mutex mutex_;
  std::string order_ EARMARK_GUARDED_BY(mutex_);
};

// So that the program always shows the same: the second asks only once the first stands in the queue.
void await_queue_of(earmark::HostReservationAwareResourceAdaptor const& memory, std::size_t length) {
  while (memory.report().waiting.size() != length) { std::this_thread::yield(); }
}

}  // namespace

int main() {
  earmark::HostReservationAwareResourceAdaptor memory{earmark::HostMemoryResource{}, 1_MiB};
  Order order;
  earmark::HostMemoryReservation all = memory.reserve(1_MiB, {.label = "main"});

  std::thread patient{[&] {
    earmark::HostMemoryReservation const mine = memory.reserve_blocking(768_KiB, {.label = "patient"});
    order.note("patient ");
  }};
  await_queue_of(memory, 1);
  std::thread urgent{[&] {
    earmark::WaitOptions wait;
    wait.priority = 1;
    earmark::HostMemoryReservation const mine = memory.reserve_blocking(512_KiB, {.label = "urgent"}, wait);
    order.note("urgent ");  // before it gives anything back
  }};
  await_queue_of(memory, 2);

  std::cout << memory.report().to_text();
  all.close();  // serves the urgent one here and now; what it gives back serves the patient one
  patient.join();
  urgent.join();
  std::cout << order.order() << '\n';
  return order.order() == "urgent patient " ? EXIT_SUCCESS : EXIT_FAILURE;
}
