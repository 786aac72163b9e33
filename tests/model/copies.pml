/* SPDX-License-Identifier: Apache-2.0 */
/* One node that makes and drops copies, two writes: copy ids, versions, the key's queue. */
#ifndef NODES
#define NODES 1
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
#define IDS 2
#endif
#ifndef STARTED
#define STARTED 1
#endif
#ifndef CUTS
#define CUTS 0
#endif
#include "protocol.pml"
