/* Preloaded into hpcc: lets HPL wait until the cables carry what they are to carry, and waits without keeping a
 * processor busy, since all ranks share those of one machine.
 *
 * MEIKYO_GATE names the directory that hpcc runs in. hpcc runs other benchmarks beside HPL, whose messages would take
 * hours on slow cables; what it does is in `hpccoutf.txt`. Before the first call of MPI_Comm_split after that says that
 * HPL begins, each rank makes a file `here.RANK`, and goes on when there is a file `open`. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 200000 };

static int passed;

static void rest(void) {
    struct timespec time = {0, PAUSE_NS};
    nanosleep(&time, NULL);
}

static int hpl_begins(const char *directory) {
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/hpccoutf.txt", directory);
    FILE *file = fopen(path, "r");
    int begins = 0;
    while (file && !begins && fgets(line, sizeof line, file)) begins = !!strstr(line, "Begin of HPL section");
    if (file) fclose(file);
    return begins;
}

static void pass(void) {
    const char *directory = getenv("MEIKYO_GATE");
    if (passed || !directory || !hpl_begins(directory)) return;
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/here.%d", directory, rank);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file < 0) PMPI_Abort(MPI_COMM_WORLD, 3);
    close(file);
    snprintf(path, sizeof path, "%s/open", directory);
    while (access(path, F_OK)) rest();
    passed = 1;
}

int MPI_Comm_split(MPI_Comm of, int color, int key, MPI_Comm *made) {
    pass();
    return PMPI_Comm_split(of, color, key, made);
}

static int await(MPI_Request *request, MPI_Status *status) {
    for (int done = 0;;) {
        int wrong = PMPI_Test(request, &done, status);
        if (wrong || done) return wrong;
        rest();
    }
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    return passed ? await(request, status) : PMPI_Wait(request, status);
}

int MPI_Recv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm in, MPI_Status *status) {
    if (!passed) return PMPI_Recv(to, count, type, from, tag, in, status);
    MPI_Request request;
    int wrong = PMPI_Irecv(to, count, type, from, tag, in, &request);
    return wrong ? wrong : await(&request, status);
}

int MPI_Send(const void *of, int count, MPI_Datatype type, int to, int tag, MPI_Comm in) {
    if (!passed) return PMPI_Send(of, count, type, to, tag, in);
    MPI_Request request;
    int wrong = PMPI_Isend(of, count, type, to, tag, in, &request);
    return wrong ? wrong : await(&request, MPI_STATUS_IGNORE);
}
