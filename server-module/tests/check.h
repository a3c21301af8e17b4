/*
 * Helpers for the recorder's tests: they count checks, and provide a directory for files.
 */
#ifndef BRIMFUL_CHECK_H
#define BRIMFUL_CHECK_H

#include "../recorder.h"

static unsigned checks, failures;

#define CHECK(condition)                                                       \
    do {                                                                       \
        checks++;                                                              \
        if (!(condition)) {                                                    \
            failures++;                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                      \
    } while (0)

static const char *directory;

/* Returns the path of a file in the directory of the test. The next call overwrites the returned string. */
static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static struct brimful_settings settings_for(const char *name)
{
    struct brimful_settings settings = {.server = "test/1.0", .slots = 3, .cpu_one_in = 1};

    settings.path = path_of(name);
    brimful_default_rules(&settings);
    return settings;
}

#endif
