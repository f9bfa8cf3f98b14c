// A phase whose blocks do not all fit gets fewer of them, which then process several tiles in turn.
#include "passes/layout/GridPhases.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <deque>

using namespace llvm;
using namespace tilewright;

SmallVector<unsigned> tilewright::breadthFirst(ArrayRef<GridMember> members) {
  SmallVector<unsigned> order, waiting(members.size());
  std::deque<unsigned> ready;
  for (auto [i, member] : enumerate(members))
    if ((waiting[i] = member.producers.size()) == 0)
      ready.push_back(i);
  while (!ready.empty()) {
    unsigned member = ready.front();
    ready.pop_front();
    order.push_back(member);
    for (auto [i, reader] : enumerate(members))
      for (unsigned producer : reader.producers)
        if (producer == member && --waiting[i] == 0)
          ready.push_back(i);
  }
  assert(order.size() == members.size() && "members do not depend on themselves");
  return order;
}

GridKernel tilewright::kernelOf(ArrayRef<GridMember> members, unsigned member, const Target &target) {
  const BlockResources &block = members[member].block;
  GridKernel kernel;
  kernel.phases = {{{member, block.blocks}}};
  kernel.blocks = block.blocks;
  kernel.threads = block.threads;
  kernel.sharedBytes = block.sharedBytes;
  kernel.registers = block.registers;
  if (target.gpu.guaranteedSms > 0)
    kernel.residentBlocks = residentBlocks(target.gpu, block.threads, block.sharedBytes, block.registers);
  return kernel;
}

GridKernel tilewright::withMember(GridKernel kernel, ArrayRef<GridMember> members, unsigned member,
                                  const Target &target) {
  size_t phase = 0;
  for (auto [i, shares] : enumerate(kernel.phases))
    for (const GridShare &share : shares)
      if (is_contained(members[member].producers, share.stage))
        phase = i + 1;
  kernel.phases.resize(std::max(kernel.phases.size(), phase + 1));
  kernel.phases[phase].push_back({member, 0});
  const BlockResources &block = members[member].block;
  kernel.threads = std::max(kernel.threads, block.threads);
  kernel.sharedBytes = std::max(kernel.sharedBytes, block.sharedBytes);
  kernel.registers = std::max(kernel.registers, block.registers);
  kernel.residentBlocks = residentBlocks(target.gpu, kernel.threads, kernel.sharedBytes, kernel.registers);
  return kernel;
}

/// Returns how many tiles each block of a phase takes in turn, the same for all of its members that walk.
static int64_t turnsOf(ArrayRef<GridShare> phase, ArrayRef<GridMember> members, int64_t slots) {
  auto blocksAt = [&](int64_t turns) {
    int64_t blocks = 0;
    for (const GridShare &share : phase) {
      int64_t own = members[share.stage].block.blocks;
      blocks += members[share.stage].walks ? llvm::divideCeil(own, turns) : own;
    }
    return blocks;
  };
  int64_t turns = 1, least = blocksAt(std::numeric_limits<int64_t>::max());
  while (blocksAt(turns) > std::max(slots, least))
    ++turns;
  return turns;
}

std::string tilewright::shareOut(GridKernel &kernel, ArrayRef<GridMember> members, const Target &target) {
  int64_t slots = coResidentBlocks(target, kernel.residentBlocks);
  auto tooMany = [&](const std::string &name, int64_t blocks) -> std::string {
    return formatv("the {0} blocks of {1} cannot all be resident: the target guarantees {2} SMs with {3} blocks each "
                   "of {4} threads, {5} registers a thread and {6} bytes of shared memory",
                   blocks, name, target.gpu.guaranteedSms, kernel.residentBlocks, kernel.threads, kernel.registers,
                   kernel.sharedBytes);
  };
  kernel.blocks = 0;
  for (std::vector<GridShare> &phase : kernel.phases) {
    int64_t wanted = 0, given = 0;
    for (const GridShare &share : phase)
      wanted += members[share.stage].block.blocks;
    int64_t turns = turnsOf(phase, members, slots);
    for (GridShare &share : phase) {
      const GridMember &member = members[share.stage];
      share = {share.stage, member.block.blocks};
      if (wanted > slots && member.walks && phase.size() == 1)
        share.blocks = std::max<int64_t>(1, static_cast<double>(share.blocks) * slots / wanted);
      else if (wanted > slots && member.walks)
        share.blocks = llvm::divideCeil(share.blocks, turns);
      given += share.blocks;
      if (given > slots)
        return tooMany(member.name, member.block.blocks);
    }
    kernel.blocks = std::max(kernel.blocks, given);
  }
  return "";
}

std::string GridKernels::verify(ArrayRef<GridMember> members, const Target &target) const {
  std::vector<int64_t> phaseOf(members.size(), -1); // the phase of each member, counted over all kernels
  int64_t next = 0;
  for (const GridKernel &kernel : kernels) {
    for (const std::vector<GridShare> &phase : kernel.phases) {
      for (const GridShare &share : phase) {
        if (phaseOf[share.stage] >= 0)
          return members[share.stage].name + " is in two phases";
        for (unsigned producer : members[share.stage].producers)
          if (phaseOf[producer] < 0 || phaseOf[producer] == next)
            return members[share.stage].name + " does not come after " + members[producer].name + ", which it reads";
        phaseOf[share.stage] = next;
      }
      ++next;
    }
    bool synchronises = kernel.phases.size() > 1 ||
                        llvm::any_of(kernel.phases.front(), [](const GridShare &share) { return share.sharesTiles; });
    if (synchronises && kernel.blocks > coResidentBlocks(target, kernel.residentBlocks))
      return formatv("{0} blocks wait for each other, but only {1} are certain to be resident", kernel.blocks,
                     coResidentBlocks(target, kernel.residentBlocks));
  }
  auto missing = find(phaseOf, -1);
  return missing == phaseOf.end() ? "" : members[missing - phaseOf.begin()].name + " is in no phase";
}

/// Joins the member to the kernel and returns an empty string, or returns why it begins a new kernel.
static std::string tryJoin(GridKernel &kernel, ArrayRef<GridMember> members, unsigned member, const Target &target,
                           bool allowed) {
  if (!allowed)
    return "grid scope is forbidden";
  if (target.gpu.guaranteedSms == 0)
    return "the target has no grid barrier";
  GridKernel joined = withMember(kernel, members, member, target);
  std::string why = shareOut(joined, members, target);
  if (why.empty())
    kernel = std::move(joined);
  return why;
}

GridKernels tilewright::joinWhileResident(ArrayRef<GridMember> members, const Target &target, bool allowed) {
  GridKernels made;
  for (unsigned member : breadthFirst(members)) {
    if (!made.kernels.empty()) {
      std::string why = tryJoin(made.kernels.back(), members, member, target, allowed);
      if (why.empty())
        continue;
      made.cuts.push_back({member, why});
    }
    made.kernels.push_back(kernelOf(members, member, target));
  }
  return made;
}
