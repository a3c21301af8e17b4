/*
 * The default path of the recorder's file, and the rules for a file of another user at this path.
 *
 * If root starts the server, the file is in BRIMFUL_RUN, where only root can create files. Otherwise, the file is in
 * /dev/shm, where every user can create files. So another user may have created a file, link or directory with the same
 * name there.
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

/* The default path of the file, for a configuration without a path. `server` is a string constant such as "nginx". */
#define BRIMFUL_DEFAULT_PATH(server) \
    brimful_default_path(BRIMFUL_RUN "/" server, BRIMFUL_SHM "/brimful-" server)


/* Creates a directory that every user may read and only root may write to. If the directory exists and belongs to root,
 * its permissions are corrected. Returns 0, or -1 and sets errno. Fails if this process does not run as root. */
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
            /* Correct the permissions: they may differ because of the umask, or because an administrator has changed
             * them. */
            result = (about.st_mode & 07777) == 0755 ? 0 : fchmod(directory, 0755);
        }
    }
    (void) close(directory);
    return result;
}

/* Returns whether the files of a directory are in memory. In most containers, /run is on a disk: a worker that writes
 * to a mapped file there may have to wait for the disk. */
static inline int brimful_is_in_memory(const char *directory)
{
    struct statfs about;

    return statfs(directory, &about) == 0
           && ((uint32_t) about.f_type == TMPFS_MAGIC || (uint32_t) about.f_type == RAMFS_MAGIC);
}

/* Returns the path `of_root` if this process runs as root, /run is in memory, and BRIMFUL_RUN exists or could be
 * created. Otherwise returns the path `of_others`. */
static inline const char *brimful_default_path(const char *of_root, const char *of_others)
{
    return geteuid() == 0 && brimful_is_in_memory("/run") && brimful_make_root_directory(BRIMFUL_RUN) == 0 ? of_root
                                                                                                          : of_others;
}

/* Returns whether a path is in a sticky directory, such as /dev/shm. In a sticky directory, only root and the
 * directory's owner can replace a file of another user. No server may rely on such a file. */
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
