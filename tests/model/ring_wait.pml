/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the two sides of a ring sleep and wake each other, for the model checker spin.
 * The code is src/host/ring_wait_linux.c; docs/ring.md has the argument in words.
 *
 * Modelled: an application that submits REQUESTS requests, at most DEPTH in flight, in batches of
 * every size; a driver that answers them in batches of every size and may be killed between any two
 * steps; the application's monitor, which then sets `dead` and wakes the application.
 *
 * Memory: each process has a store buffer. A plain store goes into it and reaches memory at any
 * later time; a load sees the process's own newest buffered store, else memory. This is TSO (x86).
 * With -DWEAK_STORES, stores to different words may also overtake each other, but no release store
 * overtakes what is older. A fence, an atomic exchange and a system call wait for an empty buffer.
 *
 * Checked: no entry is seen before its content, lost, doubled or out of order (assert); nobody
 * sleeps while there is something to do (invalid end state); each run ends with all requests
 * answered or with the driver's death noticed (`served`, under weak fairness).
 *
 * Each -D below breaks one rule; tests/model.sh wants each to fail.
 *   NO_PRODUCER_FENCE   the producer looks at `sleeping` without a fence after the tail
 *   NO_CONSUMER_FENCE   the consumer looks at the tail without a fence after `sleeping`
 *   LOOK_BEFORE_SET     the consumer looks at the tail first and says then that it sleeps
 *   BLIND_WAIT          the kernel does not compare `sleeping` before it puts the caller to sleep
 *   NO_DEAD_CHECK       the sleeper does not look at `dead` after it said that it sleeps
 *   DEATH_KEEPS_WORD    the monitor wakes without clearing `sleeping`
 *   DEATH_TRUSTS_WORD   the monitor wakes only when `sleeping` is 1, as a producer does
 *   FORGOTTEN_WAKE      no look at `sleeping` when the tail was stored early and nothing is left
 *   TAIL_FIRST          the producer stores the tail before the entries
 *   NO_RELEASE          the tail is stored without release (fails with WEAK_STORES)
 */

#ifndef REQUESTS
#define REQUESTS 3
#endif
#define DEPTH 2
#define BUFFER 4 /* stores a processor holds back; a store waits when it is full */

/* Processors. */
#define APP 0
#define DRIVER 1
#define MONITOR 2

/* Words of memory, all 0 at first. An entry holds the request's number, from 1. */
#define SQ_TAIL 0
#define CQ_TAIL 1
#define DRIVER_SLEEPING 2
#define APP_SLEEPING 3
#define DEAD 4
#define SQ 5           /* the submission ring's entries */
#define CQ (SQ + DEPTH) /* the completion ring's */
#define WORDS (CQ + DEPTH)

typedef store_buffer {
    byte held;
    byte word[BUFFER];
    byte value[BUFFER];
    bit release[BUFFER]
};

byte memory[WORDS];
store_buffer cpu[3];
bool waits[2];        /* in the futex's queue; each word has one sleeper: index is the process */
bool killed;          /* the driver has been killed */
bool finished;        /* the application has got all answers, or noticed that the driver is dead */

/* ---- memory ---- */

inline put(me, where, what, is_release) {
    atomic {
        cpu[me].held < BUFFER;
        cpu[me].word[cpu[me].held] = where;
        cpu[me].value[cpu[me].held] = what;
        cpu[me].release[cpu[me].held] = is_release;
        cpu[me].held++
    }
}

#define store(me, where, what) put(me, where, what, 0)
#ifdef NO_RELEASE
#define store_release(me, where, what) put(me, where, what, 0)
#else
#define store_release(me, where, what) put(me, where, what, 1)
#endif

/* k: a variable of the process, left at 0 so that it adds no states. */
inline load(me, where, into, k) {
    d_step {
        into = memory[where];
        k = 0;
        do
        :: k < cpu[me].held ->
            if
            :: cpu[me].word[k] == where -> into = cpu[me].value[k]
            :: else
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
}

inline fence(me) {
    cpu[me].held == 0
}

inline exchange(me, where, what, old) {
    atomic {
        cpu[me].held == 0;
        old = memory[where];
        memory[where] = what
    }
}

/* Store number i of the buffer reaches memory; the later ones move up. */
inline drain(me, i, k) {
    memory[cpu[me].word[i]] = cpu[me].value[i];
    cpu[me].held--;
    k = i;
    do
    :: k < cpu[me].held ->
        cpu[me].word[k] = cpu[me].word[k + 1];
        cpu[me].value[k] = cpu[me].value[k + 1];
        cpu[me].release[k] = cpu[me].release[k + 1];
        k++
    :: else -> break
    od;
    cpu[me].word[k] = 0;
    cpu[me].value[k] = 0;
    cpu[me].release[k] = 0;
    k = 0
}

/* May store number 1 overtake number 0? One place is enough for every order of two words. */
#define may_overtake(me) (cpu[me].held > 1 && !cpu[me].release[1] && \
                          cpu[me].word[0] != cpu[me].word[1])

/* One for each processor. A killed process's stores still reach memory. */
proctype Memory(byte me) {
    byte k;
end:
    do
    :: d_step { cpu[me].held > 0 -> drain(me, 0, k) }
#ifdef WEAK_STORES
    :: d_step { may_overtake(me) -> drain(me, 1, k) }
#endif
    od
}

/* ---- the kernel ---- */

/* Compares and enqueues under the lock that a wake-up takes too, then sleeps. */
inline futex_wait(me, word) {
    atomic {
        cpu[me].held == 0;
#ifdef BLIND_WAIT
        waits[me] = true
#else
        waits[me] = (memory[word] == 1)
#endif
    };
    !waits[me]
}

