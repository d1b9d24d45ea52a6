/* Heat in a bar, over the ranks of an MPI program that knows nothing of checkpoints:
 * `meikyo checkpoint run --as-is` protects it as it is.
 *
 *     stencil CELLS STEPS PAUSE FILE
 *
 * CELLS are those of each rank, PAUSE microseconds of sleep after each step, until there is a file `hurry`. Every 10 steps
 * it prints the greatest value, which is the same in whatever order ranks are asked, and at the end it writes all cells to
 * FILE.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) {
        if (rank == 0)
            fprintf(stderr, "usage: %s CELLS STEPS PAUSE FILE\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long cells = atol(argv[1]), steps = atol(argv[2]), pause = atol(argv[3]);
    struct timespec nap = {0, pause * 1000};
    double *now = calloc(cells + 2, sizeof *now), *next = calloc(cells + 2, sizeof *next);
    for (long i = 1; i <= cells; i++)
        now[i] = (double)((rank * cells + i) * 2654435761u % 1000) / 7;
    int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    for (long step = 1; step <= steps; step++) {
        MPI_Sendrecv(&now[cells], 1, MPI_DOUBLE, right, 0, &now[0], 1, MPI_DOUBLE, left, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 1, &now[cells + 1], 1, MPI_DOUBLE, right, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (long i = 1; i <= cells; i++)
            next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        double *swap = now;
        now = next;
        next = swap;
        if (step % 10 == 0) {
            double own = 0, all;
            for (long i = 1; i <= cells; i++)
                own = now[i] > own ? now[i] : own;
            MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (rank == 0) {
                printf("step %ld: at most %.17g\n", step, all);
                fflush(stdout);
            }
        }
        if (pause && access("hurry", F_OK) != 0)
            nanosleep(&nap, NULL);
    }
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[4], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)rank * cells * sizeof *now, &now[1], cells, MPI_DOUBLE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
