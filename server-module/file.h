/*
 * The file: found or made, mapped, and let go.
 */
#ifndef BRIMFUL_FILE_H
#define BRIMFUL_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "classes.h"
#include "clock.h"
#include "layout.h"
#include "record.h"

/* The file in memory. What the writer relies on is kept here too: what stands in the file, others may have changed. */
struct brimful_memory {
    struct brimful_header *header;
    size_t size;
    size_t header_size, slot_size;
    uint32_t slots;
};

#define BRIMFUL_WHY_BYTES 256u


/* Bytes up to the first slot. */
static inline size_t brimful_header_size(void)
{
    return (sizeof(struct brimful_header) + BRIMFUL_SLOT_ALIGN - 1) / BRIMFUL_SLOT_ALIGN * BRIMFUL_SLOT_ALIGN;
}

/* Bytes from one slot to the next. */
static inline size_t brimful_slot_size(unsigned classes)
{
    size_t size = sizeof(struct brimful_slot) + classes * sizeof(struct brimful_class);

    return (size + BRIMFUL_SLOT_ALIGN - 1) / BRIMFUL_SLOT_ALIGN * BRIMFUL_SLOT_ALIGN;
}

/* How many slots a file has: those asked for, one at least, as many as may be at most. */
static inline uint32_t brimful_slot_count(const struct brimful_settings *settings, unsigned classes)
{
    uint64_t most = (BRIMFUL_FILE_MOST - brimful_header_size()) / brimful_slot_size(classes);

    most = most < BRIMFUL_SLOTS_MOST ? most : BRIMFUL_SLOTS_MOST;
    if (settings->slots == 0) {
        return 1;
    }
    return settings->slots < most ? settings->slots : (uint32_t) most;
}

/* Copies a name, cut if need be; what is left of the room is zero. */
static inline void brimful_copy_name(char *to, const char *from)
{
    size_t length = from == NULL ? 0 : strlen(from);

    length = length < BRIMFUL_NAME_BYTES ? length : BRIMFUL_NAME_BYTES - 1;
    memset(to, 0, BRIMFUL_NAME_BYTES);
    if (length > 0) {
        memcpy(to, from, length);
    }
}

/* Whether a server of these settings can go on with a file of this header and size: the same server, but for its
 * version, the same classes, and slots for all. */
