/*
 * Writes down what a rank asks of MPI, in the time-independent text form of SMPI: one file for each rank, one
 * line for each call, `RANK VERB ARGUMENT...`. `meikyo trace` builds it for the MPI at hand and preloads it.
 *
 * What is written is world ranks, sizes in octets and, as `compute`, nanoseconds between two calls. A
 * communicator other than the world is defined once, `RANK comm_split SIZE @ID MEMBER...`, and named by a
 * last word `@ID`, which SMPI ignores. Receives from anybody are written with the sender that came.
 *
 * It interposes C and Fortran entry points. Those of Fortran call Fortran's profiling entry points, so that
 * addresses such as Fortran's MPI_IN_PLACE keep their meaning; whatever these call inside is not written
 * down again (`inside`).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536
#define LINE_MAX_OCTETS 256
/* Shorter computing is added to what follows, in nanoseconds. */
#define COMPUTE_LEAST 1000
/* Width of a source or a tag that is written later. */
#define HOLE 10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[BUFFER];
static size_t used;
static off_t flushed;
static int file = -1;
static int world_rank, world_size;
static __thread int inside;
static __thread uint64_t left_at;
static __thread uint64_t carried_over;

static void complain(const char *what) {
    fprintf(stderr, "meikyo trace: rank %d: %s\n", world_rank, what);
}

/* ---- Text ---- */

static void flush(void) {
    size_t at = 0;
    while (file >= 0 && at < used) {
        ssize_t written = write(file, buffer + at, used - at);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            complain("the trace cannot be written, and ends here: is the disk full?");
            close(file);
            file = -1;
            return;
        }
        at += (size_t)written;
    }
    flushed += (off_t)used;
    used = 0;
}

static void octet(char c) {
    if (used == BUFFER) flush();
    buffer[used++] = c;
}

static void word(const char *text) {
    octet(' ');
    while (*text) octet(*text++);
}

static int digits(char *into, long long value) {
    char reversed[24];
    int count = 0, length = 0;
    unsigned long long rest = value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value;
    do reversed[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) into[length++] = '-';
    while (count) into[length++] = reversed[--count];
    return length;
}

static void bare_number(long long value) {
    char text[24];
    int length = digits(text, value);
    for (int at = 0; at < length; at++) octet(text[at]);
}

static void number(long long value) {
    octet(' ');
    bare_number(value);
}

/* Leaves room for a number that is not known yet, and gives where it is in the file. */
static off_t hole(void) {
    octet(' ');
    if (used + HOLE > BUFFER) flush();
    off_t at = flushed + (off_t)used;
    for (int count = 0; count < HOLE - 2; count++) octet(' ');
    octet('-');
    octet('1');
    return at;
}

static void overwrite(off_t at, const char *text, size_t length) {
    if (at >= flushed)
        memcpy(buffer + (at - flushed), text, length);
    else if (file >= 0 && pwrite(file, text, length, at) != (ssize_t)length)
        complain("a line that was written before cannot be changed");
}

static void fill(off_t at, long long value) {
    char text[24], padded[HOLE];
    int length = digits(text, value);
    if (length > HOLE) return;
    memset(padded, ' ', HOLE);
    memcpy(padded + HOLE - length, text, (size_t)length);
    overwrite(at, padded, HOLE);
}

/* Where the last line begins. */
static off_t line_at;

static void line(const char *verb) {
    if (used + LINE_MAX_OCTETS > BUFFER) flush();
    line_at = flushed + (off_t)used;
    bare_number(world_rank);
    word(verb);
}

static void end_line(void) { octet('\n'); }

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

/* ---- Calls: `enter`, what is written, `away`, the call itself, `leave` ---- */

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

/* ---- Communicators ---- */

struct communicator {
    MPI_Comm handle;
    int used, id, size, between;
    int *members;
};

static struct communicator *communicators;
static int communicator_count, communicator_room, last_hit, made;

static struct communicator *define(MPI_Comm handle, int id) {
    int at = 0;
    while (at < communicator_count && communicators[at].used) at++;
    if (at == communicator_room) {
        communicator_room = communicator_room ? 2 * communicator_room : 16;
        communicators = realloc(communicators, (size_t)communicator_room * sizeof *communicators);
        if (!communicators) abort();
    }
    if (at == communicator_count) communicator_count++;
    struct communicator *one = &communicators[at];
    memset(one, 0, sizeof *one);
    one->handle = handle;
    one->used = 1;
    PMPI_Comm_test_inter(handle, &one->between);
    MPI_Group group, all;
    if (one->between)
        PMPI_Comm_remote_group(handle, &group);
    else
        PMPI_Comm_group(handle, &group);
    PMPI_Group_size(group, &one->size);
    one->members = malloc(sizeof(int) * (size_t)(one->size ? one->size : 1) * 2);
    if (!one->members) abort();
    int *own = one->members + one->size;
    for (int rank = 0; rank < one->size; rank++) own[rank] = rank;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(group, one->size, own, all, one->members);
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    if (id < 0) {
        /* Nobody was asked: members alone tell it from others. */
        uint32_t hash = 2166136261u;
        for (int rank = 0; rank < one->size; rank++)
            hash = (hash ^ (uint32_t)one->members[rank]) * 16777619u;
        id = 1000000000 + (int)(hash % 1000000000u);
    }
    one->id = id;
    if (one->between) {
        complain("what goes through communicators between two groups is not written down");
    } else if (handle != MPI_COMM_WORLD) {
        line("comm_split");
        number(one->size);
        word("@");
        bare_number(id);
        for (int rank = 0; rank < one->size; rank++) number(one->members[rank]);
        end_line();
    }
    return one;
}

