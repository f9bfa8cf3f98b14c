// The one way to compare two predicted times. A prediction has an error; a time counts as shorter only if it is shorter
// by more than that. The errors are parameters of the machine (target/CostParameters.def, "confidence"): they are
// smaller for two tilings of one kernel, whose errors mostly cancel, than for kernels that differ.
#ifndef TILEWRIGHT_COST_CONFIDENCE_H
#define TILEWRIGHT_COST_CONFIDENCE_H

namespace tilewright {

/// Returns the seconds that something must undercut to be faster than `seconds`. `error` is the part of the slower time
/// by which two predictions may differ although neither is faster.
inline double leastFaster(double seconds, double error) { return (1 - error) * seconds; }

/// Returns true if `a` seconds are fewer than `b` seconds by more than the error.
inline bool isFaster(double a, double b, double error) { return a < leastFaster(b, error); }

} // namespace tilewright

#endif
