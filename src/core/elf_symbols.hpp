// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions that the symbol table of an ELF file names. The loader itself knows only exported names; the full
// table lies in the file, if it was not stripped.
// Thread safety: immutable once made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace earmark::detail {

class ElfSymbols {
 public:
  // Reads the file's table; a file that cannot be read, or is no ELF file of this machine's kind, names nothing.
  // Throws: std::bad_alloc.
  explicit ElfSymbols(char const* path);

  struct Symbol {
    char const* name{nullptr};  // as the linker spells it; valid while the table lives
    std::uintptr_t offset{0};   // from the function's start
  };
  // `address`: as the file counts, without the address that it was loaded at.
  [[nodiscard]] std::optional<Symbol> find(std::uintptr_t address) const;

 private:
  struct Function {
    std::uintptr_t start;
    std::uintptr_t size;
    std::uint32_t name;  // offset in `names_`
  };
  std::vector<Function> functions_;  // by start
  std::string names_;
};

}  // namespace earmark::detail