static inline int brimful_is_alike(const struct brimful_header *header, uint64_t size,
                                   const struct brimful_settings *settings)
{
    unsigned classes = settings->classes == 0 ? 1 : settings->classes;
    char server[BRIMFUL_NAME_BYTES];
    unsigned i;
    size_t kind;

    if (header->magic != BRIMFUL_MAGIC || header->layout != BRIMFUL_LAYOUT || header->classes != classes
        || header->header_size != brimful_header_size() || header->slot_size != brimful_slot_size(classes)
        || header->slots < brimful_slot_count(settings, classes) || header->slots > BRIMFUL_SLOTS_MOST
        || size > BRIMFUL_FILE_MOST || size < header->header_size + (uint64_t) header->slots * header->slot_size) {
        return 0;
    }
    brimful_copy_name(server, settings->server);
    kind = strcspn(server, "/");
    if (strncmp(header->server, server, kind) != 0 || (header->server[kind] != '/' && header->server[kind] != '\0')) {
        return 0;
    }
    for (i = 0; i + 1 < classes; i++) {
        if (memcmp(header->class_names[i], settings->class_names[i], BRIMFUL_NAME_BYTES) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Says what failed, and returns -1. */
static inline int brimful_failed(char *why, const char *what, const char *path, const char *reason)
{
    (void) snprintf(why, BRIMFUL_WHY_BYTES, "%s %.150s: %.60s", what, path, reason);
    return -1;
}

/* Maps the file of this descriptor for writing. */
static inline int brimful_map_file(struct brimful_memory *memory, int file, size_t size, char *why, const char *path)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (at == MAP_FAILED) {
        return brimful_failed(why, "cannot map", path, strerror(errno));
    }
    memory->header = (struct brimful_header *) at;
    memory->size = size;
    return 0;
}

/* What a header says anew whenever a server takes the file, so that it keeps on. */
static inline void brimful_sign(struct brimful_memory *memory, const struct brimful_settings *settings)
{
    struct brimful_header *header = memory->header;

    memory->header_size = header->header_size;
    memory->slot_size = header->slot_size;
    memory->slots = header->slots;
    brimful_classes = settings->classes == 0 ? 1 : settings->classes;
    __atomic_store_n(&header->cpu_one_in, settings->cpu_one_in, __ATOMIC_RELAXED);
    __atomic_store_n(&header->workers_most, settings->workers_most, __ATOMIC_RELAXED);
    __atomic_store_n(&header->master_pid, (uint32_t) getpid(), __ATOMIC_RELAXED);
    if (strncmp(header->server, settings->server == NULL ? "" : settings->server, BRIMFUL_NAME_BYTES - 1) != 0) {
        brimful_copy_name(header->server, settings->server);
    }
}

/* Takes the file that is there. 0: done; 1: there is none, or none that is alike; -1: nobody may take or replace it. */
static inline int brimful_map_old(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    struct brimful_header header;
    struct stat about;
    int result = 1;
    /* O_NONBLOCK: a pipe of this name must not hold up the server. */
    int file = open(settings->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (file < 0) {
        if (errno == ENOENT) {
            return 1;
        }
        return brimful_failed(why, "cannot open", settings->path,
                              errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    }
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        result = brimful_failed(why, "cannot use", settings->path, "it is not a file");
    } else if (about.st_uid != geteuid() || about.st_nlink > 1) {
        result = brimful_failed(why, "cannot use", settings->path, "it belongs to another user; remove it");
    } else if (pread(file, &header, sizeof(header), 0) == (ssize_t) sizeof(header)
               && brimful_is_alike(&header, (uint64_t) about.st_size, settings)) {
        size_t size = header.header_size + (size_t) header.slots * header.slot_size;

        result = brimful_map_file(memory, file, size, why, settings->path);
        if (result == 0) {
            /* Not from memory, where it may have changed since. */
            memory->header->header_size = header.header_size;
            memory->header->slot_size = header.slot_size;
            memory->header->slots = header.slots;
        }
    }
    (void) close(file);
    return result;
}

/* Makes a file beside the path and renames it over that, so that nobody ever sees half of it, and whoever still
 * writes to a file that was there goes on with that one. */
static inline int brimful_map_new(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    unsigned classes = settings->classes == 0 ? 1 : settings->classes;
    struct brimful_header *header;
    char beside[PATH_MAX];
    uint32_t slots = brimful_slot_count(settings, classes);
    size_t size = brimful_header_size() + (size_t) slots * brimful_slot_size(classes);
    unsigned i;
    int file, failure;

    if (snprintf(beside, sizeof(beside), "%s.new", settings->path) >= (int) sizeof(beside)) {
        return brimful_failed(why, "cannot create", settings->path, "the path is too long");
    }
    (void) unlink(beside); /* what a server left that died just here */
    file = open(beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) {
        return brimful_failed(why, "cannot create", beside, strerror(errno));
    }
    /* All room now: where a full file system gives none later, the server would be ended by SIGBUS. */
    failure = posix_fallocate(file, 0, (off_t) size);
    if (failure == 0 && fchmod(file, 0644) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        (void) brimful_failed(why, "cannot create", beside, strerror(failure));
    } else {
        failure = brimful_map_file(memory, file, size, why, beside);
    }
    (void) close(file);
    if (failure != 0) {
        (void) unlink(beside);
        return -1;
    }

    header = memory->header;
    header->layout = BRIMFUL_LAYOUT;
    header->header_size = (uint32_t) brimful_header_size();
    header->slot_size = (uint32_t) brimful_slot_size(classes);
    header->slots = slots;
    header->classes = classes;
    header->enabled = 1;
    header->made_ns = brimful_read_clock(CLOCK_REALTIME);
    for (i = 0; i < classes; i++) {
        brimful_copy_name(header->class_names[i], settings->classes == 0 ? "other" : settings->class_names[i]);
    }
    __atomic_store_n(&header->magic, BRIMFUL_MAGIC, __ATOMIC_RELEASE);
    if (rename(beside, settings->path) != 0) {
        (void) brimful_failed(why, "cannot create", settings->path, strerror(errno));
        (void) unlink(beside);
        (void) munmap(memory->header, memory->size);
        return -1;
    }
    return 0;
}

/* Whether the processor's ticks are the kernel's own source of time: then it has seen that they are steady, and the
 * same on all processors. */
static inline int brimful_kernel_uses_ticks(void)
{
    char source[8] = "";
    int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);

    if (file < 0) {
        return 0;
    }
    if (read(file, source, sizeof(source) - 1) < 0) {
        source[0] = '\0';
    }
    (void) close(file);
    return strncmp(source, "tsc\n", 4) == 0;
}

/* Maps the file of these settings: the one that is there if it is alike, so that a server goes on with the same
 * figures after a reload, else a new one. 0, or -1 and the reason in `why` (BRIMFUL_WHY_BYTES): the server goes on
 * without it, and `memory` is zero. */
static inline int brimful_map(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    int result;

    memset(memory, 0, sizeof(*memory));
    why[0] = '\0';
    result = brimful_map_old(memory, settings, why);
    if (result == 1) {
        result = brimful_map_new(memory, settings, why);
    }
    if (result != 0) {
        memset(memory, 0, sizeof(*memory));
        return -1;
    }
    brimful_sign(memory, settings);
    brimful_has_ticks = brimful_kernel_uses_ticks();
    return 0;
}

/* Undoes brimful_map, in the process that calls it. Nothing if `memory` is zero. */
static inline void brimful_unmap(struct brimful_memory *memory)
{
    if (memory->header != NULL) {
        (void) munmap(memory->header, memory->size);
    }
    memset(memory, 0, sizeof(*memory));
}

static inline int brimful_is_on(const struct brimful_memory *memory)
{
    return memory->header != NULL && __atomic_load_n(&memory->header->enabled, __ATOMIC_RELAXED) != 0;
}

#endif
