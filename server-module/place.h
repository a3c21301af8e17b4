/*
 * The default path of the file, and the rules for replacing a foreign file at that path.
 *
 * A server that root starts has its file in BRIMFUL_RUN, where only root can create files. Any other server has it in
 * /dev/shm, where every user can create files: another user's file, link or directory may already have the name.
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

/* The path if the configuration names none. `server` is a string constant, such as "nginx". */
#define BRIMFUL_DEFAULT_PATH(server) \
    brimful_default_path(BRIMFUL_RUN "/" server, BRIMFUL_SHM "/brimful-" server)


/* Makes a directory that every user may read and only root may write to, or accepts an existing directory of root.
 * Returns 0, or -1 and sets errno. Only root can do this. */
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
            /* The umask may have removed permissions, and an administrator may have added some. */
            result = (about.st_mode & 07777) == 0755 ? 0 : fchmod(directory, 0755);
        }
    }
    (void) close(directory);
    return result;
}

/* Whether files of this directory are in memory. If they are on a disk, as the files in /run are in most containers, a
 * worker that writes to the mapped file may have to wait for the disk. */
static inline int brimful_is_in_memory(const char *directory)
{
    struct statfs about;

    return statfs(directory, &about) == 0
           && ((uint32_t) about.f_type == TMPFS_MAGIC || (uint32_t) about.f_type == RAMFS_MAGIC);
}

/* Returns `of_root` if this process runs as root and /run is in memory, else `of_others`. */
static inline const char *brimful_default_path(const char *of_root, const char *of_others)
{
    return geteuid() == 0 && brimful_is_in_memory("/run") && brimful_make_root_directory(BRIMFUL_RUN) == 0 ? of_root
                                                                                                          : of_others;
}

/* Whether a path is in a sticky directory, like /dev/shm. Only root and the owner of such a directory can replace
 * another user's file in it, and no server depends on such a file. */
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