static struct communicator *find(MPI_Comm handle) {
    if (last_hit < communicator_count && communicators[last_hit].used
        && communicators[last_hit].handle == handle)
        return &communicators[last_hit];
    for (int at = 0; at < communicator_count; at++)
        if (communicators[at].used && communicators[at].handle == handle) {
            last_hit = at;
            return &communicators[at];
        }
    return define(handle, -1);
}

/* All members of a new communicator agree on its number: its first one says it. */
static void created(MPI_Comm handle) {
    if (inside != 1 || file < 0 || handle == MPI_COMM_NULL) return;
    int between = 0, id = -1;
    PMPI_Comm_test_inter(handle, &between);
    if (!between) {
        id = ++made * world_size + world_rank;
        PMPI_Bcast(&id, 1, MPI_INT, 0, handle);
    }
    pthread_mutex_lock(&lock);
    define(handle, id);
    pthread_mutex_unlock(&lock);
}

static void freed(MPI_Comm handle) {
    for (int at = 0; at < communicator_count; at++)
        if (communicators[at].used && communicators[at].handle == handle) {
            free(communicators[at].members);
            communicators[at].used = 0;
        }
}

static void named(const struct communicator *one) {
    if (one->handle != MPI_COMM_WORLD) {
        word("@");
        bare_number(one->id);
    }
    end_line();
}

static long long octets(long long count, MPI_Datatype type) {
    int size = 0;
    if (count > 0) PMPI_Type_size(type, &size);
    return count * size;
}

/* ---- Requests ---- */

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

/* ---- Point to point ---- */

/* Writes a send or a receive, unless its partner is nobody; fills in what is kept of it. */
static int message(
    const char *verb, int sends, long long size, int partner, int tag, MPI_Comm handle,
    struct request *kept
) {
    if (partner == MPI_PROC_NULL) return 0;
    struct communicator *through = find(handle);
    if (through->between) return 0;
    memset(kept, 0, sizeof *kept);
    kept->sends = sends;
    kept->partner = partner == MPI_ANY_SOURCE ? -1 : through->members[partner];
    kept->tag = tag == MPI_ANY_TAG ? -1 : tag;
    kept->communicator = handle == MPI_COMM_WORLD ? 0 : through->id;
    kept->size = size;
    kept->active = 1;
    line(verb);
    kept->line = line_at;
    if (kept->partner < 0)
        kept->source_hole = hole();
    else
        number(kept->partner);
    if (kept->tag < 0)
        kept->tag_hole = hole();
    else
        number(tag);
    number(size);
    named(through);
    return 1;
}

static void filled(struct request *kept, const MPI_Status *status, MPI_Comm handle) {
    if (kept->source_hole) fill(kept->source_hole, find(handle)->members[status->MPI_SOURCE]);
    if (kept->tag_hole) fill(kept->tag_hole, status->MPI_TAG);
}

#define F MPI_Fint *
#define TYPE(x) PMPI_Type_f2c(*(x))
#define COMM(x) PMPI_Comm_f2c(*(x))
#define REQUEST(x) PMPI_Request_f2c(*(x))
/* The body of a Fortran entry point that calls the profiling one. */
#define FORTRAN(name, types, arguments) \
    static void(*fortran) types; \
    if (!fortran) fortran = (void(*) types)real("pmpi_" #name "_"); \
    fortran arguments

#define BLOCKING_SEND(Name, name) \
    int MPI_##Name(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
        struct request kept; \
        int first = enter(); \
        if (first) message("send", 1, octets(count, type), to, tag, comm, &kept); \
        away(first); \
        int error = PMPI_##Name(data, count, type, to, tag, comm); \
        leave(); \
        return error; \
    } \
    void mpi_##name##_(void *data, F count, F type, F to, F tag, F comm, F error) { \
        struct request kept; \
        int first = enter(); \
        if (first) message("send", 1, octets(*count, TYPE(type)), *to, *tag, COMM(comm), &kept); \
        away(first); \
        FORTRAN(name, (void *, F, F, F, F, F, F), (data, count, type, to, tag, comm, error)); \
        leave(); \
    }

BLOCKING_SEND(Send, send)
BLOCKING_SEND(Ssend, ssend)
BLOCKING_SEND(Bsend, bsend)
BLOCKING_SEND(Rsend, rsend)

#define BEGUN(Name, name, verb, SENDS, CONST) \
    int MPI_##Name( \
        CONST void *data, int count, MPI_Datatype type, int other, int tag, MPI_Comm comm, \
        MPI_Request *request \
    ) { \
        struct request kept; \
        int first = enter(), known = 0; \
        if (first) known = message(verb, SENDS, octets(count, type), other, tag, comm, &kept); \
        away(first); \
        int error = PMPI_##Name(data, count, type, other, tag, comm, request); \
        back(first); \
        if (known) keep(*request, kept); \
        away(first); \
        leave(); \
        return error; \
    } \
    void mpi_##name##_(void *data, F count, F type, F other, F tag, F comm, F request, F error) { \
        struct request kept; \
        int first = enter(), known = 0; \
        if (first) \
            known = message( \
                verb, SENDS, octets(*count, TYPE(type)), *other, *tag, COMM(comm), &kept \
            ); \
        away(first); \
        FORTRAN( \
            name, (void *, F, F, F, F, F, F, F), \
            (data, count, type, other, tag, comm, request, error) \
        ); \
        back(first); \
        if (known) keep(REQUEST(request), kept); \
        away(first); \
        leave(); \
    }

BEGUN(Isend, isend, "isend", 1, const)
BEGUN(Issend, issend, "isend", 1, const)
BEGUN(Ibsend, ibsend, "isend", 1, const)
BEGUN(Irsend, irsend, "isend", 1, const)
BEGUN(Irecv, irecv, "irecv", 0, )

