// Queries, checks and printing of chains. FindChains.cpp derives chains from the graph.
#include "passes/graph/OperatorChain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

bool ChainTensor::uses(unsigned loop) const {
  return llvm::any_of(dims, [&](const ChainIndex &index) {
    return llvm::any_of(index, [&](const ChainTerm &term) { return term.loop == loop; });
  });
}

bool OperatorChain::runs(unsigned loop, size_t first) const {
  return llvm::any_of(llvm::drop_begin(ops, first),
                      [&](const ChainOp &op) { return llvm::is_contained(op.loops, loop); });
}

bool OperatorChain::isParallel(unsigned loop) const {
  return llvm::all_of(ops, [&](const ChainOp &op) {
    return llvm::is_contained(op.loops, loop) && tensors[op.tensors.back()].uses(loop);
  });
}

bool OperatorChain::isBatch(unsigned loop) const {
  return isParallel(loop) && llvm::all_of(tensors, [&](const ChainTensor &tensor) { return tensor.uses(loop); });
}

bool OperatorChain::isWindow(unsigned loop) const {
  auto isAlone = [&](const ChainIndex &index) { return index.size() == 1 || index[0].loop == loop; };
  return llvm::any_of(tensors, [&](const ChainTensor &tensor) {
    return llvm::any_of(tensor.dims, [&](const ChainIndex &index) {
      return !isAlone(index) && llvm::any_of(index, [&](const ChainTerm &term) { return term.loop == loop; });
    });
  });
}

double OperatorChain::multiplications() const {
  double sum = 0;
  for (const ChainOp &op : ops) {
    double points = 1;
    for (unsigned loop : op.loops)
      points *= loops[loop].extent;
    sum += points;
  }
  return sum;
}

std::vector<double> OperatorChain::form() const {
  std::vector<double> form;
  auto list = [&](const auto &items, auto write) {
    form.push_back(items.size());
    llvm::for_each(items, write);
  };
  auto number = [&](double item) { form.push_back(item); };
  list(loops,
       [&](const ChainLoop &loop) { form.insert(form.end(), {static_cast<double>(loop.extent), 1.0 * loop.whole}); });
  list(tensors, [&](const ChainTensor &tensor) {
    form.insert(form.end(), {static_cast<double>(tensor.elementBytes), 1.0 * tensor.isIO, tensor.crossings});
    list(tensor.dims, [&](const ChainIndex &index) {
      list(index, [&](const ChainTerm &term) {
        form.insert(form.end(), {static_cast<double>(term.loop), static_cast<double>(term.stride)});
      });
    });
  });
  list(ops, [&](const ChainOp &op) {
    list(op.loops, number);
    list(op.tensors, number);
  });
  return form;
}

std::string OperatorChain::verify() const {
  if (ops.empty())
    return "a chain without operators";
  for (const ChainLoop &loop : loops)
    if (loop.extent <= 0)
      return "loop " + loop.name + " has extent " + std::to_string(loop.extent);
  for (const ChainTensor &tensor : tensors)
    for (const ChainIndex &index : tensor.dims)
      for (const ChainTerm &term : index)
        if (term.loop >= loops.size() || term.stride < 0)
          return "tensor " + tensor.name + " is indexed by no loop of the chain";
  for (const ChainOp &op : ops) {
    if (op.tensors.empty() || llvm::any_of(op.tensors, [&](unsigned tensor) { return tensor >= tensors.size(); }))
      return "operator " + op.name + " has no tensors of the chain";
    if (llvm::any_of(op.loops, [&](unsigned loop) { return loop >= loops.size(); }))
      return "operator " + op.name + " runs over no loop of the chain";
  }
  return "";
}

void OperatorChain::print(llvm::raw_ostream &os) const {
  os << "loops";
  for (const ChainLoop &loop : loops)
    os << " " << loop.name << "=" << loop.extent << (loop.whole ? " (whole)" : "");
  auto printTensor = [&](unsigned number) {
    const ChainTensor &tensor = tensors[number];
    os << tensor.name << "[";
    llvm::interleave(
        tensor.dims, os,
        [&](const ChainIndex &index) {
          llvm::interleave(
              index, os,
              [&](const ChainTerm &term) {
                if (term.stride != 1)
                  os << term.stride << "*";
                os << loops[term.loop].name;
              },
              "+");
        },
        ",");
    os << "]";
  };
  for (const ChainOp &op : ops) {
    os << "; ";
    printTensor(op.tensors.back());
    os << " from";
    for (unsigned tensor : llvm::drop_end(op.tensors)) {
      os << " ";
      printTensor(tensor);
    }
  }
}

OperatorChain tilewright::gemmChain(int64_t m, int64_t n, int64_t k, int64_t l, int64_t elementBytes) {
  enum { M, N, K, L };
  auto tensor = [&](const char *name, unsigned row, unsigned column, bool isIO) {
    return ChainTensor{name, {{{row}}, {{column}}}, elementBytes, isIO};
  };
  return {{{"m", m}, {"n", n}, {"k", k}, {"l", l}},
          {tensor("A", M, K, true), tensor("B", K, L, true), tensor("C", M, L, false), tensor("D", L, N, true),
           tensor("E", M, N, true)},
          {{"first", {M, L, K}, {0, 1, 2}}, {"second", {M, N, L}, {2, 3, 4}}}};
}

OperatorChain tilewright::withOnlineReductions(OperatorChain chain) {
  for (ChainLoop &loop : chain.loops)
    loop.whole = false;
  return chain;
}

std::vector<OperatorChain> tilewright::separately(const OperatorChain &chain) {
  std::vector<OperatorChain> apart;
  for (const ChainOp &op : chain.ops) {
    OperatorChain one;
    std::vector<unsigned> newIndex(chain.loops.size());
    for (unsigned loop : op.loops) {
      newIndex[loop] = one.loops.size();
      one.loops.push_back(chain.loops[loop]);
      one.loops.back().whole = false;
    }
    ChainOp alone{op.name, {}, {}, op.expr};
    for (unsigned loop : op.loops)
      alone.loops.push_back(newIndex[loop]);
    for (unsigned number : op.tensors) {
      ChainTensor tensor = chain.tensors[number];
      tensor.isIO = true;
      if (number != op.tensors.back())
        tensor.crossings = 1;
      for (ChainIndex &index : tensor.dims) {
        llvm::erase_if(index, [&](const ChainTerm &term) { return !llvm::is_contained(op.loops, term.loop); });
        for (ChainTerm &term : index)
          term.loop = newIndex[term.loop];
      }
      alone.tensors.push_back(one.tensors.size());
      one.tensors.push_back(std::move(tensor));
    }
    one.ops.push_back(std::move(alone));
    apart.push_back(std::move(one));
  }
  return apart;
}
