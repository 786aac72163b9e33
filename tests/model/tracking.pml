/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that bypasses, the tracking connection and its loss. */
#ifndef NODES
#define NODES 1
#endif
#ifndef HOMES
#define HOMES 1
#endif
#ifndef WRITES
#define WRITES 1
#endif
#ifndef BYPASS
#define BYPASS 1
#endif
#ifndef IDS
#define IDS 2
#endif
#ifndef STARTED
#define STARTED 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
#define ROUND_TRIP
#include "protocol.pml"
