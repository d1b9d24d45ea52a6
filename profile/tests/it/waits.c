/* Waits in functions that say how long they waited, in ns: `short_nap` and `long_nap` sleep, `for_pipe` waits for an
   octet that another thread writes later. Between them it runs for a while in `work`. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_ms(long ms) {
    struct timespec span = {0, ms * 1000000};
    nanosleep(&span, 0);
}

static int ends[2];

static void *write_later(void *nothing) {
    sleep_ms(50);
    if (write(ends[1], "x", 1) != 1)
        exit(1);
    return nothing;
}

__attribute__((noinline)) static uint64_t short_nap(void) {
    uint64_t begin = now();
    sleep_ms(10);
    return now() - begin;
}

__attribute__((noinline)) static uint64_t long_nap(void) {
    uint64_t begin = now();
    sleep_ms(40);
    return now() - begin;
}

__attribute__((noinline)) static uint64_t for_pipe(void) {
    char octet;
    uint64_t begin = now();
    if (read(ends[0], &octet, 1) != 1)
        exit(1);
    return now() - begin;
}

static volatile uint64_t sink;

__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 2000000; i++)
        sink = sink * 31 + 7;
}

int main(void) {
    uint64_t waited[3] = {0};
    if (pipe(ends))
        return 1;
    for (int turn = 0; turn < 8; turn++) {
        pthread_t writer;
        waited[0] += short_nap();
        work();
        waited[1] += long_nap();
        if (pthread_create(&writer, 0, write_later, 0))
            return 1;
        waited[2] += for_pipe();
        pthread_join(writer, 0);
        work();
    }
    printf("%llu %llu %llu\n", (unsigned long long)waited[0], (unsigned long long)waited[1],
           (unsigned long long)waited[2]);
    return 0;
}
