#include "dialects/tile/BlockingAttr.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

static constexpr int64_t kMostVectors = 16, kMostUnrolled = 16;

bool BlockingChoice::operator==(const BlockingChoice &other) const {
  return vectors == other.vectors && unroll == other.unroll && panelK == other.panelK && prefetch == other.prefetch;
}

Attribute tilewright::attrOf(const BlockingChoice &choice, MLIRContext *context) {
  return DenseI64ArrayAttr::get(context, {choice.vectors, choice.unroll, choice.panelK, choice.prefetch});
}

BlockingChoice tilewright::blockingOf(Attribute attribute) {
  auto fields = cast<DenseI64ArrayAttr>(attribute);
  return {fields[0], fields[1], fields[2], fields[3]};
}

std::string tilewright::whyNoBlocking(Attribute attribute) {
  auto fields = dyn_cast<DenseI64ArrayAttr>(attribute);
  return fields && fields.size() == 4 ? whyNoBlocking(blockingOf(fields)) : "it has other fields";
}

std::string tilewright::whyNoBlocking(const BlockingChoice &choice) {
  for (auto [name, value, most] : {std::tuple("vectors", choice.vectors, kMostVectors),
                                   std::tuple("unroll", choice.unroll, kMostUnrolled)})
    if (value < 1 || value > most)
      return llvm::formatv("{0} must be between 1 and {1}, not {2}", name, most, value);
  for (auto [name, value] : {std::pair("panelK", choice.panelK), std::pair("prefetch", choice.prefetch)})
    if (value < 0)
      return llvm::formatv("{0} must not be negative, but is {1}", name, value);
  return "";
}

llvm::raw_ostream &tilewright::operator<<(llvm::raw_ostream &os, const BlockingChoice &choice) {
  os << choice.vectors << " vectors";
  if (choice.unroll > 1)
    os << ", " << choice.unroll << " steps per iteration";
  if (choice.panelK > 0)
    os << ", panels of " << choice.panelK << " along K copied";
  if (choice.prefetch > 0)
    os << ", panels of " << choice.prefetch << " bytes prefetched";
  return os;
}
