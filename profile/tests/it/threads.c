/* Spends as many milliseconds of CPU time as its argument says in threads that each live for some
   milliseconds and begin the next one, so that there is never a list of them that is right. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;
static uint64_t until;
static pthread_attr_t detached;

static uint64_t spent(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *busy(void *nothing) {
    pthread_t next;
    for (int i = 0; i < 3000000; i++)
        sink = sink * 31 + 7;
    if (spent() >= until)
        exit(0);
    while (pthread_create(&next, &detached, busy, nothing) != 0)
        ;
    return 0;
}

int main(int count, char **words) {
    until = spent() + (count > 1 ? strtoull(words[1], 0, 10) : 1000) * 1000000;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 4; i++) {
        pthread_t first;
        pthread_create(&first, &detached, busy, 0);
    }
    pthread_exit(0);
}
