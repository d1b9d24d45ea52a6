/* Prints what an archive of OTF2 says of MPI, one definition or event a line; events of a location in their order.
   Nothing is interpreted here. A line is a word and its numbers:

   creator TEXT                                the program that wrote the archive
   ticks HERTZ                                 of the clock
   location LOCATION PROCESS
   ranks LOCATION...                           of MPI, in order
   self GROUP                                  of each rank by itself
   group GROUP ARE_LOCATIONS MEMBER...         ranks, or locations
   comm COMM GROUP
   region REGION NAME                          of MPI
   begins TIME LOCATION, ends TIME LOCATION    its first and its last event
   flush TIME LOCATION UNTIL                   the tool wrote what it had recorded
   off TIME LOCATION, on TIME LOCATION         recording
   enter TIME LOCATION REGION, leave TIME LOCATION
   send TIME LOCATION RECEIVER COMM TAG OCTETS
   isend TIME LOCATION RECEIVER COMM TAG OCTETS REQUEST
   sent TIME LOCATION REQUEST
   posted TIME LOCATION REQUEST
   recv TIME LOCATION SENDER COMM TAG OCTETS
   irecv TIME LOCATION SENDER COMM TAG OCTETS REQUEST
   cancelled TIME LOCATION REQUEST
   collective TIME LOCATION OPERATION COMM ROOT SENT RECEIVED
   begun TIME LOCATION REQUEST
   done TIME LOCATION OPERATION COMM ROOT SENT RECEIVED REQUEST */

#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void die(const char *what, OTF2_ErrorCode error) {
    fprintf(stderr, "%s%s%s\n", what, error ? ": " : "", error ? OTF2_Error_GetDescription(error) : "");
    exit(1);
}

static void check(OTF2_ErrorCode error, const char *what) {
    if (error != OTF2_SUCCESS) die(what, error);
}

/* Entries of 64-bit names, which come in any order. */
struct entry {
    uint64_t name;
    /* Of a region its name, of a location its process. */
    uint64_t value;
    char *text;
    /* Of a region whether its paradigm is MPI, of a location whether its process has a rank, and then whether it had an
       event. */
    int marked, seen;
    uint64_t last;
};
struct table {
    struct entry *entries;
    size_t count, room;
};
static struct table strings, regions, locations, ranks;

static struct entry *add(struct table *table, uint64_t name) {
    if (table->count == table->room) {
        table->room = table->room ? 2 * table->room : 64;
        table->entries = realloc(table->entries, table->room * sizeof *table->entries);
        if (!table->entries) die("there is no memory left", 0);
    }
    struct entry *added = &table->entries[table->count++];
    memset(added, 0, sizeof *added);
    added->name = name;
    return added;
}

static int by_name(const void *left, const void *right) {
    uint64_t one = ((const struct entry *)left)->name, other = ((const struct entry *)right)->name;
    return (one > other) - (one < other);
}

static void sort(struct table *table) {
    qsort(table->entries, table->count, sizeof *table->entries, by_name);
}

static struct entry *find(const struct table *table, uint64_t name) {
    struct entry wanted = {.name = name};
    return table->count ? bsearch(&wanted, table->entries, table->count, sizeof wanted, by_name) : NULL;
}

/* Definitions. */

#define DONE return OTF2_CALLBACK_SUCCESS

static OTF2_CallbackCode clock_is(void *user, uint64_t ticks, uint64_t offset, uint64_t length, uint64_t date) {
    printf("ticks %" PRIu64 "\n", ticks);
    DONE;
}

static OTF2_CallbackCode string_is(void *user, OTF2_StringRef self, const char *text) {
    add(&strings, self)->text = strdup(text);
    DONE;
}

static OTF2_CallbackCode location_is(
    void *user, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type, uint64_t events,
    OTF2_LocationGroupRef process
) {
    add(&locations, self)->value = process;
    printf("location %" PRIu64 " %" PRIu32 "\n", self, process);
    DONE;
}

