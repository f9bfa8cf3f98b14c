# MLIR and LLVM as static archives, for a wheel that needs nothing from apt: the interface library `TilewrightMlir` stands
# for as much of them as is used. Debian's exported targets are made for its two dylibs, which are taken out here.

# Debian's archives name libLLVM.so wherever they need LLVM.
foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  if(TARGET ${target})
    get_target_property(needs ${target} INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(FILTER needs EXCLUDE REGEX "(^|:)(LLVM|MLIR)>?$|libMLIR\\.so")
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${needs}")
    endif()
  endif()
endforeach()

# Of zstd only the archive: the shared object is not part of every Linux.
find_library(TILEWRIGHT_ZSTD libzstd.a REQUIRED)
if(NOT TARGET zstd::libzstd_shared)
  add_library(zstd::libzstd_shared STATIC IMPORTED)
endif()
set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION "${TILEWRIGHT_ZSTD}")

# Archives that nothing refers to cost nothing, so whole groups are named. x86 and NVPTX are the code generators; OrcJIT
# runs what the simulated device has rewritten.
get_property(dialects GLOBAL PROPERTY MLIR_DIALECT_LIBS)
get_property(conversions GLOBAL PROPERTY MLIR_CONVERSION_LIBS)
set(components ${dialects} ${conversions} MLIROptLib MLIRParser MLIRTargetLLVMIRExport MLIRBuiltinToLLVMIRTranslation
  MLIRLLVMToLLVMIRTranslation MLIRGPUToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation MLIRTransforms)
list(FILTER components EXCLUDE REGEX "Test")
list(FILTER components INCLUDE REGEX "^MLIR")
llvm_map_components_to_libnames(llvm_components X86 NVPTX OrcJIT Passes Object Remarks TargetParser AsmParser BitReader
  Support)
add_library(TilewrightMlir INTERFACE)
target_link_libraries(TilewrightMlir INTERFACE ${components} ${llvm_components})
