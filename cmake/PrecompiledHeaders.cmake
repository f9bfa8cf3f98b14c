# Most of the time that a file takes to compile is spent on MLIR's headers: they are parsed once for all libraries, and once
# for the unit tests, which are compiled as an executable is. Every file still includes what it uses, which a build
# without this option checks (the preset "sanitize").
option(TILEWRIGHT_PRECOMPILED_HEADERS "Parse the headers of MLIR once" ON)

set(TILEWRIGHT_PRECOMPILED_HEADERS_OF_MLIR
  <mlir/Dialect/Affine/IR/AffineOps.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/LLVMIR/NVVMDialect.h>
  <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Matchers.h>
  <mlir/IR/Remarks.h>
  <mlir/Pass/Pass.h>)

# ccache finds a file that was compiled with such headers by their text, if neither it nor clang minds their times.
if(TILEWRIGHT_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ccache)
endif()

# tilewright_precompile_headers(target [REUSE_FROM other] [header...]): those of MLIR and `header`s, or what `other` has parsed.
function(tilewright_precompile_headers name)
  if(NOT TILEWRIGHT_PRECOMPILED_HEADERS)
    return()
  endif()
  # Of the warnings that libstdc++ turns off for itself, clang forgets this one in precompiled headers.
  target_compile_options(${name} PRIVATE
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp -Wno-deprecated-declarations>")
  cmake_parse_arguments(ARG "" "REUSE_FROM" "" ${ARGN})
  if(ARG_REUSE_FROM)
    target_precompile_headers(${name} REUSE_FROM ${ARG_REUSE_FROM})
  else()
    target_precompile_headers(${name} PRIVATE ${TILEWRIGHT_PRECOMPILED_HEADERS_OF_MLIR} ${ARG_UNPARSED_ARGUMENTS})
  endif()
endfunction()
