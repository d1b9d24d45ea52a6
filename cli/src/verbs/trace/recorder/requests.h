/* Requests. */

struct request {
    struct request *next;
    MPI_Request handle;
    int sends, partner, tag, communicator, persistent, active, cancel;
    long long size;
    /* Where its line begins, and what of it is written later. */
    off_t line, source_hole, tag_hole;
};

#define BUCKETS 4096
static struct request *buckets[BUCKETS];
static struct request *spare;
static long outstanding;

static struct request **bucket(MPI_Request handle) {
    uint64_t bits = 0;
    memcpy(&bits, &handle, sizeof handle);
    bits *= 0x9e3779b97f4a7c15ULL;
    return &buckets[bits >> 52];
}

/* Handles may stand for several requests that are done already; they are taken in their order. */
static void keep(MPI_Request handle, struct request what) {
    struct request *one = spare;
    if (one)
        spare = one->next;
    else if (!(one = malloc(sizeof *one)))
        abort();
    *one = what;
    one->handle = handle;
    one->next = NULL;
    struct request **at = bucket(handle);
    while (*at) at = &(*at)->next;
    *at = one;
    if (one->active) outstanding++;
}

static struct request *find_request(MPI_Request handle) {
    struct request *one = *bucket(handle);
    while (one && !(one->handle == handle && (one->active || one->persistent))) one = one->next;
    return one;
}

static void forget(struct request *one) {
    struct request **at = bucket(one->handle);
    while (*at != one) at = &(*at)->next;
    *at = one->next;
    one->next = spare;
    spare = one;
}

/* A request is done; writes `wait` unless told not to, and says whether it was known. */
static int done(MPI_Request handle, const MPI_Status *status, int write_it) {
    struct request *one = handle == MPI_REQUEST_NULL ? NULL : find_request(handle);
    if (!one || !one->active) return 0;
    int cancelled = 0;
    if (one->cancel && status) PMPI_Test_cancelled(status, &cancelled);
    if (cancelled) {
        /* Its line becomes a comment. */
        overwrite(one->line, "#", 1);
        write_it = 0;
    }
    one->cancel = 0;
    if (!cancelled && status && one->source_hole) {
        struct communicator *through = NULL;
        for (int at = 0; at < communicator_count; at++)
            if (communicators[at].used && communicators[at].id == one->communicator)
                through = &communicators[at];
        int source = status->MPI_SOURCE;
        if (through && source >= 0 && source < through->size) {
            one->partner = through->members[source];
            fill(one->source_hole, one->partner);
        }
    }
    if (!cancelled && status && one->tag_hole) {
        one->tag = status->MPI_TAG;
        fill(one->tag_hole, one->tag);
    }
    if (write_it) {
        line("wait");
        number(one->sends ? world_rank : one->partner);
        number(one->sends ? one->partner : world_rank);
        number(one->tag);
        if (one->communicator) {
            word("@");
            bare_number(one->communicator);
        }
        end_line();
    }
    outstanding--;
    one->active = 0;
    if (!one->persistent) forget(one);
    return !cancelled;
}

/* Several requests are done: one line if nothing else is under way. */
static void all_done(int count, const MPI_Request *handles, const MPI_Status *statuses) {
    long known = 0;
    for (int at = 0; at < count; at++) {
        struct request *one = handles[at] == MPI_REQUEST_NULL ? NULL : find_request(handles[at]);
        known += one && one->active;
    }
    int at_once = known == outstanding;
    int total = 0;
    for (int at = 0; at < count; at++)
        total += done(handles[at], statuses ? &statuses[at] : NULL, !at_once);
    if (at_once && total) {
        line("waitall");
        number(total);
        end_line();
    }
}
