/* exchange OCTETS. Every rank exchanges so much with every other, one after the other. Says how long that took in the
 * simulation, and on the machine that simulates: SMPI answers for the library's clocks, so the kernel is asked itself. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double machine(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    int rank, ranks, bytes = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = calloc(1, bytes), *in = malloc(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = machine(), begin = MPI_Wtime();
    for (int by = 1; by < ranks; by++) {
        int to = (rank + by) % ranks, from = (rank + ranks - by) % ranks;
        MPI_Sendrecv(out, bytes, MPI_CHAR, to, 0, in, bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("exchanged %.6f %.6f\n", MPI_Wtime() - begin, machine() - start);
    MPI_Finalize();
    return 0;
}
