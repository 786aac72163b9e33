// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The load balancer's maps: keys, values, limits, and the names of all it counts. User space writes
// them, bpf/lb/ reads them; docs/design/lb-data-plane.md says who owns which.
#pragma once

#include "wire/dispatch.h"
#include "wire/language.h"

enum {
  BL_MOST_VIPS = 1024,
  BL_MOST_TABLES = 2 * BL_MOST_VIPS,  // of each VIP one in use and one to write
  // VIPs and their addresses; what is new is written before what is old is removed.
  BL_MOST_VIP_KEYS = 4 * BL_MOST_VIPS,
  BL_MOST_INSTANCES = 4096,     // of all VIPs together
  BL_MOST_CLASSES = 64,         // different weights of one VIP, 0 apart
  BL_MOST_MEMBERS = 1024,       // instances of one VIP with a weight above 0
  BL_CONNECTIONS = 1048576,     // default size; set when the program is loaded
  BL_NEWCOMER_SETS = 32768,     // likewise; a power of two
  BL_NEWCOMER_PLACES = 7,       // of a set, taken in turn
  BL_FRAGMENTS = 8192,          // likewise
  BL_ERRORS_PER_SECOND = 1000,  // ICMP messages made here, each CPU; likewise
  BL_GUE_PORT = 6080,           // IANA's
  BL_FAMILY_IPV4 = 4,
  BL_FAMILY_IPV6 = 6,
};

// Network byte order. An IPv4 address is in the first word, the others are 0.
struct bl_address {
  __u32 word[4];
};

// A flow as the client sends it.
struct bl_flow_key {
  struct bl_address source;
  struct bl_address destination;
  __u16 source_port_be;
  __u16 destination_port_be;
  __u8 protocol;  // IPPROTO_TCP or IPPROTO_UDP
  __u8 family;    // BL_FAMILY_…
  __u16 zero;
};
BL_ASSERT(sizeof(struct bl_flow_key) == 40);
BL_ASSERT(offsetof(struct bl_flow_key, protocol) == 36);

// Map "vips". Port 0 stands for all ports of the protocol that have no entry of their own. Protocol
// 0, port 0 says only that the address is a VIP's: fragments and broken packets to it are dropped
// and echo requests answered.
struct bl_vip_key {
  struct bl_address address;
  __u16 port_be;
  __u8 protocol;
  __u8 family;
};
BL_ASSERT(sizeof(struct bl_vip_key) == 20);

struct bl_vip {
  __u32 index;  // its own, below BL_MOST_VIPS; for an address the index of one of its VIPs
  __u32 table;  // in dispatch_tables, below BL_MOST_TABLES
};
BL_ASSERT(sizeof(struct bl_vip) == 8);

// Map "dispatch_tables". A table in use is never written: the other of the VIP's two is, and then
// bl_vip.table. total 0: no instance.
struct bl_dispatch_table {
  __u32 total;
  __u32 class_count;
  struct bl_dispatch_class classes[BL_MOST_CLASSES];
  __u32 members[BL_MOST_MEMBERS];  // indices of instances, by class
};
BL_ASSERT(sizeof(struct bl_dispatch_table) == 8 + 12 * BL_MOST_CLASSES + 4 * BL_MOST_MEMBERS);
BL_ASSERT(offsetof(struct bl_dispatch_table, members) == 8 + 12 * BL_MOST_CLASSES);

enum bl_method {
  BL_METHOD_L2 = 0,    // the same network: only the MAC addresses change
  BL_METHOD_IPIP = 1,  // IPv4 or IPv6 in IPv4 or IPv6
  BL_METHOD_GUE = 2,   // the same in UDP: GUE variant 1, no header of its own
  BL_METHOD_NAT = 3,   // the destination's address and port change; answers come back through here
};

enum bl_instance_state {
  BL_INSTANCE_ABSENT = 0,
  BL_INSTANCE_UP = 1,    // with weight 0 it drains: what is open stays
  BL_INSTANCE_DOWN = 2,  // what is open goes to another one, which resets it
};

// Map "instances".
struct bl_instance {
  struct bl_address address;       // the outer destination, NAT's new one; L2 does not use it
  struct bl_address outer_source;  // of the tunnel, of the same family
  __u32 ifindex;                   // where it goes out; 0: where it came in
  __u16 mtu;                       // largest IP packet on the way, outer headers in; 0: any
  __u8 method;                     // enum bl_method
  __u8 family;                     // of `address`
  __u8 mac[6];                     // the next hop's; all 0: not known yet
  __u8 source_mac[6];              // of the interface it goes out by
  __u8 state;                      // enum bl_instance_state
  __u8 zero;
  __u16 port_be;  // NAT's new destination port; 0: as the client sent it
};
BL_ASSERT(sizeof(struct bl_instance) == 56);
BL_ASSERT(offsetof(struct bl_instance, mac) == 40);
BL_ASSERT(offsetof(struct bl_instance, port_be) == 54);