int MPI_Recv(
    void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status
) {
    struct request kept;
    MPI_Status own;
    int first = enter(), known = 0;
    if (first) known = message("recv", 0, octets(count, type), from, tag, comm, &kept);
    away(first);
    if (status == MPI_STATUS_IGNORE) status = &own;
    int error = PMPI_Recv(data, count, type, from, tag, comm, status);
    back(first);
    if (known) filled(&kept, status, comm);
    away(first);
    leave();
    return error;
}

/* Fortran's statuses are turned into C's where somebody has to look into them. */
static void seen(const MPI_Fint *status, MPI_Status *into) {
    PMPI_Status_f2c(status, into);
}

static int ignored(const MPI_Fint *status) {
    return status == (const MPI_Fint *)MPI_F_STATUS_IGNORE
        || status == (const MPI_Fint *)MPI_F_STATUSES_IGNORE;
}

/* Room for statuses of Fortran, whatever their size is. */
#define STATUS_WORDS 16

void mpi_recv_(void *data, F count, F type, F from, F tag, F comm, F status, F error) {
    struct request kept;
    MPI_Fint own[STATUS_WORDS];
    MPI_Status told;
    int first = enter(), known = 0;
    if (first) known = message("recv", 0, octets(*count, TYPE(type)), *from, *tag, COMM(comm), &kept);
    away(first);
    if (ignored(status)) status = own;
    FORTRAN(
        recv, (void *, F, F, F, F, F, F, F), (data, count, type, from, tag, comm, status, error)
    );
    back(first);
    if (known && (kept.source_hole || kept.tag_hole)) {
        seen(status, &told);
        filled(&kept, &told, COMM(comm));
    }
    away(first);
    leave();
}

/* A send and a receive at once: the receive begins first. */
static int both(
    long long size, int to, int send_tag, long long room, int from, int receive_tag, MPI_Comm comm,
    struct request *kept
) {
    struct request sent;
    int known = message("irecv", 0, room, from, receive_tag, comm, kept);
    message("send", 1, size, to, send_tag, comm, &sent);
    return known;
}

static void both_done(int known, struct request *kept, const MPI_Status *status, MPI_Comm comm) {
    if (!known) return;
    filled(kept, status, comm);
    if (kept->source_hole) kept->partner = find(comm)->members[status->MPI_SOURCE];
    if (kept->tag_hole) kept->tag = status->MPI_TAG;
    line("wait");
    number(kept->partner);
    number(world_rank);
    number(kept->tag);
    named(find(comm));
}

int MPI_Sendrecv(
    const void *sent, int count, MPI_Datatype type, int to, int send_tag, void *received, int room,
    MPI_Datatype other, int from, int receive_tag, MPI_Comm comm, MPI_Status *status
) {
    struct request kept;
    MPI_Status own;
    int first = enter(), known = 0;
    if (first)
        known = both(
            octets(count, type), to, send_tag, octets(room, other), from, receive_tag, comm, &kept
        );
    away(first);
    if (status == MPI_STATUS_IGNORE) status = &own;
    int error = PMPI_Sendrecv(
        sent, count, type, to, send_tag, received, room, other, from, receive_tag, comm, status
    );
    back(first);
    both_done(known, &kept, status, comm);
    away(first);
    leave();
    return error;
}

void mpi_sendrecv_(
    void *sent, F count, F type, F to, F send_tag, void *received, F room, F other, F from,
    F receive_tag, F comm, F status, F error
) {
    struct request kept;
    MPI_Fint own[STATUS_WORDS];
    MPI_Status told;
    int first = enter(), known = 0;
    if (first)
        known = both(
            octets(*count, TYPE(type)), *to, *send_tag, octets(*room, TYPE(other)), *from,
            *receive_tag, COMM(comm), &kept
        );
    away(first);
    if (ignored(status)) status = own;
    FORTRAN(
        sendrecv, (void *, F, F, F, F, void *, F, F, F, F, F, F, F),
        (sent, count, type, to, send_tag, received, room, other, from, receive_tag, comm, status,
         error)
    );
    back(first);
    if (known) seen(status, &told);
    both_done(known, &kept, &told, COMM(comm));
    away(first);
    leave();
}

int MPI_Sendrecv_replace(
    void *data, int count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag,
    MPI_Comm comm, MPI_Status *status
) {
    struct request kept;
    MPI_Status own;
    int first = enter(), known = 0;
    long long size = first ? octets(count, type) : 0;
    if (first) known = both(size, to, send_tag, size, from, receive_tag, comm, &kept);
    away(first);
    if (status == MPI_STATUS_IGNORE) status = &own;
    int error = PMPI_Sendrecv_replace(
        data, count, type, to, send_tag, from, receive_tag, comm, status
    );
    back(first);
    both_done(known, &kept, status, comm);
    away(first);
    leave();
    return error;
}

void mpi_sendrecv_replace_(
    void *data, F count, F type, F to, F send_tag, F from, F receive_tag, F comm, F status, F error
) {
    struct request kept;
    MPI_Fint own[STATUS_WORDS];
    MPI_Status told;
    int first = enter(), known = 0;
    long long size = first ? octets(*count, TYPE(type)) : 0;
    if (first) known = both(size, *to, *send_tag, size, *from, *receive_tag, COMM(comm), &kept);
    away(first);
    if (ignored(status)) status = own;
    FORTRAN(
        sendrecv_replace, (void *, F, F, F, F, F, F, F, F, F),
        (data, count, type, to, send_tag, from, receive_tag, comm, status, error)
    );
    back(first);
    if (known) seen(status, &told);
    both_done(known, &kept, &told, COMM(comm));
    away(first);
    leave();
}

/* ---- Requests that are begun again and again ---- */

