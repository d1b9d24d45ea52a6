/* libmeikyo_checkpoint: protects the arrays of a parallel program by the checkpoint daemons of its hosts.
 *
 *     meikyo_checkpoint *ck;
 *     meikyo_checkpoint_init(NULL, rank, ranks, -1, &ck);
 *     meikyo_checkpoint_protect(ck, "temperature", t, "f64", 2, shape, whole, first);
 *     uint64_t step = 0;
 *     meikyo_checkpoint_restore(ck, &step);
 *     for (; step < steps; step++) {
 *         if (step % 100 == 0) meikyo_checkpoint_save(ck, step);
 *         ...
 *     }
 *     meikyo_checkpoint_finalize(ck);
 *
 * Functions return a negative number where they fail; meikyo_checkpoint_error() says why. A program that ignores it
 * goes on unprotected. A handle is used by one thread at a time. Nothing here needs MPI.
 */
#ifndef MEIKYO_CHECKPOINT_H
#define MEIKYO_CHECKPOINT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct meikyo_checkpoint meikyo_checkpoint;

/* Joins this host's daemon. `directory` is the daemon's; NULL takes it from MEIKYO_CHECKPOINT_DIRECTORY. A negative
 * rank, number of ranks, or number of ranks on this host is taken from what the launcher (MPICH, Open MPI, Slurm) has
 * put into the environment; MEIKYO_CHECKPOINT_RANKS_HERE says the last one where it cannot know. */
int meikyo_checkpoint_init(const char *directory, int rank, int ranks, int ranks_here, meikyo_checkpoint **out);

/* Names an array. `element` is "f32", "f64", "i8" to "i64", "u8" to "u64", "c64" or "c128"; `shape` has as many
 * elements as there are dimensions (1 to 8), the slowest first. If the array is this rank's block of one that all
 * ranks share, `whole` is the shape of that and `first` where the block begins in it, and another number of ranks can
 * go on from the checkpoint; else both are NULL. The memory stays the program's. */
int meikyo_checkpoint_protect(meikyo_checkpoint *, const char *name, void *data, const char *element, int dimensions,
                              const uint64_t *shape, const uint64_t *whole, const uint64_t *first);

/* The same in memory that is made here, all zeros, and shared with the daemon. It is there until
 * meikyo_checkpoint_finalize. NULL where it fails. */
void *meikyo_checkpoint_alloc(meikyo_checkpoint *, const char *name, const char *element, int dimensions,
                              const uint64_t *shape, const uint64_t *whole, const uint64_t *first);

/* Names an output file of this rank: restore cuts it back to the length that it had. Flush it before a save. */
int meikyo_checkpoint_file(meikyo_checkpoint *, const char *path);

/* 1 if a checkpoint pays now. Clocks of ranks differ: ask on one rank and tell the others. The interval is Daly's from
 * what saves have cost; MEIKYO_CHECKPOINT_EVERY (seconds) insists on one. */
int meikyo_checkpoint_due(meikyo_checkpoint *);

/* Saves a step. Every rank calls it for the same step, with no message of its own under way. All threads of the process
 * stand still while the arrays are copied or read, but those that block signals. It returns when that is done; the
 * daemons then make them safe, and a step that not all hosts can save is given up. Restore is called before the first.
 *
 * Where the kernel tells what a program writes (Linux 6.7 and later) and there is memory for it, the library keeps a copy of all arrays,
 * and a thread of its own brings it up to date while the program runs, so that only what was written since then is copied in the
 * stop. What the daemon refuses is then told by the next call. MEIKYO_CHECKPOINT_COPIES_AHEAD=no keeps no copy, and
 * yes keeps one however much memory there is. */
int meikyo_checkpoint_save(meikyo_checkpoint *, uint64_t step);

/* What the last save cost: how long the threads stood still, and how many octets were copied since the save before and
 * meanwhile. 1 if a copy is kept, 0 if the daemon has read the arrays where they are. Pointers may be NULL. */
int meikyo_checkpoint_cost(const meikyo_checkpoint *, double *stop_seconds, uint64_t *ahead_bytes,
                           uint64_t *residue_bytes);

/* Fills all named arrays with what they were at the newest checkpoint, and says which step that was: 1. 0 where there is
 * none: begin from nothing. Every rank calls it once, after its arrays are named; it returns when all ranks of all hosts
 * have called it, and tells all the same. */
int meikyo_checkpoint_restore(meikyo_checkpoint *, uint64_t *step);

/* 1 if the program should save and end: MEIKYO_CHECKPOINT_WALL seconds are over, or the signal of which
 * MEIKYO_CHECKPOINT_SIGNAL is the number has come. Ask on one rank and tell the others. */
int meikyo_checkpoint_should_exit(meikyo_checkpoint *);

/* Leaves the daemon, and frees what meikyo_checkpoint_alloc has made. */
void meikyo_checkpoint_finalize(meikyo_checkpoint *);

/* Why the last call of this thread that failed did; there until the next one. */
const char *meikyo_checkpoint_error(void);

#ifdef __cplusplus
}
#endif

#endif
