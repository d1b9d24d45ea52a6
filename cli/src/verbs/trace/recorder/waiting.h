/* Waiting. */

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

/* What becomes of one request, which is noted before the call changes the handle. */
#define NOTED(Name, name, note)                                                                            \
    int MPI_##Name(MPI_Request *request) {                                                                 \
        int first = enter();                                                                               \
        if (first) note(*request);                                                                         \
        away(first);                                                                                       \
        int error = PMPI_##Name(request);                                                                  \
        leave();                                                                                           \
        return error;                                                                                      \
    }                                                                                                      \
    void mpi_##name##_(F request, F error) {                                                               \
        int first = enter();                                                                               \
        if (first) note(REQUEST(request));                                                                 \
        away(first);                                                                                       \
        FORTRAN(name, (F, F), (request, error));                                                           \
        leave();                                                                                           \
    }
NOTED(Cancel, cancel, cancelled)
NOTED(Request_free, request_free, request_freed)
