// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A call to CUDA's run time that failed. It is an `rmm::cuda_error` as well, which code written for RMM catches, and an
// `EarmarkError`, whose byte counts are 0 here.
// Thread safety: immutable once thrown.
#pragma once

#include <driver_types.h>

#include <rmm/error.hpp>

#include "earmark/core/error.hpp"

namespace earmark {

class CudaError : public rmm::cuda_error, public EarmarkError {
 public:
  // `call`: what was called, for the text.
  CudaError(char const* call, cudaError_t code);

  [[nodiscard]] cudaError_t code() const noexcept { return code_; }
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  cudaError_t code_;
  ErrorFields fields_;
};

}  // namespace earmark
