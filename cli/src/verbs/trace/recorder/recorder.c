/*
 * Writes down what a rank asks of MPI, in the time-independent text form of SMPI: one file for each rank, one
 * line for each call, `RANK VERB ARGUMENT...`. `meikyo trace` builds it for the MPI at hand and preloads it.
 *
 * What is written is world ranks, sizes in octets and, as `compute`, nanoseconds between two calls. A
 * communicator other than the world is defined once, `RANK comm_split SIZE @ID MEMBER...`, and named by a
 * last word `@ID`, which SMPI ignores. Receives from anybody are written with the sender that came.
 *
 * It interposes C and Fortran entry points. Those of Fortran call Fortran's profiling entry points, so that
 * addresses such as Fortran's MPI_IN_PLACE keep their meaning; whatever these call inside is not written
 * down again (`inside`).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536
#define LINE_MAX_OCTETS 256
/* Shorter computing is added to what follows, in nanoseconds. */
#define COMPUTE_LEAST 1000
/* Width of a source or a tag that is written later. */
#define HOLE 10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[BUFFER];
static size_t used;
static off_t flushed;
static int file = -1;
static int world_rank, world_size;
static __thread int inside;
static __thread uint64_t left_at;
static __thread uint64_t carried_over;

static void complain(const char *what) {
    fprintf(stderr, "meikyo trace: rank %d: %s\n", world_rank, what);
}

#include "text.h"
#include "calls.h"
#include "communicators.h"
#include "requests.h"
#include "messages.h"
#include "persistent.h"
#include "waiting.h"
#include "collectives.h"
#include "groups.h"

/* ---- Beginning and end ---- */

static void begin(void) {
    const char *directory = getenv("MEIKYO_TRACE_DIR");
    char path[4096];
    if (!directory || file >= 0) return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    int length = snprintf(path, sizeof path, "%s/rank-%d.txt", directory, world_rank);
    if (length < 0 || (size_t)length >= sizeof path) {
        complain("the name of the directory is too long");
        return;
    }
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) {
        complain("its file cannot be made in the directory of the trace");
        return;
    }
    define(MPI_COMM_WORLD, 0);
    line("init");
    end_line();
    if (world_rank == 0) {
        line("comm_size");
        number(world_size);
        end_line();
    }
    left_at = now();
}

static void finish(void) {
    if (file < 0) return;
    line("finalize");
    end_line();
    flush();
    close(file);
    file = -1;
}

__attribute__((destructor)) static void last(void) {
    /* A program that ends without MPI_Finalize leaves what it did. */
    pthread_mutex_lock(&lock);
    if (file >= 0) flush();
    pthread_mutex_unlock(&lock);
}

int MPI_Init(int *argc, char ***argv) {
    inside++;
    int error = PMPI_Init(argc, argv);
    if (!error) begin();
    inside--;
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    inside++;
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (!error) begin();
    inside--;
    return error;
}

int MPI_Finalize(void) {
    int first = enter();
    if (first) finish();
    away(first);
    int error = PMPI_Finalize();
    leave();
    return error;
}

void mpi_init_(F error) {
    inside++;
    FORTRAN(init, (F), (error));
    if (!*error) begin();
    inside--;
}

void mpi_init_thread_(F required, F provided, F error) {
    inside++;
    FORTRAN(init_thread, (F, F, F), (required, provided, error));
    if (!*error) begin();
    inside--;
}

void mpi_finalize_(F error) {
    int first = enter();
    if (first) finish();
    away(first);
    FORTRAN(finalize, (F), (error));
    leave();
}
