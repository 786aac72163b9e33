# SPDX-License-Identifier: Apache-2.0
# One target per folder: ballast_library(NAME SOURCES ... DEPS ... TESTS ... FUZZ ... BENCH ...).

find_package(Threads REQUIRED)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(ballast_flags INTERFACE)
target_include_directories(ballast_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(ballast_flags INTERFACE BALLAST_VERSION="${PROJECT_VERSION}")
target_compile_options(ballast_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Werror -fno-omit-frame-pointer
  -Wno-maybe-uninitialized)  # false with variants under -O2 in gcc 12
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(ballast_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(BALLAST_SANITIZE)
  # What a sanitizer finds ends the process, so that a test or a fuzzer cannot overlook it.
  target_compile_options(ballast_flags INTERFACE
    -fsanitize=${BALLAST_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(ballast_flags INTERFACE -fsanitize=${BALLAST_SANITIZE})
endif()
if(BALLAST_FUZZ)
  add_custom_target(fuzzers)
  # The libraries too, or the fuzzer sees no coverage beyond its own entry point.
  target_compile_options(ballast_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(BALLAST_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

find_package(benchmark QUIET)

function(ballast_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS;FUZZ;BENCH" ${ARGN})
  if(ARG_SOURCES)
    add_library(ballast_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(ballast_${name} PUBLIC ballast_flags ${ARG_DEPS})
  else()
    add_library(ballast_${name} INTERFACE)
    target_link_libraries(ballast_${name} INTERFACE ballast_flags ${ARG_DEPS})
  endif()
  if(BALLAST_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE ballast_${name} GTest::gtest_main)
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60)
  endif()
  foreach(source ${ARG_FUZZ})
    get_filename_component(fuzzer ${source} NAME_WE)
    if(BALLAST_FUZZ)
      add_executable(${fuzzer} ${source})
      target_compile_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      add_dependencies(fuzzers ${fuzzer})
    elseif(BALLAST_TESTS)
      # Without libFuzzer the seeds still run, through a plain main().
      add_executable(${fuzzer} ${source} ${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc)
      add_test(NAME fuzz_seeds.${fuzzer} COMMAND ${fuzzer} ${CMAKE_SOURCE_DIR}/fuzz/seeds/${fuzzer})
    else()
      continue()
    endif()
    target_link_libraries(${fuzzer} PRIVATE ballast_${name})
  endforeach()
  # Built on request only: cmake --build --preset release --target x_bench.
  foreach(source ${ARG_BENCH})
    if(benchmark_FOUND)
      get_filename_component(bench ${source} NAME_WE)
      add_executable(${bench} EXCLUDE_FROM_ALL ${source})
      target_link_libraries(${bench} PRIVATE ballast_${name} benchmark::benchmark_main)
    endif()
  endforeach()
endfunction()
