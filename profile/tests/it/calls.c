/* Runs for as many milliseconds of CPU time as its argument says; prints the share of `longer`, in
   millionths of what both functions took, as it measured itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t spent(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static volatile uint64_t sink;

static void longer(void) {
    for (int i = 0; i < 1500000; i++)
        sink = sink * 31 + 7;
}

static void shorter(void) {
    for (int i = 0; i < 500000; i++)
        sink = sink * 31 + 7;
}

static void work(uint64_t *of_longer, uint64_t *of_both) {
    uint64_t begin = spent();
    longer();
    uint64_t middle = spent();
    shorter();
    uint64_t end = spent();
    *of_longer += middle - begin;
    *of_both += end - begin;
}

int main(int count, char **words) {
    uint64_t until = spent() + (count > 1 ? strtoull(words[1], 0, 10) : 1000) * 1000000;
    uint64_t of_longer = 0, of_both = 0;
    while (spent() < until)
        work(&of_longer, &of_both);
    printf("%llu\n", (unsigned long long)(of_longer * 1000000 / of_both));
    return 0;
}