#define PREPARED(Name, name, SENDS, CONST) \
    static void prepared_##name( \
        long long size, int other, int tag, MPI_Comm comm, MPI_Request request \
    ) { \
        struct request kept = {0}; \
        struct communicator *through = find(comm); \
        if (other == MPI_PROC_NULL || through->between) return; \
        kept.sends = SENDS; \
        kept.partner = other == MPI_ANY_SOURCE ? -1 : through->members[other]; \
        kept.tag = tag == MPI_ANY_TAG ? -1 : tag; \
        kept.communicator = comm == MPI_COMM_WORLD ? 0 : through->id; \
        kept.size = size; \
        kept.persistent = 1; \
        keep(request, kept); \
    } \
    int MPI_##Name( \
        CONST void *data, int count, MPI_Datatype type, int other, int tag, MPI_Comm comm, \
        MPI_Request *request \
    ) { \
        int first = enter(); \
        away(first); \
        int error = PMPI_##Name(data, count, type, other, tag, comm, request); \
        back(first); \
        if (first) prepared_##name(octets(count, type), other, tag, comm, *request); \
        away(first); \
        leave(); \
        return error; \
    } \
    void mpi_##name##_(void *data, F count, F type, F other, F tag, F comm, F request, F error) { \
        int first = enter(); \
        away(first); \
        FORTRAN( \
            name, (void *, F, F, F, F, F, F, F), \
            (data, count, type, other, tag, comm, request, error) \
        ); \
        back(first); \
        if (first) \
            prepared_##name( \
                octets(*count, TYPE(type)), *other, *tag, COMM(comm), REQUEST(request) \
            ); \
        away(first); \
        leave(); \
    }

PREPARED(Send_init, send_init, 1, const)
PREPARED(Ssend_init, ssend_init, 1, const)
PREPARED(Bsend_init, bsend_init, 1, const)
PREPARED(Rsend_init, rsend_init, 1, const)
PREPARED(Recv_init, recv_init, 0, )

static void started(MPI_Request handle) {
    struct request *one = find_request(handle);
    if (!one || one->active) return;
    line(one->sends ? "isend" : "irecv");
    one->line = line_at;
    one->source_hole = one->tag_hole = 0;
    if (one->partner < 0)
        one->source_hole = hole();
    else
        number(one->partner);
    if (one->tag < 0)
        one->tag_hole = hole();
    else
        number(one->tag);
    number(one->size);
    if (one->communicator) {
        word("@");
        bare_number(one->communicator);
    }
    end_line();
    one->active = 1;
    outstanding++;
}

int MPI_Start(MPI_Request *request) {
    int first = enter();
    if (first) started(*request);
    away(first);
    int error = PMPI_Start(request);
    leave();
    return error;
}

int MPI_Startall(int count, MPI_Request *requests) {
    int first = enter();
    for (int at = 0; first && at < count; at++) started(requests[at]);
    away(first);
    int error = PMPI_Startall(count, requests);
    leave();
    return error;
}

void mpi_start_(F request, F error) {
    int first = enter();
    if (first) started(REQUEST(request));
    away(first);
    FORTRAN(start, (F, F), (request, error));
    leave();
}

void mpi_startall_(F count, F requests, F error) {
    int first = enter();
    for (int at = 0; first && at < *count; at++) started(REQUEST(requests + at));
    away(first);
    FORTRAN(startall, (F, F, F), (count, requests, error));
    leave();
}

/* ---- Waiting ---- */

#define FEW 64

struct handles {
    MPI_Request few[FEW];
    MPI_Status few_statuses[FEW];
    MPI_Request *all;
    MPI_Status *statuses;
};

static void room_for(struct handles *handles, int count) {
    handles->all = handles->few;
    handles->statuses = handles->few_statuses;
    if (count > FEW) {
        handles->all = malloc((size_t)count * sizeof(MPI_Request));
        handles->statuses = malloc((size_t)count * sizeof(MPI_Status));
        if (!handles->all || !handles->statuses) abort();
    }
}

static void no_room(struct handles *handles) {
    if (handles->all != handles->few) {
        free(handles->all);
        free(handles->statuses);
    }
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    MPI_Status own;
    int first = enter();
    away(first);
    MPI_Request handle = *request;
    if (status == MPI_STATUS_IGNORE) status = &own;
    int error = PMPI_Wait(request, status);
    back(first);
    if (first) done(handle, status, 1);
    away(first);
    leave();
    return error;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    MPI_Status own;
    int first = ask();
    away(first);
    MPI_Request handle = *request;
    if (status == MPI_STATUS_IGNORE) status = &own;
    int error = PMPI_Test(request, flag, status);
    back(first);
    if (first && *flag) {
        write_computed();
        done(handle, status, 1);
    }
    away(first);
    leave();
    return error;
}

#define ALL(Name, begin_it, parameters, call, happened) \
    int MPI_##Name parameters { \
        struct handles handles; \
        int first = begin_it(); \
        away(first); \
        room_for(&handles, count); \
        memcpy(handles.all, requests, (size_t)count * sizeof(MPI_Request)); \
        if (statuses == MPI_STATUSES_IGNORE) statuses = handles.statuses; \
        int error = call; \
        back(first); \
        if (first && happened) { \
            write_computed(); \
            all_done(count, handles.all, statuses); \
        } \
        away(first); \
        no_room(&handles); \
        leave(); \
        return error; \
    }

ALL(Waitall, enter, (int count, MPI_Request requests[], MPI_Status statuses[]),
    PMPI_Waitall(count, requests, statuses), 1)
ALL(Testall, ask, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
    PMPI_Testall(count, requests, flag, statuses), *flag)

#define ANY(Name, begin_it, parameters, call, happened) \
    int MPI_##Name parameters { \
        struct handles handles; \
        int first = begin_it(); \
        away(first); \
        room_for(&handles, count); \
        memcpy(handles.all, requests, (size_t)count * sizeof(MPI_Request)); \
        if (status == MPI_STATUS_IGNORE) status = handles.statuses; \
        int error = call; \
        back(first); \
        if (first && happened && *index != MPI_UNDEFINED) { \
            write_computed(); \
            done(handles.all[*index], status, 1); \
        } \
        away(first); \
        no_room(&handles); \
        leave(); \
        return error; \
    }

