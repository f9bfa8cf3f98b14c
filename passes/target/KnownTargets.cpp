// The table of known targets, with one function per family. CPU figures are for one core and are multiplied by the core
// count, except those of levels that all cores share. Peak figures come from vendors' documents and sustained ones from
// measurements; each entry states its source.
#include "passes/target/KnownTargets.h"

using namespace tilewright;

namespace {
constexpr int64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;
constexpr double giga = 1e9, tera = 1e12, microseconds = 1e-6;

/// The per-core figures that differ between x86-64 cores.
struct CpuCore {
  const char *name, *cpu, *features;
  int64_t vectorBytes, vectorRegisters;
  int64_t l1Bytes, l2Bytes;
  double l1Bandwidth, l2Bandwidth; ///< bytes per second
  double flops;                    ///< per second; an f32 FMA counts as two
  double special;                  ///< elements per second: polynomial exp, tanh, division
  const char *source;
};

/// Builds the target of a CPU. The shared levels are 32 MiB of L3 and the bandwidth of two DRAM channels; both are
/// overridden where they matter. Measured: a copy reaches 19 GB/s per core beyond L3 (38 GB/s read and written), and L3
/// about twice that.
Target cpuTarget(const CpuCore &core, int64_t cores) {
  Target target;
  target.name = core.name;
  target.triple = "x86_64-unknown-unknown-eabi-elf";
  target.cpu = core.cpu;
  target.features = core.features;
  target.levels = {
      {"L1", tile::Space::block, core.l1Bytes, core.l1Bandwidth * cores, 64, cores},
      {"L2", tile::Space::block, core.l2Bytes, core.l2Bandwidth * cores, 64, cores},
      {"L3", tile::Space::global, 32 * MiB, 60 * giga * cores, 64, 1},
      {"DRAM", tile::Space::global, 0, std::min(38 * giga * cores, 200 * giga), 64, 1},
  };
  target.cores = cores;
  target.vectorBytes = core.vectorBytes;
  target.vectorRegisters = core.vectorRegisters;
  // Measured without IREE on 2026-11-28: on Zen 3 0.03 to 0.1 us on one thread and 0.1 to 0.4 us on two, on Zen 4 0.16
  // and 0.19 us. In IREE's runtime that Zen 4 takes 0.43 and 0.59 us.
  target.launchSeconds = 0.2 * microseconds;
  target.barrierSeconds = 0; // a workgroup is one thread
  target.flopsPerSecond = core.flops * cores;
  target.specialPerSecond = core.special * cores;
  target.maxBindings = 16;
  target.blockBytes = core.l2Bytes / 2; // the other half holds streaming data
  target.source = core.source;
  return target;
}

const CpuCore baseline = {"x86-64-v2",
                          "x86-64-v2",
                          "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt",
                          16,
                          16,
                          32 * KiB,
                          256 * KiB,
                          60 * giga,
                          60 * giga,
                          28 * giga,
                          1 * giga,
                          "peaks: 3.5 GHz, 16 B loads, one 4-lane product and one 4-lane sum a cycle (Nehalem manual); "
                          "its inner caches are set to no less than the table's L3"};
const CpuCore avx2 = {"x86-64-avx2",
                      "x86-64-v3",
                      "+avx2,+fma,+f16c,+bmi2",
                      32,
                      16,
                      32 * KiB,
                      512 * KiB,
                      100 * giga,
                      60 * giga,
                      110 * giga,
                      3.5 * giga,
                      "peaks: 3.5 GHz, 2x32 B loads and 2x8 FMA lanes a cycle (Zen 2/3, Haswell manuals); caches "
                      "sustain about half of it"};
const CpuCore avx512 = {"x86-64-avx512",
                        "x86-64-v4",
                        "+avx2,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+fma,+f16c,+bmi2",
                        64,
                        32,
                        48 * KiB,
                        1 * MiB,
                        190 * giga,
                        110 * giga,
                        240 * giga,
                        7 * giga,
                        "measured on a Zen 5 / Sapphire Rapids class server: FMA loop 241 GFLOP/s a core"};
const CpuCore avx512bf16 = [] {
  CpuCore core = avx512;
  core.name = "x86-64-avx512bf16";
  core.features = "+avx2,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+fma,+f16c,+bmi2";
  return core;
}();
const CpuCore amx = {
    "x86-64-amx",
    "sapphirerapids",
    "+avx2,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+avx512fp16,+amx-tile,+amx-bf16,"
    "+amx-int8,+fma,+f16c,+bmi2",
    64,
    32,
    48 * KiB,
    2 * MiB,
    190 * giga,
    110 * giga,
    240 * giga,
    7 * giga,
    "measured on Sapphire Rapids: FMA loop 241 GFLOP/s a core; caches: Intel's optimization manual"};

/// The figures that differ between generations (CUDA programming guide, table of technical specifications per compute
/// capability).
struct CudaGeneration {
  const char *cpu, *features;
  int64_t threadsPerSm, blocksPerSm;
  int64_t sharedPerBlock, sharedPerSm; ///< opt-in limit of one block; total of all blocks of an SM
  int64_t lanesPerSm;                  ///< f32 FMA lanes
  double sharedCycles, l2Cycles, dramCycles;
};

// Latencies are those of an A100 and an H100 (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture via Microbenchmarking", 2024); sm_86 takes those of the RTX 4090 measured there. Architecture-specific
// instructions, which newer GPUs lack, belong to named devices only: plain sm_90 also runs on newer GPUs.
const CudaGeneration ampere = {"sm_80", "+ptx80", 2048, 32, 163 * KiB, 164 * KiB, 64, 29, 262, 466};
const CudaGeneration ampereConsumer = {"sm_86", "+ptx80", 1536, 16, 99 * KiB, 100 * KiB, 128, 30, 273, 542};
const CudaGeneration hopper = {"sm_90", "+ptx83", 2048, 32, 227 * KiB, 228 * KiB, 128, 29, 263, 479};
const CudaGeneration hopperDevice = [] {
  CudaGeneration device = hopper;
  device.features = "+ptx83,+sm_90a";
  return device;
}();

/// The figures that differ between devices of a generation.
struct CudaDevice {
  const char *name;
  const CudaGeneration &generation;
  int64_t sms, guaranteedSms, l2Bytes, dramBytes;
  double clockHz, dramBandwidth, l2Bandwidth;
  const char *source;
};

GpuLimits gpuLimits(const CudaDevice &device) {
  const CudaGeneration &generation = device.generation;
  GpuLimits gpu;
  gpu.warpLanes = 32;
  gpu.threadsPerBlock = 1024;
  gpu.threadsPerSm = generation.threadsPerSm;
  gpu.blocksPerSm = generation.blocksPerSm;
  gpu.registersPerSm = 64 * 1024;
  gpu.registersPerThread = 255;
  gpu.sharedBytesPerSm = generation.sharedPerSm;
  gpu.reservedSharedBytes = KiB;
  gpu.guaranteedSms = device.guaranteedSms;
  gpu.clockHz = device.clockHz;
  gpu.sharedCycles = generation.sharedCycles;
  gpu.l2Cycles = generation.l2Cycles;
  gpu.dramCycles = generation.dramCycles;
  // Measured on an H200: 0.75 us, and up to twice as long where blocks have just stored much.
  gpu.gridBarrierSeconds = 1 * microseconds;
  return gpu;
}

Target cudaTarget(const CudaDevice &device) {
  const CudaGeneration &generation = device.generation;
  Target target;
  target.name = device.name;
  target.triple = "nvptx64-nvidia-cuda";
  target.cpu = generation.cpu;
  target.features = generation.features;
  double perCycle = device.clockHz * device.sms;
  target.levels = {
      {"shared", tile::Space::block, generation.sharedPerBlock, target.costs.gpu.bankBytes * perCycle, 128, device.sms},
      {"L2", tile::Space::global, device.l2Bytes, device.l2Bandwidth, 32, 1},
      {"DRAM", tile::Space::global, device.dramBytes, device.dramBandwidth, 32, 1},
  };
  target.cores = device.sms;
  target.vectorBytes = 16; // widest load of a thread
  target.vectorRegisters = 255;
  target.launchSeconds = 3 * microseconds;
  target.barrierSeconds = 20 / device.clockHz; // about 20 cycles for a block of 256 threads
  target.flopsPerSecond = 2.0 * generation.lanesPerSm * perCycle;
  target.specialPerSecond = target.costs.gpu.specialLanes * perCycle;
  target.maxBindings = 16; // limit of IREE's CUDA driver
  target.blockBytes = generation.sharedPerBlock;
  target.gpu = gpuLimits(device);
  target.source = device.source;
  return target;
}

constexpr const char
    *kA100 = "NVIDIA A100 40GB data sheet and Ampere whitepaper; L2 bandwidth as reported by "
             "microbenchmarks",
    *kRtx3090 = "NVIDIA GeForce RTX 3090 specification, GA102 whitepaper",
    *kH100 = "NVIDIA H100 SXM data sheet and Hopper whitepaper; L2 bandwidth as for the H200",
    *kH100Pcie = "NVIDIA H100 PCIe data sheet and Hopper whitepaper; L2 bandwidth as for the H200, for fewer SMs",
    *kH200 = "NVIDIA H200 data sheet; L2 bandwidth fitted: products in f16 used 8.6 TB/s of it (4096x4096x4096) to "
             "about 10 (1024)";

// A compute capability stands for all of its parts. Plans are made for the first device listed; the smallest data
// centre part (A30, A2, H20) counts for grid barriers.
const CudaDevice cudaDevices[] = {
    {"sm_80", ampere, 108, 56, 40 * MiB, 40 * GiB, 1.41e9, 1555 * giga, 4.0 * tera, kA100},
    {"sm_86", ampereConsumer, 82, 10, 6 * MiB, 24 * GiB, 1.695e9, 936 * giga, 2.0 * tera, kRtx3090},
    {"sm_90", hopper, 132, 78, 50 * MiB, 80 * GiB, 1.755e9, 3350 * giga, 11 * tera, kH100},
    {"cuda:a100", ampere, 108, 108, 40 * MiB, 40 * GiB, 1.41e9, 1555 * giga, 4.0 * tera, kA100},
    {"cuda:rtx3090", ampereConsumer, 82, 82, 6 * MiB, 24 * GiB, 1.695e9, 936 * giga, 2.0 * tera, kRtx3090},
    {"cuda:h100", hopperDevice, 132, 114, 50 * MiB, 80 * GiB, 1.755e9, 3350 * giga, 11 * tera, kH100},
    {"cuda:h100-pcie", hopperDevice, 114, 114, 50 * MiB, 80 * GiB, 1.755e9, 2000 * giga, 9.5 * tera, kH100Pcie},
    {"cuda:h200", hopperDevice, 132, 132, 50 * MiB, 141 * GiB, 1.755e9, 4800 * giga, 11 * tera, kH200},
};
} // namespace

std::vector<Target> tilewright::cpuTable() {
  return {cpuTarget(baseline, 8), cpuTarget(avx2, 8), cpuTarget(avx512, 8), cpuTarget(avx512bf16, 8),
          cpuTarget(amx, 8)};
}

std::vector<Target> tilewright::cudaTable() {
  std::vector<Target> targets;
  for (const CudaDevice &device : cudaDevices)
    targets.push_back(cudaTarget(device));
  return targets;
}
