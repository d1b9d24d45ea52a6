/* Collective operations, as calls: which algorithm the library took is not written. */

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
