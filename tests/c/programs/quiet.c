/* Opening a served pool starts no thread and sets no signal handler. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"

#include <dirent.h>
#include <signal.h>

static int threads(void) {
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        found += task->d_name[0] != '.';
    closedir(tasks);
    return found;
}

static int handlers(void) {
    int found = 0;
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0)
            found += action.sa_handler != SIG_DFL;
    }
    return found;
}

int main(int count, char **words) {
    jct_pool_t *pool;
    jct_object_t *object;
    int before = handlers();
    EXPECT(count > 1 && threads() == 1);
    OK(jct_pool_open(words[1], NULL, &pool));
    EXPECT(threads() == 1);
    offer(pool, "a", "payload");
    OK(jct_demand(pool, "name=a", NULL, 60, &object));
    jct_object_release(object);
    EXPECT(threads() == 1 && handlers() == before);
    jct_pool_close(pool);
    puts("done");
    return 0;
}
