/*
 * One lane: its lease, its owner, and the fence that every write passes (docs/leases.md).
 *
 * Promise: only the owner's write commits, and only if the database is still in the state that the write was planned on.
 * Two owners, an old term's late write, or a write planned before a failover lost commits would break that. If nothing
 * shows that a failover lost commits, the first half still holds.
 *
 * Faults: an instance is declared dead at any time, as if its lease had expired, a process restarts at any step while its transaction may still
 * commit, a plan waits for any time, the database falls back once to an earlier state,
 * noticed or not, and another instance takes over at any time, also from an owner that lives.
 *
 * switch LOCK: the fence holds the lane row until COMMIT
 * switch TOKEN: the fence compares the token, not the owner alone
 * switch IDENTITY: the fence compares the owner's instance, not the token alone
 * switch HISTORY: a write compares the database's history with the one that it was planned on
 * switch COUNTER: an instance is declared dead by compare-and-set on its heartbeat counter
 * switch RENEWAL: a renewal fails for an instance that was declared dead
 */
#ifndef NODES
#define NODES 2
#endif
#define INSTANCES (NODES + 2)
#define MOST_TOKEN 3
#define MOST_VERSION 2

/* The lane row. Owner 0: none. `version` grows with every write. */
byte owner, token, version;
/* The state that a failover may fall back to. */
byte oldOwner, oldToken, oldVersion;
bool history, fell, unnoticed;
bool locked;

/* Heartbeat rows by instance. */
bool dead[INSTANCES];
byte counter[INSTANCES];

inline lock() {
  atomic {
#ifndef WITHOUT_LOCK
    !locked -> locked = true;
#endif
    began = fell
  }
}

inline unlock() {
  if :: began == fell -> locked = false :: else fi;
  began = false
}

/* A failover ends transactions and their locks. */
#ifdef WITHOUT_LOCK
#define HOLDS true
#else
#define HOLDS (locked && began == fell)
#endif
#ifdef WITHOUT_TOKEN
#define SAME_TOKEN true
#else
#define SAME_TOKEN (token == planToken)
#endif
#ifdef WITHOUT_IDENTITY
#define SAME_OWNER (owner != 0)
#else
#define SAME_OWNER (owner == me)
#endif
#ifdef WITHOUT_HISTORY
#define SAME_HISTORY true
#else
#define SAME_HISTORY (history == planHistory)
#endif
#ifdef WITHOUT_COUNTER
#define SAME_COUNTER true
#else
#define SAME_COUNTER (counter[other] == looked)
#endif
#ifdef WITHOUT_RENEWAL
#define RENEWABLE true
#else
#define RENEWABLE (!dead[me])
#endif
#define FENCE (SAME_OWNER && SAME_TOKEN && SAME_HISTORY && !dead[me])

/* The instances from `me` to `last` are one process that restarts. */
proctype Node(byte me; byte last) {
  byte planToken, planVersion, other, looked;
  bool planHistory, planned, passed, began;

  do
  :: atomic {
       RENEWABLE && counter[me] < 1 -> counter[me]++;
       assert(!dead[me])
     }

  :: /* Take over the lane, also from an owner that lives: no promise rests on leases and clocks. */
     !dead[me] ->
     lock();
     atomic {
       if
       :: HOLDS && owner != me && token < MOST_TOKEN ->
          oldOwner = owner; oldToken = token; oldVersion = version;
          owner = me; token++
       :: else
       fi;
       unlock()
     }

  :: /* Plan a write on what the owner knows of the lane. The plan may wait for any time. */
     atomic {
       owner == me && !planned && version < MOST_VERSION ->
       planned = true; planToken = token; planVersion = version; planHistory = history
     }

  :: /* Write what was planned. */
     planned ->
     lock();
     passed = FENCE;
     atomic {
       if
       :: passed && HOLDS ->
          assert(owner == me);
          assert(version == planVersion || unnoticed);
          version++
       :: else /* The fence refused it, or a failover ended the transaction. */
       fi;
       unlock(); planned = false; passed = false; planToken = 0; planVersion = 0; planHistory = false
     }

  :: /* Release the lane. */
     lock();
     atomic { if :: HOLDS && owner == me -> owner = 0 :: else fi; unlock() }

  :: /* Declare an owner dead whose lease expired, or whose session lock is gone in two looks. */
     atomic { owner != 0 && owner != me && !dead[owner] -> other = owner; looked = counter[other] }
     atomic {
       if
       :: !dead[other] && SAME_COUNTER -> assert(counter[other] == looked); dead[other] = true
       :: else
       fi;
       other = 0; looked = 0
     }

  :: /* The process restarts as a new instance. A transaction at the server was over, one way or the other. */
     atomic { me < last -> me++; planned = false; planToken = 0; planVersion = 0; planHistory = false }

  :: timeout -> break
  od
}

proctype Trouble() {
  do
  :: /* A failover to a standby that lacks the last takeover and the writes after it. It ends all transactions. */
     atomic { !fell && token > 0 -> fell = true;
       if :: history = true :: unnoticed = true fi;
       owner = oldOwner; token = oldToken; version = oldVersion; locked = false }
  :: timeout -> break
  od
}

init {
  byte n;
  atomic {
    n = 0;
    do
    :: n < NODES -> run Node((n == 0 -> 1 : n + 2), (n == 0 -> 2 : n + 2)); n++
    :: else -> break
    od;
    run Trouble()
  }
}