ANY(Waitany, enter, (int count, MPI_Request requests[], int *index, MPI_Status *status),
    PMPI_Waitany(count, requests, index, status), 1)
ANY(Testany, ask, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
    PMPI_Testany(count, requests, index, flag, status), *flag)

#define SOME(Name, begin_it) \
    int MPI_##Name( \
        int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[] \
    ) { \
        struct handles handles; \
        int first = begin_it(); \
        away(first); \
        room_for(&handles, count); \
        memcpy(handles.all, requests, (size_t)count * sizeof(MPI_Request)); \
        if (statuses == MPI_STATUSES_IGNORE) statuses = handles.statuses; \
        int error = PMPI_##Name(count, requests, out, indices, statuses); \
        back(first); \
        if (first && *out != MPI_UNDEFINED && *out > 0) write_computed(); \
        for (int at = 0; first && *out != MPI_UNDEFINED && at < *out; at++) \
            done(handles.all[indices[at]], &statuses[at], 1); \
        away(first); \
        no_room(&handles); \
        leave(); \
        return error; \
    }

SOME(Waitsome, enter)
SOME(Testsome, ask)

void mpi_wait_(F request, F status, F error) {
    MPI_Fint own[STATUS_WORDS];
    MPI_Status told;
    int first = enter();
    away(first);
    MPI_Request handle = REQUEST(request);
    if (ignored(status)) status = own;
    FORTRAN(wait, (F, F, F), (request, status, error));
    back(first);
    if (first) {
        seen(status, &told);
        done(handle, &told, 1);
    }
    away(first);
    leave();
}

void mpi_test_(F request, F flag, F status, F error) {
    MPI_Fint own[STATUS_WORDS];
    MPI_Status told;
    int first = ask();
    away(first);
    MPI_Request handle = REQUEST(request);
    if (ignored(status)) status = own;
    FORTRAN(test, (F, F, F, F), (request, flag, status, error));
    back(first);
    if (first && *flag) {
        write_computed();
        seen(status, &told);
        done(handle, &told, 1);
    }
    away(first);
    leave();
}

/* Fortran's arrays of statuses are asked for whether the program wants them or not. */
static MPI_Fint *fortran_statuses(MPI_Fint *statuses, int count, MPI_Fint **own) {
    *own = NULL;
    if (!ignored(statuses)) return statuses;
    *own = malloc(sizeof(MPI_Fint) * STATUS_WORDS * (size_t)(count ? count : 1));
    if (!*own) abort();
    return *own;
}

static int status_words(void) {
    return (int)(sizeof(MPI_Status) / sizeof(MPI_Fint));
}

void mpi_waitall_(F count, F requests, F statuses, F error) {
    struct handles handles;
    MPI_Fint *own;
    int first = enter();
    away(first);
    room_for(&handles, *count);
    for (int at = 0; at < *count; at++) handles.all[at] = REQUEST(requests + at);
    statuses = fortran_statuses(statuses, *count, &own);
    FORTRAN(waitall, (F, F, F, F), (count, requests, statuses, error));
    back(first);
    if (first) {
        for (int at = 0; at < *count; at++)
            seen(statuses + at * status_words(), &handles.statuses[at]);
        all_done(*count, handles.all, handles.statuses);
    }
    away(first);
    free(own);
    no_room(&handles);
    leave();
}

void mpi_waitany_(F count, F requests, F index, F status, F error) {
    struct handles handles;
    MPI_Fint own[STATUS_WORDS];
    int first = enter();
    away(first);
    room_for(&handles, *count);
    for (int at = 0; at < *count; at++) handles.all[at] = REQUEST(requests + at);
    if (ignored(status)) status = own;
    FORTRAN(waitany, (F, F, F, F, F), (count, requests, index, status, error));
    back(first);
    /* Fortran counts from 1. */
    if (first && *index != MPI_UNDEFINED) {
        seen(status, handles.statuses);
        done(handles.all[*index - 1], handles.statuses, 1);
    }
    away(first);
    no_room(&handles);
    leave();
}

/* Nothing is written of probes, but what they take is no computing. */
int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    int first = ask();
    away(first);
    int error = PMPI_Probe(from, tag, comm, status);
    leave();
    return error;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    int first = ask();
    away(first);
    int error = PMPI_Iprobe(from, tag, comm, flag, status);
    leave();
    return error;
}

void mpi_probe_(F from, F tag, F comm, F status, F error) {
    int first = ask();
    away(first);
    FORTRAN(probe, (F, F, F, F, F), (from, tag, comm, status, error));
    leave();
}

void mpi_iprobe_(F from, F tag, F comm, F flag, F status, F error) {
    int first = ask();
    away(first);
    FORTRAN(iprobe, (F, F, F, F, F, F), (from, tag, comm, flag, status, error));
    leave();
}

static void request_freed(MPI_Request handle) {
    struct request *one = find_request(handle);
    if (!one) return;
    if (one->active) outstanding--;
    forget(one);
}

static void cancelled(MPI_Request handle) {
    struct request *one = find_request(handle);
    if (one && one->active) one->cancel = 1;
}

int MPI_Cancel(MPI_Request *request) {
    int first = enter();
    if (first) cancelled(*request);
    away(first);
    int error = PMPI_Cancel(request);
    leave();
    return error;
}

void mpi_cancel_(F request, F error) {
    int first = enter();
    if (first) cancelled(REQUEST(request));
    away(first);
    FORTRAN(cancel, (F, F), (request, error));
    leave();
}

