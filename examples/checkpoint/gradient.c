/* Conjugate gradients for the Laplace operator of a square, by rows over the ranks of an MPI program that knows nothing of
 * checkpoints.
 *
 *     gradient SIDE STEPS PAUSE FILE
 *
 * SIDE is the number of rows and columns, a multiple of the ranks; PAUSE microseconds of sleep after each step, until there
 * is a file `hurry`. Sums are added in the order of ranks, so that they are the same wherever these run. After each step it
 * prints the square of the residual, and at the end it appends the solution to FILE, rank by rank, which opens it anew.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long side, rows;
static int rank, ranks;

static double product(const double *a, const double *b)
{
    double own = 0, sum = 0, *all = malloc(ranks * sizeof *all);
    for (long i = side; i < (rows + 1) * side; i++)
        own += a[i] * b[i];
    MPI_Allgather(&own, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        sum += all[i];
    free(all);
    return sum;
}

/* The operator on rows 1 to `rows`; those of neighbours stand before and behind. */
static void apply(double *of, double *to)
{
    int above = rank ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&of[rows * side], side, MPI_DOUBLE, below, 0, &of[0], side, MPI_DOUBLE, above, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&of[side], side, MPI_DOUBLE, above, 1, &of[(rows + 1) * side], side, MPI_DOUBLE, below, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (long y = 1; y <= rows; y++)
        for (long x = 0; x < side; x++) {
            long i = y * side + x;
            double left = x ? of[i - 1] : 0, right = x + 1 < side ? of[i + 1] : 0;
            to[i] = 4 * of[i] - left - right - of[i - side] - of[i + side];
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 || (side = atol(argv[1])) < 1 || side % ranks) {
        if (rank == 0)
            fprintf(stderr, "usage: %s SIDE STEPS PAUSE FILE; SIDE is a multiple of the ranks\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long steps = atol(argv[2]), pause = atol(argv[3]);
    struct timespec nap = {0, pause * 1000};
    rows = side / ranks;
    size_t cells = (rows + 2) * side;
    double *x = calloc(cells, sizeof *x), *r = calloc(cells, sizeof *r), *p = calloc(cells, sizeof *p),
           *q = calloc(cells, sizeof *q);
    for (long i = side; i < (rows + 1) * side; i++)
        r[i] = p[i] = (double)(((rank * rows - 1) * side + i) * 2654435761u % 1000) / 1000 - 0.5;
    double square = product(r, r);
    for (long step = 1; step <= steps; step++) {
        apply(p, q);
        double length = square / product(p, q);
        for (size_t i = side; i < cells - side; i++) {
            x[i] += length * p[i];
            r[i] -= length * q[i];
        }
        double before = square;
        square = product(r, r);
        for (size_t i = side; i < cells - side; i++)
            p[i] = r[i] + square / before * p[i];
        if (rank == 0) {
            printf("step %ld: residual %.17g\n", step, square);
            fflush(stdout);
        }
        if (pause && access("hurry", F_OK) != 0)
            nanosleep(&nap, NULL);
    }
    for (int turn = 0; turn < ranks; turn++) {
        if (turn == rank) {
            FILE *file = fopen(argv[4], turn ? "ab" : "wb");
            if (!file || fwrite(&x[side], sizeof *x, rows * side, file) != (size_t)(rows * side) || fclose(file)) {
                perror(argv[4]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
