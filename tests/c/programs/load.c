/* Loads and unloads the library many times, and uses it each time. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    if (count < 3)
        return 2;
    for (int times = atoi(words[2]); times > 0; times--) {
        void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        uint32_t (*abi)(void);
        void *(*make)(void);
        int (*clear)(void *);
        void (*destroy)(void *);
        *(void **)&abi = dlsym(library, "jct_abi");
        *(void **)&make = dlsym(library, "jct_attributes_new");
        *(void **)&clear = dlsym(library, "jct_attributes_clear");
        *(void **)&destroy = dlsym(library, "jct_attributes_free");
        void *attributes = make();
        if (abi() != 0 || !attributes || clear(attributes) != 0 || clear(NULL) != 7)
            return 1;
        destroy(attributes);
        dlclose(library);
    }
    puts("done");
    return 0;
}
