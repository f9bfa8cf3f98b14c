// Alternative forms of ops: algebra that may replace the graph's own. The pass of a form finds where it applies, its rule
// decides whether it is taken, and the pass rewrites the ops for which it is. This is what all forms have in common: the
// choice, a plain struct, and its record on the function, from which the plan takes it. A plan from a file requests
// choices, which override the rules.
#ifndef TILEWRIGHT_GRAPH_FORMCHOICE_H
#define TILEWRIGHT_GRAPH_FORMCHOICE_H

#include "passes/graph/Form.h"
#include "passes/graph/TensorGraph.h"

#include <map>
#include <string>
#include <vector>

namespace tilewright {

/// The changes to an op's numbers that come from fusing it and from its form.
struct Numerics {
  std::string accumulation;  ///< type of the accumulator, one per result ("f32, i64"); empty if nothing is reduced
  bool reassociates = false; ///< true if sums and products are not computed in the order of the domain
  int64_t roundingsRemoved =
      0; ///< roundings to bf16 or f16 per result element that the graph has and the kernel leaves out
};

/// A form that is offered for ops of a function, and whether it is taken.
struct FormChoice {
  tile::Form form = tile::Form::asIs;
  unsigned number = 0;          ///< position among the offers of this form, in the order in which its pass makes them
  std::vector<std::string> ops; ///< names of the ops that it would replace
  bool taken = false;
  std::map<std::string, std::vector<int64_t>> parameters; ///< by name, such as the parts of a split
  Numerics numerics;                                      ///< what taking the form does to numbers
  double seconds = 0, otherwiseSeconds = 0; ///< predicted with the form and without it; 0: the rule predicts nothing
  std::string reason;                       ///< why the form is taken or not
  std::string wouldChange;                  ///< condition for the other choice; empty if there is none
  std::vector<std::string> locations;       ///< of the ops, for reports; JSON of a plan does not have them

  /// Returns the values of a parameter, or nothing.
  llvm::ArrayRef<int64_t> values(llvm::StringRef parameter) const;
  /// Returns true if `other` is the choice that this one requests. A request without parameters leaves them to the rule.
  bool isMetBy(const FormChoice &other) const;
  /// Returns the name of the offer for messages: "form 'two-phase reduction' 3 of linalg.generic".
  std::string label() const;
  void print(llvm::raw_ostream &os) const;
};

/// Returns the choices that passes have made for a function, or for that of a graph, so far, in their order.
std::vector<FormChoice> recordedForms(mlir::Operation *function);
std::vector<FormChoice> recordedForms(const TensorGraph &graph);

/// Requests choices: passes that find these offers choose so instead of by their rules, for the reasons of the requests.
void requestForms(mlir::Operation *function, llvm::ArrayRef<FormChoice> forms);

/// Removes the requests, once they are carried out.
void dropRequestedForms(mlir::Operation *function);

/// Returns why a choice with other parameters than the rule's cannot be carried out, or an empty string. May set the
/// numerics that follow from these parameters.
using WhyNotForm = llvm::function_ref<std::string(FormChoice &)>;

/// The answer for forms that can always be carried out and have no parameters.
std::string takesNoParameters(const FormChoice &choice);

/// Settles the choice for the next offer of a form: the rule's, or the requested one. Records it on the function. Fails
/// with an error at the first op if the request cannot be carried out.
mlir::FailureOr<FormChoice> settleForm(mlir::Operation *function, FormChoice byRule,
                                       llvm::ArrayRef<mlir::Operation *> ops, WhyNotForm whyNot);

/// Returns why requested choices are not those on record, or an empty string if all of them are.
std::string whyNotRecorded(llvm::ArrayRef<FormChoice> requested, llvm::ArrayRef<FormChoice> recorded);

} // namespace tilewright

#endif
