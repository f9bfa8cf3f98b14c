// A program whose kernels are all ours, run without IREE: its launches in order, on the threads of a team.
#ifndef TILEWRIGHT_RUNTIME_DIRECTPROGRAM_H
#define TILEWRIGHT_RUNTIME_DIRECTPROGRAM_H

#include "runtime/AlignedMemory.h"
#include "runtime/Library.h"
#include "runtime/ProgramDescription.h"
#include "runtime/SharedUnits.h"
#include "runtime/Span.h"
#include "runtime/ThreadTeam.h"

namespace tilewright::runtime {

class DirectProgram {
public:
  /// Throws std::runtime_error if the library lacks a kernel, or a slot does not exist.
  DirectProgram(std::shared_ptr<Library> library, ProgramDescription description);

  /// Runs the program. Inputs must be aligned as their elements are, outputs as AlignedMemory is, because kernels may
  /// store past the caches. Throws std::runtime_error with the name of a kernel that fails. Calls from several threads
  /// take turns. With `spans`, which has one for each launch and thread, in this order, it records where the time goes:
  /// of a launch in a loop, the time in the last step.
  void run(const std::vector<const void *> &inputs, const std::vector<void *> &outputs, Span *spans = nullptr);

  const ProgramDescription &description() const { return described; }
  /// Memory for results.
  const std::shared_ptr<KeptBlocks> &blocks() const { return keptBlocks; }

private:
  class Worker;

  /// Returns freed memory to the system after all other members are gone. IREE's programs have the C library keep it.
  struct TrimMemory {
    ~TrimMemory();
  } trimMemory;

  std::shared_ptr<Library> library;
  ProgramDescription described;
  Environment environment;
  std::vector<KernelEntry> entries;  ///< of each launch; null for copies
  AlignedMemory own, local;
  std::vector<char *> addresses;     ///< of each slot; those of moving slots are each thread's own
  std::shared_ptr<KeptBlocks> keptBlocks = std::make_shared<KeptBlocks>();
  std::unique_ptr<SharedUnits> units;            ///< of each launch, those that no thread has begun
  std::unique_ptr<std::atomic<uint32_t>[]> done; ///< units of each launch that have ended
  AwaitedCount completed;                        ///< launches that have ended, in all calls
  std::atomic<const Launch *> failed{nullptr};
  std::mutex turn;
};

} // namespace tilewright::runtime

#endif
