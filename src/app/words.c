/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a word in a list, and the one that was most likely meant. */
#include "app/options.h"

#include <string.h>

enum { MAX_WORD = 63 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Three rows of the usual table are enough: a swap looks two rows back. */
unsigned words_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    unsigned rows[3][MAX_WORD + 1];

    if (na > MAX_WORD || nb > MAX_WORD)
        return MAX_WORD + 1;
    for (unsigned k = 0; k <= nb; k++)
        rows[0][k] = k;
    for (unsigned i = 1; i <= na; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned k = 1; k <= nb; k++) {
            row[k] = least(above[k - 1] + (a[i - 1] != b[k - 1]), least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = least(row[k], two_above[k - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

static bool same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == ' ') && (*b == '-' || *b == ' ')))
            return false;
    return *a == *b;
}

int words_find(const char *(*words)(unsigned i), const char *text)
{
    for (unsigned i = 0; words(i); i++)
        if (same_word(words(i), text))
            return (int)i;
    return -1;
}

const char *words_nearest(const char *(*words)(unsigned i), const char *text)
{
    /* Of a short word less may be wrong before it is another word. */
    unsigned best = (unsigned)least((unsigned)strlen(text) / 2, 3) + 1;
    const char *nearest = NULL;

    for (unsigned i = 0; words(i); i++) {
        unsigned distance = words_distance(words(i), text);
        if (distance < best) {
            best = distance;
            nearest = words(i);
        }
    }
    return nearest;
}
