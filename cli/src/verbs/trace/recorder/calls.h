/* Calls: `enter`, what is written, `away`, the call itself, `leave`. */

static uint64_t since_last_call(void) {
    uint64_t entered = now();
    return left_at && entered > left_at ? entered - left_at : 0;
}

static void write_computed(void) {
    if (carried_over < COMPUTE_LEAST) return;
    line("compute");
    number((long long)carried_over);
    end_line();
    carried_over = 0;
}

static int enter(void) {
    if (inside++ || file < 0) return 0;
    carried_over += since_last_call();
    pthread_mutex_lock(&lock);
    write_computed();
    return 1;
}

/* A test or a probe: who asks again within a microsecond waits, and does not compute. */
static int ask(void) {
    if (inside++ || file < 0) return 0;
    uint64_t computed = since_last_call();
    if (computed >= COMPUTE_LEAST) carried_over += computed;
    pthread_mutex_lock(&lock);
    return 1;
}

static void away(int first) {
    if (first) pthread_mutex_unlock(&lock);
}

static void back(int first) {
    if (first) pthread_mutex_lock(&lock);
}

static void leave(void) {
    if (--inside == 0 && file >= 0) left_at = now();
}

static void *real(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        fprintf(stderr, "meikyo trace: the MPI of this program has no `%s`\n", name);
        abort();
    }
    return found;
}
