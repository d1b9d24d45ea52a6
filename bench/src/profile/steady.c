/* Products of matrices for as many milliseconds of CPU time as its argument says. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 96 };
static double a[N][N], b[N][N], c[N][N];

static double spent_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void multiply(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

int main(int count, char **words) {
    double until = spent_ms() + (count > 1 ? atof(words[1]) : 1000);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = i % 7;
            b[i][j] = j % 5;
        }
    double sum = 0;
    while (spent_ms() < until) {
        multiply();
        sum += c[1][2];
    }
    printf("%g\n", sum);
    return 0;
}
