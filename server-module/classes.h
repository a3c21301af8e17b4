/*
 * Assigns requests to classes, by the size of the response body and by URL. Directives in the server's own
 * configuration define the classes.
 */
#ifndef BRIMFUL_CLASSES_H
#define BRIMFUL_CLASSES_H

#include <stdint.h>
#include <string.h>

#include "layout.h"
#include "words.h"

/* A rule for a class. A request that matches the rule belongs to the class. */
struct brimful_rule {
    uint64_t least, most; /* bounds of the body's size in bytes, inclusive */
    uint32_t by_url;      /* whether the rule is by URL; otherwise by size */
    uint32_t class_index; /* index of the class; BRIMFUL_MAX_CLASSES: the class "other", which always is the last one */
};

#define BRIMFUL_RULES_MOST 64u
#define BRIMFUL_PATTERN_BYTES 256u /* size of a pattern, including the zero byte at its end */

/* The settings of the module, from directives of the server's configuration. A struct that is all zero is valid. */
struct brimful_settings {
    const char *path;      /* absolute path of the file */
    const char *server;    /* name and version of the server, see brimful_header */
    uint32_t slots;
    uint32_t cpu_one_in;
    uint32_t workers_most; /* see brimful_header */
    unsigned classes;      /* number of classes, including the last class, "other"; 0 while there is no rule */
    char class_names[BRIMFUL_MAX_CLASSES][BRIMFUL_NAME_BYTES];
    unsigned rules;
    int by_url;            /* whether any rule is by URL; only then brimful_classify uses the path */
    struct brimful_rule rule[BRIMFUL_RULES_MOST];
    /* The URL patterns of the rules. They are matched with the path, without its query; `*` matches any text, including
     * slashes. They are not in struct brimful_rule, so that the sizes, which are compared for every request, are close
     * together in memory. */
    char pattern[BRIMFUL_RULES_MOST][BRIMFUL_PATTERN_BYTES];
};


/* Returns the index of the class with this name. Adds the class if it does not exist. Returns BRIMFUL_MAX_CLASSES for
 * the name "other", and -1 if there are too many classes. */
static inline int brimful_class_index(struct brimful_settings *settings, const char *name)
{
    unsigned index;

    if (settings->classes == 0) {
        settings->classes = 1;
        memset(settings->class_names[0], 0, BRIMFUL_NAME_BYTES);
        memcpy(settings->class_names[0], "other", sizeof("other"));
    }
    index = settings->classes - 1;
    if (strcmp(name, settings->class_names[index]) == 0) {
        return (int) BRIMFUL_MAX_CLASSES;
    }
    for (index = 0; index < settings->classes - 1; index++) {
        if (strcmp(name, settings->class_names[index]) == 0) {
            return (int) index;
        }
    }
    if (settings->classes == BRIMFUL_MAX_CLASSES) {
        return -1;
    }
    memcpy(settings->class_names[settings->classes], settings->class_names[settings->classes - 1], BRIMFUL_NAME_BYTES);
    memset(settings->class_names[settings->classes - 1], 0, BRIMFUL_NAME_BYTES);
    memcpy(settings->class_names[settings->classes - 1], name, strlen(name));
    return (int) settings->classes++ - 1;
}

/* Parses a decimal number. Returns a pointer to the text after the digits, or NULL if there are no digits or more than
 * 18. */
static inline const char *brimful_read_number(const char *text, uint64_t *number)
{
    const char *first = text;

    *number = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (text - first == 18) {
            return NULL;
        }
        *number = *number * 10 + (uint64_t) (*text - '0');
    }
    return text == first ? NULL : text;
}

/* Parses a rule: "size 0-4999", "size 5000-", or "url /images/" followed by a star. Returns NULL, or an error message
 * if the rule is not valid. */
static inline const char *brimful_read_rule(struct brimful_rule *rule, char *pattern, const char *text)
{
    memset(rule, 0, sizeof(*rule));
    memset(pattern, 0, BRIMFUL_PATTERN_BYTES);
    if (strncmp(text, "url ", 4) == 0) {
        text += 4;
        if ((*text != '/' && *text != '*') || strlen(text) >= BRIMFUL_PATTERN_BYTES) {
            return "a URL pattern begins with / or * and has at most 255 bytes, such as: url /images/*";
        }
        rule->by_url = 1;
        memcpy(pattern, text, strlen(text));
        return NULL;
    }
    if (strncmp(text, "size ", 5) != 0) {
        return "a rule is: size 0-4999, size 5000- or url /images/*";
    }
    text = brimful_read_number(text + 5, &rule->least);
    if (text == NULL || *text != '-') {
        return "sizes are bytes, such as: size 0-4999 or size 5000-";
    }
    rule->most = UINT64_MAX;
    if (text[1] != '\0') {
        text = brimful_read_number(text + 1, &rule->most);
        if (text == NULL || *text != '\0' || rule->most < rule->least) {
            return "sizes are bytes, the smaller one first, such as: size 0-4999 or size 5000-";
        }
    }
    return NULL;
}

