// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "schema_difference.hpp"

#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace earmark::detail {
namespace {

// Returns: the first difference of two schema nodes, if any. `path`: where they stand.
std::optional<SchemaDifference> difference(::parquet::schema::Node const& a, ::parquet::schema::Node const& b,
                                           std::string const& path) {
  auto const here = [&](std::string_view what, auto const& expected, auto const& found) {
    return SchemaDifference{fmt::format("column '{}': {} is {} instead of {}", path, what, found, expected), path};
  };
  bool const is_root = a.parent() == nullptr;  // its name and repetition mean nothing: every writer has its own
  if (!is_root && a.name() != b.name()) { return here("name", "'" + a.name() + "'", "'" + b.name() + "'"); }
  if (!is_root && a.repetition() != b.repetition()) {
    auto const text = [](auto const& node) {
      return node.is_required() ? "required" : node.is_optional() ? "optional (nullable)" : "repeated";
    };
    return here("repetition", text(a), text(b));
  }
  if (a.is_group() != b.is_group()) {
    return here("kind", a.is_group() ? "nested" : "flat", b.is_group() ? "nested" : "flat");
  }
  bool const same_logical = (a.logical_type() == nullptr) == (b.logical_type() == nullptr) &&
                            (a.logical_type() == nullptr || a.logical_type()->Equals(*b.logical_type()));
  if (!same_logical) {
    auto const text = [](auto const& node) { return node.logical_type() ? node.logical_type()->ToString() : "none"; };
    return here("logical type", text(a), text(b));
  }
  if (a.is_primitive()) {
    auto const& x = static_cast<::parquet::schema::PrimitiveNode const&>(a);
    auto const& y = static_cast<::parquet::schema::PrimitiveNode const&>(b);
    if (x.physical_type() != y.physical_type()) {
      return here("physical type", ::parquet::TypeToString(x.physical_type()),
                  ::parquet::TypeToString(y.physical_type()));
    }
    bool const has_length = x.physical_type() == ::parquet::Type::FIXED_LEN_BYTE_ARRAY;  // others may say 0 or -1
    if (has_length && x.type_length() != y.type_length()) { return here("length", x.type_length(), y.type_length()); }
    return std::nullopt;
  }
  auto const& x = static_cast<::parquet::schema::GroupNode const&>(a);
  auto const& y = static_cast<::parquet::schema::GroupNode const&>(b);
  auto const child_path = [&path](::parquet::schema::Node const& child) {
    return path.empty() ? child.name() : path + "." + child.name();
  };
  int const common = std::min(x.field_count(), y.field_count());
  for (int i = 0; i < common; ++i) {
    if (auto found = difference(*x.field(i), *y.field(i), child_path(*x.field(i)))) { return found; }
  }
  if (x.field_count() == y.field_count()) { return std::nullopt; }
  bool const is_missing = x.field_count() > y.field_count();
  std::string const column = child_path(*(is_missing ? x : y).field(common));
  return SchemaDifference{fmt::format("column '{}' is {}", column, is_missing ? "missing" : "extra"), column};
}

// Returns: the first field where one type is a duration and the other is not the same: Parquet stores durations as
// plain integers and knows no unit. Other types that share one form in Parquet mean the same.
std::optional<SchemaDifference> duration_difference(::arrow::Field const& a, ::arrow::Field const& b,
                                                    std::string const& path) {
  auto const& x = *a.type();
  auto const& y = *b.type();
  if ((x.id() == ::arrow::Type::DURATION || y.id() == ::arrow::Type::DURATION) && !x.Equals(y)) {
    return SchemaDifference{
        fmt::format("column '{}': Arrow type is {} instead of {}", path, y.ToString(), x.ToString()), path};
  }
  for (int i = 0; i < std::min(x.num_fields(), y.num_fields()); ++i) {
    if (auto found = duration_difference(*x.field(i), *y.field(i), path + "." + x.field(i)->name())) { return found; }
  }
  return std::nullopt;
}

// Compares the Arrow schemas that writers may leave beside the Parquet schema, where both files have one.
std::optional<SchemaDifference> stored_duration_difference(::parquet::FileMetaData const& a,
                                                           ::parquet::FileMetaData const& b) {
  auto const stored = [](::parquet::FileMetaData const& footer) -> std::string {
    auto const& metadata = footer.key_value_metadata();
    return metadata ? metadata->Get("ARROW:schema").ValueOr("") : "";
  };
  std::string const x = stored(a);
  std::string const y = stored(b);
  if (x.empty() || y.empty() || x == y) { return std::nullopt; }
  auto const arrow_schema = [](::parquet::FileMetaData const& footer) {
    std::shared_ptr<::arrow::Schema> schema;
    PARQUET_THROW_NOT_OK(::parquet::arrow::FromParquetSchema(footer.schema(), ::parquet::ArrowReaderProperties(),
                                                             footer.key_value_metadata(), &schema));
    return schema;
  };
  auto const first = arrow_schema(a);
  auto const second = arrow_schema(b);
  for (int i = 0; i < std::min(first->num_fields(), second->num_fields()); ++i) {
    auto const& field = *first->field(i);
    if (auto found = duration_difference(field, *second->field(i), field.name())) { return found; }
  }
  return std::nullopt;
}

}  // namespace

std::optional<SchemaDifference> schema_difference(::parquet::SchemaDescriptor const& expected,
                                                  ::parquet::SchemaDescriptor const& found) {
  return difference(*expected.schema_root(), *found.schema_root(), "");
}

std::optional<SchemaDifference> schema_difference(::parquet::FileMetaData const& expected,
                                                  ::parquet::FileMetaData const& found) {
  if (auto result = schema_difference(*expected.schema(), *found.schema())) { return result; }
  return stored_duration_difference(expected, found);
}

}  // namespace earmark::detail