// Map "nat_sources", by the address, port and protocol from which an instance answers, a struct
// bl_vip_key; port 0 stands for all ports. Only packets of flows that the balancer sent to that
// very instance are given the VIP's address and port.
// A VIP that had the place before, and has connections left, is there with BL_FORMER_SOURCE in the
// key's family.
enum { BL_FORMER_SOURCE = 0x80 };

struct bl_nat_source {
  struct bl_address address;  // the VIP's
  __u32 instance;             // in "instances"
  __u16 port_be;              // the VIP's; 0: as the instance sent it
  __u16 zero;
};
BL_ASSERT(sizeof(struct bl_nat_source) == 24);
BL_ASSERT(offsetof(struct bl_nat_source, port_be) == 20);

// Map "owners": whose an index of "instances" is, so that a balancer that starts anew knows it
// again. The packet path does not read it.
struct bl_owner {
  struct bl_vip_key vip;      // protocol 0: nobody's
  struct bl_address address;  // of the instance
  __u16 port_be;              // NAT's, else 0
  __u8 family;                // of the instance
  __u8 is_nat;
};
BL_ASSERT(sizeof(struct bl_owner) == 40);
BL_ASSERT(offsetof(struct bl_owner, port_be) == 36);

enum bl_connection_state {
  BL_CONNECTION_NEW = 0,      // one direction, first packets only; in "newcomers"
  BL_CONNECTION_OPEN = 1,     // the client answered the instance, or sent a second datagram
  BL_CONNECTION_CLOSING = 2,  // the client's FIN was seen
  BL_CONNECTION_RESET = 3,    // the client's RST was seen, and nothing after it
};

// Map "connections", by bl_flow_key. The packet path adds and changes, and deletes what its client
// begins anew or whose instance is down; user space deletes by state and age.
struct bl_connection {
  __u64 last_seen_ns;  // CLOCK_MONOTONIC_COARSE
  __u32 instance;
  __u8 state;  // enum bl_connection_state
  __u8 zero;
  __u16 candidate;  // index + 1 of who may have it if the instance has not; 0: it is certain
};
BL_ASSERT(sizeof(struct bl_connection) == 16);
BL_ASSERT(offsetof(struct bl_connection, state) == 12);

// Map "newcomers": an array of sets, each a cache line. A flow's set follows from its hash; in it
// new flows take the places in turn, in constant time however many come. A place is read and
// written as one word, so no lock is needed: bl_flow_mark() of the flow in the upper bits, below
// them its way, 0 if it is empty.
enum {
  BL_WAY_INSTANCE = 0x1fff,  // of a way; BL_MOST_INSTANCES if there is none
  BL_WAY_CANDIDATE = 13,     // above that, bl_connection.candidate
  BL_WAY_BITS = 26,
};
BL_ASSERT(BL_CAST(int, BL_MOST_INSTANCES) <= BL_CAST(int, BL_WAY_INSTANCE));

struct bl_newcomer_set {
  __u32 turn;         // flows that took a place so far
  __u32 connections;  // in "connections", of flows whose set this is; never fewer than there are
  __u64 places[BL_NEWCOMER_PLACES];
};
BL_ASSERT(sizeof(struct bl_newcomer_set) == 64);

// Map "fragments": where the first fragment of a packet went, which alone has ports.
struct bl_fragment_key {
  struct bl_address source;
  struct bl_address destination;
  __u32 id_be;
  __u8 protocol;
  __u8 family;
  __u16 zero;
};
BL_ASSERT(sizeof(struct bl_fragment_key) == 40);

struct bl_fragment {
  __u32 instance;
  __u32 is_answer;            // of a NAT instance to the client
  struct bl_address address;  // then: the VIP's
};
BL_ASSERT(sizeof(struct bl_fragment) == 24);

// Map "instance_counters", one value a CPU. A VIP's traffic is that of its instances.
struct bl_traffic {
  __u64 packets;
  __u64 bytes;        // of IP, before anything is put around it
  __u64 connections;  // flows that were given an instance
};
BL_ASSERT(sizeof(struct bl_traffic) == 24);

