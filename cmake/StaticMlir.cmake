# Links MLIR and LLVM as archives, for a wheel that needs nothing from apt: the interface library `TilewrightMlir`
# has the archives that are used. Debian's exported targets refer to its two dylibs, which are removed here.

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

# zstd is linked as an archive, because its shared object is not part of every Linux.
find_library(TILEWRIGHT_ZSTD libzstd.a REQUIRED)
if(NOT TARGET zstd::libzstd_shared)
  add_library(zstd::libzstd_shared STATIC IMPORTED)
endif()
set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION "${TILEWRIGHT_ZSTD}")

# Unused archives cost nothing, so whole groups are named. x86 and NVPTX are the code generators; OrcJIT runs the code
# of the simulated device.
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
