// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrow inside a reservation.
#include <arrow/api.h>

#include <cstdlib>
#include <iostream>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory_arrow/arrow_memory_pool.hpp"

using namespace earmark;
using namespace earmark::literals;

int main() {
  HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, 1_GiB};
  HostMemoryReservation reservation = adaptor.reserve(1_MiB, {.label = "columns"});
  std::shared_ptr<arrow::MemoryPool> pool = make_arrow_memory_pool(reservation.resource());

  arrow::Int64Builder builder{pool.get()};
  arrow::Status const status = builder.Reserve(1'000'000);  // 8 MB: a status, not an exception
  if (auto const fields = memory_error_fields(status)) { std::cout << fields->shortfall << " bytes are missing\n"; }
  return status.IsOutOfMemory() ? EXIT_SUCCESS : EXIT_FAILURE;
}
