/*
 * A commit whose answer is lost (docs/crashes.md): what the caller is told must be true later too.
 *
 * Promise: "accepted" means that the row exists, "nothing was accepted" that it never will, and one request id has one
 * row, whichever node the caller asks again.
 *
 * Faults: an answer is lost at any time, and a transaction arrives at the server after its sender gave it up.
 *
 * switch LOOKUP: a commit without an answer is looked up before the caller is answered
 * switch LANE_LOCK: the look-up waits for the lane's lock, so it sees a transaction that is still running
 * switch CLOSED_SLOT: the look-up closes the transaction's slot, so a transaction that arrives later is refused
 * switch SECOND_CHECK: the transaction looks for the request id again under the lane's lock
 */
#ifndef NODES
#define NODES 2
#endif

mtype = { WAITING, RUNNING, COMMITTED, REFUSED };
/* One transaction per node, as the server has it. */
mtype transaction[NODES] = WAITING;
bool sent[NODES], closed[NODES];
bool locked;
byte rows;
mtype = { OPEN, ACCEPTED, NOTHING, UNKNOWN };
mtype answer[NODES] = OPEN;

/* The server: the transaction may arrive long after it was sent. */
proctype Server(byte n) {
  bool known;
  sent[n];
  known = rows > 0;
  atomic { !locked -> locked = true }
  transaction[n] = RUNNING;
  atomic {
#ifndef WITHOUT_SECOND_CHECK
    known = rows > 0;
#endif
    if
    :: known || closed[n] -> transaction[n] = REFUSED
    :: else -> rows++; transaction[n] = COMMITTED
    fi;
    assert(rows <= 1);
    locked = false
  }
}

proctype Node(byte n) {
  bool found;
  sent[n] = true;
  if
  :: /* The answer arrives. */
     transaction[n] == COMMITTED || transaction[n] == REFUSED ->
     answer[n] = (rows > 0 -> ACCEPTED : NOTHING)
  :: /* The connection ends without one. */
     skip;
#ifdef WITHOUT_LOOKUP
     answer[n] = NOTHING
#else
#ifndef WITHOUT_LANE_LOCK
     atomic { !locked -> locked = true }
#endif
     found = rows > 0;
#ifndef WITHOUT_CLOSED_SLOT
     if :: transaction[n] == WAITING -> closed[n] = true :: else fi;
#endif
#ifndef WITHOUT_LANE_LOCK
     locked = false;
#endif
     answer[n] = (found -> ACCEPTED : NOTHING)
#endif
  fi
}

/* At rest, the answers are true. */
proctype Check() {
  byte n;
  timeout;
  do
  :: n < NODES ->
     assert(!(answer[n] == ACCEPTED && rows == 0));
     assert(!(answer[n] == NOTHING && transaction[n] == COMMITTED));
     n++
  :: else -> break
  od
}

init {
  byte n;
  atomic {
    n = 0;
    do
    :: n < NODES -> run Server(n); run Node(n); n++
    :: else -> break
    od;
    run Check()
  }
}