/* Adds a rule for a class. Adds the class if it does not exist. A class may have several rules. Returns NULL, or an
 * error message if the rule was not added. */
static inline const char *brimful_add_rule(struct brimful_settings *settings, const char *class_name, const char *rule)
{
    struct brimful_rule read;
    char pattern[BRIMFUL_PATTERN_BYTES];
    const char *wrong = brimful_read_rule(&read, pattern, rule);
    const unsigned char *byte;
    int index;

    if (wrong != NULL) {
        return wrong;
    }
    if (class_name[0] == '\0' || strlen(class_name) >= BRIMFUL_NAME_BYTES) {
        return "the name of a class has 1 to 47 bytes";
    }
    for (byte = (const unsigned char *) class_name; *byte != '\0'; byte++) {
        if (*byte <= ' ' || *byte >= 0x7f || *byte == '"' || *byte == '\\') {
            return "the name of a class has letters, digits and signs, no spaces, quotes or backslashes";
        }
    }
    if (settings->rules == BRIMFUL_RULES_MOST) {
        return "there may be 64 rules at most";
    }
    index = brimful_class_index(settings, class_name);
    if (index < 0) {
        return "there may be 15 classes at most, besides \"other\"";
    }
    read.class_index = (unsigned) index;
    memcpy(settings->pattern[settings->rules], pattern, sizeof(pattern));
    settings->rule[settings->rules++] = read;
    settings->by_url |= (int) read.by_url;
    return NULL;
}

/* Adds the default rules, which assign requests to classes by size, if the configuration has no rules. The classes
 * "under-5k" to "over-500k" have the sizes of the files in WebStone's workloads A and B (tables 4 and 5 of Almeida,
 * Almeida & Yates 1997). "empty" is for responses without a body. */
static inline void brimful_default_rules(struct brimful_settings *settings)
{
    if (settings->rules == 0) {
        (void) brimful_add_rule(settings, "empty", "size 0-0");
        (void) brimful_add_rule(settings, "under-5k", "size 1-4999");
        (void) brimful_add_rule(settings, "5k-50k", "size 5000-49999");
        (void) brimful_add_rule(settings, "50k-100k", "size 50000-99999");
        (void) brimful_add_rule(settings, "100k-500k", "size 100000-499999");
        (void) brimful_add_rule(settings, "over-500k", "size 500000-");
    }
}

/* Returns whether the pattern matches the whole path. The time is at most proportional to the product of their lengths.
 * */
static inline int brimful_matches(const char *pattern, const char *path, size_t length)
{
    const char *end = path + length;
    const char *after_star = NULL, *resume = NULL;

    while (path < end) {
        if (*pattern == '*') {
            after_star = ++pattern;
            resume = path;
        } else if (*pattern != '\0' && *pattern == *path) {
            pattern++;
            path++;
        } else if (after_star != NULL) {
            pattern = after_star;
            path = ++resume;
        } else {
            return 0;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

/* Returns the class of a request, only by the size of its response body. Used if no rule has a URL pattern. */
static inline unsigned brimful_classify_size(const struct brimful_settings *settings, uint64_t bytes)
{
    unsigned other = settings->classes == 0 ? 0 : settings->classes - 1;
    const struct brimful_rule *rule = settings->rule, *end = rule + settings->rules;

    for (; rule < end; rule++) {
        if (bytes >= rule->least && bytes <= rule->most) {
            return rule->class_index < other ? rule->class_index : other;
        }
    }
    return other;
}

/* Returns the class of a request: the class of the first rule that matches, or "other". */
static __attribute__((noinline, unused)) unsigned brimful_classify(const struct brimful_settings *settings,
                                                                   const char *path, size_t length, uint64_t bytes)
{
    unsigned other = settings->classes == 0 ? 0 : settings->classes - 1;
    unsigned i;

    for (i = 0; i < settings->rules; i++) {
        const struct brimful_rule *rule = &settings->rule[i];
        int matches = rule->by_url ? brimful_matches(settings->pattern[i], path, length)
                                   : bytes >= rule->least && bytes <= rule->most;

        if (matches) {
            return rule->class_index < other ? rule->class_index : other;
        }
    }
    return other;
}

#endif
