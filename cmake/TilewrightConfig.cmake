# CMake package of the compiler, for other projects: `target_link_libraries(... TilewrightCore)`, or an inner library.
find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir NO_DEFAULT_PATH)
find_package(Threads REQUIRED)
include("${CMAKE_CURRENT_LIST_DIR}/TilewrightTargets.cmake")
set_property(TARGET TilewrightMlir APPEND PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
set_property(TARGET TilewrightMlir APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
set_property(TARGET TilewrightMlir APPEND PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)