static OTF2_CallbackCode region_is(
    void *user, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef canonical, OTF2_StringRef description,
    OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag flags, OTF2_StringRef file, uint32_t begins,
    uint32_t ends
) {
    struct entry *region = add(&regions, self);
    region->value = name;
    region->marked = paradigm == OTF2_PARADIGM_MPI;
    DONE;
}

static OTF2_CallbackCode group_is(
    void *user, OTF2_GroupRef self, OTF2_StringRef name, OTF2_GroupType type, OTF2_Paradigm paradigm,
    OTF2_GroupFlag flags, uint32_t count, const uint64_t *members
) {
    if (paradigm != OTF2_PARADIGM_MPI) DONE;
    switch (type) {
        case OTF2_GROUP_TYPE_COMM_LOCATIONS:
            printf("ranks");
            for (uint32_t at = 0; at < count; at++) add(&ranks, members[at]);
            break;
        case OTF2_GROUP_TYPE_COMM_SELF: printf("self %" PRIu32 "\n", self); DONE;
        case OTF2_GROUP_TYPE_COMM_GROUP:
            printf("group %" PRIu32 " %d", self, (flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS) != 0);
            break;
        default: DONE;
    }
    for (uint32_t at = 0; at < count; at++) printf(" %" PRIu64, members[at]);
    putchar('\n');
    DONE;
}

static OTF2_CallbackCode comm_is(
    void *user, OTF2_CommRef self, OTF2_StringRef name, OTF2_GroupRef group, OTF2_CommRef parent, OTF2_CommFlag flags
) {
    printf("comm %" PRIu32 " %" PRIu32 "\n", self, group);
    DONE;
}

/* Regions of MPI are called as its functions are. Their writer may name another paradigm, but then for all of them. */
static void name_regions(void) {
    int by_paradigm = 0;
    sort(&strings);
    for (size_t at = 0; at < regions.count; at++) {
        struct entry *region = &regions.entries[at], *name = find(&strings, region->value);
        int is_mpi = name && (!strncmp(name->text, "MPI_", 4) || !strncmp(name->text, "mpi_", 4));
        region->text = is_mpi ? name->text : NULL;
        by_paradigm |= is_mpi && region->marked;
    }
    for (size_t at = 0; at < regions.count; at++) {
        struct entry *region = &regions.entries[at];
        int is_mpi = region->text && (region->marked || !by_paradigm);
        region->text = is_mpi ? region->text : NULL;
        if (is_mpi) printf("region %" PRIu64 " %s\n", region->name, region->text);
    }
    sort(&regions);
}

/* Events. */

#define EVENT OTF2_LocationRef at, OTF2_TimeStamp time, void *user, OTF2_AttributeList *attributes

static void event(const char *word, uint64_t time, uint64_t at, int numbers, ...) {
    printf("%s %" PRIu64 " %" PRIu64, word, time, at);
    va_list given;
    va_start(given, numbers);
    while (numbers--) printf(" %" PRIu64, va_arg(given, uint64_t));
    va_end(given);
    putchar('\n');
}

static void seen(uint64_t time, uint64_t at) {
    struct entry *location = find(&locations, at);
    if (!location) return;
    if (!location->seen) {
        location->seen = 1;
        event("begins", time, at, 0);
    }
    location->last = time;
}

static OTF2_CallbackCode thread_begin(EVENT, OTF2_CommRef comm, uint64_t count) {
    seen(time, at);
    DONE;
}

static OTF2_CallbackCode flushed(EVENT, OTF2_TimeStamp until) {
    seen(time, at);
    event("flush", time, at, 1, (uint64_t)until);
    DONE;
}

static OTF2_CallbackCode switched(EVENT, OTF2_MeasurementMode mode) {
    seen(time, at);
    event(mode == OTF2_MEASUREMENT_ON ? "on" : "off", time, at, 0);
    DONE;
}

static OTF2_CallbackCode enter(EVENT, OTF2_RegionRef region) {
    seen(time, at);
    struct entry *known = find(&regions, region);
    if (known && known->text) event("enter", time, at, 1, (uint64_t)region);
    DONE;
}

