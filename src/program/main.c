/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program gmxfmm. */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "main_run.h"

/* GCC's OpenMP lets a thread that waits spin for milliseconds, which on a busy machine takes the processor from the
 * threads that it waits for. It reads how long before main() begins, so the program starts itself once more. Where that
 * fails it goes on as it is. */
static void wait_briefly(char* arguments[])
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || setenv("GOMP_SPINCOUNT", "3000", 1))
    {
        return;
    }
    execv("/proc/self/exe", arguments);
    unsetenv("GOMP_SPINCOUNT");
}

int main(int count, char* arguments[])
{
    wait_briefly(arguments);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit of the shell is then a failed write, with a message */
    return main_run(count, arguments, NULL);
}
