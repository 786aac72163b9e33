/* SPDX-License-Identifier: Apache-2.0 */
/* The coherence protocol of docs/design/coherence.md for one key of one shard. A model sets the
   bounds and includes this file; each rule of the protocol can be switched off by the macro that
   its comment names. Long because the processes share their state and each other's rules. */

/* Bounds a model sets: NODES node incarnations, HOMES home epochs, WRITES writes through a home,
   BYPASS writes of others, IDS copy ids a node may use, STARTED homes that are serving at the
   start, CUTS losses of connections, QUIET: no write through a home is made. */
#ifndef LEASE
#define LEASE 2  /* length of a lease in ticks */
#endif
#define GRACE 1  /* ticks an invalidation may be unanswered before renewals are refused */
#ifndef MARGIN
#define MARGIN 0 /* ticks the home adds for drift */
#endif
#ifdef NO_DRIFT_MARGIN
#define RECORD LEASE
#else
#define RECORD (LEASE + MARGIN)
#endif
#define VALUES (WRITES + BYPASS + 1)
#define PAIRS (HOMES * NODES)
#define BIT(b) (1 << (b))
#define X(h, n) ((h) * NODES + (n))

/* What the home calls a node: its incarnation; INCARNATION_BY_NAME: the name, which both
   incarnations bear. */
#ifdef INCARNATION_BY_NAME
#define R(h, n) ((h) * NODES)
#else
#define R(h, n) X(h, n)
#endif
/* Which home an acknowledgement is for: NO_EPOCH_IN_VERSION: whoever reads it. */
#ifdef NO_EPOCH_IN_VERSION
#define A(h, n) X(0, n)
#else
#define A(h, n) X(h, n)
#endif

/* The network. What was sent once stays: it can arrive at any later time, in any order, any number
   of times or never. A renewal or lease is known by what is left of it, counted from the node's
   sending; bit r-1 for r ticks left. */
byte renews[NODES];
byte leases[PAIRS];
byte admits[NODES];  /* bit id */
byte invs[PAIRS];    /* bit version */
byte acks[PAIRS];    /* bit version */
int fills[PAIRS];    /* bit (version * IDS + id - 1) * VALUES + value */
bit drops[PAIRS];    /* DropAll; at most one T is lost */
bit drop_acks[PAIRS];

/* The shard. A value is the number of writes applied so far. */
byte value;
byte floor_value;    /* value of the last write through a home: no node may serve an older one */
#if BYPASS > 0
byte bypass_age;     /* ticks since the last write that passed no home */
bit tracked[HOMES];
#endif
bit t_alive[HOMES];
bit w_alive[HOMES];
mtype = { off, named, listed, waiting, serving, down };

/* Nodes. */
byte lease[NODES];   /* ticks left */
byte epoch[NODES];   /* 1 + the home last heard */
byte next_id[NODES];
byte copy_id[NODES]; /* 0: none */
byte copy_version[NODES];
byte copy_value[NODES]; /* 1 + value, 0: placeholder */
#ifdef STALE_CLOCK
bit seen_running[NODES];
#define RUNS(n) seen_running[n]
#else
#define RUNS(n) (lease[n] > 0)
#endif
#if MARGIN > 0
byte slow[NODES];    /* ticks until the node's clock may lag by another one */
#endif

/* Homes. */
mtype state[HOMES];
byte to_wait[HOMES];
byte to_kill[HOMES]; /* homes listed, bit each */
byte version[HOMES];
bit reading[HOMES];
byte read_version[HOMES];
bit valid[HOMES];    /* a fill was sent since the last invalidation */
byte holder[PAIRS];  /* copy id, 0: no holder */
byte answered[PAIRS];
bit wanted[PAIRS];
byte record[PAIRS];  /* ticks left of the node's lease as the home knows it */
byte owed[PAIRS];    /* ticks an invalidation has been unanswered */
bit drop_owed[PAIRS];
#ifdef ROUND_TRIP
bit pinging[PAIRS];
byte renewal[PAIRS]; /* ticks left of the renewal that waits for the round trip */
#endif
#ifdef STALE_HOME_CLOCK
byte clock_age[HOMES];
#define GRANT(h) (RECORD - clock_age[h])
#else
#define GRANT(h) RECORD
#endif
#if CUTS > 0
byte cuts;
#endif
#ifdef RECONNECT_WITHOUT_WAIT
bit again[HOMES];
#endif