inline futex_wake(me, sleeper) {
    atomic {
        cpu[me].held == 0;
        waits[sleeper] = false
    }
}

/* ---- src/host/ring_wait_linux.c ---- */

/* Is there something to do? Leaves what was seen in tail and dead. */
inline look(me, tail_word, tail, dead, k) {
    load(me, tail_word, tail, k);
    if
    :: me == APP -> load(me, DEAD, dead, k)
    :: else
    fi
}

inline sleep_once(me, tail_word, mine, tail, sleeping_word, dead, k) {
#ifdef LOOK_BEFORE_SET
    load(me, tail_word, tail, k);
#endif
    store(me, sleeping_word, 1);
#ifndef NO_CONSUMER_FENCE
    fence(me);
#endif
#if defined(NO_DEAD_CHECK)
    load(me, tail_word, tail, k);
#elif defined(LOOK_BEFORE_SET)
    if
    :: me == APP -> load(me, DEAD, dead, k)
    :: else
    fi;
#else
    look(me, tail_word, tail, dead, k);
#endif
    if
    :: tail == mine && !dead -> futex_wait(me, sleeping_word)
    :: else
    fi;
    store(me, sleeping_word, 0)
}

/* Spinning is to look again instead of sleeping; how often is left open. */
inline wait_for(me, tail_word, mine, tail, sleeping_word, dead, k) {
    look(me, tail_word, tail, dead, k);
    do
    :: tail != mine || dead -> break
    :: tail == mine && !dead ->
        if
        :: sleep_once(me, tail_word, mine, tail, sleeping_word, dead, k)
        :: skip
        fi;
        look(me, tail_word, tail, dead, k)
    od
}

inline wake(me, sleeping_word, sleeper, old, k) {
#ifndef NO_PRODUCER_FENCE
    fence(me);
#endif
    load(me, sleeping_word, old, k);
    if
    :: old == 1 ->
        exchange(me, sleeping_word, 0, old);
        if
        :: old == 1 -> futex_wake(me, sleeper)
        :: else
        fi
    :: else
    fi;
    old = 0
}

/* ---- the processes ---- */

/* Adds entries sent + 1 .. to, which the ring has room for, and wakes the peer: one fence and one
 * look for all of them. The tail may be stored early as well, so that the peer can begin. */
inline send(me, tail_word, ring, sent, to, published, sleeping_word, sleeper, old, k) {
#ifdef TAIL_FIRST
    store_release(me, tail_word, to);
#endif
    do
    :: sent < to ->
        store(me, ring + sent % DEPTH, sent + 1);
        sent++;
        if
        :: store_release(me, tail_word, sent); published = sent
        :: skip
        fi
    :: sent == to -> break
    od;
    if
    :: published == sent
#ifndef FORGOTTEN_WAKE
        -> wake(me, sleeping_word, sleeper, old, k)
#endif
    :: published != sent ->
        store_release(me, tail_word, sent);
        published = sent;
        wake(me, sleeping_word, sleeper, old, k)
    fi
}

proctype Application() {
    byte sent, published, got, tail, to, old, k;
    byte dead;

    do
    :: got == REQUESTS || dead -> break
    :: !dead && sent < REQUESTS && sent - got < DEPTH ->
        to = sent + 1;
        if
        :: to < REQUESTS && to - got < DEPTH -> to++
        :: skip
        fi;
        send(APP, SQ_TAIL, SQ, sent, to, published, DRIVER_SLEEPING, DRIVER, old, k);
        to = 0
    :: !dead && sent > got ->
        wait_for(APP, CQ_TAIL, got, tail, APP_SLEEPING, dead, k);
        do
        :: got < tail ->
            load(APP, CQ + got % DEPTH, old, k);
            assert(old == got + 1); /* this answer, once, in its order */
            old = 0;
            got++
        :: got == tail -> break
        od;
        tail = 0
    od;
    assert(dead || got == REQUESTS);
    finished = true
}

proctype Driver() {
    byte seen, answered, published, tail, old, k;
    byte dead; /* always 0 */

    {
        do
        :: wait_for(DRIVER, SQ_TAIL, seen, tail, DRIVER_SLEEPING, dead, k);
            do
            :: seen < tail ->
                load(DRIVER, SQ + seen % DEPTH, old, k);
                assert(old == seen + 1);
                old = 0;
                seen++
            :: seen == tail -> break
            :: seen > answered -> break /* the rest in the next batch */
            od;
            tail = 0;
            send(DRIVER, CQ_TAIL, CQ, answered, seen, published, APP_SLEEPING, APP, old, k)
        od
    } unless {
        killed || finished /* or the application is gone: the control socket's end of file */
    }
}

/* Kills the driver at some moment, or never. */
proctype Death() {
    if
    :: killed = true
    :: skip
    fi
}

/* A driver killed between its exchange and its wake-up leaves sleeping == 0 with the application
 * asleep, so the monitor cannot do as a producer does: it clears the word and wakes, always. */
proctype Monitor() {
    byte old, k;

end:
    killed; /* the control socket's end of file, then the driver is reaped */
    store_release(MONITOR, DEAD, 1);
#ifdef DEATH_TRUSTS_WORD
    wake(MONITOR, APP_SLEEPING, APP, old, k)
#else
#ifndef DEATH_KEEPS_WORD
    exchange(MONITOR, APP_SLEEPING, 0, old);
    old = 0;
#endif
    futex_wake(MONITOR, APP)
#endif
}

init {
    atomic {
        run Memory(APP);
        run Memory(DRIVER);
        run Memory(MONITOR);
        run Application();
        run Driver();
        run Death();
        run Monitor()
    }
}

ltl served { <> finished }
