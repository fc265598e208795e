/*
 * One transaction on its way to the wire: write-ahead, claim, and stops while its payloads are sent (docs/crashes.md).
 * Payload 1 is the transaction, payload 2 its cancellation at the same nonce. The fence is atomic here: fence.pml shows
 * why it may be.
 *
 * Promise: what leaves is stored and claimed by the sender's term; nothing starts to leave after a stop was answered,
 * and no superseded payload after the cancellation was committed. Once faults end, a payload is mined.
 *
 * Faults: a node crashes or freezes at every step, loses its lease while it sends, and an operator stops it or cancels
 * at any time.
 *
 * switch WRITE_AHEAD: the payload is committed before it is sent
 * switch CLAIM: every term claims the payload anew before it sends
 * switch WIRE: the permission is asked when the bytes leave, not when the batch begins
 * switch DEADLINE: a node past its own deadline starts no send
 * switch SUPERSEDED: a send asks for the newest payload when it starts
 * switch RESUME: a new owner sends what is stored and not mined
 */
#ifndef NODES
#define NODES 2
#endif
#define NONE 9
#define MOST_TERM 3
#define MOST_FAULTS 2

byte owner = NONE, term;
byte faults, lost;
/* The term that each node believes to hold; 0: none. */
byte mine[NODES];
/* The attempts of the transaction, as the database has them. */
bool stored[3];
byte claimedBy[3];
bool cancelled, mined;
/* Facts about each node that its own sends look at. */
bool late[NODES];
bool stopped[NODES], answered[NODES];

inline send(p) {
  atomic {
#ifdef WITHOUT_WIRE
    may = permitted;
#else
    may = !stopped[n];
#endif
#ifndef WITHOUT_DEADLINE
    may = may && !late[n];
#endif
#ifndef WITHOUT_SUPERSEDED
    may = may && !(p == 1 && cancelled);
#endif
    if
    :: may ->
       assert(stored[p]);
       assert(claimedBy[p] == mine[n]);
       assert(!answered[n]);
       assert(!(p == 1 && cancelled));
       if :: lost < 2 -> lost++ :: mined = true fi
    :: else
    fi
  }
}

proctype Node(byte n) {
  byte p;
  bool may, permitted;

  do
  :: /* Take over: the old owner's deadline is before the end of its lease. */
     atomic {
       (owner == NONE || late[owner]) && owner != n && term < MOST_TERM ->
       owner = n; term++; mine[n] = term; late[n] = false
     }

  :: /* Sign: the owner commits payload and claim, then sends. */
     mine[n] > 0 && !stored[1] && !cancelled ->
     p = 1; permitted = !stopped[n];
#ifdef WITHOUT_WRITE_AHEAD
     send(1);
#endif
     atomic { if :: owner == n && term == mine[n] -> stored[1] = true; claimedBy[1] = mine[n] :: else -> p = 0; mine[n] = 0 fi }
     if :: p == 1 -> send(1) :: else fi;
     p = 0

  :: /* Send again what is stored and not mined, also after a takeover. */
#ifdef WITHOUT_RESUME
     mine[n] == 1 &&
#endif
     mine[n] > 0 && stored[1] && !mined ->
     atomic { p = (cancelled -> 2 : 1); permitted = !stopped[n] }
#ifndef WITHOUT_CLAIM
     atomic { if :: owner == n && term == mine[n] -> claimedBy[p] = mine[n] :: else -> p = 0; mine[n] = 0 fi }
#endif
     if
     :: p == 1 -> send(1)
     :: p == 2 -> send(2)
     :: else
     fi;
     p = 0

  :: /* The process crashes and starts again without memory. */
     atomic { faults < MOST_FAULTS -> faults++; mine[n] = 0; if :: owner == n -> late[n] = true :: else fi }

  :: mined -> break
  od
}

/* Operators at a node: a stop takes effect in its memory, then it is answered. Later they resume. */
proctype Stop(byte n) {
  stopped[n] = true;
  answered[n] = true;
  atomic { answered[n] = false; stopped[n] = false }
}

/* An operator cancels at any time: the owner commits the cancellation like any payload. */
proctype Cancel(byte n) {
  atomic {
    (owner == n && term == mine[n] && stored[1] && !cancelled) || mined ->
    if :: !mined -> cancelled = true; stored[2] = true; claimedBy[2] = mine[n] :: else fi
  }
}

/* Leases end at any time, a few times. */
proctype Lease() {
  byte n;
  do
  :: atomic { owner != NONE && !late[owner] && faults < MOST_FAULTS -> faults++; late[owner] = true }
  :: mined || faults == MOST_FAULTS -> break
  od
}

init {
  byte n;
  atomic {
    n = 0;
    do
    :: n < NODES -> run Node(n); run Stop(n); run Cancel(n); n++
    :: else -> break
    od;
    run Lease()
  }
}

ltl finished { <> mined }
