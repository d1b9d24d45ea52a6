// What the ranks of a simulation ask of MPI. The compiler of the MPI at hand makes a library of this, which
// each rank loads: the types of MPI differ from one MPI to the next, and nothing of them is seen outside.
//
// MPI ends the ranks by itself where something goes wrong (MPI_ERRORS_ARE_FATAL, as it is by default).

#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

// The longest piece of a message: MPI counts octets in 31 bits.
#define PIECE ((uint64_t)1 << 30)
// How often a rank looks at its requests before it gives way to others between two looks.
#define LOOKS 2000

// Joins the other ranks, and says which this one is and how many there are; 0 where that was done before.
int meikyo_join(int *own, int *count)
{
    int begun, provided;

    MPI_Initialized(&begun);
    if (begun)
        return 0;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, own);
    MPI_Comm_size(MPI_COMM_WORLD, count);
    return 1;
}

// Waits for the other ranks to leave as well.
void meikyo_leave(void)
{
    MPI_Finalize();
}

// Ends all ranks.
void meikyo_abort(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

// Makes a communicator of the first ranks, whose number is what Fortran would call it by; 0 on a rank that is
// not among them. All ranks call this.
int meikyo_among_first(int count, int64_t *number)
{
    MPI_Comm made;
    int own;

    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_split(MPI_COMM_WORLD, own < count ? 0 : MPI_UNDEFINED, own, &made);
    if (made == MPI_COMM_NULL)
        return 0;
    *number = MPI_Comm_c2f(made);
    return 1;
}

// All ranks of the communicator call this.
void meikyo_free(int64_t number)
{
    MPI_Comm communicator = MPI_Comm_f2c((MPI_Fint)number);

    MPI_Comm_free(&communicator);
}

// Waits for requests. With a core for each rank the wait is mostly over before the rank gives way; with fewer,
// it leaves its core to those it waits for, which MPICH itself would not do.
static void finish(int count, MPI_Request *requests)
{
    for (unsigned looks = 0;; looks++) {
        int done;

        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (done)
            return;
        if (looks > LOOKS)
            sched_yield();
    }
}

// Publishes a row of words, and receives those of all ranks one after the other.
void meikyo_all_gather(int64_t number, const uint64_t *row, uint64_t *table, int width)
{
    MPI_Comm communicator = MPI_Comm_f2c((MPI_Fint)number);
    MPI_Request request;

    MPI_Iallgather(row, width, MPI_UINT64_T, table, width, MPI_UINT64_T, communicator, &request);
    finish(1, &request);
}

static int pieces_of(int count, const uint64_t *lengths)
{
    uint64_t pieces = 0;

    for (int rank = 0; rank < count; rank++)
        pieces += (lengths[rank] + PIECE - 1) / PIECE;
    return (int)pieces;
}

// Sends each of `count` ranks as many octets as it is told, and receives from each as many as it is told.
void meikyo_exchange(int64_t number, int count, const char *const *out, const uint64_t *out_lengths,
                     char *const *in, const uint64_t *in_lengths)
{
    MPI_Comm communicator = MPI_Comm_f2c((MPI_Fint)number);
    int pieces = pieces_of(count, out_lengths) + pieces_of(count, in_lengths), begun = 0;
    MPI_Request *requests = malloc(sizeof *requests * (size_t)(pieces > 0 ? pieces : 1));

    if (!requests)
        meikyo_abort(1);
    for (int rank = 0; rank < count; rank++)
        for (uint64_t at = 0; at < in_lengths[rank]; at += PIECE) {
            uint64_t left = in_lengths[rank] - at;

            MPI_Irecv(in[rank] + at, (int)(left < PIECE ? left : PIECE), MPI_BYTE, rank, 0, communicator, &requests[begun++]);
        }
    for (int rank = 0; rank < count; rank++)
        for (uint64_t at = 0; at < out_lengths[rank]; at += PIECE) {
            uint64_t left = out_lengths[rank] - at;

            MPI_Isend(out[rank] + at, (int)(left < PIECE ? left : PIECE), MPI_BYTE, rank, 0, communicator, &requests[begun++]);
        }
    finish(begun, requests);
    free(requests);
}
