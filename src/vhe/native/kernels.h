/* All kernels for one instruction set. Before: LEVEL, its name, and LANES, floats per vector. */

#define JOIN(name, level) vhe_##name##_##level
#define JOINED(name, level) JOIN(name, level)
#define KERNEL(name) EXPORT int JOINED(name, LEVEL)

#include "vectors.h"

#include "graph_prior.c"

#include "alignment.c"
