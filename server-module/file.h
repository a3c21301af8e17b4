/*
 * Opens or creates the recorder's file, maps it into memory, and unmaps it.
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
#include "place.h"
#include "record.h"

/* The mapped file. The writer uses the sizes in this struct, not those in the file, because other processes may change
 * the file. */
struct brimful_memory {
    struct brimful_header *header;
    size_t size;
    size_t header_size, slot_size;
    uint32_t slots;
};

#define BRIMFUL_WHY_BYTES 256u /* size of an error message, including the zero byte at its end */


/* Returns the size of the header, rounded up to the alignment of slots. */
static inline size_t brimful_header_size(void)
{
    return (sizeof(struct brimful_header) + BRIMFUL_SLOT_ALIGN - 1) / BRIMFUL_SLOT_ALIGN * BRIMFUL_SLOT_ALIGN;
}

/* Returns the size of a slot with this number of classes, in bytes. */
static inline size_t brimful_slot_size(unsigned classes)
{
    size_t size = sizeof(struct brimful_slot) + classes * sizeof(struct brimful_class);

    return (size + BRIMFUL_SLOT_ALIGN - 1) / BRIMFUL_SLOT_ALIGN * BRIMFUL_SLOT_ALIGN;
}

/* Returns the number of slots of a new file: the configured number, but at least one, and at most as many as fit into
 * the maximum size of a file. */
static inline uint32_t brimful_slot_count(const struct brimful_settings *settings, unsigned classes)
{
    uint64_t most = (BRIMFUL_MAX_FILE_BYTES - brimful_header_size()) / brimful_slot_size(classes);

    most = most < BRIMFUL_MAX_SLOTS ? most : BRIMFUL_MAX_SLOTS;
    if (settings->slots == 0) {
        return 1;
    }
    return settings->slots < most ? settings->slots : (uint32_t) most;
}

/* Copies a name into an array of BRIMFUL_NAME_BYTES. A longer name is truncated; the rest of the array is filled with
 * zeros. */
static inline void brimful_copy_name(char *to, const char *from)
{
    size_t length = from == NULL ? 0 : strlen(from);

    length = length < BRIMFUL_NAME_BYTES ? length : BRIMFUL_NAME_BYTES - 1;
    memset(to, 0, BRIMFUL_NAME_BYTES);
    if (length > 0) {
        memcpy(to, from, length);
    }
}

/* Returns whether a server with these settings can use an existing file with this header and size. The file must be
 * from the same kind of server, in any version, and must have the same classes and enough slots. */