/* From the shard on T, in order: a value, PUSH or PONG + node. */
#define PUSH 100
#define PONG 101
chan t_replies[HOMES] = [5] of { byte };

/* Writes. orphan: its home lost the connection, the shard has not. */
mtype = { idle, phase1, sent, applied, acked, dead, orphan };
mtype write_state[WRITES];
byte write_home[WRITES];
byte write_version[WRITES];
byte write_age[WRITES];

/* Scratch, zero between steps. */
byte b, i, j, arg;
#define CLEAR b = 0; i = 0; j = 0; arg = 0

/* I1 and I2: what a node would answer to a request that arrives now. Of writers that bypass:
   bounded staleness. */
#define STALENESS (2 * LEASE + GRACE)
#define SERVES_OLDER(n, than) (copy_value[n] > 0 && RUNS(n) && copy_value[n] - 1 < (than))
inline check() {
  for (i : 0 .. NODES - 1) {
    assert(!SERVES_OLDER(i, floor_value));
#if BYPASS > 0
    assert(!(bypass_age > STALENESS && SERVES_OLDER(i, value)));
#endif
  }
}

/* Node. */

inline forget(n) {
  copy_id[n] = 0; copy_version[n] = 0; copy_value[n] = 0;
#if HOMES == 1 && !defined(NO_COPY_ID)
  fills[n] = 0 /* no fill sent so far can be accepted any more: fewer states */
#endif
}

/* Another home's message: everything of the former goes first. */
inline hear(n, h) {
  if
  :: epoch[n] != 1 + h -> forget(n); lease[n] = 0; epoch[n] = 1 + h
  :: else
  fi
}

inline take_lease(n, h) { /* arg: ticks */
  hear(n, h);
  if
#ifndef REVIVE_LAPSED_LEASE
  :: lease[n] == 0 -> forget(n)
#endif
  :: else -> skip
  fi;
  if :: arg > lease[n] -> lease[n] = arg :: else fi
}

inline take_invalidation(n, h, v) {
  hear(n, h);
  if
  :: copy_id[n] > 0 && copy_version[n] < v -> copy_version[n] = v; copy_value[n] = 0
  :: else
  fi;
  /* A higher one does all that a lower one does. */
  if :: acks[A(h, n)] < BIT(v) -> acks[A(h, n)] = BIT(v) :: else fi
}

#ifdef NO_COPY_ID
#define ASKED_BY(id, fill_id) true
#else
#define ASKED_BY(id, fill_id) (id == fill_id)
#endif
#ifdef NO_FILL_VERSION
#define NOT_OLDER(fill_version, v) true
#else
#define NOT_OLDER(fill_version, v) (fill_version >= v)
#endif

inline take_fill(n, h) { /* b: the fill */
  hear(n, h);
  i = b / (IDS * VALUES);
  j = 1 + (b / VALUES) % IDS;
  if
  :: copy_id[n] > 0 && ASKED_BY(copy_id[n], j) && NOT_OLDER(i, copy_version[n]) ->
     copy_version[n] = i; copy_value[n] = 1 + b % VALUES
  :: else
  fi
}

#define PICK(set) b = 0; do :: (set) >> (b + 1) -> b++ :: (set) & BIT(b) -> break od

proctype Node(byte n; byte h) {
  /* A node talks to each home through a process of its own; what is the node's alone it does in the
     first. */
  do
  :: d_step { h == 0 && !(renews[n] & BIT(LEASE - 1)) ->
     renews[n] = renews[n] | BIT(LEASE - 1); CLEAR }
  :: d_step { h == 0 && copy_id[n] == 0 && next_id[n] < IDS && lease[n] > 0 ->
       next_id[n]++; copy_id[n] = next_id[n]; admits[n] = admits[n] | BIT(copy_id[n]); CLEAR }
  :: d_step { h == 0 && copy_id[n] > 0 && next_id[n] < IDS -> forget(n); CLEAR }
  :: atomic { leases[X(h, n)] -> PICK(leases[X(h, n)]);
       d_step { arg = b + 1; take_lease(n, h); check(); CLEAR } }
  :: atomic { invs[X(h, n)] -> PICK(invs[X(h, n)]);
       d_step { arg = b; take_invalidation(n, h, arg); CLEAR } }
  :: atomic { fills[X(h, n)] -> PICK(fills[X(h, n)]);
       d_step { take_fill(n, h); b = 0; check(); CLEAR } }
#if CUTS > 0
  :: d_step { drops[X(h, n)] -> hear(n, h); forget(n); drop_acks[X(h, n)] = 1; CLEAR }
#endif
#ifdef STALE_CLOCK
  :: d_step { h == 0 && seen_running[n] != (lease[n] > 0) ->
     seen_running[n] = (lease[n] > 0); check(); CLEAR }
#endif
  od
}

