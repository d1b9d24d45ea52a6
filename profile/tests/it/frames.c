/* Runs for as many milliseconds of CPU time as its first argument says, in `spin`, which is called
   - "sort": by `descend`, which calls itself 20 times, called by `compare`, which qsort(3) calls for `sort_once`;
   - "signal": by `handler` of a signal that `interrupted` raises.
   Compiled without frame pointers. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

static uint64_t spent(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static volatile uint64_t sink;

NOINLINE static int spin(void) {
    for (int i = 0; i < 3000000; i++)
        sink = sink * 31 + 7;
    return (int)(sink & 1);
}

NOINLINE static int descend(int depth) {
    volatile char room[64];
    memset((void *)room, depth, sizeof room);
    int found = depth > 1 ? descend(depth - 1) : spin();
    return found + room[depth];
}

NOINLINE static int compare(const void *a, const void *b) {
    int found = descend(20);
    return *(const int *)a - *(const int *)b + (found & 0);
}

NOINLINE static void sort_once(void) {
    int numbers[] = {2, 1};
    qsort(numbers, 2, sizeof *numbers, compare);
    sink += (uint64_t)numbers[0];
}

static void handler(int number) {
    sink += (uint64_t)number;
    spin();
    sink += 1;
}

NOINLINE static void interrupted(void) {
    raise(SIGUSR1);
    sink += 1;
}

int main(int count, char **words) {
    uint64_t until = spent() + (count > 1 ? strtoull(words[1], 0, 10) : 1000) * 1000000;
    int is_signal = count > 2 && !strcmp(words[2], "signal");
    signal(SIGUSR1, handler);
    while (spent() < until)
        if (is_signal)
            interrupted();
        else
            sort_once();
    return 0;
}
