/* Records that hutch keeps beside a layer, or sends to itself, were they damaged: the first byte chooses. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/event.h"
#include "base/io.h"
#include "base/macro.h"
#include "base/wire.h"
#include "layer/meta.h"
#include "policy/policy.h"
#include "review/base.h"
#include "review/index.h"

static void read_file(const char *name, const uint8_t *data, size_t len) {
        char path[] = "/tmp/hutch-fuzz.XXXXXX";
        _cleanup_(closep) int dir = -1, file = -1;

        if (!mkdtemp(path) || (dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
                return;
        file = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0 && write_all(file, data, len) == 0) {
                struct layer_meta meta = {0};
                struct base base = {0};
                struct index index = {0};

                if (name[0] == 'b')
                        base_load(dir, &base, NULL);
                else if (name[0] == 'i')
                        index_load(dir, &index);
                else
                        layer_meta_read(dir, name, &meta);
                base_done(&base);
                index_done(&index);
                layer_meta_done(&meta);
        }
        unlinkat(dir, name, 0);
        rmdir(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        struct wire_reader r = {.data = data + 1, .left = len > 0 ? len - 1 : 0};

        if (len == 0)
                return 0;
        if (data[0] == 'e') {
                struct events events = {0};

                events_get(&r, &events);
                events_done(&events);
        } else if (data[0] == 'p') {
                _cleanup_(policy_freep) struct hutch_policy *policy = NULL;

                policy_decode(&r, &policy);
        } else
                read_file(data[0] == 'b' ? "base" : data[0] == 'i' ? "index" : "meta", data + 1, len - 1);
        return 0;
}
