/*
 * Tests how the recorder creates its file if a file, link or directory with this name already exists. Prints the
 * failures and the number of checks. The argument is a directory for files: file_test DIR. Half of the checks must run
 * as root, because they act as another user.
 */
#include <sys/wait.h>

#include "check.h"

static void write_file(const char *path, const void *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t) size);
    (void) close(file);
}

static void foreign_files_are_refused_or_replaced(void)
{
    struct brimful_settings settings = settings_for("foreign");
    struct brimful_header header = {.magic = BRIMFUL_MAGIC, .layout = BRIMFUL_LAYOUT, .classes = 7, .slots = 1000};
    struct brimful_memory memory;
    char why[BRIMFUL_WHY_BYTES], other[PATH_MAX];
    struct stat about;

    write_file(settings.path, "garbage", 7);
    CHECK(brimful_map(&memory, &settings, why) == 0);
    CHECK(stat(settings.path, &about) == 0 && (size_t) about.st_size == memory.size && (about.st_mode & 0777) == 0644);
    /* All space must be allocated, because the file system may be full later. */
    CHECK(about.st_blocks * 512 >= about.st_size);
    brimful_unmap(&memory);

    header.header_size = (uint32_t) brimful_header_size();
    header.slot_size = (uint32_t) brimful_slot_size(7);
    memcpy(header.class_names, settings.class_names, sizeof(header.class_names));
    memcpy(header.server, "test/1.0", sizeof("test/1.0"));
    write_file(settings.path, &header, sizeof(header)); /* a truncated file: only the header, without slots */
    CHECK(brimful_map(&memory, &settings, why) == 0 && memory.slots == 3);
    brimful_unmap(&memory);

    (void) snprintf(other, sizeof(other), "%s.link", settings.path);
    (void) unlink(other);
    CHECK(symlink(settings.path, other) == 0);
    settings.path = other;
    CHECK(brimful_map(&memory, &settings, why) == -1 && strstr(why, "symbolic link") != NULL && memory.header == NULL);
    CHECK(unlink(other) == 0 && link(path_of("foreign"), other) == 0);
    CHECK(brimful_map(&memory, &settings, why) == -1);
    CHECK(unlink(other) == 0 && mkfifo(other, 0600) == 0);
    CHECK(brimful_map(&memory, &settings, why) == -1 && strstr(why, "not a file") != NULL);
    CHECK(unlink(other) == 0 && mkdir(other, 0700) == 0);
    CHECK(brimful_map(&memory, &settings, why) == -1 && why[0] != '\0');
    CHECK(rmdir(other) == 0);
    settings.path = "/does/not/exist/at-all";
    CHECK(brimful_map(&memory, &settings, why) == -1 && strstr(why, "/does/not/exist/at-all") != NULL);
    CHECK(brimful_claim(&memory, 1, 1) == NULL);
}

static void another_owner_is_refused(void)
{
    struct brimful_settings settings = settings_for("owner");
    struct brimful_memory memory;
    char why[BRIMFUL_WHY_BYTES];

    write_file(settings.path, "", 0);
    if (geteuid() != 0) {
        return; /* only root can create another user's file */
    }
    CHECK(chown(settings.path, 65534, 65534) == 0);
    CHECK(brimful_map(&memory, &settings, why) == -1 && strstr(why, "another user") != NULL);
}

static void sizes_are_those_that_were_checked(void)
{
    struct brimful_settings settings = settings_for("sizes");
    struct brimful_memory memory, other;
    char why[BRIMFUL_WHY_BYTES];

    CHECK(brimful_map(&other, &settings, why) == 0);
    memset(&memory, 0, sizeof(memory));
    CHECK(brimful_map_existing(&memory, &settings, why) == 0);
    other.header->slots = UINT32_MAX; /* changes the header like another process, just after the check of the header */
    other.header->slot_size = UINT32_MAX;
    other.header->header_size = UINT32_MAX;
    brimful_update_header(&memory, &settings);
    CHECK(memory.slots == 3 && memory.slot_size == brimful_slot_size(7));
    CHECK(memory.header_size == brimful_header_size());
    brimful_unmap(&memory);
    brimful_unmap(&other);
}

