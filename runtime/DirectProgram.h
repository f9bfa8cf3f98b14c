// A program whose kernels are all ours, run without IREE: its launches in order, on the threads of a team.
#ifndef TILEWRIGHT_RUNTIME_DIRECTPROGRAM_H
#define TILEWRIGHT_RUNTIME_DIRECTPROGRAM_H

#include "runtime/AlignedMemory.h"
#include "runtime/Library.h"
#include "runtime/ThreadTeam.h"

namespace tilewright::runtime {

/// A launch of a kernel, or a copy. A slot is a tensor of the program: first its inputs, then its outputs, then its
/// constants, then what kernels hand to each other, then the slots of loops.
struct Launch {
  std::string kernel;          ///< empty: copies the first slot to the second
  uint32_t workgroups = 1;
  std::vector<uint32_t> slots; ///< one per binding
  size_t bytes = 0;            ///< of a copy
};

/// A slot whose address depends on the step of a loop. In step 0 it begins `firstOffset` bytes behind the slot `first`,
/// in every other step i `offset + i * stride` bytes behind `even` or `odd`.
struct MovingSlot {
  uint32_t slot = 0, first = 0, even = 0, odd = 0;
  int64_t firstOffset = 0, offset = 0, stride = 0;
};

/// Launches that are repeated.
struct Loop {
  uint32_t begin = 0, end = 0; ///< launches that are its body; not empty
  uint32_t steps = 0;
  std::vector<MovingSlot> slots; ///< each after those that it begins behind
};

struct ProgramDescription {
  std::vector<Launch> launches;
  std::vector<Loop> loops;               ///< in the order of their bodies, each before those in it
  std::vector<size_t> inputBytes, outputBytes;
  std::vector<uintptr_t> constants;      ///< addresses, which must stay valid
  std::vector<size_t> offsets;           ///< of handed-over tensors in the program's own memory
  size_t ownBytes = 0, localBytes = 0;   ///< of that memory, and of a workgroup's
  uint64_t processor = 0;                ///< features of this processor, as bits of IREE's schema
  unsigned threads = 1;
};

/// The time that a thread spent on its workgroups of a launch, in seconds of a clock that never goes back; 0 and 0 if it
/// came too late for any.
struct Span {
  double start = 0, end = 0;
};

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

  void check(const Launch &launch) const;
  void check(const Loop &loop, uint32_t begin, uint32_t end) const;

  /// Returns freed memory to the system after all other members are gone. IREE's programs have the C library keep it.
  struct TrimMemory {
    ~TrimMemory();
  } trimMemory;

  std::shared_ptr<Library> library;
  ProgramDescription described;
  Environment environment;
  std::vector<KernelEntry> entries;  ///< of each launch; null for copies
  std::vector<char *> addresses;     ///< of each slot; those of moving slots are each thread's own
  AlignedMemory own, local;
  std::shared_ptr<KeptBlocks> keptBlocks = std::make_shared<KeptBlocks>();
  std::unique_ptr<std::atomic<uint32_t>[]> taken, done; ///< units of each launch that threads have begun, and ended
  AwaitedCount completed;                               ///< launches that have ended, in all calls
  std::atomic<const Launch *> failed{nullptr};
  std::mutex turn;
};

} // namespace tilewright::runtime

#endif