static OTF2_CallbackCode leave(EVENT, OTF2_RegionRef region) {
    seen(time, at);
    struct entry *known = find(&regions, region);
    if (known && known->text) event("leave", time, at, 0);
    DONE;
}

#define MESSAGE uint32_t other, OTF2_CommRef comm, uint32_t tag, uint64_t octets
#define OF_MESSAGE (uint64_t)other, (uint64_t)comm, (uint64_t)tag, octets

static OTF2_CallbackCode mpi_send(EVENT, MESSAGE) {
    event("send", time, at, 4, OF_MESSAGE);
    DONE;
}

static OTF2_CallbackCode mpi_isend(EVENT, MESSAGE, uint64_t request) {
    event("isend", time, at, 5, OF_MESSAGE, request);
    DONE;
}

static OTF2_CallbackCode isend_complete(EVENT, uint64_t request) {
    event("sent", time, at, 1, request);
    DONE;
}

static OTF2_CallbackCode irecv_request(EVENT, uint64_t request) {
    event("posted", time, at, 1, request);
    DONE;
}

static OTF2_CallbackCode mpi_recv(EVENT, MESSAGE) {
    event("recv", time, at, 4, OF_MESSAGE);
    DONE;
}

static OTF2_CallbackCode mpi_irecv(EVENT, MESSAGE, uint64_t request) {
    event("irecv", time, at, 5, OF_MESSAGE, request);
    DONE;
}

static OTF2_CallbackCode cancelled(EVENT, uint64_t request) {
    event("cancelled", time, at, 1, request);
    DONE;
}

#define COLLECTIVE OTF2_CollectiveOp operation, OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t received
#define OF_COLLECTIVE (uint64_t)operation, (uint64_t)comm, (uint64_t)root, sent, received

static OTF2_CallbackCode collective_end(EVENT, COLLECTIVE) {
    event("collective", time, at, 5, OF_COLLECTIVE);
    DONE;
}

static OTF2_CallbackCode collective_request(EVENT, uint64_t request) {
    event("begun", time, at, 1, request);
    DONE;
}

static OTF2_CallbackCode collective_complete(EVENT, COLLECTIVE, uint64_t request) {
    event("done", time, at, 6, OF_COLLECTIVE, request);
    DONE;
}

static void read_definitions(OTF2_Reader *reader) {
    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
    if (!definitions) die("there are no definitions", 0);
    OTF2_GlobalDefReaderCallbacks *calls = OTF2_GlobalDefReaderCallbacks_New();
    OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(calls, clock_is);
    OTF2_GlobalDefReaderCallbacks_SetStringCallback(calls, string_is);
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(calls, location_is);
    OTF2_GlobalDefReaderCallbacks_SetRegionCallback(calls, region_is);
    OTF2_GlobalDefReaderCallbacks_SetGroupCallback(calls, group_is);
    OTF2_GlobalDefReaderCallbacks_SetCommCallback(calls, comm_is);
    check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, calls, NULL), "definitions");
    OTF2_GlobalDefReaderCallbacks_Delete(calls);
    uint64_t count;
    check(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &count), "cannot read the definitions");
    name_regions();
    sort(&locations);
}

/* Of all locations, those matter whose process has a rank: others measure devices. */
static void mark_locations(void) {
    struct table processes = {0};
    for (size_t at = 0; at < ranks.count; at++) {
        struct entry *location = find(&locations, ranks.entries[at].name);
        if (location) add(&processes, location->value);
    }
    sort(&processes);
    for (size_t at = 0; at < locations.count; at++)
        locations.entries[at].marked = find(&processes, locations.entries[at].value) != NULL;
}