/* Home. */

#define UNANSWERED(x) ((holder[x] > 0 && answered[x] < version[x / NODES]) || drop_owed[x])
#ifdef RENEW_UNANSWERED
#define MAY_RENEW(x) true
#else
#define MAY_RENEW(x) (owed[x] < GRACE)
#endif

inline grant(h, n) { /* arg: ticks of the renewal */
  record[R(h, n)] = GRANT(h);
  leases[X(h, n)] = leases[X(h, n)] | BIT(arg - 1)
}

inline invalidate(h) {
  version[h]++;
  valid[h] = 0;
  for (i : 0 .. NODES - 1) {
    if
    :: holder[X(h, i)] > 0 ->
       wanted[X(h, i)] = 1;
       invs[X(h, i)] = invs[X(h, i)] | BIT(version[h])
    :: else
    fi
  }
}

#define IN_FLIGHT_OF(h, w) (write_home[w] == h && \
  (write_state[w] == phase1 || write_state[w] == sent || write_state[w] == applied))
#define WANTED_BY(h, n) (holder[X(h, n)] > 0 && wanted[X(h, n)])
/* The home's write of version v waits for node n's answer or for the end of its lease. */
#ifdef NO_LEASE_WAIT
#define STILL_WAITS(h, n) (record[R(h, n)] > 0 && owed[X(h, n)] < GRACE)
#else
#define STILL_WAITS(h, n) (record[R(h, n)] > 0)
#endif
#define WAITS(h, n, v) \
  (((holder[X(h, n)] > 0 && answered[R(h, n)] < v) || drop_owed[X(h, n)]) && STILL_WAITS(h, n))
#if NODES == 2
#define RELEASED(h, v) (!WAITS(h, 0, v) && !WAITS(h, 1, v))
#define WANTED(h) (WANTED_BY(h, 0) || WANTED_BY(h, 1))
#else
#define RELEASED(h, v) (!WAITS(h, 0, v))
#define WANTED(h) WANTED_BY(h, 0)
#endif
#if WRITES == 2
#define IN_FLIGHT(h) (IN_FLIGHT_OF(h, 0) || IN_FLIGHT_OF(h, 1))
#else
#define IN_FLIGHT(h) IN_FLIGHT_OF(h, 0)
#endif
#ifdef NO_KEY_QUEUE
#define MAY_READ(h) true
#else
#define MAY_READ(h) (!IN_FLIGHT(h))
#endif
#define RELEASABLE(w) (write_state[w] == phase1 && state[write_home[w]] == serving && \
  RELEASED(write_home[w], write_version[w]))

inline begin_write(h, w) {
  write_home[w] = h;
  write_state[w] = phase1;
  invalidate(h);
  write_version[w] = version[h]
#ifdef NO_PHASE1
  ; write_state[w] = sent
#endif
}

inline send_write(h, w) {
  for (i : 0 .. NODES - 1) {
    if
    :: holder[X(h, i)] > 0 && answered[R(h, i)] < write_version[w] ->
       holder[X(h, i)] = 0; wanted[X(h, i)] = 0; owed[X(h, i)] = 0; answered[R(h, i)] = 0
    :: else
    fi
  }
  write_age[w] = 0;
  if :: w_alive[h] -> write_state[w] = sent :: else -> write_state[w] = dead fi
}

inline begin_read(h) {
  reading[h] = 1;
  read_version[h] = version[h];
  if
  :: t_alive[h] ->
     t_replies[h]!value;
#if BYPASS > 0
     tracked[h] = 1
#endif
  :: else
  fi
}

inline take_reply(h) { /* b: the value */
  reading[h] = 0;
  if
  :: read_version[h] == version[h] ->
     for (i : 0 .. NODES - 1) {
       if
       :: holder[X(h, i)] > 0 && wanted[X(h, i)] ->
          wanted[X(h, i)] = 0;
          valid[h] = 1;
          fills[X(h, i)] =
            fills[X(h, i)] | BIT((version[h] * IDS + holder[X(h, i)] - 1) * VALUES + b)
       :: else
       fi
     }
  :: else
  fi
}

