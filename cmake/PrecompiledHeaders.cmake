# Precompiles MLIR's headers, which take most of the time of compiling a file. They are parsed once for all libraries,
# and once for the unit tests, which are compiled like an executable. Every file still includes what it uses; a build without
# this option checks that (the preset "sanitize").
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

# ccache identifies precompiled headers by their text, if both it and clang ignore their time stamps.
if(TILEWRIGHT_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ccache)
endif()

# tilewright_precompile_headers(target [REUSE_FROM other] [header...]) precompiles MLIR's headers and each `header`, or
# reuses those of `other`.
function(tilewright_precompile_headers name)
  if(NOT TILEWRIGHT_PRECOMPILED_HEADERS)
    return()
  endif()
  # libstdc++ turns this warning off for itself, but clang forgets that in precompiled headers.
  target_compile_options(${name} PRIVATE
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp -Wno-deprecated-declarations>")
  cmake_parse_arguments(ARG "" "REUSE_FROM" "" ${ARGN})
  if(ARG_REUSE_FROM)
    target_precompile_headers(${name} REUSE_FROM ${ARG_REUSE_FROM})
  else()
    target_precompile_headers(${name} PRIVATE ${TILEWRIGHT_PRECOMPILED_HEADERS_OF_MLIR} ${ARG_UNPARSED_ARGUMENTS})
  endif()
endfunction()