int MPI_Request_free(MPI_Request *request) {
    int first = enter();
    if (first) request_freed(*request);
    away(first);
    int error = PMPI_Request_free(request);
    leave();
    return error;
}

void mpi_request_free_(F request, F error) {
    int first = enter();
    if (first) request_freed(REQUEST(request));
    away(first);
    FORTRAN(request_free, (F, F), (request, error));
    leave();
}

/* ---- Collective operations, as calls: which algorithm the library took is not written ---- */

#if defined(OPEN_MPI)
extern int mpi_fortran_in_place_ __attribute__((weak));
static int in_place(const void *data) {
    return data == MPI_IN_PLACE || (&mpi_fortran_in_place_ && data == (void *)&mpi_fortran_in_place_);
}
#else
extern void *MPIR_F_MPI_IN_PLACE __attribute__((weak));
static int in_place(const void *data) {
    return data == MPI_IN_PLACE || (&MPIR_F_MPI_IN_PLACE && data == MPIR_F_MPI_IN_PLACE);
}
#endif

/* A verb, up to two sizes (-1: none), and a root (-1: none). */
static void collective(const char *verb, long long one, long long other, int root, MPI_Comm comm) {
    struct communicator *through = find(comm);
    if (through->between) return;
    line(verb);
    if (one >= 0) number(one);
    if (other >= 0) number(other);
    if (root >= 0) number(root);
    named(through);
}

static void counts(const int *each, int size, MPI_Datatype type) {
    int unit = 0;
    PMPI_Type_size(type, &unit);
    for (int rank = 0; rank < size; rank++) number((long long)each[rank] * unit);
}

static long long sum(const int *each, int size, MPI_Datatype type) {
    long long all = 0;
    for (int rank = 0; rank < size; rank++) all += each[rank];
    return octets(all, type);
}

#define LIST(...) __VA_ARGS__

/* An operation in C and in Fortran, waited for and not. What is not waited for is written as if it were. */
#define COLLECTIVE(Name, name, c_parameters, c_arguments, f_parameters, f_types, f_arguments, c_note, f_note) \
    int MPI_##Name(LIST c_parameters) { \
        int first = enter(); \
        if (first) { c_note; } \
        away(first); \
        int error = PMPI_##Name(LIST c_arguments); \
        leave(); \
        return error; \
    } \
    int MPI_I##name(LIST c_parameters, MPI_Request *request) { \
        int first = enter(); \
        if (first) { c_note; } \
        away(first); \
        int error = PMPI_I##name(LIST c_arguments, request); \
        leave(); \
        return error; \
    } \
    void mpi_##name##_(LIST f_parameters, F error) { \
        int first = enter(); \
        if (first) { f_note; } \
        away(first); \
        FORTRAN(name, (LIST f_types, F), (LIST f_arguments, error)); \
        leave(); \
    } \
    void mpi_i##name##_(LIST f_parameters, F request, F error) { \
        int first = enter(); \
        if (first) { f_note; } \
        away(first); \
        FORTRAN(i##name, (LIST f_types, F, F), (LIST f_arguments, request, error)); \
        leave(); \
    }

COLLECTIVE(
    Barrier, barrier, (MPI_Comm comm), (comm), (F comm), (F), (comm),
    collective("barrier", -1, -1, -1, comm), collective("barrier", -1, -1, -1, COMM(comm))
)
COLLECTIVE(
    Bcast, bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
    (data, count, type, root, comm), (void *data, F count, F type, F root, F comm),
    (void *, F, F, F, F), (data, count, type, root, comm),
    collective("bcast", octets(count, type), -1, root, comm),
    collective("bcast", octets(*count, TYPE(type)), -1, *root, COMM(comm))
)
COLLECTIVE(
    Reduce, reduce,
    (const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op, int root,
     MPI_Comm comm),
    (sent, received, count, type, op, root, comm),
    (void *sent, void *received, F count, F type, F op, F root, F comm),
    (void *, void *, F, F, F, F, F), (sent, received, count, type, op, root, comm),
    collective("reduce", octets(count, type), 0, root, comm),
    collective("reduce", octets(*count, TYPE(type)), 0, *root, COMM(comm))
)

