// The extension module `tilewright._native`, a thin layer over the core. Functions that fail return diagnostics, which
// the Python side raises as exceptions.
#include "core/CacheSimulator.h"
#include "core/Core.h"
#include "core/GemmChains.h"
#include "core/Measure.h"
#include "core/Simulate.h"
#include "python/bindings/Ir.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace tilewright;
using namespace tilewright::python;

namespace {
/// Address, bytes, true if its content counts as never written, and the device's address or -1.
using Buffer = std::tuple<uintptr_t, uint64_t, bool, int64_t>;
using Size = std::array<uint32_t, 3>;

std::tuple<std::string, std::string> simulate(const std::string &text, const std::string &kernel, Size grid, Size block,
                                              const std::vector<Buffer> &buffers, const std::vector<int32_t> &constants,
                                              uint64_t dynamicShared,
                                              const std::tuple<std::string, uint64_t, uint64_t, uint64_t> &device,
                                              uint64_t instructions, double seconds, unsigned hostThreads,
                                              DeviceCache *l2) {
  simulator::Launch launch;
  launch.text = text;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.block = block;
  for (auto [address, bytes, empty, onDevice] : buffers)
    launch.bindings.push_back({reinterpret_cast<void *>(address), bytes, empty, static_cast<uint64_t>(onDevice)});
  launch.constants = constants;
  launch.dynamicSharedBytes = dynamicShared;
  std::tie(launch.device.name, launch.device.l2Bytes, launch.device.sharedBytes, launch.device.multiprocessors) =
      device;
  launch.limits = {instructions, seconds};
  launch.hostThreads = hostThreads;
  launch.l2 = l2 ? &l2->cache() : nullptr;
  return simulateToJson(launch);
}
} // namespace

NB_MODULE(_native, m) {
  // Users may keep objects alive until the interpreter exits.
  nb::set_leak_warnings(false);
  registerPipelines();
  m.attr("llvm_version") = llvmVersion();
  m.def("describe_crashes", &describeCrashes);

  nb::class_<PlainDiagnostic>(m, "Diagnostic")
      .def_ro("severity", &PlainDiagnostic::severity)
      .def_ro("message", &PlainDiagnostic::message)
      .def_ro("location", &PlainDiagnostic::location)
      .def_ro("operation", &PlainDiagnostic::operation)
      .def_ro("notes", &PlainDiagnostic::notes)
      .def_ro("numbers", &PlainDiagnostic::numbers);

  bindContext(m);
  bindTypes(m);
  bindAffine(m);
  bindAttributes(m);
  bindOperations(m);
  bindBlocks(m);
  bindRewrites(m);
  bindModules(m);

  // Functions that take long and use no Python objects run without the GIL.
  using NoGil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<CacheTraffic>(m, "CacheTraffic")
      .def_ro("hits", &CacheTraffic::hits)
      .def_ro("fills", &CacheTraffic::fills)
      .def_ro("write_backs", &CacheTraffic::writeBacks);

  using Shape = std::tuple<int64_t, int64_t, int64_t>;
  nb::class_<CacheSimulator>(m, "CacheSimulator")
      .def(
          "__init__",
          [](CacheSimulator *self, const std::vector<Shape> &levels) {
            std::vector<CacheShape> shapes;
            for (auto [capacity, line, ways] : levels)
              shapes.push_back({capacity, line, ways});
            new (self) CacheSimulator(shapes);
          },
          nb::arg("levels"))
      .def(
          "replay",
          [](CacheSimulator &self, uintptr_t address, size_t count) {
            self.replay(reinterpret_cast<const uint64_t *>(address), count);
          },
          nb::arg("address"), nb::arg("count"), NoGil())
      .def("flush", &CacheSimulator::flush)
      .def("traffic", &CacheSimulator::traffic);

  m.def(
      "gemm_chain_movement",
      [](const std::vector<int64_t> &extents, const std::vector<unsigned> &order, const std::vector<int64_t> &tiles,
         bool reuse) {
        PlainMovement movement = gemmChainMovement(extents, order, tiles, reuse);
        return std::make_tuple(movement.moved, movement.bytes, movement.memoryBytes);
      },
      nb::arg("extents"), nb::arg("order"), nb::arg("tiles"), nb::arg("reuse"));
  m.def("gemm_chain_optimum", &gemmChainOptimum, nb::arg("extents"), nb::arg("least"), nb::arg("capacity_bytes"));

  m.def("measure_multiply_adds", &measureMultiplyAdds, nb::arg("vector_bytes"), nb::arg("threads"), nb::arg("seconds"),
        NoGil());
  m.def("measure_copies", &measureCopies, nb::arg("vector_bytes"), nb::arg("bytes"), nb::arg("threads"),
        nb::arg("seconds"), NoGil());
  m.def("measure_reads", &measureReads, nb::arg("vector_bytes"), nb::arg("bytes"), nb::arg("threads"),
        nb::arg("seconds"), NoGil());
  m.def("note_passes_in", &notePassesIn, nb::arg("file"), nb::arg("offset"), nb::arg("bytes"));
  m.def("known_targets", &targetNames);
  m.def("lookup_target", &lookupTargetJson, nb::arg("name_or_path"));
  m.def("normalize_target", &normalizeTargetJson, nb::arg("json"), nb::arg("cores"));
  m.def("normalize_plan", &normalizePlanJson, nb::arg("json"));
  nb::class_<DeviceCache>(m, "DeviceCache")
      .def(nb::init<uint64_t>(), nb::arg("capacity_bytes"))
      .def("flush", &DeviceCache::flush)
      .def("traffic", &DeviceCache::traffic);
  m.def("simulate", &simulate, nb::arg("text"), nb::arg("kernel"), nb::arg("grid"), nb::arg("block"),
        nb::arg("buffers"), nb::arg("constants"), nb::arg("dynamic_shared"), nb::arg("device"), nb::arg("instructions"),
        nb::arg("seconds"), nb::arg("host_threads"), nb::arg("l2").none(), NoGil());
}
