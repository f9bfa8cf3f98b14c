// A program whose kernels are all ours, as launches on slots: what runs on CPUs and on GPUs alike.
#ifndef TILEWRIGHT_RUNTIME_PROGRAMDESCRIPTION_H
#define TILEWRIGHT_RUNTIME_PROGRAMDESCRIPTION_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

  /// Returns the addresses of all slots, given the program's own memory; those of inputs, outputs and moving slots are
  /// null. Throws std::runtime_error if a launch or a loop uses a slot or a launch that does not exist.
  std::vector<char *> slotAddresses(char *own) const;

private:
  void check(const Launch &launch, size_t slots) const;
  void check(const Loop &loop, uint32_t begin, size_t slots) const;
};

/// Runs through the launches of a program in order, with its loops.
class LaunchOrder {
public:
  /// `addresses` are those of all slots; the walk sets those of moving slots to where they are in the step of a loop.
  LaunchOrder(const ProgramDescription &described, std::vector<char *> &addresses)
      : described(described), addresses(addresses) {}

  /// Calls `launch` with the number of each launch, and with the number of loops around it.
  template <typename Function> void run(Function launch) const {
    run(0, static_cast<uint32_t>(described.launches.size()), 0, 0, launch);
  }

private:
  /// Runs launches, with the loops in them, of which `loop` is the first. Returns the first loop behind them.
  template <typename Function>
  size_t run(uint32_t begin, uint32_t end, size_t loop, unsigned depth, Function &launch) const {
    for (uint32_t number = begin; number < end;) {
      if (loop < described.loops.size() && described.loops[loop].begin == number) {
        number = described.loops[loop].end;
        loop = repeat(loop, depth + 1, launch);
      } else {
        launch(number++, depth);
      }
    }
    return loop;
  }

  /// Runs all steps of a loop. Returns the first loop behind it.
  template <typename Function> size_t repeat(size_t number, unsigned depth, Function &launch) const {
    const Loop &loop = described.loops[number];
    size_t next = number + 1;
    for (uint32_t step = 0; step < loop.steps; ++step) {
      for (const MovingSlot &moving : loop.slots)
        addresses[moving.slot] = step == 0 ? addresses[moving.first] + moving.firstOffset
                                           : addresses[step % 2 ? moving.odd : moving.even] + moving.offset +
                                                 static_cast<int64_t>(step) * moving.stride;
      next = run(loop.begin, loop.end, number + 1, depth, launch);
    }
    return next;
  }

  const ProgramDescription &described;
  std::vector<char *> &addresses;
};

} // namespace tilewright::runtime

#endif
