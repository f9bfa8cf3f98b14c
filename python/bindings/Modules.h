// Modules as Python sees them: the core's, with the handles of their ops.
#ifndef TILEWRIGHT_PYTHON_MODULES_H
#define TILEWRIGHT_PYTHON_MODULES_H

#include "python/bindings/Ir.h"

namespace tilewright::python {

/// Returns the context object of a context in which a pipeline runs.
Context contextOf(MlirContext context);

/// True if this thread is in a Python pass or pattern of a module with this context.
bool isInCall(MlirContext context);

/// Returns the pass and the exception that ended a pipeline, and forgets both; None if no Python pass has failed.
nb::object takeFailure(MlirContext context);

} // namespace tilewright::python

#endif