/* Returns whether a server with these settings can create its file at the path in the settings. Removes the file. */
static int gets_a_file(const struct brimful_settings *settings, char *why)
{
    struct brimful_memory memory;
    struct stat about;
    int maps = brimful_map(&memory, settings, why) == 0;

    brimful_unmap(&memory);
    return maps && lstat(settings->path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid()
           && unlink(settings->path) == 0;
}

/* Runs a child process as another user. The child must be able to create a file at `path`, in the sticky directory; if
 * `gets` is 0, it must fail with the right message. Returns the exit status of the child, which is 0 if its checks
 * succeed. The path is relative, because the other user may not have access to the parent directories. */
static int status_of_another_user(const char *path, int gets)
{
    struct brimful_settings settings = settings_for("");
    char why[BRIMFUL_WHY_BYTES];
    int status = 1;
    pid_t child = fork();

    settings.path = path;
    if (child == 0) {
        int able = chdir(path_of("sticky")) == 0 && setuid(65534) == 0;
        int got = gets_a_file(&settings, why);

        _exit(!(able && got == gets && (gets || strstr(why, "remove it as root") != NULL)));
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static void what_others_planted_in_a_sticky_directory_is_replaced(void)
{
    struct brimful_settings settings = settings_for("sticky/planted");
    char why[BRIMFUL_WHY_BYTES], path[PATH_MAX];
    int i;

    (void) snprintf(path, sizeof(path), "%s", settings.path);
    settings.path = path;
    CHECK(mkdir(path_of("sticky"), 0700) == 0 && chmod(path_of("sticky"), 01777) == 0);
    for (i = 0; i < 4; i++) {
        if (i == 0) {
            write_file(path, "garbage", 7);
        } else {
            CHECK((i == 1 ? symlink("/etc/hostname", path) : i == 2 ? mkfifo(path, 0600) : mkdir(path, 0700)) == 0);
        }
        CHECK(geteuid() != 0 || lchown(path, 65534, 65534) == 0);
        CHECK(gets_a_file(&settings, why));
    }
    if (geteuid() != 0) {
        return; /* only root can become another user */
    }
    write_file(path, "root's", 6);
    CHECK(status_of_another_user("./planted", 0) == 0 && status_of_another_user("./free", 1) == 0);
    write_file(path_of("sticky/free.new"), "root's", 6); /* the first name that the other user tries */
    CHECK(status_of_another_user("./free", 1) == 0);
}

static void roots_directory_is_only_roots_to_write(void)
{
    char path[PATH_MAX];
    struct stat about;

    (void) snprintf(path, sizeof(path), "%s", path_of("root"));
    if (geteuid() != 0) {
        CHECK(brimful_make_root_directory(path) == -1 && errno == EPERM);
        return;
    }
    (void) umask(077);
    CHECK(brimful_make_root_directory(path) == 0 && stat(path, &about) == 0 && (about.st_mode & 07777) == 0755);
    (void) umask(022);
    CHECK(chmod(path, 0777) == 0 && brimful_make_root_directory(path) == 0);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0755);
    CHECK(chown(path, 65534, 65534) == 0 && brimful_make_root_directory(path) == -1);
    CHECK(rmdir(path) == 0 && symlink("/tmp", path) == 0 && brimful_make_root_directory(path) == -1);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "error: name a directory to write to\n");
        return 2;
    }
    directory = arguments[1];
    foreign_files_are_refused_or_replaced();
    another_owner_is_refused();
    sizes_are_those_that_were_checked();
    what_others_planted_in_a_sticky_directory_is_replaced();
    roots_directory_is_only_roots_to_write();
    printf("%u checks, %u failed\n", checks, failures);
    return failures == 0 ? 0 : 1;
}
