// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/call_stack.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "core/elf_symbols.hpp"

namespace earmark {
namespace {

struct Walk {
  void** frames;
  std::size_t most;
  std::size_t skip;
  std::size_t size;
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  auto const address = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
  if (address == 0 || walk.size == walk.most) { return _URC_END_OF_STACK; }
  if (walk.skip > 0) {
    --walk.skip;
  } else {
    walk.frames[walk.size++] = reinterpret_cast<void*>(address);
  }
  return _URC_NO_REASON;
}

std::string hexadecimal(std::uintptr_t value) {
  char digits[2 * sizeof value];
  auto const end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  return "0x" + std::string(digits, end);
}

std::string demangled(char const* name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> const text{abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free};
  return status == 0 ? std::string{text.get()} : std::string{name};
}

// Where an address lies: in which file, how far into it, and in which function.
class Modules {
 public:
  std::string describe(std::uintptr_t address) {
    Dl_info info{};
    link_map* module = nullptr;
    if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0) {
      return hexadecimal(address);
    }
    std::string_view const path = info.dli_fname == nullptr ? std::string_view{} : info.dli_fname;
    std::uintptr_t const offset = address - module->l_addr;
    std::string const place = std::string{path.substr(path.rfind('/') + 1)} + "+" + hexadecimal(offset);
    // The program itself has no name in the loader's list, and the folder that `path` is relative to may have changed.
    bool const is_program = module->l_name == nullptr || *module->l_name == '\0';
    if (auto const symbol = symbols_of(is_program ? "/proc/self/exe" : module->l_name).find(offset)) {
      return demangled(symbol->name) + "+" + hexadecimal(symbol->offset) + " (" + place + ")";
    }
    if (info.dli_sname != nullptr) {
      auto const start = reinterpret_cast<std::uintptr_t>(info.dli_saddr);
      return demangled(info.dli_sname) + "+" + hexadecimal(address - start) + " (" + place + ")";
    }
    return place;
  }

 private:
  detail::ElfSymbols const& symbols_of(std::string const& path) {
    return symbols_.try_emplace(path, path.c_str()).first->second;
  }

  std::map<std::string, detail::ElfSymbols> symbols_;
};

}  // namespace

[[gnu::noinline]] CallStack CallStack::capture(std::size_t skip) noexcept {
  CallStack stack;
  Walk walk{stack.frames_.data(), most_frames, skip + 1, 0};  // this function is the first frame
  _Unwind_Backtrace(&visit_frame, &walk);
  stack.size_ = walk.size;
  return stack;
}

std::string CallStack::to_text() const {
  Modules modules;
  std::string text;
  std::size_t number = 0;
  for (void* const frame : frames()) {
    // A return address may already belong to the next function; the byte before it is the call's.
    std::string const where = modules.describe(reinterpret_cast<std::uintptr_t>(frame) - 1);
    text.append(number < 10 ? " " : "").append(std::to_string(number)).append(": ").append(where).append("\n");
    ++number;
  }
  return text;
}

}  // namespace earmark
