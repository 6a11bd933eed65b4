/* A forked child uses the pool of its parent, and only frees what else it inherited. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    jct_pool_t *pool;
    jct_object_t *object, *answer;
    jct_follow_t *follow;
    int kind, status;
    OK(jct_pool_open(count > 1 ? words[1] : NULL, "schema=free", &pool));
    offer(pool, "parent", "of the parent");
    OK(jct_demand(pool, "name=parent", NULL, 60, &object));
    OK(jct_follow(pool, "name=nothing", NULL, &follow));
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        jct_object_t *mine;
        jct_follow_close(follow);
        jct_object_release(object);
        OK(jct_demand(pool, "name=parent", NULL, 60, &mine));
        EXPECT(holds(mine, "of the parent"));
        jct_object_release(mine);
        offer(pool, "child", "of the child");
        jct_pool_close(pool);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(jct_demand(pool, "name=child", NULL, 60, &answer));
    EXPECT(holds(answer, "of the child") && holds(object, "of the parent"));
    jct_object_release(answer);
    jct_object_release(object);
    OK(jct_follow_next(follow, 60, &object, &kind));
    EXPECT(kind == JCT_LIVE);
    jct_follow_close(follow);
    jct_pool_close(pool);
    puts("done");
    return 0;
}
