/*
 * The feed of outcomes, its numbers and its epochs (docs/feed.md).
 *
 * Promise: a reader that keeps only its position and epoch gets every outcome that the database has, no number ever means
 * two outcomes to it, and no page has outcomes of a later epoch than it names.
 *
 * Faults: commits finish in any order, and the database once falls back to a state without the last outcomes.
 *
 * switch COUNTER: the number is taken in the transaction, under the counter's lock, until COMMIT
 * switch EPOCH: a changed history begins a new epoch before anything else is written
 * switch ABOVE: a new epoch begins above every number that was seen
 * switch SNAPSHOT: epoch and outcomes of a page are one snapshot
 */
#define WRITERS 2
#define OUTCOMES 2
#define NUMBERS 8

byte counter, epoch, seen;
bool locked, changed;
/* Outcome and epoch by number; 0: none. */
byte outcome[NUMBERS], epochOf[NUMBERS];
/* The reader's notes: outcomes by number. */
byte noted[NUMBERS];
bool fell;

proctype Writer(byte n) {
  byte i, number;
  bool known;
  do
  :: i < OUTCOMES ->
     known = changed;
#ifndef WITHOUT_COUNTER
     atomic { !locked -> locked = true }
#endif
     atomic { counter++; number = counter }
     /* COMMIT. A failover in between ends the transaction, which is then repeated. */
     atomic {
       if
       :: changed == known ->
#ifndef WITHOUT_EPOCH
          /* The first write to a changed history begins the epoch. */
          if
          :: changed && epoch == 0 ->
             epoch = 1;
#ifndef WITHOUT_ABOVE
             if :: seen >= number -> number = seen + 1; counter = number :: else fi
#endif
          :: else
          fi;
#endif
          assert(outcome[number] == 0);
          outcome[number] = 1 + n * OUTCOMES + i; epochOf[number] = epoch;
          if :: number > seen -> seen = number :: else fi;
          i++
#ifndef WITHOUT_COUNTER
          ;
          locked = false
#endif
       :: else /* A failover ended the transaction and its lock. */
       fi
     }
  :: else -> break
  od
}

proctype Reader() {
  byte after, mine, page, number;
  do
  :: atomic { epoch != mine || counter > after -> page = epoch; number = after + 1;
#ifdef WITHOUT_SNAPSHOT
     }
     atomic {
#endif
       if
       :: page != mine -> /* EPOCH_CHANGED: go on where the answer says, from the last number before the epoch. */
          mine = page;
          number = 1;
          do :: number < NUMBERS - 1 && epochOf[number] < page -> number++ :: else -> break od;
          after = (number - 1 < after -> number - 1 : after)
       :: else ->
          /* The next outcome of the page, whatever numbers are missing before it. */
          do :: number < NUMBERS && outcome[number] == 0 -> number++ :: else -> break od;
          if
          :: number < NUMBERS ->
             assert(epochOf[number] <= mine);
             assert(noted[number] == 0 || noted[number] == outcome[number]);
             noted[number] = outcome[number]; after = number
          :: else
          fi
       fi;
       page = 0; number = 0
     }
  :: timeout -> break
  od
}

proctype Failover() {
  atomic {
    !fell && counter > 0 && outcome[counter] != 0 ->
    fell = true; changed = true; locked = false;
    outcome[counter] = 0; epochOf[counter] = 0; counter--
  }
}

proctype Check() {
  byte number = 1;
  timeout;
  do
  :: number < NUMBERS ->
     assert(outcome[number] == 0 || noted[number] == outcome[number]);
     number++
  :: else -> break
  od
}

init { atomic { run Writer(0); run Writer(1); run Reader(); run Failover(); run Check() } }