#define SUMS(Name, name) \
    COLLECTIVE( \
        Name, name, \
        (const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
        (sent, received, count, type, op, comm), \
        (void *sent, void *received, F count, F type, F op, F comm), \
        (void *, void *, F, F, F, F), (sent, received, count, type, op, comm), \
        collective(#name, octets(count, type), 0, -1, comm), \
        collective(#name, octets(*count, TYPE(type)), 0, -1, COMM(comm)) \
    )
SUMS(Allreduce, allreduce)
SUMS(Scan, scan)
SUMS(Exscan, exscan)

/* What is exchanged in place is as large as what is received. */
static void exchanged(
    const char *verb, const void *sent, long long count, MPI_Datatype type, const void *received,
    long long room, MPI_Datatype other, int root, MPI_Comm comm
) {
    int of = 0, own = 0;
    if (root >= 0) {
        PMPI_Comm_rank(comm, &own);
        of = own == root;
    }
    /* Only the root of a gather knows what is received, and only that of a scatter what is sent. */
    int gathers = verb[0] == 'g', scatters = verb[0] == 's';
    long long in, out;
    if (in_place(sent)) in = octets(room, other);
    else in = scatters && !of ? octets(room, other) : octets(count, type);
    if (in_place(received)) out = octets(count, type);
    else out = gathers && !of ? in : octets(room, other);
    collective(verb, in, out, root, comm);
}

#define EXCHANGES(Name, name) \
    COLLECTIVE( \
        Name, name, \
        (const void *sent, int count, MPI_Datatype type, void *received, int room, \
         MPI_Datatype other, MPI_Comm comm), \
        (sent, count, type, received, room, other, comm), \
        (void *sent, F count, F type, void *received, F room, F other, F comm), \
        (void *, F, F, void *, F, F, F), (sent, count, type, received, room, other, comm), \
        exchanged(#name, sent, count, type, received, room, other, -1, comm), \
        exchanged( \
            #name, sent, *count, TYPE(type), received, *room, TYPE(other), -1, COMM(comm) \
        ) \
    )
EXCHANGES(Alltoall, alltoall)
EXCHANGES(Allgather, allgather)

#define ROOTED(Name, name) \
    COLLECTIVE( \
        Name, name, \
        (const void *sent, int count, MPI_Datatype type, void *received, int room, \
         MPI_Datatype other, int root, MPI_Comm comm), \
        (sent, count, type, received, room, other, root, comm), \
        (void *sent, F count, F type, void *received, F room, F other, F root, F comm), \
        (void *, F, F, void *, F, F, F, F), \
        (sent, count, type, received, room, other, root, comm), \
        exchanged(#name, sent, count, type, received, room, other, root, comm), \
        exchanged( \
            #name, sent, *count, TYPE(type), received, *room, TYPE(other), *root, COMM(comm) \
        ) \
    )
ROOTED(Gather, gather)
ROOTED(Scatter, scatter)

/* Amounts of their own for each member. */
static void alltoallv(
    const void *sent, const int *out, MPI_Datatype type, const int *in, MPI_Datatype other,
    MPI_Comm comm
) {
    struct communicator *through = find(comm);
    if (through->between) return;
    if (in_place(sent)) {
        out = in;
        type = other;
    }
    line("alltoallv");
    number(sum(out, through->size, type));
    counts(out, through->size, type);
    number(sum(in, through->size, other));
    counts(in, through->size, other);
    named(through);
}

COLLECTIVE(
    Alltoallv, alltoallv,
    (const void *sent, const int *out, const int *at, MPI_Datatype type, void *received,
     const int *in, const int *into, MPI_Datatype other, MPI_Comm comm),
    (sent, out, at, type, received, in, into, other, comm),
    (void *sent, F out, F at, F type, void *received, F in, F into, F other, F comm),
    (void *, F, F, F, void *, F, F, F, F),
    (sent, out, at, type, received, in, into, other, comm),
    alltoallv(sent, out, type, in, other, comm),
    alltoallv(sent, out, TYPE(type), in, TYPE(other), COMM(comm))
)

/* A gather to all or to a root; `own` is what this rank sends. */
static void gatherv(
    const char *verb, long long own, const int *in, MPI_Datatype other, int root, MPI_Comm comm
) {
    struct communicator *through = find(comm);
    int rank = 0;
    if (through->between) return;
    PMPI_Comm_rank(comm, &rank);
    line(verb);
    if (own < 0) own = octets(in[rank], other);
    number(own);
    /* Elsewhere than at the root of a gather, the other amounts mean nothing. */
    if (root < 0 || rank == root)
        counts(in, through->size, other);
    else
        for (int at = 0; at < through->size; at++) number(at == rank ? own : 0);
    if (root >= 0) number(root);
    named(through);
}

COLLECTIVE(
    Allgatherv, allgatherv,
    (const void *sent, int count, MPI_Datatype type, void *received, const int *in,
     const int *into, MPI_Datatype other, MPI_Comm comm),
    (sent, count, type, received, in, into, other, comm),
    (void *sent, F count, F type, void *received, F in, F into, F other, F comm),
    (void *, F, F, void *, F, F, F, F), (sent, count, type, received, in, into, other, comm),
    gatherv("allgatherv", in_place(sent) ? -1 : octets(count, type), in, other, -1, comm),
    gatherv(
        "allgatherv", in_place(sent) ? -1 : octets(*count, TYPE(type)), in, TYPE(other), -1,
        COMM(comm)
    )
)
COLLECTIVE(
    Gatherv, gatherv,
    (const void *sent, int count, MPI_Datatype type, void *received, const int *in,
     const int *into, MPI_Datatype other, int root, MPI_Comm comm),
    (sent, count, type, received, in, into, other, root, comm),
    (void *sent, F count, F type, void *received, F in, F into, F other, F root, F comm),
    (void *, F, F, void *, F, F, F, F, F),
    (sent, count, type, received, in, into, other, root, comm),
    gatherv("gatherv", in_place(sent) ? -1 : octets(count, type), in, other, root, comm),
    gatherv(
        "gatherv", in_place(sent) ? -1 : octets(*count, TYPE(type)), in, TYPE(other), *root,
        COMM(comm)
    )
)

static void scatterv(
    const int *out, MPI_Datatype type, long long own, int root, MPI_Comm comm
) {
    struct communicator *through = find(comm);
    int rank = 0;
    if (through->between) return;
    PMPI_Comm_rank(comm, &rank);
    if (own < 0) own = octets(out[rank], type);
    line("scatterv");
    if (rank == root)
        counts(out, through->size, type);
    else
        for (int at = 0; at < through->size; at++) number(at == rank ? own : 0);
    number(own);
    number(root);
    named(through);
}

COLLECTIVE(
    Scatterv, scatterv,
    (const void *sent, const int *out, const int *at, MPI_Datatype type, void *received, int room,
     MPI_Datatype other, int root, MPI_Comm comm),
    (sent, out, at, type, received, room, other, root, comm),
    (void *sent, F out, F at, F type, void *received, F room, F other, F root, F comm),
    (void *, F, F, F, void *, F, F, F, F),
    (sent, out, at, type, received, room, other, root, comm),
    scatterv(out, type, in_place(received) ? -1 : octets(room, other), root, comm),
    scatterv(
        out, TYPE(type), in_place(received) ? -1 : octets(*room, TYPE(other)), *root, COMM(comm)
    )
)

static void reduce_scatter(const int *in, long long each, MPI_Datatype type, MPI_Comm comm) {
    struct communicator *through = find(comm);
    if (through->between) return;
    line("reducescatter");
    if (in)
        counts(in, through->size, type);
    else
        for (int at = 0; at < through->size; at++) number(octets(each, type));
    number(0);
    named(through);
}

COLLECTIVE(
    Reduce_scatter, reduce_scatter,
    (const void *sent, void *received, const int *in, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
    (sent, received, in, type, op, comm),
    (void *sent, void *received, F in, F type, F op, F comm), (void *, void *, F, F, F, F),
    (sent, received, in, type, op, comm), reduce_scatter(in, 0, type, comm),
    reduce_scatter(in, 0, TYPE(type), COMM(comm))
)
COLLECTIVE(
    Reduce_scatter_block, reduce_scatter_block,
    (const void *sent, void *received, int in, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
    (sent, received, in, type, op, comm),
    (void *sent, void *received, F in, F type, F op, F comm), (void *, void *, F, F, F, F),
    (sent, received, in, type, op, comm), reduce_scatter(NULL, in, type, comm),
    reduce_scatter(NULL, *in, TYPE(type), COMM(comm))
)

/* ---- New communicators ---- */

#define CREATES(Name, name, c_parameters, c_arguments, f_parameters, f_types, f_arguments) \
    int MPI_##Name(LIST c_parameters, MPI_Comm *made_one) { \
        int first = enter(); \
        away(first); \
        int error = PMPI_##Name(LIST c_arguments, made_one); \
        if (first) created(*made_one); \
        leave(); \
        return error; \
    } \
    void mpi_##name##_(LIST f_parameters, F made_one, F error) { \
        int first = enter(); \
        away(first); \
        FORTRAN(name, (LIST f_types, F, F), (LIST f_arguments, made_one, error)); \
        if (first) created(COMM(made_one)); \
        leave(); \
    }

CREATES(Comm_dup, comm_dup, (MPI_Comm comm), (comm), (F comm), (F), (comm))
CREATES(
    Comm_dup_with_info, comm_dup_with_info, (MPI_Comm comm, MPI_Info info), (comm, info),
    (F comm, F info), (F, F), (comm, info)
)
CREATES(
    Comm_split, comm_split, (MPI_Comm comm, int color, int key), (comm, color, key),
    (F comm, F color, F key), (F, F, F), (comm, color, key)
)
CREATES(
    Comm_split_type, comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info),
    (comm, kind, key, info), (F comm, F kind, F key, F info), (F, F, F, F),
    (comm, kind, key, info)
)
CREATES(
    Comm_create, comm_create, (MPI_Comm comm, MPI_Group group), (comm, group), (F comm, F group),
    (F, F), (comm, group)
)
CREATES(
    Comm_create_group, comm_create_group, (MPI_Comm comm, MPI_Group group, int tag),
    (comm, group, tag), (F comm, F group, F tag), (F, F, F), (comm, group, tag)
)
CREATES(
    Cart_create, cart_create,
    (MPI_Comm comm, int count, const int sides[], const int round[], int reorder),
    (comm, count, sides, round, reorder), (F comm, F count, F sides, F round, F reorder),
    (F, F, F, F, F), (comm, count, sides, round, reorder)
)
CREATES(
    Cart_sub, cart_sub, (MPI_Comm comm, const int kept[]), (comm, kept), (F comm, F kept), (F, F),
    (comm, kept)
)

int MPI_Comm_free(MPI_Comm *comm) {
    int first = enter();
    if (first) freed(*comm);
    away(first);
    int error = PMPI_Comm_free(comm);
    leave();
    return error;
}

void mpi_comm_free_(F comm, F error) {
    int first = enter();
    if (first) freed(COMM(comm));
    away(first);
    FORTRAN(comm_free, (F, F), (comm, error));
    leave();
}

/* ---- Beginning and end ---- */

static void begin(void) {
    const char *directory = getenv("MEIKYO_TRACE_DIR");
    char path[4096];
    if (!directory || file >= 0) return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    int length = snprintf(path, sizeof path, "%s/rank-%d.txt", directory, world_rank);
    if (length < 0 || (size_t)length >= sizeof path) {
        complain("the name of the directory is too long");
        return;
    }
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) {
        complain("its file cannot be made in the directory of the trace");
        return;
    }
    define(MPI_COMM_WORLD, 0);
    line("init");
    end_line();
    if (world_rank == 0) {
        line("comm_size");
        number(world_size);
        end_line();
    }
    left_at = now();
}

static void finish(void) {
    if (file < 0) return;
    line("finalize");
    end_line();
    flush();
    close(file);
    file = -1;
}

__attribute__((destructor)) static void last(void) {
    /* A program that ends without MPI_Finalize leaves what it did. */
    pthread_mutex_lock(&lock);
    if (file >= 0) flush();
    pthread_mutex_unlock(&lock);
}

int MPI_Init(int *argc, char ***argv) {
    inside++;
    int error = PMPI_Init(argc, argv);
    if (!error) begin();
    inside--;
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    inside++;
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (!error) begin();
    inside--;
    return error;
}

int MPI_Finalize(void) {
    int first = enter();
    if (first) finish();
    away(first);
    int error = PMPI_Finalize();
    leave();
    return error;
}

void mpi_init_(F error) {
    inside++;
    FORTRAN(init, (F), (error));
    if (!*error) begin();
    inside--;
}

void mpi_init_thread_(F required, F provided, F error) {
    inside++;
    FORTRAN(init_thread, (F, F, F), (required, provided, error));
    if (!*error) begin();
    inside--;
}

void mpi_finalize_(F error) {
    int first = enter();
    if (first) finish();
    away(first);
    FORTRAN(finalize, (F), (error));
    leave();
}
