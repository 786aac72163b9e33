/* SPDX-License-Identifier: Apache-2.0 */
/* Two node incarnations, one home, two writes: leases and acknowledgements. */
#ifndef NODES
#define NODES 2
#endif
#ifndef HOMES
#define HOMES 1
#endif
#ifndef WRITES
#define WRITES 2
#endif
#ifndef BYPASS
#define BYPASS 0
#endif
#ifndef IDS
#define IDS 1
#endif
#ifndef STARTED
#define STARTED 1
#endif
#ifndef CUTS
#define CUTS 0
#endif
#include "protocol.pml"
