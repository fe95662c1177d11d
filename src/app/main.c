/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("lunpath " LP_VERSION);
        return 0;
    }
    fputs("usage: lunpath COMMAND [OPTION ...]\n", stderr);
    return 2;
}
