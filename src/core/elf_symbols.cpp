// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "core/elf_symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace earmark::detail {
namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Entry = ElfW(Sym);

// A file whose every read is checked against its size, since what it says about itself may be wrong.
class CheckedFile {
 public:
  explicit CheckedFile(char const* path) : descriptor_(::open(path, O_RDONLY | O_CLOEXEC)) {
    struct stat status{};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }
  CheckedFile(CheckedFile const&) = delete;
  CheckedFile& operator=(CheckedFile const&) = delete;
  ~CheckedFile() {
    if (descriptor_ >= 0) { ::close(descriptor_); }
  }

  // Returns: whether all of `bytes` were there.
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const {
    if (!holds(offset, bytes)) { return false; }
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      ssize_t const got = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got <= 0) { return false; }
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  // Returns: the elements that lie in `bytes` bytes at `offset`; none when the file does not hold them.
  template <class T>
  std::vector<T> array(std::uint64_t offset, std::uint64_t bytes) const {
    if (!holds(offset, bytes)) { return {}; }
    std::vector<T> elements(bytes / sizeof(T));
    return read(offset, elements.data(), elements.size() * sizeof(T)) ? elements : std::vector<T>{};
  }

 private:
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }

  int descriptor_;
  std::uint64_t size_{0};
};

std::vector<Section> sections_of(CheckedFile const& file) {
  Header header{};
  if (!file.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      header.e_shentsize != sizeof(Section)) {
    return {};
  }
  return file.array<Section>(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Section));
}

}  // namespace

ElfSymbols::ElfSymbols(char const* path) {
  CheckedFile const file{path};
  auto const sections = sections_of(file);
  auto const table =
      std::find_if(sections.begin(), sections.end(), [](Section const& s) { return s.sh_type == SHT_SYMTAB; });
  if (table == sections.end() || table->sh_link >= sections.size()) { return; }
  auto const names = file.array<char>(sections[table->sh_link].sh_offset, sections[table->sh_link].sh_size);
  names_.assign(names.begin(), names.end());
  for (Entry const& entry : file.array<Entry>(table->sh_offset, table->sh_size)) {
    bool const is_function = (entry.st_info & 0xf) == STT_FUNC && entry.st_shndx != SHN_UNDEF;
    if (is_function && entry.st_name < names_.size()) {
      functions_.push_back({entry.st_value, entry.st_size, entry.st_name});
    }
  }
  std::sort(functions_.begin(), functions_.end(),
            [](Function const& a, Function const& b) { return a.start < b.start; });
}

std::optional<ElfSymbols::Symbol> ElfSymbols::find(std::uintptr_t address) const {
  auto const after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                      [](std::uintptr_t a, Function const& f) { return a < f.start; });
  if (after == functions_.begin()) { return std::nullopt; }
  Function const& function = *std::prev(after);
  // Code written in assembly may say no size.
  if (function.size != 0 && address - function.start >= function.size) { return std::nullopt; }
  return Symbol{names_.c_str() + function.name, address - function.start};
}

}  // namespace earmark::detail
