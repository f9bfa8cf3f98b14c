#include "passes/plan/search/Grouping.h"

using namespace mlir;
using namespace tilewright;

Grouping::Grouping(SearchSpace &space)
    : space(&space), first(space.dependences.size()), groups(space.dependences.size()) {
  for (unsigned node = 0; node < first.size(); ++node)
    first[node] = node;
  for (unsigned expr : space.exprs)
    place(space.alone(expr));
}

SmallVector<unsigned> Grouping::nodesOf(unsigned name) const {
  if (!groups[name])
    return {name};
  return llvm::map_to_vector(groups[name]->exprs, [&](unsigned expr) { return space->dependences.nodeOf(expr); });
}

void Grouping::place(const CostedGroup &group) {
  unsigned name = space->dependences.nodeOf(group.exprs.front());
  for (unsigned expr : group.exprs)
    first[space->dependences.nodeOf(expr)] = name;
  groups[name] = &group;
  total += group.seconds;
  kernels += !group.isView;
  havePositions = false;
}

void Grouping::remove(unsigned name) {
  total -= groups[name]->seconds;
  kernels -= !groups[name]->isView;
  groups[name] = nullptr;
}

void Grouping::findPositions() const {
  if (havePositions)
    return;
  const Dependences &dependences = space->dependences;
  std::vector<unsigned> waiting(first.size());
  for (unsigned node = 0; node < first.size(); ++node)
    for (unsigned next : dependences.successors(node))
      waiting[first[next]] += first[next] != first[node];
  std::vector<unsigned> ready;
  for (unsigned node = first.size(); node-- > 0;)
    if (first[node] == node && waiting[node] == 0)
      ready.push_back(node);
  positions.assign(first.size(), 0);
  unsigned place = 0;
  while (!ready.empty()) {
    unsigned name = ready.back();
    ready.pop_back();
    positions[name] = place++;
    for (unsigned node : nodesOf(name))
      for (unsigned next : dependences.successors(node))
        if (first[next] != name && --waiting[first[next]] == 0)
          ready.push_back(first[next]);
  }
  havePositions = true;
}

SmallVector<unsigned> Grouping::inOrder() const {
  findPositions();
  SmallVector<unsigned> names;
  for (unsigned name = 0; name < groups.size(); ++name)
    if (groups[name])
      names.push_back(name);
  llvm::sort(names, [&](unsigned a, unsigned b) { return positions[a] < positions[b]; });
  return names;
}

/// A cycle would lead from one of the groups through others, which come before the last of the groups, to another one.
bool Grouping::canMerge(ArrayRef<unsigned> names) const {
  findPositions();
  unsigned last = 0;
  for (unsigned name : names)
    last = std::max(last, positions[name]);
  llvm::SmallDenseSet<unsigned, 16> seen;
  SmallVector<unsigned> stack(names);
  while (!stack.empty()) {
    unsigned name = stack.pop_back_val();
    bool isOutside = !llvm::is_contained(names, name);
    for (unsigned node : nodesOf(name))
      for (unsigned nextNode : space->dependences.successors(node)) {
        unsigned next = first[nextNode];
        if (next == name)
          continue;
        if (llvm::is_contained(names, next)) {
          if (isOutside)
            return false;
          continue;
        }
        if (positions[next] < last && seen.insert(next).second)
          stack.push_back(next);
      }
  }
  return true;
}

const CostedGroup &Grouping::merged(ArrayRef<unsigned> names) const {
  ExprSet set = groups[names.front()]->set;
  for (unsigned name : names.drop_front())
    set |= groups[name]->set;
  return space->costs.of(set);
}

unsigned Grouping::merge(ArrayRef<unsigned> names) {
  const CostedGroup &whole = merged(names);
  for (unsigned name : names)
    remove(name);
  place(whole);
  return nameOf(whole.exprs.front());
}

bool Grouping::tryMerge(ArrayRef<unsigned> names) {
  if (!canMerge(names) || !merged(names).isPossible())
    return false;
  merge(names);
  return true;
}

void Grouping::split(unsigned name, ArrayRef<const CostedGroup *> pieces) {
  remove(name);
  for (const CostedGroup *piece : pieces)
    place(*piece);
}

static void insert(SmallVectorImpl<unsigned> &into, unsigned name) {
  if (!llvm::is_contained(into, name))
    into.push_back(name);
}

SmallVector<unsigned> Grouping::readersOf(unsigned name) const {
  SmallVector<unsigned> found;
  for (unsigned expr : groups[name]->exprs)
    for (unsigned reader : space->readersOf(expr))
      if (nameOf(reader) != name)
        insert(found, nameOf(reader));
  return found;
}

SmallVector<unsigned> Grouping::producersOf(unsigned name) const {
  SmallVector<unsigned> found;
  for (unsigned expr : groups[name]->exprs)
    for (unsigned producer : space->producersOf(expr))
      if (nameOf(producer) != name)
        insert(found, nameOf(producer));
  return found;
}

SmallVector<unsigned> Grouping::neighboursOf(unsigned name) const {
  SmallVector<unsigned> found = readersOf(name);
  for (unsigned producer : producersOf(name))
    insert(found, producer);
  for (unsigned expr : groups[name]->exprs)
    for (unsigned sibling : space->siblingsOf(expr))
      if (nameOf(sibling) != name)
        insert(found, nameOf(sibling));
  return found;
}
