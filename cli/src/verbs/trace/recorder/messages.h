/* Point to point. */

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