static inline int brimful_is_compatible(const struct brimful_header *header, uint64_t size,
                                   const struct brimful_settings *settings)
{
    unsigned classes = settings->classes == 0 ? 1 : settings->classes;
    char server[BRIMFUL_NAME_BYTES];
    unsigned i;
    size_t kind;

    if (header->magic != BRIMFUL_MAGIC || header->layout != BRIMFUL_LAYOUT || header->classes != classes
        || header->header_size != brimful_header_size() || header->slot_size != brimful_slot_size(classes)
        || header->slots < brimful_slot_count(settings, classes) || header->slots > BRIMFUL_MAX_SLOTS
        || size > BRIMFUL_MAX_FILE_BYTES || size < header->header_size + (uint64_t) header->slots * header->slot_size) {
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

/* Writes an error message to `why`, which has BRIMFUL_WHY_BYTES bytes, and returns -1. */
static inline int brimful_failed(char *why, const char *what, const char *path, const char *reason)
{
    (void) snprintf(why, BRIMFUL_WHY_BYTES, "%s %.140s: %.90s", what, path, reason);
    return -1;
}

/* Maps a file, given by its descriptor, for writing. `sizes` is a copy of the header that other processes cannot
 * change. Returns 0, or -1 with the reason in `why`. */
static inline int brimful_map_file(struct brimful_memory *memory, int file, const struct brimful_header *sizes,
                                   char *why, const char *path)
{
    size_t size = sizes->header_size + (size_t) sizes->slots * sizes->slot_size;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (at == MAP_FAILED) {
        return brimful_failed(why, "cannot map", path, strerror(errno));
    }
    memory->header = (struct brimful_header *) at;
    memory->size = size;
    memory->header_size = sizes->header_size;
    memory->slot_size = sizes->slot_size;
    memory->slots = sizes->slots;
    memory->header->header_size = sizes->header_size;
    memory->header->slot_size = sizes->slot_size;
    memory->header->slots = sizes->slots;
    return 0;
}

/* Writes the fields of the header that are updated whenever a server opens the file, also if the file existed before.
 * */
static inline void brimful_update_header(struct brimful_memory *memory, const struct brimful_settings *settings)
{
    struct brimful_header *header = memory->header;

    brimful_classes = settings->classes == 0 ? 1 : settings->classes;
    __atomic_store_n(&header->cpu_one_in, settings->cpu_one_in, __ATOMIC_RELAXED);
    __atomic_store_n(&header->workers_most, settings->workers_most, __ATOMIC_RELAXED);
    __atomic_store_n(&header->master_pid, (uint32_t) getpid(), __ATOMIC_RELAXED);
    if (strncmp(header->server, settings->server == NULL ? "" : settings->server, BRIMFUL_NAME_BYTES - 1) != 0) {
        brimful_copy_name(header->server, settings->server);
    }
}

/* Handles a file at the path that this process must not write to. Returns 1 if the process may replace the file.
 * Otherwise returns -1, with the reason in `why`. */
static inline int brimful_refuse(char *why, const char *path, const char *reason)
{
    char whole[BRIMFUL_WHY_BYTES];

    if (brimful_is_in_sticky(path)) {
        return 1;
    }
    (void) snprintf(whole, sizeof(whole), "%.40s; remove it, or name another file", reason);
    return brimful_failed(why, "cannot use", path, whole);
}

/* Maps the file at the path, if it exists. Returns 0 if it was mapped, 1 if a new file must be created, and -1 if the
 * existing file can be neither used nor replaced. */
static inline int brimful_map_existing(struct brimful_memory *memory, const struct brimful_settings *settings,
                                       char *why)
{
    struct brimful_header header;
    struct stat about;
    int result = 1;
    /* With O_NONBLOCK, opening a named pipe at the path does not block the server. */
    int file = open(settings->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (file < 0) {
        if (errno == ENOENT) {
            return 1;
        }
        return brimful_refuse(why, settings->path, errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    }
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        result = brimful_refuse(why, settings->path, "it is not a file");
    } else if (about.st_uid != geteuid() || about.st_nlink > 1) {
        result = brimful_refuse(why, settings->path, "it belongs to another user");
    } else if (pread(file, &header, sizeof(header), 0) == (ssize_t) sizeof(header)
               && brimful_is_compatible(&header, (uint64_t) about.st_size, settings)) {
        result = brimful_map_file(memory, file, &header, why, settings->path);
    }
    (void) close(file);
    return result;
}

/* Creates a file under a temporary name in the directory of `path`, and writes the name to `temporary` (PATH_MAX
 * bytes). Returns the file's descriptor, or -1. The name that is tried first is always the same, so the temporary file
 * of a server that was killed is removed here. In a sticky directory, a file of another user with this name cannot be
 * removed. So the next names contain the current time. */
static inline int brimful_create_temporary(const char *path, char *temporary, char *why)
{
    int attempt, file = -1;

    for (attempt = 0; file < 0 && attempt < 8; attempt++) {
        unsigned long long salt = attempt == 0 ? 0 : (unsigned long long) brimful_read_clock(CLOCK_REALTIME);
        int length = attempt == 0 ? snprintf(temporary, PATH_MAX, "%s.new", path)
                                  : snprintf(temporary, PATH_MAX, "%s.%llx.new", path, salt);

        if (length >= PATH_MAX) {
            return brimful_failed(why, "cannot create", path, "the path is too long");
        }
        (void) unlink(temporary);
        file = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (file < 0 && errno != EEXIST) {
            break;
        }
    }
    return file < 0 ? brimful_failed(why, "cannot create", temporary, strerror(errno)) : file;
}

/* Renames a file to its final path. Replaces a file that exists at that path. */
static inline int brimful_put_in_place(const char *temporary, const char *path, char *why)
{
    int failure;

    if (rename(temporary, path) == 0) {
        return 0;
    }
    /* rename() does not replace a directory by a file, so try to remove the directory first. This succeeds if it is
     * empty. */
    if (errno == EISDIR && brimful_is_in_sticky(path) && rmdir(path) == 0 && rename(temporary, path) == 0) {
        return 0;
    }
    failure = errno;
    return brimful_failed(why, "cannot replace", path,
                          failure == EPERM || failure == EACCES
                              ? "another user made it; remove it as root, or name another file"
                          : failure == EISDIR || failure == ENOTEMPTY || failure == EEXIST
                              ? "it is a directory; remove it as root, or name another file"
                              : strerror(failure));
}

/* Creates a file under a temporary name, fills it and renames it to the path. So other processes never see an
 * incomplete file at the path. A process that has mapped the previous file continues to write to that file. */
static inline int brimful_map_new(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    unsigned classes = settings->classes == 0 ? 1 : settings->classes;
    struct brimful_header sizes = {.header_size = (uint32_t) brimful_header_size(),
                                   .slot_size = (uint32_t) brimful_slot_size(classes),
                                   .slots = brimful_slot_count(settings, classes)};
    size_t size = sizes.header_size + (size_t) sizes.slots * sizes.slot_size;
    struct brimful_header *header;
    char temporary[PATH_MAX];
    unsigned i;
    int file, failure;

    file = brimful_create_temporary(settings->path, temporary, why);
    if (file < 0) {
        return -1;
    }
    /* Allocate all space now. Otherwise, if the file system is full later, a write to the mapped file would end the
     * server with SIGBUS. */
    failure = posix_fallocate(file, 0, (off_t) size);
    if (failure == 0 && fchmod(file, 0644) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        (void) brimful_failed(why, "cannot create", temporary, strerror(failure));
    } else {
        failure = brimful_map_file(memory, file, &sizes, why, temporary);
    }
    (void) close(file);
    if (failure != 0) {
        (void) unlink(temporary);
        return -1;
    }

    header = memory->header;
    header->layout = BRIMFUL_LAYOUT;
    header->classes = classes;
    header->enabled = 1;
    header->created_ns = brimful_read_clock(CLOCK_REALTIME);
    for (i = 0; i < classes; i++) {
        brimful_copy_name(header->class_names[i], settings->classes == 0 ? "other" : settings->class_names[i]);
    }
    __atomic_store_n(&header->magic, BRIMFUL_MAGIC, __ATOMIC_RELEASE);
    if (brimful_put_in_place(temporary, settings->path, why) != 0) {
        (void) unlink(temporary);
        (void) munmap(memory->header, memory->size);
        return -1;
    }
    return 0;
}

/* Returns whether the kernel's own clock uses the processor's tick counter. If it does, the kernel has checked that the
 * counter has a constant rate and is the same on all processors. */
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

/* Maps the file at the path in `settings`. A compatible existing file is reused, so that a server keeps its counters
 * when it reloads its configuration; otherwise, a new file is created. Returns 0, or -1 with the reason in `why`
 * (BRIMFUL_WHY_BYTES). After a failure, `memory` is zero, and the server continues without recording. */
static inline int brimful_map(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    int result;

    memset(memory, 0, sizeof(*memory));
    why[0] = '\0';
    if (strncmp(settings->path, BRIMFUL_RUN "/", sizeof(BRIMFUL_RUN)) == 0) {
        /* The directory may be missing, because /run is empty after a boot. If it cannot be created, creating the file
         * fails below and reports why. */
        (void) brimful_make_root_directory(BRIMFUL_RUN);
    }
    result = brimful_map_existing(memory, settings, why);
    if (result == 1) {
        result = brimful_map_new(memory, settings, why);
    }
    if (result != 0) {
        memset(memory, 0, sizeof(*memory));
        return -1;
    }
    brimful_update_header(memory, settings);
    brimful_has_ticks = brimful_kernel_uses_ticks();
    return 0;
}

/* Unmaps the file in the calling process, unless `memory` is zero. */
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
