// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// One function per section of docs/reservations.md, which shows their lines. Each ends with nothing left.
#include <cstdlib>
#include <iostream>
#include <memory_resource>
#include <optional>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/core/log_sink.hpp"
#include "earmark/core/trace_ring.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory/pmr_memory_resource.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory/reservation_scope.hpp"
#include "earmark/testing/host_backed_device_resource.hpp"

using namespace earmark;
using namespace earmark::literals;

namespace {

using Adaptor = HostReservationAwareResourceAdaptor;

void ask(Adaptor& adaptor) {
  HostMemoryReservation r = adaptor.reserve(64_MiB, {.label = "scan"});  // or throws ReservationRefused
  if (auto maybe = adaptor.try_reserve(64_MiB)) {  // or nothing; does not throw for lack of memory
    std::cout << "got " << maybe->granted() << '\n';
  }
  HostMemoryReservation some = adaptor.reserve_up_to(1_GiB, /*at least*/ 1_MiB);
  std::cout << "got " << some.granted() << '\n';
}

void change(Adaptor& adaptor) {
  HostMemoryReservation r = adaptor.reserve(64_MiB);
  r.grow(16_MiB);                                // takes more from the adaptor, or throws
  HostMemoryReservation part = r.split(32_MiB);  // moves bytes; nobody can take them in between
  r.merge(std::move(part));                      // and back, live buffers included
  r.shrink_to_fit();                             // gives back what is unspent, and stays open
  r.close();                                     // gives back what is unspent; later allocations throw
}

// Runs inside whatever it is handed; does not know of reservations.
void sort(HostMemoryReservation::Resource memory) {
  void* const scratch = memory.allocate_sync(1_MiB);
  memory.deallocate_sync(scratch, 1_MiB);
}

void hand_over(Adaptor& adaptor) {
  HostMemoryReservation r = adaptor.reserve(64_MiB);
  sort(r.resource());  // the right to allocate; the bytes stay ours
}

void wait_with_a_thread(Adaptor& adaptor) {
  SteadyClock clock;
  WaitOptions wait;
  wait.priority = 1;                   // higher goes first
  wait.net_memory_delta = -1'048'576;  // this work ends with 1 MiB less in use: ahead of work that ends with more
  wait.deadline = clock.now() + std::chrono::seconds(10);
  wait.after_deadline = AfterDeadline::Refuse;  // or Overbook
  HostMemoryReservation r = adaptor.reserve_blocking(64_MiB, {.label = "join"}, wait);
}

void wait_without_a_thread(Adaptor& adaptor) {
  adaptor.async_reserve(64_MiB, [](ReservationResult<HostMemoryReservation> result) {
    if (result) {
      HostMemoryReservation r = result.take();
      std::cout << "granted " << r.granted() << '\n';
    }
  });
}

void hear_of_demand(Adaptor& adaptor) {
  PressureSubscription listening = adaptor.on_pressure([](std::int64_t missing) {
    std::cout << missing << " bytes are wanted\n";  // free something, or wake who can
  });
}

void share(Adaptor& adaptor) {
  Consumer query = adaptor.make_consumer("query 7", 256_MiB);
  HostMemoryReservation r = adaptor.reserve(64_MiB, {.consumer = &query});
  std::cout << query.used() << " of " << query.quota() << '\n';
  query.abort();  // all that it waits for, and all later reservations, throw ReservationAborted
}

void nest(Adaptor& adaptor) {
  HostMemoryReservation query = adaptor.reserve(256_MiB, {.label = "query"});
  HostReservationAwareResourceAdaptor tasks{query, 256_MiB};
  HostMemoryReservation task = tasks.reserve(32_MiB, {.label = "task"});
}

void take_at_once(Adaptor& adaptor) {
  HostMemoryReservation r = adaptor.reserve(16_MiB, {.backing = Backing::Preallocated});
  sort(r.resource());  // the upstream is not asked any more
}

void feed_the_standard_library(Adaptor& adaptor) {
  HostMemoryReservation r = adaptor.reserve(16_MiB);
  PmrMemoryResource memory{r};
  std::pmr::vector<int> rows{&memory};
  rows.resize(100'000);
}

// A library that takes no memory resource.
void third_party_sort(cuda::stream_ref stream) { rmm::device_buffer const scratch{4096, stream}; }

void catch_hidden_temporaries(cuda::stream_ref stream) {
  ReservationAwareResourceAdaptor adaptor{testing::HostBackedDeviceResource{}, 1_MiB};
  MemoryReservation reservation = adaptor.reserve(64_KiB);
  ScopeDispatcher dispatcher = install_scope_dispatcher(rmm::get_current_cuda_device());  // once, in main
  {
    ReservationScope scope{reservation};
    third_party_sort(stream);  // its scratch memory comes from the reservation
  }
}

void read_an_error(Adaptor& adaptor) {
  try {
    HostMemoryReservation r = adaptor.reserve(2_GiB, {.label = "too much"});
  }
  catch (ReservationRefused const& error) {
    ErrorFields const& fields = error.fields();
    std::cout << fields.shortfall << " of " << fields.requested << " bytes are missing; change "
              << fields.setting.view() << '\n';
    MemoryReport report = adaptor.report();
    report.failed = failed_request(error);
    std::cout << report.to_text();
  }
}

void look_around(Adaptor& adaptor) {
  AdaptorSnapshot const now = adaptor.snapshot();
  std::cout << now.committed << " committed, " << now.allocated << " live\n";
  for (OutstandingReservation const& one : adaptor.outstanding()) { std::cout << one.label << ' ' << one.live << '\n'; }
  for (LabelCounters const& label : adaptor.label_counters()) {
    std::cout << label.label << " waited " << label.waited.count() << " ns in " << label.waits << " waits\n";
  }
}

void watch() {
  StandardErrorLog log;
  TraceRing trace{{.events = 4096}};
  HostReservationAwareResourceAdaptor adaptor{
      HostMemoryResource{}, 1_GiB, {.call_stacks = CallStacks::Record, .trace = &trace, .log = &log}};
  (void)adaptor.reserve(64_MiB, {.label = "scan"});
  for (TraceEvent const& event : trace.read().events) {
    std::cout << to_string(event.kind) << ' ' << trace.text(event.label) << ' ' << event.bytes << '\n';
  }
}

}  // namespace

int main() {
  Adaptor adaptor{HostMemoryResource{}, 1_GiB};
  for (auto* section : {&ask, &change, &hand_over, &wait_with_a_thread, &wait_without_a_thread, &hear_of_demand, &share,
                        &nest, &take_at_once, &feed_the_standard_library, &read_an_error, &look_around}) {
    section(adaptor);
    if (adaptor.committed() != 0) { return EXIT_FAILURE; }
  }
  rmm::mr::set_per_device_resource(rmm::get_current_cuda_device(), testing::HostBackedDeviceResource{});
  catch_hidden_temporaries(cuda::stream_ref{cudaStream_t{}});
  watch();
  return EXIT_SUCCESS;
}
