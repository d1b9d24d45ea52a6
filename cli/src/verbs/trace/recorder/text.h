/* Text. */

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