/* Opens the events of all locations. What files of definitions say of them maps numbers of theirs to global ones. */
static void open_events(OTF2_Reader *reader) {
    /* A file for each location stays open. */
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    for (size_t at = 0; at < locations.count; at++)
        if (locations.entries[at].marked) check(OTF2_Reader_SelectLocation(reader, locations.entries[at].name), "cannot select a location");
    int have_own = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS;
    check(OTF2_Reader_OpenEvtFiles(reader), "cannot open the events");
    for (size_t at = 0; at < locations.count; at++) {
        uint64_t location = locations.entries[at].name, count;
        if (!locations.entries[at].marked) continue;
        OTF2_DefReader *own = have_own ? OTF2_Reader_GetDefReader(reader, location) : NULL;
        if (own) {
            check(OTF2_Reader_ReadAllLocalDefinitions(reader, own, &count), "cannot read a location's definitions");
            OTF2_Reader_CloseDefReader(reader, own);
        }
        if (!OTF2_Reader_GetEvtReader(reader, location)) die("cannot read a location's events", 0);
    }
    if (have_own) OTF2_Reader_CloseDefFiles(reader);
}

static void read_events(OTF2_Reader *reader) {
    OTF2_GlobalEvtReader *events = OTF2_Reader_GetGlobalEvtReader(reader);
    if (!events) die("there are no events", 0);
    OTF2_GlobalEvtReaderCallbacks *calls = OTF2_GlobalEvtReaderCallbacks_New();
    OTF2_GlobalEvtReaderCallbacks_SetThreadBeginCallback(calls, thread_begin);
    OTF2_GlobalEvtReaderCallbacks_SetThreadEndCallback(calls, thread_begin);
    OTF2_GlobalEvtReaderCallbacks_SetBufferFlushCallback(calls, flushed);
    OTF2_GlobalEvtReaderCallbacks_SetMeasurementOnOffCallback(calls, switched);
    OTF2_GlobalEvtReaderCallbacks_SetEnterCallback(calls, enter);
    OTF2_GlobalEvtReaderCallbacks_SetLeaveCallback(calls, leave);
    OTF2_GlobalEvtReaderCallbacks_SetMpiSendCallback(calls, mpi_send);
    OTF2_GlobalEvtReaderCallbacks_SetMpiIsendCallback(calls, mpi_isend);
    OTF2_GlobalEvtReaderCallbacks_SetMpiIsendCompleteCallback(calls, isend_complete);
    OTF2_GlobalEvtReaderCallbacks_SetMpiIrecvRequestCallback(calls, irecv_request);
    OTF2_GlobalEvtReaderCallbacks_SetMpiRecvCallback(calls, mpi_recv);
    OTF2_GlobalEvtReaderCallbacks_SetMpiIrecvCallback(calls, mpi_irecv);
    OTF2_GlobalEvtReaderCallbacks_SetMpiRequestCancelledCallback(calls, cancelled);
    OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveEndCallback(calls, collective_end);
#if OTF2_VERSION_MAJOR >= 3
    OTF2_GlobalEvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(calls, collective_request);
    OTF2_GlobalEvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(calls, collective_complete);
#endif
    check(OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, calls, NULL), "events");
    OTF2_GlobalEvtReaderCallbacks_Delete(calls);
    uint64_t count;
    check(OTF2_Reader_ReadAllGlobalEvents(reader, events, &count), "cannot read the events");
    for (size_t at = 0; at < locations.count; at++) {
        struct entry *location = &locations.entries[at];
        if (location->seen) event("ends", location->last, location->name, 0);
    }
    OTF2_Reader_CloseGlobalEvtReader(reader, events);
}

int main(int count, char **words) {
    if (count != 2) die("reader ARCHIVE.otf2", 0);
    OTF2_Reader *reader = OTF2_Reader_Open(words[1]);
    if (!reader) die("cannot open the archive", 0);
    check(OTF2_Reader_SetSerialCollectiveCallbacks(reader), "reader");
    char *creator = NULL;
    if (OTF2_Reader_GetCreator(reader, &creator) == OTF2_SUCCESS && creator) printf("creator %s\n", creator);
    read_definitions(reader);
    mark_locations();
    open_events(reader);
    read_events(reader);
    OTF2_Reader_CloseEvtFiles(reader);
    OTF2_Reader_Close(reader);
    if (fflush(stdout) || ferror(stdout)) die("cannot write", 0);
    return 0;
}