inline take_from_t(h) {
  t_replies[h]?b;
  if
  :: b == PUSH -> if :: valid[h] -> invalidate(h) :: else fi
#ifdef ROUND_TRIP
  :: b >= PONG ->
     j = b - PONG;
     pinging[X(h, j)] = 0;
     arg = renewal[X(h, j)];
     renewal[X(h, j)] = 0;
     if :: arg > 0 && MAY_RENEW(X(h, j)) && state[h] == serving -> grant(h, j) :: else fi
#endif
  :: b < PUSH -> take_reply(h)
  fi
}

#ifdef ADMIT_ANSWERS
#define NEWER_COPY(id, former) (id != former)
#else
#define NEWER_COPY(id, former) (id > former)
#endif

/* A holder's new copy takes over the invalidations that the holder has not answered. */
inline take_admit(h, n, id) {
  if
  :: holder[X(h, n)] == 0 ->
     holder[X(h, n)] = id; wanted[X(h, n)] = 1; answered[R(h, n)] = version[h]
  :: holder[X(h, n)] > 0 && NEWER_COPY(id, holder[X(h, n)]) ->
     holder[X(h, n)] = id; wanted[X(h, n)] = 1;
#ifdef ADMIT_ANSWERS
     answered[R(h, n)] = version[h]
#endif
  :: else -> skip
  fi
}

/* What only a home's talk with one node changes. */
proctype Talk(byte h; byte n) {
  do
#if defined(ROUND_TRIP) && !defined(LEASE_WITHOUT_SHARD_ROUND_TRIP)
  :: atomic { state[h] == serving && renews[n] && !pinging[X(h, n)] && MAY_RENEW(X(h, n)) ->
     PICK(renews[n]);
       d_step { renewal[X(h, n)] = b + 1; pinging[X(h, n)] = 1;
         if :: t_alive[h] -> t_replies[h]!(PONG + n) :: else fi; CLEAR } }
#else
  :: atomic { state[h] == serving && renews[n] && MAY_RENEW(X(h, n)) -> PICK(renews[n]);
       d_step { arg = b + 1; grant(h, n); CLEAR } }
#endif
  :: atomic { state[h] == serving && admits[n] -> PICK(admits[n]);
       d_step { arg = b; take_admit(h, n, arg); CLEAR } }
  :: atomic { acks[A(h, n)] >> (answered[R(h, n)] + 1) -> PICK(acks[A(h, n)]);
       d_step {
         if :: b > answered[R(h, n)] -> answered[R(h, n)] = b :: else fi;
         if :: UNANSWERED(X(h, n)) :: else -> owed[X(h, n)] = 0 fi; CLEAR } }
#if CUTS > 0
  :: d_step { drop_owed[X(h, n)] && drop_acks[X(h, n)] ->
       drop_owed[X(h, n)] = 0; if :: UNANSWERED(X(h, n)) :: else -> owed[X(h, n)] = 0 fi; CLEAR }
#endif
  od
}

proctype Write(byte h; byte w) {
  do
  :: d_step { state[h] == serving && write_state[w] == idle &&
              (w == 0 || write_state[w - 1] != idle) -> begin_write(h, w); CLEAR }
  :: d_step { write_home[w] == h && RELEASABLE(w) -> send_write(h, w); CLEAR }
  :: d_step { write_state[w] == applied && write_home[w] == h ->
       write_state[w] = acked; write_home[w] = 0; write_version[w] = 0; CLEAR }
  od
}

/* The connections T and W of a home, and what becomes of them. */

inline name_connections(h) { t_alive[h] = 1; w_alive[h] = 1 }

inline forget_directory(h) {
  reading[h] = 0;
  valid[h] = 0;
  do :: nempty(t_replies[h]) -> t_replies[h]?arg :: empty(t_replies[h]) -> break od;
  for (i : 0 .. NODES - 1) {
    holder[X(h, i)] = 0; wanted[X(h, i)] = 0; owed[X(h, i)] = 0; answered[R(h, i)] = 0;
#ifdef ROUND_TRIP
    pinging[X(h, i)] = 0; renewal[X(h, i)] = 0;
#endif
  }
}

