/* Requests that are begun again and again. */

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
