/* Ranks that each work on their part of a grid and exchange its edges, until they are ended: Jacobi's method. */
#include <mpi.h>
#include <string.h>

enum { WIDTH = 512, ROWS = 64 };
static double old[ROWS + 2][WIDTH], new[ROWS + 2][WIDTH];

static double relax(void) {
    double change = 0;
    for (int i = 1; i <= ROWS; i++)
        for (int j = 1; j < WIDTH - 1; j++) {
            new[i][j] = (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]) / 4;
            change += new[i][j] - old[i][j];
        }
    return change;
}

int main(int count, char **words) {
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    for (int j = 0; j < WIDTH; j++)
        old[0][j] = rank == 0;
    for (;;) {
        MPI_Sendrecv(old[1], WIDTH, MPI_DOUBLE, up, 0, old[ROWS + 1], WIDTH, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(old[ROWS], WIDTH, MPI_DOUBLE, down, 1, old[0], WIDTH, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        double own = relax(), all;
        memcpy(old[1], new[1], sizeof new[0] * ROWS);
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}
