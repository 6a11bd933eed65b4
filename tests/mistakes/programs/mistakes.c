/* Typical mistakes in C: prints the name of each call, and the error that it leaves. tests/mistakes/c.yaml has what each
   message must contain. The first argument is the address of a pool. */
#include <junctura.h>
#include <stdio.h>
#include <string.h>

static void tell(const char *call, int code) {
    const char *text = code == JCT_OK ? "nothing is returned" : jct_error_text();
    printf("%s\t", call);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else
            putchar(*text);
    }
    putchar('\n');
}

int main(int count, char **words) {
    jct_pool_t *pool, *none;
    jct_object_t *object;
    jct_layout_t *layout;
    jct_attributes_t *key = jct_attributes_new();
    if (count < 2 || !key || jct_pool_open(words[1], NULL, &pool) != JCT_OK)
        return 1;
    tell("open_without_scheme", jct_pool_open("model", NULL, &none));
    tell("open_nobody", jct_pool_open("unix:modle", NULL, &none));
    tell("open_unknown_option", jct_pool_open(words[1], "shema=free", &none));
    tell("open_unknown_schema", jct_pool_open(NULL, "schema=fre", &none));
    tell("offer_without_key", jct_offer(pool, key, "x", 1, "schema=free"));
    tell("offer_without_data", jct_offer(pool, key, NULL, 1, NULL));
    tell("demand_nothing", jct_demand(pool, "name=none", NULL, 0, &object));
    tell("demand_unknown_option", jct_demand(pool, "name=a", "requirment=x", 0, &object));
    tell("layout_without_grid", jct_layout_parse("shape=4x4 grid=3x", &layout));
    jct_attributes_free(key);
    jct_pool_close(pool);
    return 0;
}
