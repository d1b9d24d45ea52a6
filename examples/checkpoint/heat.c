/* The heat equation on a plate, cut into rows over the ranks: an explicit scheme whose result does not depend on the
 * number of ranks. It saves every EVERY steps, goes on from the newest checkpoint when it is started again, and writes
 * the whole plate into a file.
 *
 *     mpicc -O2 heat.c -lmeikyo_checkpoint -o heat
 *     mpirun -n 4 ./heat ROWS COLUMNS STEPS EVERY OUTPUT
 */
#include <meikyo_checkpoint.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int outcome, const char *what) {
    if (outcome < 0) {
        fprintf(stderr, "%s: %s\n", what, meikyo_checkpoint_error());
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 6) {
        fprintf(stderr, "heat ROWS COLUMNS STEPS EVERY OUTPUT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const uint64_t rows = strtoull(argv[1], NULL, 10), columns = strtoull(argv[2], NULL, 10);
    const uint64_t steps = strtoull(argv[3], NULL, 10), every = strtoull(argv[4], NULL, 10);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t begin = rows * rank / ranks, end = rows * (rank + 1) / ranks, mine = end - begin;

    /* A row above and one below are the neighbours'. */
    double *plate = calloc((mine + 2) * columns, sizeof(double));
    double *next = calloc((mine + 2) * columns, sizeof(double));
    for (uint64_t row = 0; row < mine; row++)
        for (uint64_t column = 0; column < columns; column++)
            plate[(row + 1) * columns + column] = (double)(((begin + row) * 31 + column * 17) % 101);

    meikyo_checkpoint *ck;
    check(meikyo_checkpoint_init(NULL, rank, ranks, -1, &ck), "init");
    const uint64_t shape[] = {mine, columns}, whole[] = {rows, columns}, first[] = {begin, 0};
    check(meikyo_checkpoint_protect(ck, "plate", plate + columns, "f64", 2, shape, whole, first), "protect");
    uint64_t step = 0;
    check(meikyo_checkpoint_restore(ck, &step), "restore");
    if (rank == 0)
        fprintf(stderr, "begins at step %llu\n", (unsigned long long)step);

    const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    const int below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    const int width = (int)columns;
    for (; step < steps; step++) {
        if (step % every == 0 && meikyo_checkpoint_save(ck, step) < 0)
            /* The program goes on: the checkpoint before still holds. */
            fprintf(stderr, "rank %d, step %llu: %s\n", rank, (unsigned long long)step, meikyo_checkpoint_error());
        MPI_Sendrecv(plate + columns, width, MPI_DOUBLE, above, 0, plate + (mine + 1) * columns, width, MPI_DOUBLE, below,
                     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(plate + mine * columns, width, MPI_DOUBLE, below, 1, plate, width, MPI_DOUBLE, above, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (uint64_t row = 1; row <= mine; row++)
            for (uint64_t column = 0; column < columns; column++) {
                const double *here = plate + row * columns + column;
                const double left = column > 0 ? here[-1] : 0.0, right = column + 1 < columns ? here[1] : 0.0;
                next[row * columns + column] = *here + 0.2 * (left + right + here[-width] + here[width] - 4.0 * *here);
            }
        memcpy(plate + columns, next + columns, mine * columns * sizeof(double));
    }

    double stop;
    uint64_t ahead, residue;
    if (rank == 0 && meikyo_checkpoint_cost(ck, &stop, &ahead, &residue) >= 0)
        fprintf(stderr, "the last save: %.3f ms, %llu octets copied ahead, %llu in the stop\n", stop * 1000,
                (unsigned long long)ahead, (unsigned long long)residue);

    /* One rank after the other writes its rows. */
    for (int turn = 0; turn < ranks; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn != rank)
            continue;
        FILE *output = fopen(argv[5], rank == 0 ? "wb" : "ab");
        if (!output || fwrite(plate + columns, sizeof(double), mine * columns, output) != mine * columns || fclose(output))
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    meikyo_checkpoint_finalize(ck);
    free(plate);
    free(next);
    MPI_Finalize();
    return 0;
}