// Map "counters", one value a CPU, indexed by enum bl_counter. First the reasons for a drop.
#define BL_DROP_REASONS(X)                                                                   \
  X(malformed, "a header is cut short or contradicts itself")                                \
  X(fragment_unknown, "a fragment without ports whose first one was not seen")               \
  X(extension_header, "IPv6 extension headers that are not understood, or too many")         \
  X(no_instance, "the VIP has no instance that may get anything")                            \
  X(no_neighbour, "the instance's next hop has no MAC address yet")                          \
  X(too_big, "does not fit after encapsulation, and no answer may be given")                 \
  X(too_big_answered, "does not fit after encapsulation; the sender was told the MTU")       \
  X(hop_limit, "the time to live or hop limit is used up")                                   \
  X(hop_limit_answered, "the time to live or hop limit is used up; the sender was told")     \
  X(quote, "an ICMP error that quotes no packet of the VIP it came to, or too little of it") \
  X(no_room, "the driver left no room for the outer header")

#define BL_EVENTS(X)                                                               \
  X(known, "packets of a known connection")                                        \
  X(newcomer, "packets of a flow seen once before")                                \
  X(chosen, "packets whose instance was chosen, by the VIP's ring or table")       \
  X(chosen_late, "of those, TCP packets from the middle of a connection")          \
  X(opened, "flows that moved from the newcomers to the connections")              \
  X(table_full, "flows that stayed newcomers, as the connection table is full")    \
  X(moved_from_down, "flows that were given another instance, as theirs is down")  \
  X(port_reused, "connections opened anew by a client that had closed the former") \
  X(icmp_error, "ICMP errors sent to the instance of the connection they quote")   \
  X(echo_answered, "echo requests answered")                                       \
  X(fragment, "fragments without ports that followed their first one")             \
  X(answer, "packets of instances that were given the VIP's address (NAT)")        \
  X(answer_by_kernel, "of those, packets left to the kernel to forward")           \
  X(passed, "packets left to the kernel")

#define BL_DROP_COUNTER(name, words) BL_DROP_##name,
#define BL_EVENT_COUNTER(name, words) BL_EVENT_##name,
enum bl_counter { BL_DROP_REASONS(BL_DROP_COUNTER) BL_EVENTS(BL_EVENT_COUNTER) BL_COUNTERS };
#undef BL_DROP_COUNTER
#undef BL_EVENT_COUNTER

// Map "settings", one entry: what user space changes while packets pass.
struct bl_settings {
  __u32 capture_one_in;  // packets, drawn at random; 0: none
  __u32 capture_length;  // most bytes of a packet, from its Ethernet header on
};
BL_ASSERT(sizeof(struct bl_settings) == 8);

// Map "captured", a perf event array: of each packet drawn two events, as it came and as it left,
// each followed by `captured` bytes of the packet. Dropped and passed packets leave too, as they
// were then.
struct bl_capture_event {
  __u64 time_ns;   // CLOCK_MONOTONIC, of this event
  __u64 number;    // equal for the two of a packet, and else only by chance
  __u32 length;    // of the whole packet
  __u32 captured;  // bytes that follow
  __u32 ifindex;   // where it came in; of an event that left where it goes out, 0 unless it does
  __u32 instance;  // BL_MOST_INSTANCES: none; so on arrival
  __u32 counter;   // enum bl_counter that says most of it; BL_COUNTERS on arrival
  __u8 action;     // enum xdp_action; 0 on arrival
  __u8 has_left;
  __u16 zero;
};
BL_ASSERT(sizeof(struct bl_capture_event) == 40);
BL_ASSERT(offsetof(struct bl_capture_event, action) == 36);

// The instance's program, bpf/lb/decap.bpf.c. Map "balancers": from whom a tunnel is opened.
enum { BL_MOST_BALANCERS = 256 };

struct bl_balancer_key {
  struct bl_address address;
  __u8 family;
  __u8 zero[3];
};
BL_ASSERT(sizeof(struct bl_balancer_key) == 20);

// Map "decap_counters", one value a CPU.
#define BL_DECAP_EVENTS(X)                                                                       \
  X(opened, "packets whose outer headers were taken off")                                        \
  X(stranger, "tunnel packets of no balancer, left to the kernel")                               \
  X(malformed, "tunnel packets dropped, as nothing whole is in them")                            \
  X(handed_on, "packets of a connection that is not here, sent to the one other instance named") \
  X(no_neighbour, "of those, dropped, as the other's next hop has no MAC address yet")

#define BL_DECAP_COUNTER(name, words) BL_DECAP_##name,
enum bl_decap_counter { BL_DECAP_EVENTS(BL_DECAP_COUNTER) BL_DECAP_COUNTERS };
#undef BL_DECAP_COUNTER
