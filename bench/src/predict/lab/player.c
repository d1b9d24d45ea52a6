/* Plays what each rank of a program sends and receives, as a file says it, over and over.
 *
 * player DIRECTORY. The file `control` there holds numbers of eight octets: that of the run that is due, and
 * when it begins (nanoseconds of the monotonic clock); from octet 64 on, for each rank the number of the last
 * run that it has finished, and when. Run N of rank R is the file N.R: a line with the size of its largest message,
 * then a line for each step:
 *
 *   r FROM TAG        begins to receive          s TO TAG OCTETS   begins to send
 *   w                 waits for all              f N               waits for the message that was begun as the Nth
 *   c NANOSECONDS     computes
 *
 * Who waits looks again after a pause of LOOK_AGAIN_NS, which whoever compiles this says: all ranks share the
 * processors of one machine. */
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 64, LOOK_FOR_RUN_NS = 2000000 };

static int rank, ranks, control;
static const char *directory;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void rest(long nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, NULL);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static uint64_t get(off_t place) {
    uint64_t number = 0;
    if (pread(control, &number, sizeof number, place) != sizeof number) fail("cannot read `control`");
    return number;
}

static void put(off_t place, uint64_t number) {
    if (pwrite(control, &number, sizeof number, place) != sizeof number) fail("cannot write `control`");
}

static void finished(uint64_t run, uint64_t at) {
    off_t own = SLOTS + 16 * (off_t)rank;
    put(own + 8, at);
    put(own, run);
}

static void await(int count, MPI_Request *requests) {
    for (int done = 0;;) {
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (done) return;
        rest(LOOK_AGAIN_NS);
    }
}

/* Grows a list by one; the place of the new entry. */
#define GROW(list, count) ((list) = realloc((list), ((count) + 1) * sizeof *(list)), (count)++)

struct step { char verb; int other, tag; uint64_t number; };

static void play(uint64_t run, struct step *steps, int count, uint64_t most, char *out) {
    MPI_Request *requests = NULL;
    char **arrived = NULL;
    int begun = 0, receives = 0;
    for (int at = 0; at < count; at++) {
        struct step *step = &steps[at];
        switch (step->verb) {
        case 'r':
            GROW(requests, begun);
            GROW(arrived, receives);
            arrived[receives - 1] = malloc(most + 1);
            MPI_Irecv(arrived[receives - 1], most, MPI_CHAR, step->other, step->tag, MPI_COMM_WORLD,
                      &requests[begun - 1]);
            break;
        case 's':
            GROW(requests, begun);
            MPI_Isend(out, step->number, MPI_CHAR, step->other, step->tag, MPI_COMM_WORLD, &requests[begun - 1]);
            break;
        case 'w': await(begun, requests); break;
        case 'f': await(1, &requests[step->number]); break;
        case 'c': rest(step->number); break;
        }
    }
    finished(run, now());
    for (int at = 0; at < receives; at++) free(arrived[at]);
    free(arrived);
    free(requests);
}

static void run(uint64_t number, uint64_t begin) {
    char path[4096], line[128];
    snprintf(path, sizeof path, "%s/%" PRIu64 ".%d", directory, number, rank);
    FILE *file = fopen(path, "r");
    uint64_t most = 0;
    if (!file || fscanf(file, "%" SCNu64 "\n", &most) != 1) fail("cannot read its steps");
    struct step *steps = NULL;
    int count = 0;
    while (fgets(line, sizeof line, file)) {
        struct step step = {line[0], 0, 0, 0};
        const char *rest = line + 1;
        int good = 1;
        switch (step.verb) {
        case 'r': good = sscanf(rest, "%d %d", &step.other, &step.tag) == 2; break;
        case 's': good = sscanf(rest, "%d %d %" SCNu64, &step.other, &step.tag, &step.number) == 3; break;
        case 'f':
        case 'c': good = sscanf(rest, "%" SCNu64, &step.number) == 1; break;
        case 'w': break;
        default: good = 0;
        }
        if (!good) fail("a step is none");
        GROW(steps, count);
        steps[count - 1] = step;
    }
    fclose(file);
    char *out = malloc(most + 1);
    memset(out, 7, most + 1);
    struct timespec time = {begin / 1000000000, begin % 1000000000};
    if (now() > begin) fail("it came too late");
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL)) {
    }
    play(number, steps, count, most, out);
    free(out);
    free(steps);
}

/* Opens the connections of all pairs. */
static void meet(void) {
    MPI_Request *requests = NULL;
    int count = 0;
    char octet = 0, *octets = malloc(ranks);
    for (int other = 0; other < ranks; other++) {
        GROW(requests, count);
        MPI_Irecv(&octets[other], 1, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[count - 1]);
        GROW(requests, count);
        MPI_Isend(&octet, 1, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[count - 1]);
    }
    await(count, requests);
    free(requests);
    free(octets);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) fail("player DIRECTORY");
    directory = argv[1];
    char path[4096];
    snprintf(path, sizeof path, "%s/control", directory);
    control = open(path, O_RDWR);
    if (control < 0) fail("there is no `control`");
    meet();
    meet();
    /* The first number is that of the meeting. */
    uint64_t last = 1;
    finished(last, now());
    for (;;) {
        uint64_t due = get(0);
        if (due == UINT64_MAX) break;
        if (due > last) {
            run(due, get(8));
            last = due;
        } else {
            rest(LOOK_FOR_RUN_NS);
        }
    }
    MPI_Finalize();
    return 0;
}
