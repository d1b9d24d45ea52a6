/* Communicators. */

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