#ifdef TAKEOVER
/* CLIENT LIST shows a connection that its home has lost until the shard has read all that was sent
   on it. */
#define ORPHAN_OF(i, w) (write_state[w] == orphan && write_home[w] == i)
#if WRITES == 2
#define LISTED(i) (t_alive[i] || w_alive[i] || ORPHAN_OF(i, 0) || ORPHAN_OF(i, 1))
#else
#define LISTED(i) (t_alive[i] || w_alive[i] || ORPHAN_OF(i, 0))
#endif

inline list(h) {
  to_kill[h] = 0;
  for (i : 0 .. HOMES - 1) {
    if
    :: LISTED(i) && i < h -> to_kill[h] = to_kill[h] | BIT(i)
    :: LISTED(i) && i > h -> state[h] = down
    :: else
    fi
  }
  if :: state[h] == down -> t_alive[h] = 0; w_alive[h] = 0 :: else fi
}

inline kill(h) {
#ifndef NO_KILL
  for (i : 0 .. HOMES - 1) {
    if :: to_kill[h] & BIT(i) -> t_alive[i] = 0; w_alive[i] = 0 :: else fi
  }
  for (i : 0 .. WRITES - 1) {
    if
    :: write_state[i] == sent && !w_alive[write_home[i]] -> write_state[i] = dead
#ifndef NO_KILL_FORMER
    :: write_state[i] == orphan && write_home[i] <= h -> write_state[i] = dead
#endif
    :: else
    fi
  }
#endif
  to_kill[h] = 0;
  state[h] = waiting;
  to_wait[h] = RECORD;
#ifdef NO_TAKEOVER_WAIT
  to_wait[h] = 0;
#endif
#ifdef RECONNECT_WITHOUT_WAIT
  if
  :: again[h] -> to_wait[h] = 0;
     for (i : 0 .. NODES - 1) {
       if :: record[X(h, i)] > to_wait[h] -> to_wait[h] = record[X(h, i)] :: else fi
     }
  :: else
  fi
#endif
}

/* The home notices that its connections are gone; the shard may not have: what was sent may still
   be applied. */
inline lose_connections(h) {
  for (i : 0 .. WRITES - 1) {
    if
    :: write_home[i] == h && write_state[i] == sent && w_alive[h] -> write_state[i] = orphan
    :: IN_FLIGHT_OF(h, i) && !(write_state[i] == sent && w_alive[h]) -> write_state[i] = dead
    :: else
    fi
  }
  forget_directory(h);
  t_alive[h] = 0; w_alive[h] = 0;
  to_kill[h] = 0; to_wait[h] = 0;
#ifdef RECONNECT_WITHOUT_WAIT
  again[h] = 1;
#endif
  state[h] = off
}
#endif

#if BYPASS > 0
inline replace_t(h) {
  t_alive[h] = 1;
  tracked[h] = 0;
  reading[h] = 0;
#ifdef ROUND_TRIP
  for (i : 0 .. NODES - 1) { pinging[X(h, i)] = 0; renewal[X(h, i)] = 0 }
#endif
#ifndef NO_DROP_ALL
  forget_directory(h);
  version[h]++;
  for (i : 0 .. NODES - 1) {
    drops[X(h, i)] = 1;
#ifndef NO_DROP_ALL_WAIT
    drop_owed[X(h, i)] = record[X(h, i)] > 0
#endif
  }
#endif
}
#endif

proctype Home(byte h) {
  do
  :: d_step { state[h] == serving && !reading[h] && WANTED(h) && MAY_READ(h) ->
     begin_read(h); CLEAR }
  :: d_step { nempty(t_replies[h]) -> take_from_t(h); CLEAR }
#ifdef STALE_HOME_CLOCK
  :: d_step { clock_age[h] > 0 -> clock_age[h] = 0; CLEAR }
#endif
#ifdef TAKEOVER
#ifdef LIST_BEFORE_NAME
  :: d_step { state[h] == off -> state[h] = named; list(h); CLEAR }
  :: d_step { state[h] == named -> state[h] = listed; name_connections(h); CLEAR }
#else
  :: d_step { state[h] == off -> state[h] = named; name_connections(h); CLEAR }
  :: d_step { state[h] == named && t_alive[h] -> state[h] = listed; list(h); CLEAR }
  :: d_step { state[h] == named && !t_alive[h] -> state[h] = off; CLEAR }
#endif
  :: d_step { state[h] == listed && t_alive[h] -> kill(h); CLEAR }
  :: d_step { state[h] == waiting && to_wait[h] == 0 -> state[h] = serving; CLEAR }
#if CUTS > 0
  :: d_step { state[h] == serving && w_alive[h] && cuts < CUTS ->
     cuts++; lose_connections(h); CLEAR }
  :: d_step { (state[h] == serving || state[h] == waiting || state[h] == listed) && !w_alive[h] ->
     lose_connections(h); CLEAR }
#endif
#elif CUTS > 0
  :: d_step { t_alive[h] && cuts < CUTS -> cuts++; t_alive[h] = 0;
       do :: nempty(t_replies[h]) -> t_replies[h]?arg :: empty(t_replies[h]) -> break od;
       arg = 0; CLEAR }
  :: d_step { !t_alive[h] -> replace_t(h); CLEAR }
#endif
  od
}

