// A program whose kernels are all ours, run without IREE: its launches in order, on the threads of a team.
#ifndef TILEWRIGHT_RUNTIME_DIRECTPROGRAM_H
#define TILEWRIGHT_RUNTIME_DIRECTPROGRAM_H

#include "runtime/AlignedMemory.h"
#include "runtime/Library.h"
#include "runtime/ThreadTeam.h"

namespace tilewright::runtime {

/// A launch of a kernel. A slot is a tensor of the program: first its inputs, then its outputs, then its constants, then
/// what kernels hand to each other.
struct Launch {
  std::string kernel;
  uint32_t workgroups = 1;
  std::vector<uint32_t> slots; ///< one per binding
};

struct ProgramDescription {
  std::vector<Launch> launches;
  std::vector<size_t> inputBytes, outputBytes;
  std::vector<uintptr_t> constants;      ///< addresses, which must stay valid
  std::vector<size_t> offsets;           ///< of handed-over tensors in the program's own memory
  size_t ownBytes = 0, localBytes = 0;   ///< of that memory, and of a workgroup's
  uint64_t processor = 0;                ///< features of this processor, as bits of IREE's schema
  unsigned threads = 1;
};

/// The time that a thread spent on its workgroups of a launch, in seconds of a clock that never goes back.
struct Span {
  double start = 0, end = 0;
};

class DirectProgram {
public:
  /// Throws std::runtime_error if the library lacks a kernel, or a slot does not exist.
  DirectProgram(std::shared_ptr<Library> library, ProgramDescription description);

  /// Runs the program. Inputs must be aligned as their elements are, outputs as AlignedMemory is, because kernels may
  /// store past the caches. Throws std::runtime_error with the name of a kernel that fails. Calls from several threads take turns. With `spans`, which has one for each launch and
  /// thread, in this order, it records where the time goes.
  void run(const std::vector<const void *> &inputs, const std::vector<void *> &outputs, Span *spans = nullptr);

  const ProgramDescription &description() const { return described; }
  /// Memory for results.
  const std::shared_ptr<KeptBlocks> &blocks() const { return keptBlocks; }

private:
  struct Step {
    KernelEntry entry;
    DispatchState state;
    std::vector<void *> bindings;
  };

  /// Runs what this thread gets of all launches.
  void work(unsigned thread, ThreadTeam &team, Span *spans);
  void place(uint32_t slot, void *address);

  /// Returns freed memory to the system after all other members are gone. IREE's programs have the C library keep it.
  struct TrimMemory {
    ~TrimMemory();
  } trimMemory;

  std::shared_ptr<Library> library;
  ProgramDescription described;
  Environment environment;
  std::vector<Step> steps;
  std::vector<std::vector<void **>> uses; ///< bindings of each input and output
  AlignedMemory own, local;
  std::shared_ptr<KeptBlocks> keptBlocks = std::make_shared<KeptBlocks>();
  std::unique_ptr<std::atomic<uint32_t>[]> taken; ///< workgroups of each step that threads have taken
  std::atomic<const Launch *> failed{nullptr};
  std::mutex turn;
};

} // namespace tilewright::runtime

#endif
