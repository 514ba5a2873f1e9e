// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "column_names.hpp"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/type.h>
#include <arrow/util/base64.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

constexpr std::string_view arrow_schema_key = "ARROW:schema";
// What readers believe more than the file's own schema, and only whoever wrote it can cut: Spark's, Avro's,
// GeoParquet's.
constexpr std::array<std::string_view, 4> whole_file_keys = {"org.apache.spark.sql.parquet.row.metadata",
                                                             "parquet.avro.schema", "avro.schema", "geo"};

bool describes_whole_file(std::string_view key) {
  return std::find(whole_file_keys.begin(), whole_file_keys.end(), key) != whole_file_keys.end();
}

std::string available_columns(::parquet::schema::GroupNode const& root) {
  constexpr int most = 20;
  std::vector<std::string> names;
  for (int i = 0; i < std::min(root.field_count(), most); ++i) { names.push_back("'" + root.field(i)->name() + "'"); }
  return fmt::format("{}{}", fmt::join(names, ", "), root.field_count() > most ? ", ..." : "");
}

::arrow::Result<std::string> cut_arrow_schema(std::string const& stored, std::vector<int> const& columns, int count) {
  ARROW_ASSIGN_OR_RAISE(std::string const decoded, ::arrow::util::base64_decode(stored));
  ::arrow::io::BufferReader source(::arrow::Buffer::FromString(decoded));
  ::arrow::ipc::DictionaryMemo memo;
  ARROW_ASSIGN_OR_RAISE(auto const schema, ::arrow::ipc::ReadSchema(&source, &memo));
  if (schema->num_fields() != count) { return ::arrow::Status::Invalid("it is of another file"); }
  ::arrow::FieldVector fields;
  for (int const column : columns) { fields.push_back(schema->field(column)); }
  ARROW_ASSIGN_OR_RAISE(auto const cut, ::arrow::ipc::SerializeSchema(::arrow::Schema(fields, schema->metadata())));
  return ::arrow::util::base64_encode(std::string_view(*cut));
}

}  // namespace

std::optional<int> find_top_level_column(ParquetInput const& input, std::string const& name, std::string_view role) {
  ::parquet::schema::GroupNode const& root = *input.schema().group_node();
  std::optional<int> found;
  for (int i = 0; i < root.field_count(); ++i) {
    if (root.field(i)->name() != name) { continue; }
    if (found) {
      throw InputError(
          fmt::format("the {} '{}' is ambiguous: '{}' has several of that name", role, name, input.path(0)),
          input.path(0), name);
    }
    found = i;
  }
  return found;
}

void fail_for_unknown_column(ParquetInput const& input, std::string const& name, std::string_view role) {
  throw InputError(fmt::format("unknown {} '{}': '{}' has {}", role, name, input.path(0),
                               available_columns(*input.schema().group_node())),
                   input.path(0), name);
}

std::vector<int> find_output_columns(ParquetInput const& input, std::optional<std::vector<std::string>> const& names) {
  constexpr std::string_view role = "column";
  std::vector<int> columns;
  if (!names) {
    columns.resize(static_cast<std::size_t>(input.schema().group_node()->field_count()));
    std::iota(columns.begin(), columns.end(), 0);
    return columns;
  }
  for (std::string const& name : *names) {
    auto const column = find_top_level_column(input, name, role);
    if (!column) { fail_for_unknown_column(input, name, role); }
    if (std::find(columns.begin(), columns.end(), *column) != columns.end()) {
      throw UsageError(fmt::format("the column '{}' is named twice", name));
    }
    columns.push_back(*column);
  }
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::vector<LeafColumn> leaf_columns_below(::parquet::SchemaDescriptor const& input,
                                           std::vector<int> const& top_level_columns) {
  std::vector<bool> wanted(static_cast<std::size_t>(input.group_node()->field_count()));
  for (int const column : top_level_columns) { wanted[static_cast<std::size_t>(column)] = true; }
  std::vector<LeafColumn> leaves = leaf_columns(input);
  std::erase_if(leaves, [&](LeafColumn const& leaf) {
    int const column = input.group_node()->FieldIndex(*input.GetColumnRoot(leaf.index));
    return !wanted[static_cast<std::size_t>(column)];
  });
  return leaves;
}

std::shared_ptr<::arrow::KeyValueMetadata const> metadata_for_columns(::parquet::FileMetaData const& footer,
                                                                      std::vector<int> const& top_level_columns) {
  auto const& all = footer.key_value_metadata();
  int const count = footer.schema()->group_node()->field_count();
  if (!all || static_cast<int>(top_level_columns.size()) == count) { return all; }
  auto kept = std::make_shared<::arrow::KeyValueMetadata>();
  for (std::int64_t i = 0; i < all->size(); ++i) {
    if (describes_whole_file(all->key(i))) { continue; }
    if (all->key(i) != arrow_schema_key) {
      kept->Append(all->key(i), all->value(i));
    } else if (auto cut = cut_arrow_schema(all->value(i), top_level_columns, count); cut.ok()) {
      kept->Append(all->key(i), *cut);
    }
  }
  return kept;
}

}  // namespace earmark::detail
