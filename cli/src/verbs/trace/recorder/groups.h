/* New communicators. */

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