/* Shard, and the writer that bypasses. */

inline push() {
  skip;
#if BYPASS > 0
  for (i : 0 .. HOMES - 1) {
    if :: tracked[i] && t_alive[i] -> t_replies[i]!PUSH :: else fi;
    tracked[i] = 0
  }
#endif
}

proctype Shard(byte w) {
  do
  :: d_step { write_state[w] == orphan || (write_state[w] == sent && w_alive[write_home[w]]) ->
       value++; floor_value = value; push();
       if :: write_state[w] == sent -> write_state[w] = applied :: else -> write_state[w] = dead fi;
       check(); CLEAR }
  od
}

#if BYPASS > 0
proctype Bypass() {
  byte done;
  do
  :: d_step { done < BYPASS -> done++; value++; bypass_age = 0; push(); CLEAR }
  od
}
#endif

/* Time. */

/* URGENT: a home that may send a write does so in no time: then no write waits longer than this. */
#ifdef URGENT
#define LONGEST_WAIT (RECORD + GRACE)
#if WRITES == 2
#define MAY_TICK (!RELEASABLE(0) && !RELEASABLE(1))
#else
#define MAY_TICK (!RELEASABLE(0))
#endif
#else
#define MAY_TICK true
#endif

inline age_pair(x) {
  leases[x] = leases[x] >> 1;
  if :: record[x] > 0 -> record[x]-- :: else fi;
  if :: record[x] == 0 -> drop_owed[x] = 0 :: else fi;
  if :: UNANSWERED(x) && owed[x] < GRACE -> owed[x]++ :: else fi;
#ifdef ROUND_TRIP
  if :: renewal[x] > 0 -> renewal[x]-- :: else fi
#endif
}

inline tick() {
  for (i : 0 .. NODES - 1) {
    renews[i] = renews[i] >> 1;
    if :: lease[i] > 0 -> lease[i]-- :: else fi
  }
  for (i : 0 .. PAIRS - 1) { age_pair(i) }
  for (i : 0 .. HOMES - 1) {
    if :: to_wait[i] > 0 -> to_wait[i]-- :: else fi;
#ifdef STALE_HOME_CLOCK
    if :: clock_age[i] < RECORD -> clock_age[i]++ :: else fi
#endif
  }
#if BYPASS > 0
  if :: bypass_age <= STALENESS -> bypass_age++ :: else fi;
#endif
#ifdef URGENT
  for (i : 0 .. WRITES - 1) {
    if
    :: write_state[i] == phase1 -> write_age[i]++; assert(write_age[i] <= LONGEST_WAIT)
    :: else
    fi
  }
#endif
}

proctype Clock() {
  do
  :: d_step { MAY_TICK -> tick(); check(); CLEAR }
  od
}

init {
  atomic {
    for (i : 0 .. HOMES - 1) {
      state[i] = off;
      if :: i < STARTED -> state[i] = serving; t_alive[i] = 1; w_alive[i] = 1 :: else fi
    }
    for (i : 0 .. WRITES - 1) {
      write_state[i] = idle; run Shard(i);
#ifdef QUIET
      write_state[i] = acked
#endif
    }
    for (j : 0 .. HOMES - 1) {
      run Home(j);
      for (i : 0 .. NODES - 1) { run Node(i, j); run Talk(j, i) }
      for (i : 0 .. WRITES - 1) { run Write(j, i) }
    }
#if BYPASS > 0
    run Bypass();
#endif
    run Clock();
    i = 0; j = 0
  }
}
