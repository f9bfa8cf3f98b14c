"""The lit suite: every .mlir and .test file under test/, except the Python and end-to-end suites."""

import os

import lit.formats

config.name = "tilewright"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["e2e", "python", "Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.tilewright_source_dir, "test")
config.test_exec_root = os.path.join(config.tilewright_binary_dir, "test")

# TILEWRIGHT_TOOLS puts other builds of the tools first, for example instrumented ones.
tools = [
    os.environ.get("TILEWRIGHT_TOOLS", ""),
    os.path.join(config.tilewright_binary_dir, "bin"),
    config.llvm_tools_dir,
]
config.environment["PATH"] = os.pathsep.join([*filter(None, tools), config.environment["PATH"]])
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --dump-input=fail"
for variable in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
