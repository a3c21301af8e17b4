/*
 * The default path of the recorder's file, and the rules for replacing another user's file at this path.
 *
 * A server that root starts has its file in BRIMFUL_RUN, where only root can create files. Any other server has its
 * file in /dev/shm, where every user can create files. So another user may already have created a file, link or
 * directory of this name there.
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

/* The path of the file if the configuration does not name a path. `server` is a string constant, such as "nginx". */
#define BRIMFUL_DEFAULT_PATH(server) \
    brimful_default_path(BRIMFUL_RUN "/" server, BRIMFUL_SHM "/brimful-" server)


/* Creates a directory that every user may read and only root may write to. An existing directory gets the same
 * permissions if it belongs to root. Returns 0, or -1 and sets errno. Fails if this process does not run as root. */
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
            /* The permissions may differ, because of the umask or because an administrator has changed them. */
            result = (about.st_mode & 07777) == 0755 ? 0 : fchmod(directory, 0755);
        }
    }
    (void) close(directory);
    return result;
}

/* Returns whether the files of a directory are in memory. In most containers, the files in /run are on a disk. A worker
 * that writes to a mapped file on a disk may have to wait for the disk. */
static inline int brimful_is_in_memory(const char *directory)
{
    struct statfs about;

    return statfs(directory, &about) == 0
           && ((uint32_t) about.f_type == TMPFS_MAGIC || (uint32_t) about.f_type == RAMFS_MAGIC);
}

/* Returns `of_root` if this process runs as root, /run is in memory and BRIMFUL_RUN exists or could be created.
 * Otherwise returns `of_others`. */
static inline const char *brimful_default_path(const char *of_root, const char *of_others)
{
    return geteuid() == 0 && brimful_is_in_memory("/run") && brimful_make_root_directory(BRIMFUL_RUN) == 0 ? of_root
                                                                                                          : of_others;
}

/* Returns whether a path is in a sticky directory, such as /dev/shm. There, only root and the owner of the directory
 * can replace another user's file, and no server depends on another user's file. */
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
