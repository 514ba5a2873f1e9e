// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "arrow_types.hpp"

#include <arrow/api.h>

namespace earmark {

using arrow::field;

arrow::FieldVector flat_types() {
  std::vector<std::shared_ptr<arrow::DataType>> types{arrow::boolean(),
                                                      arrow::int8(),
                                                      arrow::int16(),
                                                      arrow::int32(),
                                                      arrow::int64(),
                                                      arrow::uint8(),
                                                      arrow::uint16(),
                                                      arrow::uint32(),
                                                      arrow::uint64(),
                                                      arrow::float16(),
                                                      arrow::float32(),
                                                      arrow::float64(),
                                                      arrow::utf8(),
                                                      arrow::binary(),
                                                      arrow::large_utf8(),
                                                      arrow::large_binary(),
                                                      arrow::utf8_view(),
                                                      arrow::binary_view(),
                                                      arrow::fixed_size_binary(1),
                                                      arrow::fixed_size_binary(16),
                                                      arrow::fixed_size_binary(33),
                                                      arrow::date32(),
                                                      arrow::date64(),
                                                      arrow::time32(arrow::TimeUnit::MILLI),
                                                      arrow::time32(arrow::TimeUnit::SECOND),
                                                      arrow::time64(arrow::TimeUnit::MICRO),
                                                      arrow::time64(arrow::TimeUnit::NANO),
                                                      arrow::timestamp(arrow::TimeUnit::SECOND),
                                                      arrow::timestamp(arrow::TimeUnit::MILLI),
                                                      arrow::timestamp(arrow::TimeUnit::MICRO, "Europe/Berlin"),
                                                      arrow::timestamp(arrow::TimeUnit::NANO),
                                                      arrow::timestamp(arrow::TimeUnit::NANO, "UTC"),
                                                      arrow::duration(arrow::TimeUnit::MILLI),
                                                      arrow::dictionary(arrow::int32(), arrow::utf8()),
                                                      arrow::null()};
  arrow::FieldVector fields;
  for (auto const& type : types) {
    fields.push_back(field("n_" + type->ToString(), type, true));
    if (type->id() != arrow::Type::NA) { fields.push_back(field("r_" + type->ToString(), type, false)); }
  }
  return fields;
}

arrow::FieldVector decimal_types() {
  arrow::FieldVector fields;
  for (int precision = 1; precision <= 38; ++precision) {
    fields.push_back(
        field("d128_" + std::to_string(precision), arrow::decimal128(precision, precision / 2), precision % 2 == 0));
  }
  for (int precision : {1, 5, 9, 10, 18, 19, 38, 39, 57, 75, 76}) {
    fields.push_back(
        field("d256_" + std::to_string(precision), arrow::decimal256(precision, precision / 2), precision % 2 == 0));
  }
  fields.push_back(field("d32", arrow::decimal32(7, 2)));
  fields.push_back(field("d64", arrow::decimal64(15, 2), false));
  return fields;
}

arrow::FieldVector nested_types() {
  auto const numbers = arrow::list(field("element", arrow::int32()));
  auto const person = arrow::struct_({field("name", arrow::utf8()), field("age", arrow::int16(), false),
                                      field("tags", arrow::list(field("element", arrow::utf8())))});
  return {field("list_i32", numbers),
          field("list_required", arrow::list(field("element", arrow::int64(), false)), false),
          field("list_utf8", arrow::list(field("element", arrow::utf8()))),
          field("large_list", arrow::large_list(field("element", arrow::float64()))),
          field("list_list", arrow::list(field("element", numbers))),
          field("list_list_list",
                arrow::list(
                    field("element", arrow::list(field("element", arrow::list(field("element", arrow::binary()))))))),
          field("struct", person),
          field("struct_required", person, false),
          field("list_struct", arrow::list(field("element", person))),
          field("struct_struct", arrow::struct_({field("inner", person), field("flag", arrow::boolean())})),
          field("map", arrow::map(arrow::utf8(), arrow::int32())),
          field("map_of_lists", arrow::map(arrow::int32(), numbers)),
          field("list_bool", arrow::list(field("element", arrow::boolean()))),
          field("list_half", arrow::list(field("element", arrow::float16()))),
          field("list_decimal", arrow::list(field("element", arrow::decimal128(12, 2)))),
          field("list_fixed", arrow::list(field("element", arrow::fixed_size_binary(5)))),
          field("list_timestamp", arrow::list(field("element", arrow::timestamp(arrow::TimeUnit::NANO)))),
          field("fixed_list", arrow::fixed_size_list(field("element", arrow::int32(), false), 3), false),
          field("list_null", arrow::list(field("element", arrow::null())))};
}

std::shared_ptr<arrow::Schema> schema_with_key(arrow::FieldVector fields) {
  fields.insert(fields.begin(), field("key", arrow::int64()));
  return arrow::schema(std::move(fields), arrow::key_value_metadata({"owner"}, {"tests"}));
}

std::shared_ptr<parquet::WriterProperties> properties(
    std::function<void(parquet::WriterProperties::Builder&)> const& set) {
  parquet::WriterProperties::Builder builder;
  set(builder);
  return builder.build();
}

}  // namespace earmark
