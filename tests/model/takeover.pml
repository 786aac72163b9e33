/* SPDX-License-Identifier: Apache-2.0 */
/* A second home takes the shard over from one that is dead, paused or cut off. */
#ifndef NODES
#define NODES 1
#endif
#ifndef HOMES
#define HOMES 2
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
#define CUTS 1
#endif
#define ROUND_TRIP
#define TAKEOVER
#include "protocol.pml"
