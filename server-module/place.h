/*
 * Where the file is, and what may be done with something else that has its name.
 *
 * A server that root starts has its file in BRIMFUL_RUN, where only root can make files. Any other server has it in
 * /dev/shm, where every user can: there, a file, a link or a directory of another user may already have the name.
 */
#ifndef BRIMFUL_PLACE_H
#define BRIMFUL_PLACE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BRIMFUL_RUN "/run/brimful"
#define BRIMFUL_SHM "/dev/shm"

/* The file of the server of this name, a string constant, if its configuration names none. */
#define BRIMFUL_DEFAULT_PATH(server) \
    brimful_default_path(BRIMFUL_RUN "/" server, BRIMFUL_SHM "/brimful-" server)


/* Makes a directory that every user may read and only root may write to, or accepts the one that exists. 0, or -1 and
 * errno. Only root can do this. */
static inline int brimful_make_root_directory(const char *path)
{
    struct stat about;
    int result = -1, directory;

    if (geteuid() != 0) {
        errno = EPERM;
        return -1;
    }
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return -1;
    }
    directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) {
        return -1;
    }
    if (fstat(directory, &about) == 0) {
        if (about.st_uid != 0) {
            errno = EPERM;
        } else {
            /* The umask may have closed it; an administrator may have opened it. */
            result = (about.st_mode & 07777) == 0755 ? 0 : fchmod(directory, 0755);
        }
    }
    (void) close(directory);
    return result;
}

/* Whether files of this directory are in memory. On a disk, a worker that writes to the mapped file may have to wait
 * for the disk: in most containers /run is on one. */
static inline int brimful_is_in_memory(const char *directory)
{
    struct statfs about;

    return statfs(directory, &about) == 0
           && ((uint32_t) about.f_type == TMPFS_MAGIC || (uint32_t) about.f_type == RAMFS_MAGIC);
}

/* The one of root's, if this process is root's and /run is in memory. */
static inline const char *brimful_default_path(const char *of_root, const char *of_others)
{
    return geteuid() == 0 && brimful_is_in_memory("/run") && brimful_make_root_directory(BRIMFUL_RUN) == 0 ? of_root
                                                                                                          : of_others;
}

/* Whether a path is of a sticky directory, like /dev/shm: whoever may replace a file of another user there is root or
 * owns the directory, and no server relies on what another user left there. */
static inline int brimful_is_in_sticky(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    struct stat about;

    if (slash == NULL
        || snprintf(directory, sizeof(directory), "%.*s/", (int) (slash - path), path) >= (int) sizeof(directory)) {
        return 0;
    }
    return stat(directory, &about) == 0 && (about.st_mode & S_ISVTX) != 0;
}

#endif
