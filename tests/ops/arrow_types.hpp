// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Schemas with every type that Arrow writes to Parquet. Thread safety: pure functions.
#pragma once

#include <arrow/type.h>
#include <parquet/properties.h>

#include <functional>
#include <memory>

namespace earmark {

// Every flat type but decimals, nullable ("n_...") and required ("r_...").
arrow::FieldVector flat_types();
// Decimals of every width and many precisions.
arrow::FieldVector decimal_types();
arrow::FieldVector nested_types();
// Returns: the fields after a nullable int64 named "key", with metadata.
std::shared_ptr<arrow::Schema> schema_with_key(arrow::FieldVector fields);

std::shared_ptr<parquet::WriterProperties> properties(
    std::function<void(parquet::WriterProperties::Builder&)> const& set);

}  // namespace earmark
