# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# How a floor, a program, a test and a benchmark are declared:
#
#   earmark_add_library(memory                            # target earmark_memory, alias earmark::memory
#     HEADERS memory/budget.hpp memory/errors.hpp         # public, relative to include/earmark
#     SOURCES budget.cpp errors.cpp                       # relative to the current folder; none: headers only
#     DEPENDS earmark::core earmark::rmm                  # seen through the public headers
#     PRIVATE_DEPENDS fmt::fmt                            # not seen there
#     PRECOMPILE <arrow/api.h>)                           # heavy foreign headers, only where several units need them
#   earmark_add_program(earmark SOURCES main.cpp DEPENDS earmark::ops)
#   earmark_add_test(core bytes LIBRARIES earmark::core)  # tests/core/bytes_test.cpp; its cases are core.Suite.Case
#   earmark_add_cuda_test(memory on_device LIBRARIES earmark::memory)  # tests/memory/on_device_test.cu or .cpp, label gpu
#   earmark_add_python_test(cli bad_input)                # tests/cli/bad_input_test.py, run by pytest: cli.bad_input
#   earmark_add_benchmark(memory reservation LIBRARIES earmark::memory)  # bench/memory/reservation_bench.cpp
include(GoogleTest)

function(earmark_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS;PRECOMPILE")
  earmark_refuse_leftovers("${arg_UNPARSED_ARGUMENTS}")
  set(target earmark_${name})
  list(TRANSFORM arg_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/include/earmark/")

  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${arg_HEADERS})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
    if(arg_PRECOMPILE)
      target_precompile_headers(${target} PRIVATE ${arg_PRECOMPILE})
    endif()
    earmark_compile_settings(${target})
  else()
    add_library(${target} INTERFACE)
    target_sources(${target} INTERFACE FILE_SET HEADERS TYPE HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
                   FILES ${arg_HEADERS})
    target_link_libraries(${target} INTERFACE ${arg_DEPENDS})
  endif()
  add_library(earmark::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})

  install(TARGETS ${target} EXPORT earmark_${name} FILE_SET HEADERS)
  # For the installed package: a component is a floor, with what it needs.
  set_property(GLOBAL APPEND PROPERTY EARMARK_COMPONENTS ${name})
  set_property(GLOBAL PROPERTY EARMARK_COMPONENT_${name}_NEEDS ${arg_DEPENDS} ${arg_PRIVATE_DEPENDS})
endfunction()

function(earmark_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  earmark_refuse_leftovers("${arg_UNPARSED_ARGUMENTS}")
  set(target earmark_program_${name})
  add_executable(${target} ${arg_SOURCES})
  # The wheels' libraries are found where they are. Named here, since CMake leaves out of an installed program's search
  # path what lies inside the source tree, as the virtual environment does.
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} INSTALL_RPATH
    "${EARMARK_WHEELS}/librmm/lib64;${EARMARK_WHEELS}/rapids_logger/lib64;${EARMARK_WHEELS}/pyarrow")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS})
  earmark_compile_settings(${target})
  install(TARGETS ${target} RUNTIME)
endfunction()

function(earmark_add_test floor name)
  if(NOT EARMARK_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "SOURCES;LIBRARIES;PRECOMPILE")
  earmark_refuse_leftovers("${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(target ${floor}_${name}_test)
  add_executable(${target} "${PROJECT_SOURCE_DIR}/tests/${floor}/${name}_test.cpp" ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} GTest::gtest_main)
  if(arg_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${arg_PRECOMPILE})
  endif()
  earmark_compile_settings(${target})
  gtest_discover_tests(${target} TEST_PREFIX ${floor}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${floor} ENVIRONMENT "${EARMARK_TEST_ENVIRONMENT}")
endfunction()

# The test skips, with a reason, what it cannot do without a GPU. It is tests/FLOOR/NAME_test.cu or, if there is none,
# NAME_test.cpp, which compiles faster; kernels for those: earmark_test_kernels.
function(earmark_add_cuda_test floor name)
  if(NOT EARMARK_BUILD_TESTS OR NOT EARMARK_CUDA)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LIBRARIES")
  earmark_refuse_leftovers("${arg_UNPARSED_ARGUMENTS}")
  set(target ${floor}_${name}_test)
  set(source "${PROJECT_SOURCE_DIR}/tests/${floor}/${name}_test")
  if(EXISTS "${source}.cu")
    add_executable(${target} "${source}.cu")
    earmark_cuda_compile_settings(${target})
  else()
    add_executable(${target} "${source}.cpp")
    earmark_compile_settings(${target})
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
                                             LINKER_LANGUAGE CUDA)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} GTest::gtest_main)
  earmark_pack_for_gpu(${target} tests)
  gtest_discover_tests(${target} TEST_PREFIX ${floor}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 120 LABELS gpu)
endfunction()

# The test gets EARMARK_BIN (folder of the programs) and EARMARK_SANITIZE in its environment.
function(earmark_add_python_test floor name)
  if(NOT EARMARK_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "")
  earmark_refuse_leftovers("${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${floor}.${name}
           COMMAND "${PROJECT_SOURCE_DIR}/.venv/bin/python" -m pytest -q -p no:cacheprovider
                   "${PROJECT_SOURCE_DIR}/tests/${floor}/${name}_test.py")
  set(environment "EARMARK_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" "EARMARK_SANITIZE=${EARMARK_SANITIZE}"
                  PYTHONDONTWRITEBYTECODE=1 ${EARMARK_TEST_ENVIRONMENT})
  set_tests_properties(${floor}.${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${floor} ENVIRONMENT "${environment}")
endfunction()

# Prints figures: see bench/measuring/report.hpp. With PEERS it is the same program beside peers that are only there on
# request (cmake/EarmarkPeers.cmake), in bin/peers.
function(earmark_add_benchmark floor name)
  if(NOT EARMARK_BUILD_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "PEERS" "" "SOURCES;LIBRARIES")
  earmark_refuse_leftovers("${arg_UNPARSED_ARGUMENTS}")
  set(target ${floor}_${name}_bench)
  set(payload gpu)
  if(arg_PEERS)
    string(APPEND target _peers)
    set(payload gpu_peers)
  endif()
  add_executable(${target} "${PROJECT_SOURCE_DIR}/bench/${floor}/${name}_bench.cpp" ${arg_SOURCES})
  if(arg_PEERS)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/peers"
                                               OUTPUT_NAME ${floor}_${name}_bench)
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} earmark_measuring benchmark::benchmark)
  earmark_compile_settings(${target})
  # What is built on Google Benchmark's own main measures nothing of a GPU, and would need its shared library there.
  if(NOT benchmark::benchmark_main IN_LIST arg_LIBRARIES)
    earmark_pack_for_gpu(${target} bench PAYLOAD ${payload})
  endif()
endfunction()

function(earmark_refuse_leftovers leftovers)
  if(leftovers)
    message(FATAL_ERROR "unknown arguments: ${leftovers}")
  endif()
endfunction()
